"""The front end: the module that brings pictures to life, and how it gets to the page.

`page/` holds its TypeScript sources; `page/dtflab.js`, which esbuild makes of them, is in the repository. In a notebook
a widget without a view brings it: its front end loads the module once, which then looks for pictures, those of saved
cells too. So a picture stays HTML that needs no widget, and is a still where there is no front end.

Rule: nothing here is needed to draw. Without anywidget there are stills.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import itertools
import json
import secrets
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dtflab.machine.console import in_notebook
from dtflab.viz.drawing.svg import Markup

MODULE = Path(__file__).parent.parent / "page" / "dtflab.js"
Answer = Callable[[Any, Callable[[Mapping[str, Any]], None]], object]
_SHORT = 20_000  # characters that need not be deflated

KERNEL = secrets.token_hex(8)  # its name on pages
_numbers = itertools.count(1)
_answers: dict[str, Answer] = {}  # by picture
_widgets: list[Any] = []  # the one of this kernel


def begin() -> None:
    """Bring the module to this kernel's pages, unless that has been done."""
    if _widgets or not in_notebook() or importlib.util.find_spec("anywidget") is None:
        return
    import anywidget
    import traitlets

    members = {"_esm": MODULE.read_text(encoding="utf-8"), "kernel": traitlets.Unicode(KERNEL).tag(sync=True)}
    widget = type("Pictures", (anywidget.AnyWidget,), members)()
    widget.on_msg(lambda _, message, buffers: _answer(**message))
    # ipykernel answers where a widget was last written: in a cell, which may be busy. JupyterLab has a subshell for it.
    widget.comm._reply_subshell_for = lambda data, chosen: chosen
    _widgets.append(widget)


def is_heard() -> bool:
    """Whether there is a way to this kernel's pages."""
    return bool(_widgets)


def _answer(picture: str, asks: Any) -> None:
    _answers[picture](asks, functools.partial(tell, picture))


def in_touch(answer: Answer) -> dict[str, str]:
    """The entries of a picture's data that let it ask this kernel, which calls `answer` with what is asked.

    It is called on the thread on which JupyterLab's messages arrive, also while a cell runs, and with the function by
    which it says something to the picture.
    """
    picture = str(next(_numbers))
    _answers[picture] = answer
    return {"kernel": KERNEL, "picture": picture}


def tell(picture: str, says: Mapping[str, Any]) -> None:
    """Say something to a picture that is shown now; from any thread."""
    for widget in _widgets:
        widget.send({"picture": picture, "says": says})


def written(data: Mapping[str, Any]) -> Markup:
    """The data of a picture as JSON that can stand in a page, of HTML or XML; if it is long, deflated, in base64."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if len(text) > _SHORT:
        text = json.dumps(base64.b64encode(zlib.compress(text.encode(), 6)).decode())
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))

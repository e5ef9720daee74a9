"""The front end: the module that brings pictures to life, and how it gets to the page.

`page/` holds its TypeScript sources; `page/dtflab.js`, which esbuild makes of them, is in the repository. In a notebook
a widget without a view brings it: its front end loads the module once, which then looks for pictures, those of saved
cells too. So a picture stays HTML that needs no widget, and is a still where there is no front end.

Rule: nothing here is needed to draw. Without anywidget there are stills.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtflab.machine.console import in_notebook
from dtflab.viz.drawing.svg import Markup

MODULE = Path(__file__).parent.parent / "page" / "dtflab.js"
_SHORT = 20_000  # characters that need not be deflated

_widgets: list[Any] = []  # the one of this kernel


def begin() -> None:
    """Bring the module to this kernel's pages, unless that has been done."""
    if _widgets or not in_notebook() or importlib.util.find_spec("anywidget") is None:
        return
    import anywidget

    _widgets.append(type("Pictures", (anywidget.AnyWidget,), {"_esm": MODULE.read_text(encoding="utf-8")})())


def written(data: Mapping[str, Any]) -> Markup:
    """The data of a picture as JSON that can stand in a page; if it is long, a text with the deflated JSON."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if len(text) > _SHORT:
        text = json.dumps(base64.b64encode(zlib.compress(text.encode(), 6)).decode())
    return Markup(text.replace("<", "\\u003c"))

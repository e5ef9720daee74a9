"""Sliders above a picture: move one, and the picture is drawn again.

    explore(draw, workers=Slider([1, 2, 4, 8], 2, "More workers, more messages."))

`draw(workers=2)` returns what is shown, or yields it bit by bit. As the cluster panel, the picture is an output that is
replaced, not a widget: so it is still there in a saved notebook, an untrusted one and on a page that nbconvert made.

A page has no kernel that could draw. For its sliders, `.everywhere()` has the pictures of all places drawn and put
into the notebook; `dtflab export --run --html` asks for that by a variable of the environment, and names a file that
keeps what is drawn. After an interruption, a picture of the same cells and place is taken from there.

Rules: drawing has a thread of its own, so that a slider never sticks; where values come faster than pictures, those in
between are left out. The last value always gets its picture.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import html
import inspect
import itertools
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import GeneratorType
from typing import Any, NamedTuple

from IPython.core.formatters import DisplayFormatter
from IPython.core.getipython import get_ipython
from IPython.display import display

from dtflab.machine.clock import REAL
from dtflab.machine.console import in_notebook
from dtflab.notebook.export import DRAWN, EVERYWHERE, TOLD
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.picture import without_still
from dtflab.viz.drawing.style import PROJECTOR, current
from dtflab.viz.drawing.svg import tag

TIMES_TOLD = 20  # while the pictures of all places are drawn
_GOLDEN = 0.618034  # its multiples fill the space between 0 and 1 evenly
_NOTHING = {"text/plain": ""}  # where widgets don't run


class Slider(NamedTuple):
    """The values of a slider, the one it begins with, and a sentence on what to look for."""

    values: Sequence[Any]
    start: Any
    says: str
    unit: str = ""

    def text(self, value: Any) -> str:
        return f"{value} {self.unit}".rstrip()


class Explorer:
    """Sliders and what `draw` makes of their values; `.values` are those of now, `.set(workers=8)` moves one."""

    def __init__(self, draw: Callable[..., Any], sliders: dict[str, Slider]) -> None:
        for name, slider in sliders.items():
            if slider.start not in slider.values:
                raise ValueError(f"{name} begins at {slider.start!r}, which is not one of its values {slider.values}.")
        self._draw = draw
        self.sliders = sliders
        self.values = {name: slider.start for name, slider in sliders.items()}  # replaced, never changed
        self.widgets: dict[str, Any] = {}  # the sliders that are shown
        self._status: Any = None
        self._picture: Any = None
        self._lock = threading.Lock()
        self._wanted: dict[str, Any] | None = None  # values that have no picture yet
        self._drawing = False
        self._is_everywhere = os.environ.get(EVERYWHERE) == "1"
        self.still = REAL.event()  # what is shown is what the sliders say

    @property
    def code(self) -> str:
        """The picture of now, as a line for a cell."""
        return self._code(self.values)

    def set(self, **values: Any) -> None:
        """Move sliders, then draw once. ValueError for a value, KeyError for an unknown slider."""
        for name, value in values.items():
            if value not in self.sliders[name].values:
                raise ValueError(f"{name} can be {self.sliders[name].values}, not {value!r}.")
        with self._lock:
            self.values = self.values | values
        for name in values.keys() & self.widgets.keys():
            self.widgets[name].value = values[name]
        self._want()

    def everywhere(self) -> Explorer:
        """Let it draw the pictures of all places when it is shown, so that a page without a kernel has them."""
        self._is_everywhere = True
        return self

    def _ipython_display_(self) -> None:
        if in_notebook():
            self._show_sliders()
        self._picture = last = None  # shown again, it begins again
        self._tell("drawing …")
        for last in self._pictures(self.values):  # here and now: a run without a front end has a picture, too
            if in_notebook():
                self._show(last)
        self._tell("")
        if not in_notebook():
            print(last)
        elif self._is_everywhere:
            front_end.begin()
            self._show_everywhere()
        self.still.set()

    def _show_everywhere(self) -> None:
        """Draw the last picture of each place, saying how far it is, and show them all.

        Places that only the last slider tells apart may share work, so they are drawn one after the other. Such rows
        come from all over, so that their time says how long the rest takes.
        """
        values = itertools.product(*(slider.values for slider in self.sliders.values()))
        places = [dict(zip(self.sliders, place, strict=True)) for place in values]
        row = len([*self.sliders.values()][-1].values)
        path = os.environ.get(DRAWN, os.devnull)
        keys, pictures = [_key(self._code(place)) for place in places], _kept(path)
        missing = [i for i, key in enumerate(keys) if key not in pictures]
        missing.sort(key=lambda i: (i // row * _GOLDEN % 1, i))
        kept, count, began = len(places) - len(missing), len(missing), REAL.now()
        shown: Any = display(_so_far(0, count, 0.0, kept), raw=True, metadata=TOLD, display_id=True)
        with open(path, "a", encoding="utf-8") as file:
            for done, i in enumerate(missing, start=1):
                pictures[keys[i]] = without_still(self._html(places[i]))
                file.write(f"\n{json.dumps({keys[i]: pictures[keys[i]]})}")
                file.flush()
                if done * TIMES_TOLD // count > (done - 1) * TIMES_TOLD // count:
                    shown.update(_so_far(done, count, REAL.now() - began, kept), raw=True, metadata=TOLD)
        shown.update({"text/html": self._all(places, [pictures[key] for key in keys])} | _NOTHING, raw=True)

    def _all(self, places: Sequence[dict[str, Any]], pictures: Sequence[str]) -> str:
        """The data of the front end's view `sliders`: the sliders, and the picture of each of their places."""
        data = {
            "view": "sliders",
            "kernel": front_end.KERNEL,
            "sliders": [
                {"name": _label(name), "says": one.says, "at": one.values.index(self.values[name]),
                 "texts": [one.text(value) for value in one.values]}
                for name, one in self.sliders.items()
            ],
            "codes": [self._code(place) for place in places],
            "pictures": pictures,
        }  # fmt: skip
        written = tag("script", front_end.written(data), type="application/json", class_="dtf-data")
        return tag("div", written, class_="dtf-everywhere")

    def _show_sliders(self) -> None:
        try:
            import ipywidgets
        except ImportError:  # then there is the picture, and `draw` for other values
            return
        # Two sliders in a row, each above its sentence; on a projector one, next to it.
        large = current() is PROJECTOR
        pair, layout = (
            (ipywidgets.HBox, {"width": "36em", "flex": "0 0 auto"}) if large else (ipywidgets.VBox, {"width": "29em"})
        )
        pairs = []
        for name, slider in self.sliders.items():
            options = [(slider.text(value), value) for value in slider.values]
            self.widgets[name] = widget = ipywidgets.SelectionSlider(
                options=options, value=self.values[name], description=_label(name), continuous_update=False,
                style={"description_width": "9em" if large else "7em"}, layout=layout,
            )  # fmt: skip
            widget.observe(functools.partial(self._moved, name), "value")
            pairs.append(pair([widget, ipywidgets.HTML(f"<small>{html.escape(slider.says)}</small>")]))
        self._status = ipywidgets.HTML()
        self._tell("")
        rows = ipywidgets.Box(pairs, layout={"flex_flow": "column" if large else "row wrap"})
        box = ipywidgets.VBox([rows, self._status])
        box.add_class("dtf-sliders")
        bundle = box._repr_mimebundle_()
        display({**bundle, **_NOTHING}, raw=True)

    def _moved(self, name: str, change: Any) -> None:
        """A slider is somewhere else: by hand; or by `set`, which has stored its value and asks for the picture."""
        with self._lock:
            if self.values[name] == change["new"]:
                return
            self.values = self.values | {name: change["new"]}
        self._want()

    def _want(self) -> None:
        """Ask for the picture of the values of now."""
        with self._lock:
            self._wanted = self.values
            self.still.clear()
            if self._drawing:
                return
            self._drawing = True
        REAL.spawn(self._draw_until_still, name="dtflab-explorer")

    def _draw_until_still(self) -> None:
        while True:
            with self._lock:
                values, self._wanted = self._wanted, None
                if values is None:
                    self._drawing = False
                    self.still.set()
                    return
            self._tell("drawing …")
            for picture in self._pictures(values):
                self._show(picture)
                if self._overtaken():
                    break
            self._tell("")

    def _overtaken(self) -> bool:
        return self._wanted is not None

    def _code(self, values: dict[str, Any]) -> str:
        """A line for a cell that shows the picture of some values; of those that come bit by bit, the last."""
        call = f"{self._draw.__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
        return f"[*{call}][-1]" if inspect.isgeneratorfunction(self._draw) else call

    def _pictures(self, values: dict[str, Any]) -> Iterator[Any]:
        """The pictures that `draw` returns, or yields one after the other; the text of its error."""
        try:
            drawn = self._draw(**values)
            yield from drawn if isinstance(drawn, GeneratorType) else [drawn]
        except Exception as error:
            yield f"{self._code(values)}: {type(error).__name__}: {error}"

    def _html(self, values: dict[str, Any]) -> str:
        """The last picture of some values, as it stands in a page."""
        bundle = _bundle(deque(self._pictures(values), maxlen=1).pop())
        return bundle.get("text/html") or f"<pre>{html.escape(bundle['text/plain'])}</pre>"

    def _show(self, picture: Any) -> None:
        if self._picture is None:
            self._picture = display(_marked(_bundle(picture)), raw=True, display_id=True)
        else:
            self._picture.update(_marked(_bundle(picture)), raw=True)

    def _tell(self, status: str) -> None:
        if self._status is not None:
            said = f"in a cell: <code>{html.escape(self.code)}</code>"
            self._status.value = f"{_letters()}<small>{said}&emsp;<b>{status}</b></small>"


def explore(draw: Callable[..., Any], **sliders: Slider) -> Explorer:
    """Show what `draw` makes of the values of some sliders, as the last value of a cell.

    `draw` takes them by name, and returns anything that a notebook can show, or yields it bit by bit.
    """
    return Explorer(draw, sliders)


def _so_far(done: int, count: int, seconds: float, kept: int) -> dict[str, str]:
    left = f", about {seconds / done * (count - done):.0f} s left" if 0 < done < count else ""
    others = f" ({kept} kept from before)" if kept else ""
    says = f"{done} of {count} pictures drawn, one for each place of the sliders{others}: {seconds:.0f} s{left}"
    return {"text/plain": says}


def _key(code: str) -> str:
    """The name of a kept picture: equal if the cells up to this one and the place are."""
    shell: Any = get_ipython()
    cells = shell.history_manager.input_hist_raw if shell is not None else []
    return hashlib.sha256(repr((cells, code)).encode()).hexdigest()


def _kept(path: str) -> dict[str, str]:
    """The pictures of a file, by name, without a line whose writer was killed."""
    pictures: dict[str, str] = {}
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError):
                pictures |= json.loads(line)
    return pictures


def _letters() -> str:
    """Widgets know no styles: what makes the words next to the sliders as large as those of a projector's picture."""
    if current() is not PROJECTOR:
        return ""
    words = ", ".join(f".dtf-sliders {each}" for each in (".widget-label", ".widget-readout", "small", "code"))
    large = f"{words}{{font-size:16pt!important;line-height:1.2}}"
    rows = ".dtf-sliders .widget-hbox{height:auto;margin:0} .dtf-sliders .widget-readout{min-width:6em}"
    return f"<style>{large} {rows}</style>"


def _label(name: str) -> str:
    return name.replace("_", " ")


def _bundle(picture: Any) -> dict[str, Any]:
    """The notebook's display of a picture."""
    if isinstance(picture, str):
        return {"text/plain": picture, "text/html": f"<pre>{html.escape(picture)}</pre>"}
    shell: Any = get_ipython()
    formatter = shell.display_formatter if shell is not None else DisplayFormatter()
    data: dict[str, Any] = formatter.format(picture)[0]
    return data


def _marked(bundle: dict[str, Any]) -> dict[str, Any]:
    """A display whose HTML the sliders of a page find."""
    if "text/html" not in bundle:
        return bundle
    return bundle | {"text/html": f'<div class="dtf-explored">{bundle["text/html"]}</div>'}

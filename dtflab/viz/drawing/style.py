"""How large and how strong pictures are drawn: a style for the screen of one reader, one for a projector.

A drawing is made in units, its smallest text 11 of them high. A style says how many pixels a unit has and how many
units wide a page is; so text, boxes and gaps grow together, and a layout only has to cope with a narrower page.

Rule: a picture takes the style that is set when it is drawn and keeps it; both kinds may stand on one page.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

MARGIN = 14.0  # around a drawing
_STROKE = re.compile(r'(?P<head>stroke-width(?::|="))(?P<width>[\d.]+)')


class Style(NamedTuple):
    """A way to draw: pixels per unit, the width of a page and the thinnest line in units, rules of its own.

    In a page that is too narrow a picture shrinks, down to `least` of its size; then it is scrolled. In a wider page it
    grows, up to `most` of its size.
    """

    name: str
    scale: float
    least: float
    most: float
    width: float
    line: float
    rules: str

    @property
    def class_(self) -> str:
        """The class that pictures of this style have next to their own; none for the default."""
        return "" if self is DEFAULT else f" {self.name}"

    def css(self, text: str, root: str) -> str:
        """The rules of pictures with the class `root`, for those of this style only."""
        return text if self is DEFAULT else self.thick(text).replace(f".{root}", f".{root}.{self.name}")

    def thick(self, text: str) -> str:
        """SVG or CSS without lines that are too thin."""
        if not self.line:
            return text
        return _STROKE.sub(lambda m: f"{m['head']}{max(float(m['width']), self.line):.4g}", text)

    def pixels(self, size: float) -> str:
        """A size of text outside of drawings, for CSS."""
        return f"{size * self.scale:.4g}px"


_16_POINTS = 16 * 96 / 72  # pixels
_PROJECTOR = _16_POINTS / 11
# In a window of 1280 pixels JupyterLab shows 828 of them next to its file browser, 1086 without it. A projector's page
# lies between: next to the file browser its smallest text has still 18 pixels, on a narrow page never less than 14.
DEFAULT = Style("default", 1.0, 0.94, 1.25, 828.0, 0.0, "")
PROJECTOR = Style(
    "projector", _PROJECTOR, 14 / 11 / _PROJECTOR, 1.6, 480.0, 3 / _PROJECTOR,
    f".dtf,.dtf.alone{{--soft:var(--fg);--edge:var(--fg);stroke-width:{3 / _PROJECTOR:.4g}}}"
    ".dtf .grid{stroke-opacity:.45}",
)  # fmt: skip
_STYLES = {each.name: each for each in (DEFAULT, PROJECTOR)}
NAMES = tuple(_STYLES)
_current = DEFAULT


def style(name: str) -> None:
    """Draw all pictures from now on in a style: "default", or "projector" for 16 pt text and lines of 3 px.

    ValueError for another name.
    """
    global _current
    if name not in _STYLES:
        raise ValueError(f"There is no style {name!r}. There are {', '.join(map(repr, _STYLES))}.")
    _current = _STYLES[name]


def current() -> Style:
    """The style that is set."""
    return _current


@functools.cache
def rules(picture: str) -> str:
    """The CSS of a kind of picture: its section of pictures.css."""
    text = Path(__file__).with_name("pictures.css").read_text(encoding="utf-8")
    return text.partition(f"/* {picture} */")[2].partition("/*")[0].replace("\n", "")


def room(width: float | None = None) -> float:
    """Units between the margins of a page, of `width` or as wide as the style has it."""
    return (_current.width if width is None else width) - 2 * MARGIN

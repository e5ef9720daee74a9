"""Markup: strings of SVG and HTML that cannot be broken by what stands in them.

Every child that is not itself Markup is escaped, every attribute is quoted; numbers are written short and always
alike, so the same picture is the same string. Text is measured from a table of widths, because a picture is
laid out where there is no browser. No ids are used (two pictures share a page), hence no `<defs>`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from dtflab.viz.layout.shapes import Point


class Markup(str):
    """Text that is SVG or HTML already. Made by `tag` and `join`; nothing else should make it."""

    __slots__ = ()


def tag(name: str, *children: Any, **attrs: Any) -> Markup:
    """`<name attrs>children</name>`; `class_` is class, `font_size` is font-size, None attributes are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attrs.items() if value is not None
    )
    inside = "".join(_child(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def join(parts: Iterable[Any], separator: str = "") -> Markup:
    return Markup(escape(separator, quote=False).join(_child(part) for part in parts))


def number(value: float) -> str:
    """At most two decimals, none where none are needed: `12`, `0.5`, never `-0`."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _value(value: Any) -> str:
    return number(value) if isinstance(value, int | float) else escape(_printable(str(value)))


def _child(child: Any) -> str:
    return child if isinstance(child, Markup) else escape(_printable(str(child)), quote=False)


def _printable(text: str) -> str:
    """Characters that XML forbids would make the whole picture unreadable."""
    return "".join(c if c >= " " or c in "\t\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


# -- lines ---------------------------------------------------------------------------------------------------


def line_path(points: Sequence[Point], radius: float = 0.0) -> str:
    """The `d` of a line through the points, its corners rounded."""
    steps = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:]):
        room = min(radius, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        if room < 0.5:
            steps.append(_to("L", corner))
        else:
            steps += [_to("L", _toward(corner, before, room)), _to("Q", corner, _toward(corner, after, room))]
    return "".join([*steps, _to("L", points[-1])])


def arrow_head(tip: Point, back: Point, size: float = 6.0) -> str:
    """The `d` of a filled triangle at `tip`, for a line that comes from `back`."""
    (x, y), far = tip, math.dist(tip, back) or 1.0
    dx, dy = (x - back[0]) / far, (y - back[1]) / far
    left = (x - size * dx - size * 0.5 * dy, y - size * dy + size * 0.5 * dx)
    right = (x - size * dx + size * 0.5 * dy, y - size * dy - size * 0.5 * dx)
    return f"M{number(x)} {number(y)}{_to('L', left)}{_to('L', right)}Z"


def hatch_path(x: float, y: float, width: float, height: float, gap: float = 6.0) -> str:
    """The `d` of diagonal lines inside a rectangle."""
    steps = []
    for k in range(1, int((width + height) / gap) + 1):
        reach = k * gap
        start = (min(reach, width), max(0.0, reach - width))
        end = (max(0.0, reach - height), min(reach, height))
        if math.dist(start, end) > 1:
            steps.append(_to("M", (x + start[0], y + start[1])) + _to("L", (x + end[0], y + end[1])))
    return "".join(steps)


def _to(command: str, *points: Point) -> str:
    return command + " ".join(f"{number(x)} {number(y)}" for x, y in points)


def _toward(start: Point, end: Point, length: float) -> Point:
    share = length / math.dist(start, end)
    return (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)


# -- text ----------------------------------------------------------------------------------------------------

_WIDTHS = {  # thousandths of the font size, Helvetica and its look-alikes
    222: "'ijl", 278: " !,./:;I[\\]ft", 333: "()-`r{}", 355: '"', 389: "*", 469: "^", 500: "Jcksvxyz",
    556: "#$0123456789?L_abdeghnopqu", 584: "+<=>~", 611: "FTZ", 667: "&ABEKPSVXY", 722: "CDHNRUw",
    778: "GOQ", 833: "Mm", 889: "%", 944: "W", 1015: "@", 260: "|", 1000: "…→—",
}  # fmt: skip
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}
_SLACK = 1.06  # other systems put a slightly wider font in Helvetica's place


@functools.lru_cache(maxsize=4096)
def text_width(text: str, size: float = 12.0, bold: bool = False) -> float:
    """Pixels that a line of text takes, estimated a little too wide."""
    units = sum(_WIDTH_OF.get(c, 1000 if ord(c) > 0x2E7F else 600) for c in text)
    return units / 1000 * size * _SLACK * (1.07 if bold else 1.0)


def shorten(text: str, room: float, size: float = 12.0, bold: bool = False) -> str:
    """The text, or as much of its beginning and end around an ellipsis as `room` pixels take."""
    if text_width(text, size, bold) <= room:
        return text
    for keep in range(len(text) - 1, 1, -1):
        tail = keep * 2 // 5
        short = text[: keep - tail] + "…" + text[len(text) - tail :]
        if text_width(short, size, bold) <= room:
            return short
    return "…" if text_width("…", size, bold) <= room else ""


def wrapped(text: str, room: float, size: float = 12.0, bold: bool = False) -> list[str]:
    """The text in lines of at most `room` pixels, broken between words; a word that is wider is shortened."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or text_width(longer, size, bold) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return [shorten(line, room, size, bold) for line in lines]

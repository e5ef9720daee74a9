"""Markup: strings of SVG and HTML that cannot be broken by what stands in them.

Every child that is not itself Markup is escaped, every attribute is quoted; numbers are written short and always
alike, so the same picture is the same string. Text is measured from a table of widths, because a picture is
laid out where there is no browser. No ids are used (two pictures share a page), hence no `<defs>`.
"""

from __future__ import annotations

import bisect
import functools
import itertools
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

# Thousandths of the font size: of each letter the width in the widest of the fonts that a page may take, regular and
# bold. These are Helvetica, Arial and Liberation Sans, which are alike, and DejaVu Sans, where none of them is there.
_REGULAR = {
    280: "'ijl", 300: "I", 320: " ,.·’", 340: "/:;\\|", 360: "f", 370: "-", 400: "()[]t", 410: "!", 420: "r", 460: '"',
    500: "*J`°", 520: "“”", 530: "sz", 550: "c", 560: "?L_–", 580: "k", 600: "vxy", 620: "FTaeo",
    640: "$0123456789bdghnpqu{}µ", 670: "EKPSY", 690: "ABVXZ", 730: "CR", 740: "U", 750: "N", 760: "H", 770: "◀▶",
    780: "&DG", 790: "OQ", 820: "w", 840: "#+<=>^~×≈✓✗⇢≥≤±∞", 870: "M", 960: "%", 980: "m", 990: "W", 1000: "…→—",
    1020: "@",
}  # fmt: skip
_BOLD = {
    340: "'", 350: " ijl", 370: "/\\|", 380: ",.I·’", 400: ":;", 420: "-", 440: "f", 460: "!()[]", 480: "t",
    500: "`r°", 530: '"*', 560: "J_–", 590: "z", 600: "cs", 620: "?", 640: "L", 650: "x", 660: "vy“”", 670: "k",
    680: "ae", 690: "EFTo", 700: "$0123456789", 720: "bdghnpqu{}", 730: "SYZ", 740: "CPµ", 770: "B◀▶", 780: "AKRVX",
    820: "U", 830: "G", 840: "#+<=>DHN^~→×≈✓✗⇢≥≤±∞", 860: "OQ", 880: "&", 930: "w", 1000: "@M…—", 1010: "%", 1050: "m",
    1110: "W",
}  # fmt: skip
_WIDTHS = [{letter: width for width, letters in table.items() for letter in letters} for table in (_REGULAR, _BOLD)]
_WIDE = 0x2E7F  # letters beyond, as those of Chinese, are as wide as high


@functools.lru_cache(maxsize=4096)
def text_width(text: str, size: float = 12.0, bold: bool = False) -> float:
    """Pixels that a line of text takes at most, in the widest of the usual fonts."""
    widths = _WIDTHS[bold]
    return sum(widths.get(c, 1000 if ord(c) > _WIDE else 650) for c in text) / 1000 * size


def shorten(text: str, room: float, size: float = 12.0, bold: bool = False, others: Sequence[str] = ()) -> str:
    """The text, or as much of its beginning and end around an ellipsis as `room` pixels take.

    Next to `others` it is cut so that few of these could be meant, if need be down to a part from its middle.
    """
    if text_width(text, size, bold) <= room:
        return text

    rivals = {*others} - {text}

    def meant(cut: list[str]) -> int:
        return sum(each.startswith(cut[0]) and cut[1] in each and each.endswith(cut[-1]) for each in rivals)

    cuts = _cuts(text, room, size, bold)
    alone = next((cut for cut in cuts if not meant(cut)), None)
    return "…".join(alone or min(cuts, key=meant)) if cuts else ""


def _cuts(text: str, room: float, size: float, bold: bool) -> list[list[str]]:
    """The parts that each way to cut a text keeps: first beginnings and ends of 3 : 2 letters, at last middles."""
    ends = [0.0, *itertools.accumulate(text_width(letter, size, bold) for letter in text)]
    dots, n = text_width("…", size, bold), len(text)

    def reach(start: int, pixels: float) -> int:
        return bisect.bisect(ends, ends[start] + pixels) - 1

    two = [(reach(0, room - dots - ends[n] + ends[tail]), tail) for tail in range(1, n + 1)]
    two.sort(key=lambda cut: (abs(n - cut[1] - (cut[0] + n - cut[1]) * 2 // 5), -cut[0]))
    middle = [(start, reach(start, room - 2 * dots)) for start in range(1, n)]
    middle.sort(key=lambda cut: (text[cut[0] - 1] != "/") + (text[cut[1] : cut[1] + 1] != "/"))  # whole scopes first
    usual = [[text[:head], text[tail:]] for head, tail in two if head >= 0]
    return usual + [["", text[start:stop], ""] for start, stop in middle if stop > start]


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

"""Where the texts of a picture stand, by the font's own widths; what sticks out of the page, and what lies on what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from dtflab.viz.drawing.svg import text_width

_SVG = "{http://www.w3.org/2000/svg}"
_ASCENT, _DESCENT = 0.72, 0.2  # of the size of the font: a capital above the line, a tail below it


class Text(NamedTuple):
    """A line of text and the rectangle that its ink may fill, in units of the drawing."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def texts(svg: str) -> tuple[list[Text], float, float]:
    """All texts of a drawing, and the width and height of its page."""
    root = ElementTree.fromstring(svg.partition("\n")[2])
    width, height = (float(value) for value in root.attrib["viewBox"].split()[2:])
    return list(_texts(root, 0.0, 0.0)), width, height


def _texts(node: ElementTree.Element, x: float, y: float) -> Iterator[Text]:
    moved = re.findall(r"translate\(([-\d.e]+) ([-\d.e]+)\)", node.get("transform", ""))
    assert bool(moved) == ("transform" in node.attrib), node.get("transform")  # nothing else is used
    for dx, dy in moved:
        x, y = x + float(dx), y + float(dy)
    if node.tag == f"{_SVG}text" and node.text:
        yield _text(node, x, y)
    for child in node:
        yield from _texts(child, x, y)


def _text(node: ElementTree.Element, x: float, y: float) -> Text:
    classes = node.get("class", "").split()
    size = re.search(r"font-size:([\d.]+)px", node.get("style", ""))
    points = float(size[1]) if size else 11.0 if "s11" in classes else 12.0
    wide = text_width(node.text or "", points, bold="b" in classes)
    x, y = x + float(node.get("x", 0)), y + float(node.get("y", 0))
    left = x - wide if "end" in classes else x - wide / 2 if "mid" in classes else x
    return Text(node.text or "", left, y - _ASCENT * points, left + wide, y + _DESCENT * points)


def clipped(svg: str) -> list[str]:
    """The texts that stick out of the page."""
    found, width, height = texts(svg)
    return [t.text for t in found if t.left < 0 or t.top < 0 or t.right > width or t.bottom > height]


def overlapping(svg: str, least: float = 1.0) -> list[tuple[str, str]]:
    """Pairs of texts that lie upon each other by more than `least` units both ways."""
    found, _, _ = texts(svg)
    return [
        (a.text, b.text)
        for a, b in itertools.combinations(found, 2)
        if min(a.right, b.right) - max(a.left, b.left) > least and min(a.bottom, b.bottom) - max(a.top, b.top) > least
    ]

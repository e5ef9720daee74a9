"""Loads: how much each device holds, as bars; several ways to spread the same load stand next to each other.

The first way is drawn in the devices' colours, the others hatched in grey, each named; every bar has its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dtflab.base.text_table import text_table
from dtflab.viz.drawing.marks import badge, badge_width, heading, stretch
from dtflab.viz.drawing.palette import GREY, Colour, in_order, look, together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room
from dtflab.viz.drawing.svg import Markup, hatch_path, join, number, tag, text_width
from dtflab.viz.drawing.units import byte_size

_BAR, _GAP, _ROW_GAP, _TOP = 14.0, 3.0, 12.0, 36.0


def loads(title: str, ways: Mapping[str, Mapping[str, float]]) -> Picture:
    """Bars of bytes per device: `ways` gives, under the name of each way, the bytes of each device.

    Devices are full or partial names; one that a way leaves out has 0 bytes there. ValueError without any way.
    """
    if not ways:
        raise ValueError("Pass at least one way, for example loads(title, {'by hand': {'/job:ps/task:0': 4096}}).")
    devices = in_order(device for way in ways.values() for device in way)
    with together(devices):
        rows = [[look(device).label, *(byte_size(way.get(device, 0)) for way in ways.values())] for device in devices]
        heads = ("device", *ways)
        sentence = "; ".join(f"{name}: {_sentence(way, devices)}" for name, way in ways.items())
        drawing = join([heading(title, "bytes per device"), *_bars(devices, ways, room())])
        height = _TOP + len(devices) * _row_height(ways) - _ROW_GAP
        text = f"{title}\n{text_table(heads, rows)}"
        return Picture(drawing, (room(), height), "", f"{title}. {sentence}.", [(title, heads, rows)], text)


def _sentence(way: Mapping[str, float], devices: list[str]) -> str:
    return ", ".join(f"{look(device).label} {byte_size(way.get(device, 0))}" for device in devices)


def _row_height(ways: Mapping[str, Mapping[str, float]]) -> float:
    return len(ways) * (_BAR + _GAP) - _GAP + _ROW_GAP


def _bars(devices: list[str], ways: Mapping[str, Mapping[str, float]], width: float) -> Iterator[Markup]:
    most = max((way.get(device, 0) for way in ways.values() for device in devices), default=0) or 1
    seen = [look(device) for device in devices]
    left = max((badge_width(one) + 8 + text_width(one.label, 12, bold=True) for one in seen), default=0) + 12
    remarks = (f"{byte_size(way.get(d, 0))}  {name}" for name, way in ways.items() for d in devices or [""])
    right = max(map(text_width, remarks))
    longest = width - left - right - 10
    bars: list[Markup] = []
    for i, (device, one) in enumerate(zip(devices, seen)):
        top = _TOP + i * _row_height(ways)
        yield badge(one, 0, top)
        yield tag("text", one.label, x=badge_width(one) + 8, y=top + 13, class_="b")
        for j, (name, way) in enumerate(ways.items()):
            held, y = way.get(device, 0), top + j * (_BAR + _GAP)
            colour = one.colour if j == 0 else None
            bars.append(_bar(left, y, max(held / most * longest, 1.0), colour, f"{byte_size(held)}  {name}"))
    yield stretch((left, left + longest), *bars)


def _bar(x: float, y: float, width: float, colour: Colour | None, remark: str) -> Markup:
    fill, line = (colour.fill, colour.line) if colour else ("none", GREY.line)
    shape = tag("rect", x=x, y=y, width=width, height=_BAR, fill=fill, stroke=line)
    hatch = Markup("") if colour else tag("path", d=hatch_path(x, y, width, _BAR, 5), stroke=line)
    return join([shape, hatch, tag("text", remark, x=number(x + width + 8), y=y + 11.5, class_="s11 soft")])

"""The picture of shared state: which task holds which variable, bytes per device, a segment for each variable.

Every device is a bar as long as what it holds; the variables of a device lie in it in the order in which they were
made, each named where there is room. Hatched segments are in a container of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.resources_held import HeldVariable, variables_of
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER, plain_name
from dtflab.runtime.session import BaseSession
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import in_order, look, together
from dtflab.viz.drawing.picture import Picture, Table, first_rows
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, number, shorten, tag, text_width
from dtflab.viz.drawing.units import memory_size

MOST_DEVICES = 24  # bars; the table knows more
_BAR, _ROW = 26.0, 36.0


def variables(
    held: Cluster | BaseSession | Sequence[HeldVariable], *, width: float | None = None, title: str = "Variables"
) -> Picture:
    """Picture who holds which variable, with bytes per device.

    `held` is a cluster, a session (then the tasks that it reaches), or what `cluster.variables()` gave. ValueError if
    no variable exists yet: each is created when its initializer runs. NotImplementedError for a session whose
    master is in another process: give its cluster.
    """
    found = held_by(held)
    if not found:
        raise ValueError("No variable exists yet; each is created when its initializer runs.")
    by_device = grouped(((v.device, v) for v in found), in_order(v.device for v in found))
    with together(by_device):
        inner = room(width)
        most = sorted(by_device, key=lambda device: -_bytes(by_device[device]))[:MOST_DEVICES]
        shown = {device: own for device, own in by_device.items() if device in most}
        head = marks.heading(title, _summary(found, by_device, shown), inner)
        top = head.height + 12
        drawing = join([head, *_bars(shown, top, inner)])
        size = (inner, top + len(shown) * _ROW)
        devices = " ".join(f"{look(device).label}: {_remark(held)}." for device, held in by_device.items())
        sentence = f"{title}: {_summary(found, by_device, shown)}. {devices}"
        tables, text = _tables(by_device, found), _text(by_device)
        return Picture(drawing, size, rules("variables"), sentence, tables, text)


def held_by(held: Cluster | BaseSession | Iterable[HeldVariable]) -> list[HeldVariable]:
    """The variables of a cluster, of a session, or those that are given."""
    if isinstance(held, Cluster):
        return held.variables()
    return variables_of(held) if isinstance(held, BaseSession) else list(held)


def _bytes(held: Iterable[HeldVariable]) -> int:
    return sum(variable.nbytes for variable in held)


def _bars(by_device: dict[str, list[HeldVariable]], top: float, width: float) -> Iterator[Markup]:
    largest = max(map(_bytes, by_device.values())) or 1
    looks = {device: look(device) for device in by_device}
    left = max(marks.badge_width(one) + 8 + text_width(one.label, 12, bold=True) for one in looks.values()) + 12
    right = max(text_width(_remark(own), 11) for own in by_device.values()) + 10
    bars: list[Markup] = []
    for i, (device, held) in enumerate(by_device.items()):
        one, y = looks[device], top + i * _ROW
        yield marks.badge(one, 0, y + 4)
        yield tag("text", one.label, x=marks.badge_width(one) + 8, y=y + 17, class_="b")
        x = left
        names = [*map(_name, held)]
        for variable in held:
            if variable.nbytes:
                long = variable.nbytes / largest * (width - left - right)
                bars.append(tag("g", tag("title", _one(variable)), *_segment(variable, names, x, y, long)))
                x += long
        bars.append(tag("text", _remark(held), x=x + 8, y=y + 17, class_="s11 soft"))
    yield marks.stretch((left, width), *bars)


def _segment(variable: HeldVariable, names: Sequence[str], x: float, y: float, width: float) -> Iterator[Markup]:
    colour = look(variable.device).colour
    own_container = variable.container != DEFAULT_CONTAINER
    yield tag("rect", x=x, y=y, width=width, height=_BAR, fill=colour.fill,
              stroke=colour.rim or "var(--bg)")  # fmt: skip
    if own_container:
        yield tag("path", d=hatch_path(x, y, width, _BAR, 6), class_="hatch", stroke=colour.ink, stroke_opacity=0.45)
    name = shorten(_name(variable), width - 8, 11, others=names) if width > 34 else ""
    if name:
        halo = {"stroke": colour.fill, "stroke_width": 3, "paint_order": "stroke"} if own_container else {}
        style = f"fill:{colour.ink}"
        yield tag("text", name, x=number(x + width / 2), y=y + 17, class_="s11 mid", style=style, **halo)


def _name(variable: HeldVariable) -> str:
    return plain_name(variable.name)


def _remark(held: Sequence[HeldVariable]) -> str:
    unset = sum(not variable.initialized for variable in held)
    text = f"{memory_size(_bytes(held))} in {plural(len(held), 'variable')}"
    return f"{text}, {unset} without a value" if unset else text


def _one(variable: HeldVariable) -> str:
    shape = " × ".join(map(str, variable.shape)) or "scalar"
    where = "" if variable.container == DEFAULT_CONTAINER else f"\ncontainer {variable.container}"
    return f"{_name(variable)}\n{variable.dtype}, {shape}, {memory_size(variable.nbytes)}{where}"


# -- words ---------------------------------------------------------------------------------------------------


def _summary(
    found: Sequence[HeldVariable], by_device: dict[str, list[HeldVariable]], shown: dict[str, list[HeldVariable]]
) -> str:
    text = f"{plural(len(found), 'variable')}, {memory_size(_bytes(found))} on {plural(len(by_device), 'device')}"
    containers = sorted({v.container for v in found} - {DEFAULT_CONTAINER})
    if containers:
        more = f" and {len(containers) - 3} more" if len(containers) > 3 else ""
        text += f"; hatched: container {', '.join(containers[:3])}{more}"
    return text if len(shown) == len(by_device) else f"{text} (the {len(shown)} that hold most are drawn)"


def _tables(by_device: dict[str, list[HeldVariable]], found: Sequence[HeldVariable]) -> list[Table]:
    heads = ("variable", "device", "container", "type", "shape", "bytes")
    rows = [_cells(variable) for variable in found]
    return [("Bytes per device", _HEADS, _rows(by_device)), first_rows("Variables", heads, rows)]


def _cells(v: HeldVariable) -> list[object]:
    size = f"{v.nbytes:,}" if v.initialized else "no value"
    return [_name(v), look(v.device).label, v.container, v.dtype, v.shape, size]


_HEADS = ("device", "variables", "bytes")


def _rows(by_device: dict[str, list[HeldVariable]]) -> list[list[object]]:
    return [[look(device).label, len(held), f"{_bytes(held):,}"] for device, held in by_device.items()]


def _text(by_device: dict[str, list[HeldVariable]]) -> str:
    names = [", ".join(_name(v) for v in held[:4]) + (", …" if len(held) > 4 else "") for held in by_device.values()]
    return text_table((*_HEADS, "names"), [[*row, text] for row, text in zip(_rows(by_device), names, strict=True)])

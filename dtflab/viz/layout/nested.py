"""The inside of a cluster with all its children closed: what a front end needs to place them, whichever it opens.

A child that is opened takes more room. What stands to its right or below moves on; rows, order and lanes remain: so
placing takes sums, and tracks for the lines in each channel, but no search. Coordinates are those of a Column; row 0
and the last row are the border, where lines enter and leave.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from dtflab.viz.layout import ranks
from dtflab.viz.layout.column import Column
from dtflab.viz.layout.level import Level
from dtflab.viz.layout.shapes import OUT, Box, Cluster, Net


@dataclasses.dataclass(frozen=True)
class Link:
    """Lines of one colour from a child, or from outside (None), to a child, or OUT."""

    origin: str | None
    colour: int
    target: str


@dataclasses.dataclass(frozen=True)
class Goal:
    """An end of a net: the child or OUT, where it is entered (from its left edge), and whether that closes a cycle."""

    target: str
    inlet: float
    closes: bool


@dataclasses.dataclass(frozen=True)
class Strand:
    """The lines of one colour from one origin: where they leave it, their x in the rows that they pass, their ends.

    The first of `lanes` is in the row after the origin's; of lines from outside, in row 0.
    """

    origin: str | None
    colour: int
    outlet: float
    lanes: list[float]
    goals: list[Goal]


@dataclasses.dataclass(frozen=True)
class Inside:
    """Rows and left edges of the children, by key; the width of all, and the lines."""

    width: float
    rows: dict[str, int]
    lefts: dict[str, float]
    strands: list[Strand]


def inside(children: Sequence[Box], links: Iterable[Link], title: float, width: float) -> Inside:
    """Lay out the children of one cluster. `title` is the width of its title, `width` a wish."""
    nets: dict[str, Net] = {}
    for link in links:
        net = nets.setdefault(f"{link.origin}\0{link.colour}", Net(link.origin))
        net.targets[link.target] = False
    _mark_cycles([child.key for child in children], nets)
    colours = {f"{link.origin}\0{link.colour}": link.colour for link in links}
    level = Level(Cluster("", tuple(children), title), {"": nets}, width, inside=True)
    (column,) = level.columns
    rows = {key: row + 1 for key, (_, row) in level.place.items()}
    strands = [_strand(key, net, colours[key], level, column, rows) for key, net in nets.items()]
    lefts = {child.key: level.slots[child.key].x for child in children}
    return Inside(column.width, {key: rows[key] for key in lefts}, lefts, strands)


def _mark_cycles(keys: Sequence[str], nets: dict[str, Net]) -> None:
    after: dict[str, list[str]] = {key: [] for key in keys}
    for net in nets.values():
        if net.origin is not None:
            after[net.origin] += [target for target in net.targets if target != OUT]
    closing = ranks.back_edges(keys, after)
    for net in nets.values():
        net.targets = {target: (net.origin, target) in closing for target in net.targets}


def _strand(key: str, net: Net, colour: int, level: Level, column: Column, rows: dict[str, int]) -> Strand:
    slot = None if net.origin is None else level.slots[net.origin]
    lanes = []
    for row in column.rows[0 if net.origin is None else rows[net.origin] + 1 :]:
        lane = next((slot for slot in row if slot.kind == "lane" and slot.key == key), None)
        if lane is None:
            break
        lanes.append(lane.x)
    outlet = 0.0 if slot is None else slot.outlet(key) - slot.x
    goals = []
    for target, closes in net.targets.items():
        end = None if target == OUT else level.slots[target]
        goals.append(Goal(target, 0.0 if end is None else end.inlet(key) - end.x, closes))
    return Strand(net.origin, colour, outlet, lanes, goals)

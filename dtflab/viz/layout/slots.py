"""Slots and hops, what a column is made of, and where along a row they come to stand.

A slot is a box, or a lane: the place where a line passes a row that it has no business in. A hop is a net within one
channel. The sideways positions minimize squared lengths row by row, exactly, with pool-adjacent-violators.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

GAP, LANE_GAP = 14.0, 7.0  # between boxes; next to a lane
PORT, PORT_MARGIN = 8.0, 5.0  # between lines that enter one box; from its corners

Kind = Literal["box", "lane", "title"]
Side = Literal["left", "right"]


@dataclasses.dataclass(eq=False)
class Slot:
    """Something in a row. `inlets` and `outlets` say where nets enter and leave, from the slot's left edge.

    A box with `loose` ports takes its lines wherever they come; those of a cluster are where its inside put them.
    """

    kind: Kind
    key: str
    width: float
    height: float = 0.0
    loose: bool = True
    inlets: dict[str, float] = dataclasses.field(default_factory=dict)
    outlets: dict[str, float] = dataclasses.field(default_factory=dict)
    x: float = 0.0  # left edge
    group: str = ""  # of boxes that keep to one side

    def inlet(self, net: str) -> float:
        return self.x + self.inlets.get(net, self.width / 2)

    def outlet(self, net: str) -> float:
        return self.x + self.outlets.get(net, self.width / 2)

    def reaches(self, x: float) -> bool:
        return self.x + PORT_MARGIN <= x <= self.x + self.width - PORT_MARGIN


@dataclasses.dataclass(eq=False)
class Hop:
    """A net in one channel: from the slot above, if any, to the slots below, and out to the sides."""

    net: str
    above: Slot | None = None
    below: list[Slot] = dataclasses.field(default_factory=list)
    sides: set[Side] = dataclasses.field(default_factory=set)
    track: int | None = None

    def tops(self) -> list[float]:
        return [self.above.outlet(self.net)] if self.above else []

    def bottoms(self) -> list[float]:
        return [slot.inlet(self.net) for slot in self.below]

    def span(self) -> tuple[float, float]:
        xs = self.tops() + self.bottoms()
        return (-math.inf if "left" in self.sides else min(xs), math.inf if "right" in self.sides else max(xs))

    def links(self) -> Iterator[tuple[Slot, Slot, float, float]]:
        """The slot's lines between two rows, with where they touch the slots, as `ranks.order_rows` takes them."""
        for slot in self.below if self.above else ():
            assert self.above is not None
            yield self.above, slot, _share(self.above, self.above.outlets, self), _share(slot, slot.inlets, self)


# -- x -------------------------------------------------------------------------------------------------------


class Pull(NamedTuple):
    """A neighbour wants this slot's left edge at its own plus `shift`."""

    slot: Slot
    shift: float
    weight: float


def wish(slot: Slot, pulls: list[Pull]) -> tuple[float, float]:
    if slot.kind == "title":
        return 0.0, 1e6
    place = total = 0.0
    for other, shift, weight in pulls:
        place += weight * (other.x + shift)
        total += weight
    return (place / total, total) if total else (slot.x, 0.01)


def _between(a: Slot, b: Slot) -> float:
    return GAP if a.kind == b.kind == "box" else LANE_GAP


def row_width(row: Sequence[Slot]) -> float:
    return sum(s.width for s in row) + sum(_between(a, b) for a, b in itertools.pairwise(row))


def spread(row: Sequence[Slot], wishes: Sequence[float], weights: Sequence[float], width: float) -> None:
    """Place the slots of a row nearest to their wishes, in order, without overlap, within the width.

    Weighted isotonic regression of wish minus offset, by pool-adjacent-violators.
    """
    offsets = [0.0]
    for a, b in itertools.pairwise(row):
        offsets.append(offsets[-1] + a.width + _between(a, b))
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for wish, offset, weight in zip(wishes, offsets, weights):
        mean, many = wish - offset, 1
        while pools and pools[-1][0] >= mean:
            other, other_weight, count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, many = weight + other_weight, many + count
        pools.append((mean, weight, many))
    most = width - (offsets[-1] + row[-1].width if row else 0.0)
    starts = itertools.chain(*([max(0.0, min(mean, most))] * many for mean, _, many in pools))
    for slot, start, offset in zip(row, starts, offsets):
        slot.x = start + offset


def room_around(row: Sequence[Slot], i: int) -> tuple[float, float]:
    """How far a lane may be moved without its neighbours moving."""
    slot = row[i]
    low = row[i - 1].x + row[i - 1].width + LANE_GAP if i else slot.x - 60
    high = row[i + 1].x - LANE_GAP if i + 1 < len(row) else slot.x + 60
    return min(low, slot.x), max(high, slot.x)


def settle(run: Sequence[Slot], low: float, high: float, ends: Iterable[tuple[float, float]]) -> None:
    for left, right in ends:
        if max(low, left) <= min(high, right):
            low, high = max(low, left), min(high, right)
    xs = sorted(lane.x for lane in run)
    for lane in run:
        lane.x = max(low, min(xs[len(xs) // 2], high))


# -- ports ---------------------------------------------------------------------------------------------------


def outlet_of(box: Slot, hop: Hop) -> float:
    middle = box.x + box.width / 2
    fixed = [slot.inlet(hop.net) for slot in hop.below if slot.kind == "lane" or not slot.loose]
    within = [x for x in fixed if box.reaches(x)]
    if within:
        return min(within, key=lambda x: abs(x - middle))
    for slot in hop.below if not fixed else ():
        low = max(box.x, slot.x) + PORT_MARGIN
        high = min(box.x + box.width, slot.x + slot.width) - PORT_MARGIN
        if low <= high:
            return max(low, min(middle, high))
    return middle


def enter(box: Slot, entering: list[Hop], others: Iterable[Hop]) -> None:
    """Spread the inlets of a box, each below where its line comes from, none below where another one does."""
    low, high = box.x + PORT_MARGIN, box.x + box.width - PORT_MARGIN

    def wanted(hop: Hop) -> float:
        side = box.x - 99 if "left" in hop.sides else box.x + box.width + 99
        return hop.tops()[0] if hop.above else side

    entering.sort(key=lambda hop: (wanted(hop), hop.net))
    gap = min(PORT, (high - low) / max(len(entering) - 1, 1))
    ports = [Slot("lane", hop.net, gap - LANE_GAP) for hop in entering]  # spread puts LANE_GAP between lanes
    wishes = [min(max(wanted(hop), low), high) - low for hop in entering]
    spread(ports, wishes, [1.0] * len(ports), high - low + ports[-1].width)
    for port in ports:
        taken = [x for other in others for x in other.tops() if other.net != port.key]
        port.x += _sidestep(low + port.x, taken, [low + p.x for p in ports if p is not port], low, high)
        box.inlets[port.key] = port.x + PORT_MARGIN


def _sidestep(x: float, taken: Sequence[float], ports: Sequence[float], low: float, high: float) -> float:
    """The least shift that keeps a line's end off another line's beginning, and off the ports next to it."""
    for shift in (0, 4, -4, 6, -6):
        apart = all(abs(x + shift - other) >= min(5, abs(x - other)) for other in ports)
        if low <= x + shift <= high and apart and all(abs(x + shift - other) >= 4 for other in taken):
            return shift
    return 0


def _share(slot: Slot, ports: dict[str, float], hop: Hop) -> float:
    return ports[hop.net] / slot.width - 0.5 if hop.net in ports and slot.width else 0.0

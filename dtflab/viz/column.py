"""One column of a layered drawing: rows of slots, and channels between them in which the lines turn.

A slot is a box, or a lane: the place where a line passes a row that it has no business in. Lines run straight
down, and sideways only in channels, on tracks of their own: so none ever passes behind a box. All lines from
one source are one net, which branches; that is what makes a line followable.

Coordinates are of the flow: y grows in the direction of the edges. Left out: optimal coordinates (Brandes-Köpf);
the sweeps below minimise squared lengths row by row, exactly, with pool-adjacent-violators.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from dtflab.viz import ranks
from dtflab.viz.svg import Point

GAP, LANE_GAP, TRACK = 14.0, 9.0, 7.0  # between boxes, beside a lane, between parallel tracks
FREE_CHANNEL, BEFORE_TRACKS, AFTER_TRACKS = 22.0, 9.0, 13.0  # heights; an arrow head fits after the last track
SWEEPS, SNAP = 24, 12.0
PULL = (2.0, 1.0, 6.0)  # of a line between boxes, a box and a lane, two lanes: long lines are to be straight
PADDING = 9.0  # between the border of a cluster and what it holds
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
        return (
            -math.inf if "left" in self.sides else min(xs),
            math.inf if "right" in self.sides else max(xs),
        )

    def straight(self) -> bool:
        low, high = self.span()
        return high - low < 0.5

    def links(self) -> Iterator[tuple[Slot, Slot, float, float]]:
        """Its lines between two rows, with where they touch the slots, as `ranks.order_rows` takes them."""
        for slot in self.below if self.above else ():
            assert self.above is not None
            yield self.above, slot, _share(self.above, self.above.outlets, self), _share(slot, slot.inlets, self)


class Column:
    """Rows and channels; channel r lies above row r. `solve` gives everything its place."""

    def __init__(self, rows: list[list[Slot]], inside: bool = False) -> None:
        self.rows = rows
        self.inside = inside  # a cluster's: the first and the last row lie on its border
        self.hops: list[dict[str, Hop]] = [{} for _ in range(len(rows) + 1)]
        self.width = self.height = 0.0
        self.row_y: list[float] = []
        self.channel_y: list[float] = []

    def hop(self, channel: int, net: str) -> Hop:
        return self.hops[channel].setdefault(net, Hop(net))

    # -- building ---------------------------------------------------------------------------------------

    def connect(self, net: str, source: Slot, row: int, targets: dict[Slot, int]) -> None:
        """Lead the net from `source` in `row` to slots in later rows, through lanes in the rows between."""
        last, above = max(targets.values()), source
        for channel in range(row + 1, last + 1):
            hop = self.hop(channel, net)
            hop.above = above
            hop.below += [slot for slot, r in targets.items() if r == channel]
            if channel < last:
                above = Slot("lane", net, 0.0)
                self.rows[channel].append(above)
                hop.below.append(above)

    # -- solving ----------------------------------------------------------------------------------------

    def solve(self, width: float) -> None:
        """Order, x, ports, tracks, y. The width is a wish."""
        links = [[link for hop in hops.values() for link in hop.links()] for hops in self.hops[1:-1]]
        titles = frozenset(slot for row in self.rows for slot in row if slot.kind == "title")
        ranks.order_rows(self.rows, links, titles)
        self._place(width)
        self._straighten()
        left = min((slot.x for row in self.rows for slot in row), default=0.0)
        for slot in itertools.chain(*self.rows):
            slot.x = round(slot.x - left)
        self._ports()
        self._snap()
        self._ports()
        self.width = max((s.x + s.width for row in self.rows for s in row), default=0.0)
        self._stack()

    def _place(self, width: float) -> None:
        least = max((_row_width(row) for row in self.rows), default=0.0)
        width = max(least, min(width, least * 1.15 + 40))
        for row in self.rows:
            _spread(row, [0.0] * len(row), [0.001] * len(row), width)
        around = self._neighbours()
        for sweep in range(SWEEPS):
            before = [slot.x for row in self.rows for slot in row]
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                wishes, weights = zip(*(_wish(slot, around[slot]) for slot in row)) if row else ((), ())
                _spread(row, wishes, weights, width)
            if all(abs(slot.x - x) < 0.5 for slot, x in zip(itertools.chain(*self.rows), before)):
                break

    def _neighbours(self) -> dict[Slot, list[_Pull]]:
        around: dict[Slot, list[_Pull]] = {slot: [] for row in self.rows for slot in row}
        for hop in itertools.chain(*(hops.values() for hops in self.hops)):
            for low in hop.below if hop.above else ():
                assert hop.above is not None
                out, into = hop.above.outlets.get(hop.net), low.inlets.get(hop.net)
                out = hop.above.width / 2 if out is None else out
                into = low.width / 2 if into is None else into
                weight = PULL[(low.kind == "lane") + (hop.above.kind == "lane")]
                around[low].append(_Pull(hop.above, out - into, weight))
                around[hop.above].append(_Pull(low, into - out, weight))
        return around

    def _straighten(self) -> None:
        """Give the lanes of one line a common x for as long as their neighbours leave room."""
        where = {slot: (row, i) for row in self.rows for i, slot in enumerate(row)}
        lines: dict[str, list[Slot]] = {}
        for slot in itertools.chain(*self.rows):
            if slot.kind == "lane":
                lines.setdefault(slot.key, []).append(slot)
        for backwards in (False, True, False):  # what is moved makes room for the next
            for lanes in sorted(lines.values(), key=lambda lanes: lanes[0].x, reverse=backwards):
                run: list[Slot] = []
                low, high = -math.inf, math.inf
                for lane in lanes:
                    left, right = _room(*where[lane])
                    if max(low, left) > min(high, right):
                        _settle(run, low, high, self._ends(lane.key, run))
                        run, low, high = [], -math.inf, math.inf
                    run.append(lane)
                    low, high = max(low, left), min(high, right)
                _settle(run, low, high, self._ends(lanes[0].key, run))

    def _ends(self, net: str, run: Sequence[Slot]) -> list[tuple[float, float]]:
        """Where the boxes are at which a run of lanes begins or ends: x that make these ends straight too."""
        hops = [hop for hops in self.hops for hop in hops.values() if hop.net == net]
        boxes = [hop.above for hop in hops if hop.above and run[0] in hop.below]
        boxes += [slot for hop in hops if hop.above is run[-1] for slot in hop.below]
        return [
            (b.x + PORT_MARGIN, b.x + b.width - PORT_MARGIN) for b in boxes if b.kind == "box" and b.loose
        ]

    def _ports(self) -> None:
        """Lines leave and enter a box where that makes them straight; else evenly about its middle."""
        for channel, hops in enumerate(self.hops):
            for hop in hops.values():
                if hop.above and hop.above.kind == "box" and hop.above.loose:
                    hop.above.outlets[hop.net] = _outlet(hop.above, hop) - hop.above.x
            for slot in self.rows[channel] if channel < len(self.rows) else ():
                entering = [hop for hop in hops.values() if slot in hop.below]
                if slot.kind == "box" and slot.loose and entering:
                    _enter(slot, entering, hops.values())
        for hop in itertools.chain(*(hops.values() for hops in self.hops)):
            if hop.above and hop.above.kind == "box" and hop.above.loose and len(hop.below) == 1:
                target = hop.bottoms()[0]
                if hop.above.reaches(target) and not hop.sides:
                    hop.above.outlets[hop.net] = target - hop.above.x

    def _snap(self) -> None:
        """Where a line ends in a box a few pixels beside its lanes, move the lanes."""
        for channel, hops in enumerate(self.hops):
            for hop in hops.values():
                if hop.above is None or hop.above.kind != "lane" or len(hop.below) != 1 or hop.sides:
                    continue
                x, target = hop.above.x, hop.bottoms()[0]
                run = []
                for row in reversed(self.rows[:channel]):
                    lane = next((i for i, s in enumerate(row) if (s.kind, s.key, s.x) == ("lane", hop.net, x)), None)
                    if lane is None:
                        break
                    run.append((row, lane))
                rooms = [_room(row, i) for row, i in run]
                if abs(x - target) <= SNAP and all(low <= target <= high for low, high in rooms):
                    for row, i in run:
                        row[i].x = target

    def _stack(self) -> None:
        y = 0.0
        for channel, hops in enumerate(self.hops):
            tracks = assign_tracks(list(hops.values()))
            outer = min(channel, len(self.rows) - channel)  # 0: the outermost channels
            height = BEFORE_TRACKS + max(tracks - 1, 0) * TRACK + AFTER_TRACKS if tracks else FREE_CHANNEL
            if not tracks and outer <= self.inside:
                height = PADDING + 3 * bool(hops) if outer else 0.0
            self.channel_y.append(y)
            y += height
            self.row_y.append(y)
            if channel < len(self.rows):
                y += max((slot.height for slot in self.rows[channel]), default=0.0)
        self.height = y

    # -- reading ----------------------------------------------------------------------------------------

    def slot_y(self, row: int, slot: Slot) -> float:
        """Beside something taller, what starts a line stands near the row's end, all else at its beginning."""
        tallest = max((s.height for s in self.rows[row]), default=0.0)
        entered = any(slot in hop.below for hop in self.hops[row].values())
        return self.row_y[row] + (0.0 if entered else tallest - slot.height)

    def track_y(self, channel: int, hop: Hop) -> float:
        return self.channel_y[channel] + BEFORE_TRACKS + (hop.track or 0) * TRACK

    def line(self, net: str, source: Slot | None, row: int, target: Slot, target_row: int) -> list[Point]:
        """The points from `source` (or, without one, from the side) to `target`."""
        points: list[Point] = []
        if source is not None:
            points.append((source.outlet(net), self.slot_y(row, source) + source.height))
        for channel in range(row + 1 if source else target_row, target_row + 1):
            hop = self.hops[channel][net]
            slot = target if channel == target_row else next(s for s in hop.below if s.kind == "lane" and s.key == net)
            x = slot.inlet(net)
            if hop.track is not None and points and abs(points[-1][0] - x) > 0.01:
                y = self.track_y(channel, hop)
                points += [(points[-1][0], y), (x, y)]
            elif hop.track is not None and not points:
                points.append((x, self.track_y(channel, hop)))
        points.append((target.inlet(net), self.slot_y(target_row, target)))
        return points


# -- tracks --------------------------------------------------------------------------------------------------


def assign_tracks(hops: Sequence[Hop]) -> int:
    """Give every hop that is not straight a track, so that few lines cross and none lie on each other."""
    bent = [hop for hop in hops if not hop.straight()]
    before: dict[Hop, list[Hop]] = {hop: [] for hop in bent}
    debt = dict.fromkeys(bent, 0)  # what it costs that others are still below
    for a, b in itertools.combinations(bent, 2):
        cost = _cost(a, b) - _cost(b, a)
        debt[a], debt[b] = debt[a] + cost, debt[b] - cost
        before[a].append(b)
        before[b].append(a)
    order: list[Hop] = []
    left = sorted(bent, key=lambda h: (h.span(), h.net))
    while left:  # the one that is cheapest above all others goes next
        hop = min(left, key=lambda h: debt[h])
        left.remove(hop)
        order.append(hop)
        for other in left:
            debt[other] -= _cost(other, hop) - _cost(hop, other)
    for i, hop in enumerate(order):
        low, high = hop.span()
        spans = [(other, *other.span()) for other in order[:i]]
        taken = [o.track or 0 for o, a, b in spans if a < high + TRACK and low < b + TRACK]
        hop.track = max(taken, default=-1) + 1
    return max((hop.track or 0 for hop in order), default=-1) + 1


def _cost(upper: Hop, lower: Hop) -> int:
    """What it costs to run `upper` above `lower`: lines crossed, and dearly, lines laid upon each other."""
    (low, high), (low2, high2) = upper.span(), lower.span()
    crossed = sum(low < x < high for x in lower.tops()) + sum(low2 < x < high2 for x in upper.bottoms())
    overlaid = sum(abs(x - x2) < 4 for x in upper.bottoms() for x2 in lower.tops())
    return crossed + 50 * overlaid


# -- x -------------------------------------------------------------------------------------------------------


class _Pull(NamedTuple):
    """A neighbour wants this slot's left edge at its own plus `shift`."""

    slot: Slot
    shift: float
    weight: float


def _wish(slot: Slot, pulls: list[_Pull]) -> tuple[float, float]:
    if slot.kind == "title":
        return 0.0, 1e6
    place = total = 0.0
    for other, shift, weight in pulls:
        place += weight * (other.x + shift)
        total += weight
    return (place / total, total) if total else (slot.x, 0.01)


def _between(a: Slot, b: Slot) -> float:
    return GAP if a.kind == b.kind == "box" else LANE_GAP


def _row_width(row: Sequence[Slot]) -> float:
    return sum(s.width for s in row) + sum(_between(a, b) for a, b in itertools.pairwise(row))


def _spread(row: Sequence[Slot], wishes: Sequence[float], weights: Sequence[float], width: float) -> None:
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


def _room(row: Sequence[Slot], i: int) -> tuple[float, float]:
    """How far a lane may be moved without its neighbours moving."""
    slot = row[i]
    low = row[i - 1].x + row[i - 1].width + LANE_GAP if i else slot.x - 60
    high = row[i + 1].x - LANE_GAP if i + 1 < len(row) else slot.x + 60
    return min(low, slot.x), max(high, slot.x)


def _settle(run: Sequence[Slot], low: float, high: float, ends: Iterable[tuple[float, float]]) -> None:
    for left, right in ends:
        if max(low, left) <= min(high, right):
            low, high = max(low, left), min(high, right)
    xs = sorted(lane.x for lane in run)
    for lane in run:
        lane.x = max(low, min(xs[len(xs) // 2], high))


# -- ports ---------------------------------------------------------------------------------------------------


def _outlet(box: Slot, hop: Hop) -> float:
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


def _enter(box: Slot, entering: list[Hop], others: Iterable[Hop]) -> None:
    """Spread the inlets of a box, each below where its line comes from, none below where another one does."""
    low, high = box.x + PORT_MARGIN, box.x + box.width - PORT_MARGIN

    def wish(hop: Hop) -> float:
        side = box.x - 99 if "left" in hop.sides else box.x + box.width + 99
        return hop.tops()[0] if hop.above else side

    entering.sort(key=lambda hop: (wish(hop), hop.net))
    gap = min(PORT, (high - low) / max(len(entering) - 1, 1))
    ports = [Slot("lane", hop.net, gap - LANE_GAP) for hop in entering]  # _spread puts LANE_GAP between lanes
    wishes = [min(max(wish(hop), low), high) - low for hop in entering]
    _spread(ports, wishes, [1.0] * len(ports), high - low + ports[-1].width)
    for port in ports:
        taken = [x for other in others for x in other.tops() if other.net != port.key]
        port.x += _sidestep(low + port.x, taken, [low + p.x for p in ports if p is not port], low, high)
        box.inlets[port.key] = port.x + PORT_MARGIN


def _sidestep(x: float, taken: Sequence[float], ports: Sequence[float], low: float, high: float) -> float:
    """The least shift that keeps a line's end off another line's beginning, and off the ports beside it."""
    for shift in (0, 4, -4, 6, -6):
        apart = all(abs(x + shift - other) >= min(5, abs(x - other)) for other in ports)
        if low <= x + shift <= high and apart and all(abs(x + shift - other) >= 4 for other in taken):
            return shift
    return 0


def _share(slot: Slot, ports: dict[str, float], hop: Hop) -> float:
    return ports[hop.net] / slot.width - 0.5 if hop.net in ports and slot.width else 0.0

"""One level of a drawing with clusters: the children of one cluster, in columns, and the lines between them.

Used by `layout`, from the innermost cluster out. A cluster's inside is one column; the outermost level may be
folded into several, which go down and up in turn. Lines within a column are the column's business; those between
columns, and those that close a cycle, leave their channel at the side and run in the gutter next to the column.

Coordinates here are those of the page; only inside a Column are they of the flow.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from dtflab.viz.layout import ranks
from dtflab.viz.layout.column import Column
from dtflab.viz.layout.shapes import OUT, Box, Cluster, Drawing, Net, Nets, Point, Rect
from dtflab.viz.layout.slots import GAP, Side, Slot
from dtflab.viz.layout.tracks import TRACK, assign_tracks

TITLE_HEIGHT, BORDER = 19.0, 10.0  # of a cluster: the band of its title; what lies left and right of its rows
GUTTER = 13.0  # on either side of a gutter's tracks
TALL, MOST_COLUMNS = 620.0, 4  # folding starts above TALL
FOLD_COST, OVER_COST = 120.0, 5.0  # in pixels of height: one more column; a pixel beyond the width
TOLERATED = 1.06  # of the width


def folded(root: Cluster, nets: Nets, width: float, turns: bool) -> Level:
    """The outermost level, in as many columns as make it neither tall nor wide, or clusters side by side in one.

    Every second column goes up if the flow `turns`; else all go down.
    """
    best, least = None, math.inf
    known: dict[tuple[str, bool], Level] = {}
    abreast = [(1, 2)] if _side_by_side(root, nets) else []
    for columns, parts in [(1, 1), *abreast, *((n, 1) for n in range(2, MOST_COLUMNS + 1))]:
        share = (width - 40 * (columns - 1)) / columns
        level = Level(root, nets, share, columns, room=share / parts - 2 * BORDER, known=known, turns=turns)
        over = max(0.0, level.width - width * TOLERATED)
        cost = max(level.height, TALL) + FOLD_COST * len(level.columns) + OVER_COST * over
        if cost < least:
            best, least = level, cost
        if (level.height <= TALL and not over) or len(level.columns) < columns or (columns > 1 and over > 50):
            break
    assert best is not None
    return best


def _after(keys: Iterable[str], nets: Mapping[str, Net]) -> dict[str, list[str]]:
    """The edges between the children of a level, without those that close a cycle."""
    after: dict[str, dict[str, None]] = {key: {} for key in keys}
    for net in nets.values():
        for target, closing in net.targets.items():
            if net.origin and target != OUT and not closing:
                after[net.origin][target] = None
    return {key: list(targets) for key, targets in after.items()}


def _side_by_side(root: Cluster, nets: Nets) -> bool:
    """Whether two clusters could stand in one row."""
    keys = [child.key for child in root.children]
    rows = ranks.assign_rows(keys, _after(keys, nets.get(root.key, {})), lambda _: 0.0, math.inf)
    taken = [rows[child.key] for child in root.children if isinstance(child, Cluster)]
    return len(set(taken)) < len(taken)


@dataclasses.dataclass(eq=False)
class _Riser:
    """A net in a gutter: heights where it meets the columns left and right, and whether it goes over the top."""

    lefts: list[float] = dataclasses.field(default_factory=list)
    rights: list[float] = dataclasses.field(default_factory=list)
    over: bool = False
    net: str = ""
    track: int | None = None

    def tops(self) -> list[float]:
        return self.lefts

    def bottoms(self) -> list[float]:
        return self.rights

    def span(self) -> tuple[float, float]:
        ys = self.lefts + self.rights
        return -math.inf if self.over else min(ys), max(ys)


@dataclasses.dataclass(frozen=True)
class _Detour:
    """A line that leaves its column: the gutters and sides it takes from one child to the other."""

    net: str
    origin: str
    target: str
    out: tuple[int, Side]
    into: tuple[int, Side]


class Level:
    """The children of one cluster, placed, with the solved levels inside them."""

    def __init__(
        self,
        cluster: Cluster,
        nets: Nets,
        width: float,
        columns: int = 1,
        inside: bool = False,
        rising: bool = False,
        room: float | None = None,
        known: dict[tuple[str, bool], Level] | None = None,
        turns: bool = True,
    ) -> None:
        """`width` and `room` are wishes: for a column of this level, and for the insides of its clusters.

        `known` are levels solved before, to be used again where the outcome would be the same.
        """
        self.cluster, self.inside, self.wish = cluster, inside, width
        self.known = {} if known is None else known
        self.nets = nets.get(cluster.key, {})
        self.insides: dict[str, Level] = {}
        self.slots: dict[str, Slot] = {}
        room = width - 2 * BORDER if room is None else room
        self._make_slots(nets, room, dict.fromkeys([child.key for child in cluster.children], rising))
        self.place = self._fold(width, columns)
        count = max((column for column, _ in self.place.values()), default=0) + 1
        self.rising = [rising != (turns and column % 2 == 1) for column in range(count)]
        if count > 1:
            self._make_slots(nets, room, {key: self.rising[column] for key, (column, _) in self.place.items()})
        self.ports: dict[tuple[str, bool], Slot] = {}
        self.columns = [self._column(number) for number in range(count)]
        self.detours = list(self._detours())
        for detour in self.detours:
            self._leave(detour)
        for column in self.columns:
            column.solve(width)
        self._arrange()

    def _make_slots(self, nets: Nets, room: float, rising: Mapping[str, bool]) -> None:
        for child in self.cluster.children:
            if isinstance(child, Box):
                self.slots[child.key] = Slot("box", child.key, child.width, child.height, group=child.group)
            else:
                level = self.insides[child.key] = self._solved(child, nets, room, rising[child.key])
                self.slots[child.key] = level.as_slot()

    def _solved(self, child: Cluster, nets: Nets, room: float, rising: bool) -> Level:
        level = self.known.get((child.key, rising))
        if level is None or not level.needs() <= room <= level.wish:
            level = Level(child, nets, room, inside=True, rising=rising, known=self.known)
            self.known[child.key, rising] = level
        return level

    def needs(self) -> float:
        """The width above which a wish for more changes nothing."""
        inside = (level.needs() + 2 * BORDER for level in self.insides.values())
        return max(*(column.needs for column in self.columns), *inside, 0.0)

    def as_slot(self) -> Slot:
        """This level as one box in its parent's, with ports where its lines cross the border."""
        slot = Slot("box", self.cluster.key, self.width, self.height, loose=False)
        left = self.lefts[0]
        for (net, into), port in self.ports.items():
            (slot.inlets if into else slot.outlets)[net] = left + port.x
        return slot

    # -- rows and columns -------------------------------------------------------------------------------

    def _fold(self, width: float, columns: int) -> dict[str, tuple[int, int]]:
        """Column and row of every child."""
        after = _after(self.slots, self.nets)
        row_of = ranks.assign_rows(list(self.slots), after, lambda key: self.slots[key].width + GAP, width + GAP)
        heights = [0.0] * (max(row_of.values(), default=-1) + 1)
        for key, row in row_of.items():
            heights[row] = max(heights[row], self.slots[key].height + 34)
        starts = _even_parts(heights, columns)
        column_of = [sum(row >= start for start in starts) - 1 for row in range(len(heights))]
        return {key: (column_of[row], row - starts[column_of[row]]) for key, row in row_of.items()}

    def _column(self, number: int) -> Column:
        """The column with its slots, and the lines that stay in it."""
        mine = {key: row + self.inside for key, (column, row) in self.place.items() if column == number}
        rows: list[list[Slot]] = [[] for _ in range(max(mine.values(), default=0) + 1 + self.inside)]
        for key, row in mine.items():
            rows[row].append(self.slots[key])
        if self.inside:
            title = Slot("title", "", self.cluster.title, TITLE_HEIGHT)
            rows[-1 if self.rising[number] else 0].insert(0, title)
        column = Column(rows, self.inside)
        for source, net in self.nets.items():
            if net.origin is None:
                start, row = self._port(rows[0], source, True), 0
            elif net.origin in mine:
                start, row = self.slots[net.origin], mine[net.origin]
            else:
                continue
            targets = {self.slots[t]: mine[t] for t, closing in net.targets.items() if t in mine and not closing}
            if OUT in net.targets:
                targets[self._port(rows[-1], source, False)] = len(rows) - 1
            if targets:
                column.connect(source, start, row, targets)
        return column

    def _port(self, row: list[Slot], net: str, into: bool) -> Slot:
        port = self.ports[net, into] = Slot("lane", net, 0.0)
        row.append(port)
        return port

    # -- lines through gutters --------------------------------------------------------------------------

    def _detours(self) -> list[_Detour]:
        found = []
        for source, net in self.nets.items():
            for target, closing in net.targets.items():
                if net.origin is None or target == OUT:
                    continue
                a, b = self.place[net.origin][0], self.place[target][0]
                if a != b or closing:
                    out: tuple[int, Side] = (a, "right") if b >= a else (a - 1, "left")
                    into: tuple[int, Side] = (b - 1, "left") if b > a else (b, "right")
                    found.append(_Detour(source, net.origin, target, out, into))
        return found

    def _leave(self, detour: _Detour) -> None:
        """Enter the detour's two ends into the channels after its origin and before its target."""
        (a, row), (b, target_row) = self.place[detour.origin], self.place[detour.target]
        start = self.columns[a].hop(row + self.inside + 1, detour.net)
        start.above = self.slots[detour.origin]
        start.sides.add(detour.out[1])
        end = self.columns[b].hop(target_row + self.inside, detour.net)
        end.sides.add(detour.into[1])
        if self.slots[detour.target] not in end.below:
            end.below.append(self.slots[detour.target])

    def _ends(self, detour: _Detour) -> tuple[float, float]:
        """The heights at which a detour leaves and enters."""
        (a, row), (b, target_row) = self.place[detour.origin], self.place[detour.target]
        start, end = row + self.inside + 1, target_row + self.inside
        from_y = self.columns[a].track_y(start, self.columns[a].hops[start][detour.net])
        to_y = self.columns[b].track_y(end, self.columns[b].hops[end][detour.net])
        return self._page(a, (0.0, from_y))[1], self._page(b, (0.0, to_y))[1]

    def _arrange(self) -> None:
        """Set columns next to each other, with gutters as wide as their tracks need."""
        tall = max((column.height for column in self.columns), default=0.0)
        self.lefts = [0.0] * len(self.columns)
        over = list(dict.fromkeys(d.net for d in self.detours if d.out[0] != d.into[0]))
        self.over = {net: TRACK * (i + 1) for i, net in enumerate(over)}
        top = TRACK * (len(over) + 1) if over else 0.0
        self.tops = [
            top + (tall - column.height if self.rising[number] else 0.0) for number, column in enumerate(self.columns)
        ]
        self.risers: list[dict[str, _Riser]] = [{} for _ in self.columns]
        for detour in self.detours:
            for (gutter, side), y in zip((detour.out, detour.into), self._ends(detour)):
                riser = self.risers[gutter].setdefault(detour.net, _Riser(net=detour.net))
                (riser.lefts if side == "right" else riser.rights).append(y)
                riser.over |= detour.out[0] != detour.into[0]
        x = BORDER if self.inside else 0.0
        self.gutters = []
        for number, (column, risers) in enumerate(zip(self.columns, self.risers)):
            self.lefts[number] = x
            x += column.width
            self.gutters.append(x + GUTTER)
            tracks = assign_tracks(list(risers.values()))
            last = number == len(self.columns) - 1
            x += 0.0 if last and not risers else 2 * GUTTER + TRACK * max(tracks - 1, 0)
        self.width, self.height = x + (BORDER if self.inside else 0.0), top + tall

    # -- onto the page ----------------------------------------------------------------------------------

    def _page(self, number: int, point: Point) -> Point:
        """From a column's coordinates to this level's."""
        x, y = point
        column = self.columns[number]
        return self.lefts[number] + x, self.tops[number] + (column.height - y if self.rising[number] else y)

    def emit(self, x: float, y: float, drawing: Drawing) -> None:
        """Draw everything, with this level's corner at (x, y)."""
        for key, (number, row) in self.place.items():
            slot, column = self.slots[key], self.columns[number]
            flow_y = column.slot_y(row + self.inside, slot)
            left, top = self._page(number, (slot.x, flow_y + (slot.height if self.rising[number] else 0.0)))
            rect = Rect(x + left, y + top, slot.width, slot.height)
            if self.rising[number]:
                drawing.rising.add(key)
            if key in self.insides:
                drawing.clusters[key] = rect
                self.insides[key].emit(rect.x, rect.y, drawing)
            else:
                drawing.boxes[key] = rect
        for (source, target), points in self._lines():
            drawing.pieces[self.cluster.key, source, target] = [(x + px, y + py) for px, py in points]

    def _lines(self) -> list[tuple[tuple[str, str], list[Point]]]:
        lines = [((detour.net, detour.target), self._detour_line(detour)) for detour in self.detours]
        for source, net in self.nets.items():
            for target, closing in net.targets.items():
                number = 0 if target == OUT else self.place[target][0]
                if not closing and (net.origin is None or self.place[net.origin][0] == number):
                    points = self._straight_line(source, net.origin, target, number)
                    lines.append(((source, target), [self._page(number, p) for p in points]))
        return lines

    def _straight_line(self, source: str, origin: str | None, target: str, number: int) -> list[Point]:
        column = self.columns[number]
        start, row = (
            (self.slots[origin], self.place[origin][1] + self.inside) if origin else (self.ports[source, True], 0)
        )
        if target == OUT:
            return column.line(source, start, row, self.ports[source, False], len(column.rows) - 1)
        return column.line(source, start, row, self.slots[target], self.place[target][1] + self.inside)

    def _detour_line(self, detour: _Detour) -> list[Point]:
        (a, row), (b, target_row) = self.place[detour.origin], self.place[detour.target]
        from_y, to_y = self._ends(detour)
        slot, column = self.slots[detour.origin], self.columns[a]
        x = slot.outlet(detour.net)
        points = [self._page(a, (x, column.slot_y(row + self.inside, slot) + slot.height))]
        points.append((self.lefts[a] + x, from_y))
        points += self._gutter_line(detour, from_y, to_y)
        slot, column = self.slots[detour.target], self.columns[b]
        x = slot.inlet(detour.net)
        points.append((self.lefts[b] + x, to_y))
        return [*points, self._page(b, (x, column.slot_y(target_row + self.inside, slot)))]

    def _gutter_line(self, detour: _Detour, from_y: float, to_y: float) -> list[Point]:
        a, b = detour.out[0], detour.into[0]
        risers = self.risers[a][detour.net], self.risers[b][detour.net]
        out, into = (self.gutters[g] + TRACK * (riser.track or 0) for g, riser in zip((a, b), risers, strict=True))
        if a != b:
            return [(out, from_y), (out, self.over[detour.net]), (into, self.over[detour.net]), (into, to_y)]
        if risers[0].track is None:
            back = 1 if detour.out[1] == "right" else -1
            return [(out - back * TRACK, from_y), (out + back * TRACK, to_y)]
        return [(out, from_y), (into, to_y)]


def _even_parts(heights: Sequence[float], count: int) -> list[int]:
    """Where to cut a sequence into at most `count` parts so that the largest part is small."""
    total = [0.0, *itertools.accumulate(heights)]

    def cuts(limit: float) -> list[int]:
        starts = [0]
        for i in range(len(heights)):
            if total[i + 1] - total[starts[-1]] > limit and i > starts[-1]:
                starts.append(i)
        return starts

    limits = sorted({round(b - a, 3) for a, b in itertools.combinations(total, 2)} | {0.0})
    return next((cuts(limit + 0.01) for limit in limits if len(cuts(limit + 0.01)) <= count), [0])

"""One column of a layered drawing: rows of slots, and channels between them in which the lines turn.

Lines run straight down, and sideways only in channels, on tracks of their own: so none ever passes behind a box.
All lines from one source are one net, which branches; that is what makes a line followable.

Coordinates are of the flow: y grows in the direction of the edges. Left out: optimal coordinates (Brandes-Köpf).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dtflab.viz.layout import ranks
from dtflab.viz.layout.shapes import Point
from dtflab.viz.layout.slots import (
    PORT_MARGIN,
    Hop,
    Pull,
    Slot,
    enter,
    outlet_of,
    room_around,
    row_width,
    settle,
    spread,
    wish,
)
from dtflab.viz.layout.tracks import TRACK, assign_tracks

FREE_CHANNEL, BEFORE_TRACKS, AFTER_TRACKS = 22.0, 9.0, 13.0  # heights; an arrow head fits after the last track
SWEEPS, SNAP = 24, 12.0
PULL = (2.0, 1.0, 6.0)  # of a line between boxes, a box and a lane, two lanes: long lines are to be straight
ARROW = 8.0  # the last pixels of a line are straight, for its arrow head
PADDING = 9.0  # between the border of a cluster and what it holds


class Column:
    """Rows and channels; channel r lies above row r. `solve` gives everything its place."""

    def __init__(self, rows: list[list[Slot]], inside: bool = False) -> None:
        self.rows = rows
        self.inside = inside  # a cluster's: the first and the last row lie on its border
        self.hops: list[dict[str, Hop]] = [{} for _ in range(len(rows) + 1)]
        self.width = self.height = self.needs = 0.0
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
        groups = {slot: slot.group for row in self.rows for slot in row if slot.group}
        ranks.order_rows(self.rows, links, titles, groups)
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
        least = max((row_width(row) for row in self.rows), default=0.0)
        self.needs = least * 1.15 + 40  # more width than this changes nothing
        width = max(least, min(width, self.needs))
        for row in self.rows:
            spread(row, [0.0] * len(row), [0.001] * len(row), width)
        around = self._neighbours()
        for sweep in range(SWEEPS):
            before = [slot.x for row in self.rows for slot in row]
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                wishes, weights = zip(*(wish(slot, around[slot]) for slot in row)) if row else ((), ())
                spread(row, wishes, weights, width)
            if all(abs(slot.x - x) < 0.5 for slot, x in zip(itertools.chain(*self.rows), before)):
                break

    def _neighbours(self) -> dict[Slot, list[Pull]]:
        around: dict[Slot, list[Pull]] = {slot: [] for row in self.rows for slot in row}
        for hop in itertools.chain(*(hops.values() for hops in self.hops)):
            for low in hop.below if hop.above else ():
                assert hop.above is not None
                out, into = hop.above.outlets.get(hop.net), low.inlets.get(hop.net)
                out = hop.above.width / 2 if out is None else out
                into = low.width / 2 if into is None else into
                weight = PULL[(low.kind == "lane") + (hop.above.kind == "lane")]
                around[low].append(Pull(hop.above, out - into, weight))
                around[hop.above].append(Pull(low, into - out, weight))
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
                    left, right = room_around(*where[lane])
                    if max(low, left) > min(high, right):
                        settle(run, low, high, self._ends(lane.key, run))
                        run, low, high = [], -math.inf, math.inf
                    run.append(lane)
                    low, high = max(low, left), min(high, right)
                settle(run, low, high, self._ends(lanes[0].key, run))

    def _ends(self, net: str, run: Sequence[Slot]) -> list[tuple[float, float]]:
        """Where the boxes are at which a run of lanes begins or ends: x that make these ends straight too."""
        hops = [hop for hops in self.hops for hop in hops.values() if hop.net == net]
        boxes = [hop.above for hop in hops if hop.above and run[0] in hop.below]
        boxes += [slot for hop in hops if hop.above is run[-1] for slot in hop.below]
        return [(b.x + PORT_MARGIN, b.x + b.width - PORT_MARGIN) for b in boxes if b.kind == "box" and b.loose]

    def _ports(self) -> None:
        """Lines leave and enter a box where that makes them straight; else evenly about its middle."""
        for channel, hops in enumerate(self.hops):
            for hop in hops.values():
                if hop.above and hop.above.kind == "box" and hop.above.loose:
                    hop.above.outlets[hop.net] = outlet_of(hop.above, hop) - hop.above.x
            for slot in self.rows[channel] if channel < len(self.rows) else ():
                entering = [hop for hop in hops.values() if slot in hop.below]
                if slot.kind == "box" and slot.loose and entering:
                    enter(slot, entering, hops.values())
        for hop in itertools.chain(*(hops.values() for hops in self.hops)):
            if hop.above and hop.above.kind == "box" and hop.above.loose and len(hop.below) == 1:
                target = hop.bottoms()[0]
                if hop.above.reaches(target) and not hop.sides:
                    hop.above.outlets[hop.net] = target - hop.above.x

    def _snap(self) -> None:
        """Where a line ends in a box a few pixels next to its lanes, move the lanes."""
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
                rooms = [room_around(row, i) for row, i in run]
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
        """Next to something taller, what starts a line stands near the row's end, all else at its beginning."""
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
            if not points:
                points.append((x, self.track_y(channel, hop)))
            elif hop.track is not None:
                y = self.track_y(channel, hop)
                points += [(points[-1][0], y), (x, y)]
            else:
                points += [(points[-1][0], self.channel_y[channel]), (x, self.row_y[channel] - ARROW)]
        points.append((target.inlet(net), self.slot_y(target_row, target)))
        return points

"""Lines around boxes: the shortest way from the border of one box to that of another, through no third one.

A line leaves a box at a port, straight out, and turns only at the corners of what it goes around; A* finds the way.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence

from dtflab.viz.layout.shapes import Point, Rect

_STUB, _NEAR = 12.0, 8.0  # how far a line goes straight out of a box; how far its corners are from others
_PORT = 0.86  # where at the top and bottom, as a share of the width: clear of words at the left
_THROUGH, _OVER = 1e5, 600.0  # what it costs to cross a box, which is never worth it, and to cross another mark


class Around:
    """The ways of lines between `boxes` on a page. They go around `marks` too, unless that is long."""

    def __init__(self, boxes: Mapping[str, Rect], marks: Sequence[Rect], width: float) -> None:
        self._boxes, self._marks, self._width = boxes, marks, width
        around = [corner for rect in (*boxes.values(), *marks) for corner in _corners(rect)]
        self._corners = [corner for corner in around if 0 <= corner[0] <= width]
        self._costs: dict[tuple[Point, Point], float] = {}
        self._leaving: set[Point] = set()  # the ports that lines leave by, and those that they arrive at
        self._arriving: set[Point] = set()

    def way(self, source: str, target: str) -> list[Point]:
        """The points of a line from one box to another. No port is the start of one line and the end of another."""
        starts, goals = self._ports(source, self._arriving), self._ports(target, self._leaving)
        line = self._shortest(starts, goals)
        points = [starts[line[0]], *line, goals[line[-1]]]
        self._leaving.add(points[0])
        self._arriving.add(points[-1])
        return points

    def _ports(self, key: str, but: Collection[Point]) -> dict[Point, Point]:
        """The ports of a box, each by the end of the straight piece at it; those in `but` if no other is there."""
        r = self._boxes[key]
        x, y = r.x + r.width * _PORT, r.y + r.height / 2
        out = {
            (x, r.y - _STUB): (x, r.y),
            (x, r.bottom + _STUB): (x, r.bottom),
            (r.x - _STUB, y): (r.x, y),
            (r.right + _STUB, y): (r.right, y),
        }
        ports = {end: port for end, port in out.items() if 0 <= end[0] <= self._width}
        return {end: port for end, port in ports.items() if port not in but} or ports

    def _shortest(self, starts: Collection[Point], goals: Collection[Point]) -> list[Point]:
        before: dict[Point, Point] = {}
        line = [(_left(start, goals), 0.0, start, start, True) for start in sorted(starts)]
        heapq.heapify(line)
        while True:  # ends at the latest after a straight line to a goal
            expected, so_far, here, previous, is_sure = heapq.heappop(line)
            if here in before:
                continue
            if not is_sure and (more := self._crossed(previous, here)):
                heapq.heappush(line, (expected + more, so_far + more, here, previous, True))
                continue
            before[here] = previous
            if here in goals:
                return _back(here, before)
            for there in (*self._corners, *goals):
                if there not in before:
                    far = so_far + math.dist(here, there)
                    heapq.heappush(line, (far + _left(there, goals), far, there, here, False))

    def _crossed(self, here: Point, there: Point) -> float:
        """The cost of all that a straight line crosses, kept for the next line."""
        if (here, there) not in self._costs:
            boxes = sum(_crosses(here, there, rect) for rect in self._boxes.values())
            marks = sum(_crosses(here, there, rect) for rect in self._marks)
            self._costs[here, there] = self._costs[there, here] = _THROUGH * boxes + _OVER * marks
        return self._costs[here, there]


def _back(point: Point, before: Mapping[Point, Point]) -> list[Point]:
    points = [point]
    while (previous := before[points[-1]]) != points[-1]:
        points.append(previous)
    return points[::-1]


def _left(here: Point, goals: Collection[Point]) -> float:
    return min(math.dist(here, goal) for goal in goals)


def _corners(r: Rect) -> list[Point]:
    return [(x, y) for x in (r.x - _NEAR, r.right + _NEAR) for y in (r.y - _NEAR, r.bottom + _NEAR)]


def _crosses(a: Point, b: Point, r: Rect) -> bool:
    """Whether a line runs through a rectangle; along its border is not through it."""
    if max(a[0], b[0]) <= r.x or min(a[0], b[0]) >= r.right or max(a[1], b[1]) <= r.y or min(a[1], b[1]) >= r.bottom:
        return False
    first, last = 0.0, 1.0
    for start, end, low, high in ((a[0], b[0], r.x, r.right), (a[1], b[1], r.y, r.bottom)):
        if start != end:
            near, far = sorted(((low - start) / (end - start), (high - start) / (end - start)))
            first, last = max(first, near), min(last, far)
    return last - first > 1e-9

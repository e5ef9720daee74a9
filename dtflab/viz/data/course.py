"""The course of a training: one line of points per worker, few enough to draw, its speed and the time left."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

MOST = 500  # points of a line that are kept
_WINDOW = 5.0  # seconds over which a speed is measured


# A task, or any name; its value; and its place on the x axis and the age of its gradient, if it said them.
Report = tuple[str, float, float | None, float | None]


class Line:
    """The values of one worker. A line that has all the points that are kept loses every second one, and from then on
    keeps one of twice as many: each point is a value that came, none is a mean.
    """

    def __init__(self) -> None:
        self.xs: list[float] = []
        self.ys: list[float | None] = []  # None, a gap, for nan and inf
        self.every = 1
        self.count = 0
        self.thinned = 0  # how often
        self.lowest = math.inf
        self.lost: float | None = None  # the place since which no value was finite
        self.newest: tuple[float, float | None] = (0.0, None)

    def add(self, x: float | None, value: float) -> None:
        self.newest = self.count if x is None else x, value if math.isfinite(value) else None
        if math.isfinite(value):
            self.lowest, self.lost = min(self.lowest, value), None
        elif self.lost is None:
            self.lost = self.newest[0]
        if self.count % self.every == 0:
            self.xs.append(self.newest[0])
            self.ys.append(self.newest[1])
            if len(self.xs) >= MOST:
                del self.xs[1::2], self.ys[1::2]
                self.every *= 2
                self.thinned += 1
        self.count += 1

    def since(self, first: int) -> tuple[list[float], list[float | None]]:
        """The points from one on, the newest with them, even if it is not kept."""
        xs, ys = self.xs[first:], self.ys[first:]
        if self.newest[0] != self.xs[-1]:
            xs.append(self.newest[0])
            ys.append(self.newest[1])
        return xs, ys


class Course:
    """All lines, what they have in common, and how fast they grow in real seconds."""

    def __init__(self, steps: int | None, now: float) -> None:
        self.lines: dict[str, Line] = {}
        self.steps = steps
        self.count = 0
        self.is_counted = True  # no report has said where it stands on the x axis
        self.stale: tuple[float, float, int] = (0.0, 0.0, 0)  # sum, largest, number of those known
        self._began = self._now = now
        self._recent = deque([(now, 0)])

    def add(self, reports: Iterator[Report], now: float) -> None:
        """Take what has come until `now`."""
        for who, value, x, staleness in reports:
            if who not in self.lines:
                self.lines[who] = Line()
            self.lines[who].add(x, value)
            self.count += 1
            self.is_counted &= x is None
            if staleness is not None:
                total, most, known = self.stale
                self.stale = total + staleness, max(most, staleness), known + 1
        self._now = now
        self._recent.append((now, self.count))
        while len(self._recent) > 2 and self._recent[1][0] <= now - _WINDOW:
            self._recent.popleft()

    @property
    def seconds(self) -> float:
        return self._now - self._began

    @property
    def rate(self) -> float:
        """Updates a second, of all workers together, over the last seconds."""
        (then, before), (now, count) = self._recent[0], self._recent[-1]
        return (count - before) / (now - then) if now > then else 0.0

    @property
    def mean_rate(self) -> float:
        """Updates a second since the beginning."""
        return self.count / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """The seconds that the rest will take; None if that is not known."""
        if self.steps is None or not self.rate or self.count > self.steps:
            return None
        return (self.steps - self.count) / self.rate

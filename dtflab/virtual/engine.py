"""Engine: a heap of events in virtual time.

An event is a call that is due at a moment; `turn` makes the earliest one. Moments are in seconds. Two events of one
moment come in the order in which they were asked for, so a run is the same every time.

Rule: the past can't be changed: what is asked for earlier than now is due now.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Engine:
    """Events to come, in the order of (time, sequence number)."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turned = 0  # events made so far
        self._heap: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        self._cancelled: set[int] = set()

    def at(self, time: float, call: Callable[..., Any], *args: Any) -> int:
        """Let `call(*args)` be made at `time`; the result is a number for `cancel`."""
        number = next(self._numbers)
        heappush(self._heap, (time, number, call, args))
        return number

    def cancel(self, number: int) -> None:
        """The event of that number, which has not come yet, will not come."""
        self._cancelled.add(number)

    def __len__(self) -> int:
        """How many events are to come."""
        return len(self._heap) - len(self._cancelled)

    def turn(self) -> bool:
        """Make the next event; False if there is none."""
        while self._heap:
            time, number, call, args = heappop(self._heap)
            if number in self._cancelled:
                self._cancelled.discard(number)
                continue
            if time > self.now:
                self.now = time
            self.turned += 1
            call(*args)
            return True
        return False

    def run(self, until: float = math.inf) -> None:
        """Make all events that are due up to `until`, those included that they ask for."""
        heap, cancelled, pop, turned = self._heap, self._cancelled, heappop, 0
        try:
            while heap and heap[0][0] <= until:
                time, number, call, args = pop(heap)
                if cancelled and number in cancelled:
                    cancelled.discard(number)
                    continue
                if time > self.now:
                    self.now = time
                turned += 1
                call(*args)
        finally:
            self.turned += turned

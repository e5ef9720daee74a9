"""Seconds that count against a limit: those in which a program computes or waits, not those in which others compute.

On a busy machine a program gets the processor now and then only. By the clock on the wall, the same answer would have
its mark on one machine and be stopped on another. So a second counts as much as the program had of the processor, and
fully if it had next to nothing: then it waits. A program that is given a tenth of a processor still moves, one that
waits does not; that is seen over a second, not in a moment.

Rules: a second never counts for more than one, so that many threads cost no more than one; and never for less than a
tenth, so that every limit has an end. Where there is no /proc (macOS, Windows), processes that a program has started
are not seen, and it seems to wait for them.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_WHILE = 1.0  # seconds: over a shorter time, one that is not given the processor seems to wait
_WAITS = 0.03  # of the processor: a loop that sleeps 1 ms and looks takes half of that
_LEAST = 0.1


def counted(wall: float, processor: float) -> float:
    """The seconds counted for `wall` seconds in which a program had the processor for `processor` seconds."""
    return wall if processor < _WAITS * wall else _at_least(wall, processor)


def _at_least(wall: float, processor: float) -> float:
    return min(wall, max(processor, _LEAST * wall))


class Meter:
    """Adds up what counts, from looks at two clocks: `now` on the wall, and the processor's. All in seconds."""

    def __init__(self, limit: float, now: float, processor: float) -> None:
        self.limit = limit
        self.seconds = 0.0  # that count so far
        self._while = min(_WHILE, limit / 4)
        self._began, self._had, self._before = now, processor, 0.0

    def look(self, now: float, processor: float) -> bool:
        """Whether the limit is reached. Whether it waits is decided at the end of each while."""
        wall, had = now - self._began, processor - self._had  # had < 0: a process has ended, and took its time along
        if wall < self._while:
            self.seconds = self._before + _at_least(wall, had)
        else:
            self.seconds = self._before = self._before + counted(wall, had)
            self._began, self._had = now, processor
        return self.seconds >= self.limit

    def pause(self, now: float) -> float:
        """Seconds on the wall after which the next look may bring something new."""
        return max(0.01, min(self.limit - self.seconds, self._began + self._while - now))


# -- the processor's clock -----------------------------------------------------------------------------------


class Process(NamedTuple):
    """A process as /proc describes it: its bytes, and its seconds of the processor with those of its ended children."""

    parent: int
    session: int
    memory: int
    processor: float


def processes() -> dict[int, Process]:
    """All processes that have not ended, by their number; empty where there is no /proc."""
    found = {}
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent, _, session, *more = (folder / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":
                ticks, pages = sum(map(int, more[7:11])), int(more[17])
                memory, processor = pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK")
                found[int(folder.name)] = Process(int(parent), int(session), memory, processor)
    return found


def processor_seconds() -> float:
    """The processor time of this process and of those that it has started."""
    ended, running = os.times(), processes()
    mine, seconds = {os.getpid()}, time.process_time() + ended.children_user + ended.children_system
    while more := {number for number, one in running.items() if one.parent in mine} - mine:
        mine |= more
        seconds += sum(running[number].processor for number in more)
    return seconds

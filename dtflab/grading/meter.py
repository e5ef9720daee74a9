"""Seconds that count against a limit: those in which a program computes or waits, not those in which others compute.

On a busy machine a program gets the processor now and then only. By the clock on the wall, the same answer would have
its mark on one machine and be stopped on another. So a second counts as much as the program had of the processor. If it
had next to nothing, it waits, and the second counts fully, or it is starved: its threads are ready to run and get no
processor. Linux tells these apart: of each thread it counts for how long it was ready and did not run. Nor does it wait
while the one that looks is late, because the whole process was stopped, or while a thread waits for a disk.

Rules: a second never counts for more than one, so that many threads cost no more than one; and never for less than a
32nd, so that every limit has an end. A program that comes to that end without having had its seconds is `starved`:
nothing was found out about it. Where there is no /proc (macOS, Windows), a program that gets less than 3% of the
processor seems to wait.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_WHILE = 1.0  # seconds: over a shorter time, one that is not given the processor seems to wait
_WAITS = 0.03  # of the processor: a loop that sleeps 1 ms and looks takes half of that
_READY = 0.05  # of the time: a thread that waits and is woken now and then is ready for less
LEAST = 1 / 32  # one of 32 programs that want the same core
_MOST_OF_IT = 0.9


class Threads(NamedTuple):
    """For how long each thread was ready until it last ran, in seconds, and which are ready now, or wait for a disk."""

    ready: Mapping[int, float] = {}
    now: Container[int] = ()


class Used(NamedTuple):
    """The processor's seconds so far, and the threads."""

    processor: float = 0.0
    threads: Threads = Threads()


def counted(wall: float, processor: float, ready: float = 0.0) -> float:
    """The seconds counted for `wall` seconds in which a program computed for some, and for some was ready to."""
    waits = processor < _WAITS * wall and wall > 0
    seconds = wall - (ready if ready > _READY * wall else 0.0) if waits else 0.0
    return min(wall, max(processor, seconds))


class Meter:
    """Adds up what counts, from looks at two clocks: `now` on the wall, and what was used until then, in seconds."""

    def __init__(self, limit: float, now: float, used: Used) -> None:
        self.limit = limit
        self.seconds = 0.0  # that count so far
        self._while = min(_WHILE, limit / 4)
        self._began, self._used, self._before = now, used, 0.0
        self._due, self._late = math.inf, 0.0  # the next look, and by how much those of this while were late
        self._had = 0.0  # of them, what it computed or waited for

    def look(self, now: float, used: Used) -> bool:
        """Whether the limit is reached. Whether it waits is decided at the end of each while."""
        wall = now - self._began
        self._late += max(0.0, now - self._due)
        had = used.processor - self._used.processor  # had < 0: a process has ended, and took its time along
        if wall < self._while:
            self.seconds = self._before + min(wall, max(had, LEAST * wall))
        else:
            true = counted(wall, had, _ready(self._used.threads, used.threads, wall) + self._late)
            self._had += true
            self.seconds = self._before = self._before + max(true, LEAST * wall)
            self._began, self._used, self._late = now, used, 0.0
        return self.seconds >= self.limit

    def go_on(self, now: float, used: Used) -> None:
        """Count nothing for the time since the last look: the one that looks was stopped itself."""
        self._began, self._used, self._late = now, used, 0.0

    @property
    def starved(self) -> bool:
        """True if it has had less than most of the seconds of its limit."""
        return self._had + (self.seconds - self._before) < _MOST_OF_IT * self.limit

    def pause(self, now: float) -> float:
        """Seconds on the wall after which the next look may bring something new."""
        pause = max(0.01, min(self.limit - self.seconds, self._began + self._while - now))
        self._due = now + pause
        return pause


def _ready(before: Threads, after: Threads, wall: float) -> float:
    """The seconds for which threads were ready; for one that is ready now, Linux has not counted them yet."""
    return sum(
        wall if thread in after.now else seconds - before.ready.get(thread, 0.0)
        for thread, seconds in after.ready.items()
    )


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


def used() -> Used:
    """The use of this process and of those that it has started."""
    ended, running = os.times(), processes()
    mine, seconds = {os.getpid()}, time.process_time() + ended.children_user + ended.children_system
    while more := {number for number, one in running.items() if one.parent in mine} - mine:
        mine |= more
        seconds += sum(running[number].processor for number in more)
    return Used(seconds, threads(mine, looks=threading.get_native_id()))


def threads(pids: Iterable[int], looks: int = 0) -> Threads:
    """The threads of these processes; no threads where the system does not count for how long they are ready.

    `looks` is the thread that asks, if it is one of them: it runs now, so it is not one that is ready now. (The time
    for which it was ready does count: it may hold the interpreter's lock, and then the others wait for it.)
    """
    ready, now = {}, set()
    for pid in pids:
        for folder in _folders(PROC / str(pid) / "task"):
            number = int(folder.name)
            with contextlib.suppress(OSError, IndexError):  # it has ended meanwhile
                seconds = int((folder / "schedstat").read_text().split()[1]) / 1e9
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                ready[number] = seconds
                now |= {number} if state in "RD" and number != looks else set()
    return Threads(ready, now)


def _folders(tasks: Path) -> list[Path]:
    """The folders of a process's threads; none if it has ended."""
    try:
        return [*tasks.iterdir()]
    except OSError:
        return []

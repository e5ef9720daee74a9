"""A workload, and how its time is taken."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Measure = Callable[[], Sequence[float]]


@dataclass(frozen=True)
class Row:
    """A line of the table: its unit, and the ratio or value to reach. Of what is counted per second, more is better.

    A number in `limit` is one in the unit; an `aim` is printed, and not counted. `or_bare` is a ratio to the bare value
    that does as well as the bar.
    """

    unit: str
    bar: float | None = None
    against: str = "TensorFlow"
    limit: float | None = None
    aim: float | None = None
    or_bare: float | None = None

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")


@dataclass(frozen=True)
class Workload:
    """Rows of the table by name, how they are measured, and how often.

    The floor of a row is what it costs without any library, `bare`, or what as many steps of dtflab cost that do
    nothing, `empty`.
    """

    rows: dict[str, Row]
    prepare: Callable[[Any], Measure]
    rounds: int
    bare: Callable[[], Measure] | None = None
    empty: Callable[[Any], Measure] | None = None
    in_tensorflow: bool = True  # TensorFlow runs the same program


WORKLOADS: dict[str, Workload] = {}
KEPT: list[Any] = []  # servers and folders, which end or are deleted when nobody holds them


def workload(
    name: str,
    rows: dict[str, Row],
    rounds: int = 5,
    bare: Callable[[], Measure] | None = None,
    empty: Callable[[Any], Measure] | None = None,
    in_tensorflow: bool = True,
) -> Any:
    """Decorator: what follows is the workload `name`."""

    def register(prepare: Callable[[Any], Measure]) -> Callable[[Any], Measure]:
        WORKLOADS[name] = Workload(rows, prepare, rounds, bare, empty, in_tensorflow)
        return prepare

    return register


def best(function: Callable[[], Any], calls: int, batches: int = 50) -> float:
    """Seconds per call in the best of some batches, each so short that other programs do not get into all of them."""

    def batch() -> float:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - start) / calls

    return min(batch() for _ in range(batches))


def median(function: Callable[[], Any], calls: int) -> float:
    """Seconds of the middle one of some calls: a call that waits for another process varies by itself."""
    times = [time.perf_counter()]
    for _ in range(calls):
        function()
        times.append(time.perf_counter())
    return statistics.median(end - start for start, end in itertools.pairwise(times))


def in_threads(steps: Sequence[Callable[[], Any]], turns: int) -> Callable[[], None]:
    """A call of each of the steps that many times, each in a thread of its own."""

    def together() -> None:
        threads = [threading.Thread(target=lambda s=step: [s() for _ in range(turns)]) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return together

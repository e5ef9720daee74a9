"""StepThrough: a step that runs the nodes that are ready now, and no others until the next call.

The loop is the executor's own. A node that became ready meanwhile is held back at the gate through which every node
of a careful step goes; it counts as in flight for its iteration, so that no loop ends without it. `runtime/steps.py` is
the interface for people.

Rule: every set is an order that the graph allows, so the values are those of a plain run. Where the graph leaves open
whether a variable is read before an update, the update waits for one set, so that here, too, the read comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph import op_registry
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.step_stats import StepStatsCollector
from dtflab.runtime.executor import ASYNC, READS_FIRST, Iteration
from dtflab.runtime.runner import Step
from dtflab.runtime.steps import lives

Place = tuple[Iteration, int]  # a node in an iteration


class StepThrough(Step):
    """`advance` runs one set: it started `ran`, and `came` are those of earlier sets that are done now.

    `held` are the nodes of the next set, `waiting` those that are not done yet; `before` has the live iterations with
    their counts before the set.
    """

    def __init__(
        self, step_id: int, clock: Clock = REAL, timeout: float | None = None, trace: StepStatsCollector | None = None
    ) -> None:
        super().__init__(step_id, clock, timeout, trace)
        self.careful = True
        self._seconds = timeout  # for each set
        self.held: list[Place] = []
        self.waiting: dict[Place, None] = {}
        self.before: dict[Iteration, list[int]] = {}
        self._latest: Place | None = None

    def advance(self, patient: bool = False) -> None:
        """Run the set; wait for what it starts on other threads, but not for what needs an event outside.

        If there is nothing to run, a `patient` call waits for that, too.
        """
        self.before = {work: list(work.pending) for work in self.before if lives(work)}
        ready, self.held = self.held, []
        self.ran: list[Place] = []
        self.came: list[Place] = []
        self._now, self._reading = set(ready), False
        for work, n in ready:
            work.in_flight -= 1
            work.ready.append(n)
            work.enqueue()
        self.allow(self._seconds)
        self.drive(until=lambda: bool(self.held or not patient) and all(map(_is_async, self.waiting)))

    def enqueue(self, work: Any) -> None:
        self.before.setdefault(work, list(work.executor.pending))
        super().enqueue(work)

    def holds_back(self, work: Any, n: int) -> bool:
        if super().holds_back(work, n):
            return True
        if (work, n) in self._now and not (self._reading and _updates(work, n)):
            self._latest = (work, n)
            self.ran.append(self._latest)
            return False
        if self._latest is not None and _mode(self._latest) & READS_FIRST:  # it waits for the variable just handed on
            self._reading = True
        work.in_flight += 1
        self.held.append((work, n))
        return True

    def expect(self) -> None:
        super().expect()
        if self._latest is not None:  # else it is another task's part of the step
            self.waiting[self._latest] = None

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        super().post(self._arrived, function, args)

    def _arrived(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        work = getattr(function, "__self__", None)
        if isinstance(work, Iteration):
            self.waiting.pop((work, args[0]))
            self.came.append((work, args[0]))
        function(*args)


def _mode(place: Place) -> int:
    return place[0].executor.items[place[1]].mode


def _is_async(place: Place) -> bool:
    return bool(_mode(place) & ASYNC)


def _updates(work: Iteration, n: int) -> bool:
    node = work.executor.nodes[n]
    return any(dtype._is_ref_dtype for dtype in op_registry.get(node.op).op_def.input_types(node.attrs))

"""StepThrough: a step that runs the nodes that are ready now, and no others until the next call.

The loop is the executor's own. A node that became ready meanwhile is held back at the gate through which every node
of a careful step goes; it counts as in flight for its iteration, so that no loop ends without it. `runtime/steps.py` is
the interface for people.

Rules: every set is an order that the graph allows, so the values are those of a plain run. Where the graph leaves open
whether a variable is read before an update, the update waits for one set, so that here, too, the read comes first. A
set is one of all tasks: those of other processes run their parts of it meanwhile, and what one of them sent to a node
that has asked for it arrives before the next set. So a step shows the same sets wherever its tasks are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from typing import Any

from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.step_stats import StepStatsCollector
from dtflab.ops.sendrecv import rendezvous_key
from dtflab.runtime.executor import ASYNC, READS_FIRST, Executor, Iteration
from dtflab.runtime.rendezvous import full_key
from dtflab.runtime.runner import Step
from dtflab.runtime.steps import Elsewhere, lives

Place = tuple[Iteration, int]  # a node in an iteration


class StepThrough(Step):
    """`advance` runs one set: it started `ran`, and `came` are those of earlier sets that are done now.

    `held` are the nodes of the next set, `waiting` those that are not done yet; `before` has the live iterations with
    their counts before the set. All these are of this process; `elsewhere` are the parts in others, and `position` is
    how many of them were started before the own one.
    """

    def __init__(
        self, step_id: int, clock: Clock = REAL, timeout: float | None = None, trace: StepStatsCollector | None = None
    ) -> None:
        super().__init__(step_id, clock, timeout, trace)
        self.careful = True
        self.elsewhere: Elsewhere = Elsewhere()
        self.position = 0
        self._seconds = timeout  # for each set
        self.held: list[Place] = []
        self.waiting: dict[Place, None] = {}
        self.before: dict[Iteration, list[int]] = {}
        self.ran: list[Place] = []
        self.came: list[Place] = []
        self._sent: set[str] = set()  # the keys of all tensors that went from task to task
        self._latest: Place | None = None
        self._now: set[Place] = set()
        self._reading: set[Executor] = set()  # where a variable was handed on in this set
        self._numbers: dict[Executor, int] = {}  # in the order in which they were started

    def advance(self, patient: bool = False) -> None:
        """Run the set; wait for what it starts on other threads, but not for what needs an event outside.

        If there is nothing to run, a `patient` call waits for that, too.
        """
        self.before = {work: list(work.pending) for work in self.before if lives(work)}
        ready, self.held = sorted(self.in_order(self.held), key=_updates), []  # what only reads comes first
        self.ran, self.came, self._latest = [], [], None
        self._now = set(ready)
        self._reading.clear()
        self.allow(self._seconds)
        for part in self.elsewhere.held:
            part.advance(self)
        for work, n in ready:
            work.in_flight -= 1
            work.ready.append(n)
            work.enqueue()
        self.drive(until=self._stands)
        self._latest = None
        self._exchange()
        if patient and not self._has_ready():
            self._await_event()

    def _exchange(self) -> None:
        """Wait for what was sent to nodes that have asked for it."""
        parts = self.elsewhere.held
        if not parts:  # between tasks of one process it is there at once, and in virtual time it takes its time
            return
        self._sent.update(self.sent(), *(part.sent for part in parts))
        for part in parts:
            if due := sorted(self._sent.intersection(part.asks)):
                part.settle(self, due)
        self.settle(self._sent)

    def _await_event(self) -> None:
        waiting = [part for part in self.elsewhere.held if part.waiting]
        for part in waiting:
            part.await_ready(self)
        self.await_ready()
        for part in waiting:
            part.stop(self)
        self.drive(until=self._stands)

    def settle(self, keys: Collection[str]) -> None:
        """Wait until no node here waits for the tensor of one of these keys."""
        self.drive(until=lambda: self._stands() and not self.asks().intersection(keys))

    def await_ready(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait until a node is ready, or it is `enough`; after a `stir` that is asked again."""
        self.drive(until=lambda: enough() or (self._has_ready() and all(map(_is_async, self.waiting))))

    def forget(self) -> None:
        """Let go of what it holds, also of the values that nobody has used yet: it has failed or was cancelled."""
        with contextlib.suppress(errors.OpError):
            self.drive()
        for work in self.before:
            work.inputs.clear()

    def stir(self) -> None:
        """Wake the thread that drives the step; called by any thread."""
        self.post(super().expect)

    @property
    def over(self) -> bool:
        """True if nothing is left to run, or it has failed."""
        return self.error is not None or not (self.held or self.in_flight or self._queue)

    def _has_ready(self) -> bool:
        return bool(self.held) or any(part.ready for part in self.elsewhere.held)

    def _stands(self) -> bool:
        return all(map(_is_async, self.waiting)) and not any(part.is_busy for part in self.elsewhere.held)

    def asks(self) -> set[str]:
        """The keys of the tensors that nodes here wait for."""
        return {_key(place) for place in self.waiting if _op(place) == "_Recv"}

    def sent(self) -> list[str]:
        """The keys of the tensors that nodes here sent in this set."""
        return [_key(place) for place in self.ran if _op(place) == "_Send"]

    def in_order(self, places: Iterable[Place]) -> list[Place]:
        """By device, by loop and turn, by node: the same order wherever a device's task is."""
        return sorted(places, key=lambda place: (*self._order(place[0]), place[1]))

    def works(self) -> list[Iteration]:
        """The iterations of `before`, in that order."""
        return sorted(self.before, key=self._order)

    def _order(self, work: Iteration) -> tuple[int, list[tuple[bytes, int]]]:
        turns: list[tuple[bytes, int]] = []
        inner = work
        while inner.frame is not None:
            turns.insert(0, (inner.frame.name, inner.number))
            inner = inner.frame.parent
        return self._numbers[work.executor], turns

    def enqueue(self, work: Any) -> None:
        if not self._numbers:
            self.position = len(self.elsewhere.held)
        self._numbers.setdefault(work.executor, len(self._numbers))
        self.before.setdefault(work, list(work.executor.pending))
        super().enqueue(work)

    def holds_back(self, work: Any, n: int) -> bool:
        latest, self._latest = self._latest, None  # what a device that pauses takes up again is not what it waits for
        if super().holds_back(work, n):
            return True
        self._latest = latest
        if (work, n) in self._now and not (work.executor in self._reading and _updates((work, n))):
            self._latest = (work, n)
            self.ran.append(self._latest)
            return False
        if self._latest is not None and _mode(self._latest) & READS_FIRST:  # it waits for the variable just handed on
            self._reading.add(self._latest[0].executor)
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
        self._latest = None  # no node runs
        work = getattr(function, "__self__", None)
        if isinstance(work, Iteration):
            self.waiting.pop((work, args[0]))
            self.came.append((work, args[0]))
        function(*args)


def _mode(place: Place) -> int:
    return place[0].executor.items[place[1]].mode


def _op(place: Place) -> str:
    return place[0].executor.nodes[place[1]].op


def _key(place: Place) -> str:
    work, n = place
    return full_key(rendezvous_key(work.executor.nodes[n]), work.ctx.frame_iter)


def _is_async(place: Place) -> bool:
    return bool(_mode(place) & ASYNC)


def _updates(place: Place) -> bool:
    node = place[0].executor.nodes[place[1]]
    return any(dtype._is_ref_dtype for dtype in op_registry.get(node.op).op_def.input_types(node.attrs))

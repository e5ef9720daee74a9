"""VirtualStep: the executor's second runner. The same step, node by node, on simulated hardware in virtual time.

A ready node that takes time is held back at the gate that every careful step has, and waits for its processor. When
that is free, its kernel really computes; what it gave is handed on when the modelled time is over. So is a value that
another device asked for, when it has arrived (`worker.py`).

Rule: the thread that turns the engine does the bookkeeping of the steps whose events come: only one thread runs at a
time. The thread that called `drive` waits until its step is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base.garbage import RARE_COLLECTION
from dtflab.ops.blas import BLAS
from dtflab.ops.entropy import SOURCE
from dtflab.runtime.executor import Executor, Iteration
from dtflab.runtime.runner import Step
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.critical import CRITICAL
from dtflab.virtual.plan import Plan
from dtflab.virtual.world import Label, Lane

if TYPE_CHECKING:
    from dtflab.machine.clock import Clock
    from dtflab.machine.step_stats import StepStatsCollector

_CLIENT = Lane("client")
LEAST_S = 1e-6  # duration of a step of nothing but constants: a program that polls lets time pass


class VirtualStep(Step):
    """One step in virtual time. Its number among the steps of its cluster is its id."""

    clock: VirtualClock

    def __init__(
        self,
        step_id: int,
        clock: Clock,
        timeout: float | None = None,
        trace: StepStatsCollector | None = None,
        master: str = "",
    ) -> None:
        """`master` is the task whose master runs the step, "" for work outside of a session's step."""
        super().__init__(step_id, clock, timeout, trace)
        self.master = master
        self.careful = True  # every node comes to `holds_back`
        world = self.clock.world
        assert world is not None  # the clock of a cluster in virtual time
        self.world = world
        if master:
            self.world.steps += 1
            self.step_id = self.world.steps
        self.slowness = self.world.chance.slowness(master) if master else 1.0  # of what its own task computes
        self.draw = partial(self.world.chance.draw, master)  # where what has no seed gets its numbers
        self.helpers: list[str] = []  # other tasks that have a part in the step
        if self.trace is not None:
            self.trace.step, self.trace.lane = self.step_id, _CLIENT
        self._computing = 0  # nodes at their processors, or in line there
        self._plans: dict[Executor, Plan] = {}
        self._until: Callable[[], bool] = bool
        self._due = False  # the engine will call `_go_on`

    # -- the gate ---------------------------------------------------------------------------------------------

    def holds_back(self, work: Any, n: int) -> bool:
        """True for a node that may not run, or whose processor will run it when its turn has come."""
        may_not = self.error or self._cancelled_by or self._deadline is not None or not work.executor.pace.gate.is_open
        if may_not and super().holds_back(work, n):
            return True
        plan = self._plans.get(work.executor)
        if plan is None:
            plan = self._plans[work.executor] = self.world.plan(work.executor)
        if not plan.takes_time[n] or n in work.dead:
            return False
        work.in_flight += 1
        self.expect()
        self._computing += 1
        kernel = _Kernel(self, plan, work, n)
        if plan.in_thread[n]:
            self.clock.spawn(kernel.run, name=plan.names[n])
        else:
            plan.processor.submit(kernel)
        return True

    def fail(self, error: Exception) -> None:
        """The first error stays, and nobody waits for what is being computed: the step is over at this moment."""
        super().fail(error)
        self.in_flight -= self._computing
        self._computing = 0

    # -- driving -------------------------------------------------------------------------------------------

    @CRITICAL
    def drive(self, until: Callable[[], bool] = lambda: False) -> None:
        """Run the step to its end, as events do it; see Step."""
        started = self.clock.now()
        with BLAS, RARE_COLLECTION:
            super().drive(until)
        if not self.in_flight:  # it is over: without these, which know it, it goes at once, not when a collector comes
            self._on_cancel.clear()
        if self.clock.now() == started:
            self.clock.sleep(LEAST_S)

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        """A pending result has come: the step goes on at this moment."""
        if self._abandoned:
            return
        self._inbox.append((function, args))
        if not self._due:
            self._due = True
            self.clock.engine.at(self.clock.engine.now, self._go_on)

    def receive(self, deliver: Callable[[], Any]) -> None:
        """Within an event: a value has come from another device, and the step goes on with it at once."""
        self._due = True
        deliver()
        self._go_on()

    def _go_on(self) -> None:
        """Within an event: what can be done now."""
        self._due = False
        self._advance()
        if self._wake is not None and (not self.in_flight or self._until()):
            self._wake.set()

    def _advance(self) -> None:
        """Do what can be done at this moment: what has come, then what is ready; at the end, call the master."""
        queue, inbox = self._queue, self._inbox
        before, SOURCE.draw = SOURCE.draw, self.draw
        try:
            while inbox or queue:
                if inbox:
                    function, args = inbox.popleft()
                    self.in_flight -= 1
                    function(*args)
                else:
                    queue.popleft().process()
        finally:
            SOURCE.draw = before
        if self.helpers and not self.in_flight and self.error is None:
            self._answer()

    @np.errstate(all="ignore")
    def _loop(self, until: Callable[[], bool]) -> None:
        """On the thread that drives: what is ready now, then wait for the engine to do the rest."""
        self._until = until
        self._advance()
        while self.in_flight and not until():
            self._wait()

    def _wait(self) -> None:
        if self._wake is None:
            self._wake = self.clock.event()
            self._wake.what = f"step {self.step_id}"
        self._wake.clear()
        if self._deadline is None or self.error is not None:
            self._wake.wait()
        elif not self._wake.wait(max(0.0, self._deadline - self.clock.now())):
            self._expired()

    def _answer(self) -> None:
        """Each task that has run a part of the step says so to the master."""
        for helper in self.helpers:
            self.expect()
            came, lost = partial(self.post, _nothing), partial(self.post, self.fail)
            self.world.wires.call(self.step_id, "RunGraph ended", helper, self.master, came, lost)
        self.helpers = []


class _Kernel:
    """A node of a step at its processor."""

    __slots__ = ("_args", "_error", "_n", "_plan", "_started", "_step", "_value", "_work")

    def __init__(self, step: VirtualStep, plan: Plan, work: Iteration, n: int) -> None:
        self._step = step
        self._plan = plan
        self._work = work
        self._n = n
        self._args: list[Any] = []  # an input stays until its reader is done
        self._value: Any = None
        self._error: Exception | None = None

    @property
    def label(self) -> Label:
        """Which kernel it is."""
        return Label(self._step.step_id, self._plan.nodes[self._n], self._plan.device)

    def begin(self) -> float:
        """The processor is free: compute, and say how many seconds that takes."""
        step, plan, work, n = self._step, self._plan, self._work, self._n
        self._started = step.clock.engine.now
        if step.must_stop():
            return 0.0
        item = work.executor.items[n]
        self._args = args = work.inputs[item.slots]
        work.inputs[item.slots] = item.empty
        before, SOURCE.draw = SOURCE.draw, step.draw
        try:
            self._value = value = item.kernel(*args)
            seconds = plan.seconds(n, args, value)
        except Exception as error:
            self._error = error
            return 0.0
        finally:
            SOURCE.draw = before
        if step.trace is not None:
            step.trace.allocate(plan.nodes[n], value)
        seconds *= work.executor.pace.factor
        return seconds * step.slowness if plan.task == step.master else seconds

    def run(self) -> None:
        """Run in a separate thread, not on a processor, so that it may sleep."""
        with np.errstate(all="ignore"):
            self._step.clock.sleep(self.begin())
            self.end(_CLIENT)

    def end(self, lane: Lane) -> None:
        """The time is over: hand on what it gave."""
        step, work, n, error = self._step, self._work, self._n, self._error
        if step.error is not None:  # the step has given it up
            return
        step.in_flight -= 1
        step._computing -= 1
        if error is None:
            now, plan = step.clock.engine.now, self._plan
            step.world.log.add(self._started, now, step.step_id, plan.names[n], plan.device)
            if plan.tell_busy is not None:
                plan.tell_busy(now - self._started)
            if step.trace is not None:
                step.trace.lane = lane
                work.record(n, self._started, self._value)
                step.trace.lane = _CLIENT
        self._args.clear()
        work.finish(n, [self._value, error])
        step._go_on()


def _nothing() -> None:
    """Ignore an answer that has come."""

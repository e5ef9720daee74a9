"""VirtualStep: the executor's second runner. The same step, node by node, on simulated hardware in virtual time.

A ready node that takes time is held back at the gate that every careful step has, and waits for its processor. When
that is free, its kernel really computes; what it gave is handed on when the modelled time is over. So is a value that
another device asked for, when it has arrived (`worker.py`).

Rule: whoever turns the engine does the bookkeeping of the steps whose events come: only one thread runs at a time. The
thread that called `drive` waits until its step is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dtflab.graph import device_spec, op_registry
from dtflab.hardware import costs
from dtflab.ops.blas import BLAS
from dtflab.runtime.executor import ASYNC, CONTROL_FLOW, MANY_OUTPUTS, Iteration
from dtflab.runtime.runner import Step
from dtflab.virtual.clock import VirtualClock


class VirtualStep(Step):
    """One step in virtual time."""

    clock: VirtualClock

    def __init__(self, *args: Any, master: str = "", **kwargs: Any) -> None:
        """`master` is the task whose master runs the step; the rest is as for Step."""
        super().__init__(*args, **kwargs)
        self.master = master
        self.careful = True  # every node comes to `holds_back`
        self.world = self.clock.world
        self.world.steps += 1
        self.number = self.world.steps
        self.helpers: list[str] = []  # other tasks that have a part in the step
        self._chances: dict[str, float] = {}
        self._until: Callable[[], bool] = bool
        self._due = False  # the engine will call `_go_on`

    # -- the gate ---------------------------------------------------------------------------------------------

    def holds_back(self, work: Any, n: int) -> bool:
        """True for a node that may not run, or whose processor will run it when its turn has come."""
        if super().holds_back(work, n):
            return True
        if n in work.dead or work.executor.items[n].mode & (ASYNC | CONTROL_FLOW):
            return False
        if costs.is_free(op_registry.get(work.executor.nodes[n].op)):
            return False
        work.in_flight += 1
        self.expect()
        result: list[Any] = []
        self.world.processor(work.executor.device.name).submit(
            lambda: self._compute(work, n, result), lambda: self._hand_on(work, n, result)
        )
        return True

    def _compute(self, work: Iteration, n: int, result: list[Any]) -> float:
        """The processor is free: run the kernel, and say how long it takes."""
        started, value, error, seconds = self.clock.now(), None, None, 0.0
        if not self.must_stop():
            item, device = work.executor.items[n], work.executor.device
            args = work.inputs[item.slots]
            work.inputs[item.slots] = item.empty
            try:
                with BLAS, np.errstate(all="ignore"):
                    value = item.kernel(*args)
                seconds = self._seconds(work, n, args, value, device.name)
            except Exception as raised:
                error = raised
        result[:] = started, value, error
        return seconds

    def _seconds(self, work: Iteration, n: int, args: list[Any], value: Any, device: str) -> float:
        task = device_spec.task_name(device)
        if task not in self._chances:
            self._chances[task] = self.world.chance(task)
        node = work.executor.nodes[n]
        ins = args[len(args) - len(node.inputs) :]  # a step's context may come first
        outs = value if work.executor.items[n].mode & MANY_OUTPUTS else [value][: len(node.output_types)]
        seconds: float = self.world.seconds(node, ins, outs, device)
        return seconds * self._chances[task]

    def _hand_on(self, work: Iteration, n: int, result: list[Any]) -> None:
        started, value, error = result
        node, device = work.executor.nodes[n], work.executor.device.name
        if error is None and self.error is None:
            self.world.log.add(started, self.clock.now(), f"step {self.number} {node.name}", device)
            work._record(n, started, value)
        self.post(work._finished, n, value, error)

    # -- who drives -------------------------------------------------------------------------------------------

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        """What was expected has come: the step goes on at this moment."""
        super().post(function, *args)
        if not self._due and not self._abandoned:
            self._due = True
            self.clock.engine.at(self.clock.now(), self._go_on)

    def _go_on(self) -> None:
        self._due = False
        with BLAS:
            super()._loop(lambda: True)
        if self._wake is not None and (not self.in_flight or self._until()):
            self._wake.set()

    def _loop(self, until: Callable[[], bool]) -> None:
        """On the thread that drives: what is ready now, then wait for the engine to do the rest."""
        self._until = until
        super()._loop(lambda: True)
        while self.in_flight and not until():
            self._wait()
        if not self.in_flight and self.error is None and self.helpers:
            self._await_answers()

    def _wait(self) -> None:
        if self._wake is None:
            self._wake = self.clock.event()
        self._wake.what = f"step {self.number}"
        self._wake.clear()
        if self._deadline is None or self.error is not None:
            self._wake.wait()
        elif not self._wake.wait(max(0.0, self._deadline - self.clock.now())):
            self._expired()

    def _await_answers(self) -> None:
        """Each task that has run a part of the step says so to the master."""
        for helper in self.helpers:
            self.expect()
            self.world.wires.call(
                helper, self.master, f"step {self.number} RunGraph ended", partial(self.post, _nothing)
            )
        self.helpers = []
        while self.in_flight:
            self._wait()


def _nothing() -> None:
    """What there is to do when an answer has come."""

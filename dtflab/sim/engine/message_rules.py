"""Rules of `messages`: what follows when a worker has sent all gradients of its step.

Stands for SyncReplicasOptimizer, and for what a program without it does.

Rule: this module decides which worker starts when; `messages` knows how long everything takes.
"""

from __future__ import annotations

from array import array
from typing import Protocol

import numpy as np

from dtflab.sim.engine.job import Job
from dtflab.sim.engine.record import Log
from dtflab.virtual.engine import Engine


class Run(Protocol):
    """The run as the rules see it; see `messages`."""

    job: Job
    engine: Engine
    log: Log
    workers: int
    count: int
    steps: int
    step: list[int]
    row: list[int]
    pushed: array[float]

    def begin(self, worker: int) -> None: ...


class Rule:
    """Which worker goes on when. `dropped` gradients came too late.

    `waits_s`: how long after a gradient has come its worker waits for the update, in the order in which they leave.
    """

    counts = False  # whether `added` is called for each gradient that has reached its server

    def __init__(self, run: Run) -> None:
        self.run, self.items = run, len(run.job.items.names)
        self.dropped = 0
        self.waits_s = [0.0] * self.items
        self.due: dict[float, list[int]] = {}  # moment → workers that begin then

    def added(self, number: int, step: int) -> None:
        """Gradient `number` of that step is on its server."""

    def finished(self, worker: int) -> None:
        """A worker has sent all."""
        raise NotImplementedError

    def begin_all(self, workers: list[int], over: float) -> None:
        """Start these workers' next step when they know that the last one is over, unless it was the last."""
        for worker in workers:
            self.run.step[worker] += 1
            if self.run.step[worker] < self.run.steps:
                moment = max(over + float(self.run.job.notified_s[worker]), self.run.engine.now)
                if moment not in self.due:
                    self.run.engine.at(moment, self.begin, moment)
                self.due.setdefault(moment, []).append(worker)

    def begin(self, moment: float) -> None:
        """At one moment workers begin in their order, also one that was late."""
        for worker in sorted(self.due.pop(moment)):
            self.run.begin(worker)


class Alone(Rule):
    """Nobody waits for others; a worker's own updates are part of its step."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.waits_s = run.job.items.apply_s[::-1].tolist()

    def finished(self, worker: int) -> None:
        self.begin_all([worker], self.run.engine.now)


class Together(Rule):
    """A step is over when all gradients of all workers are there and applied."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.busy = run.workers

    def finished(self, worker: int) -> None:
        self.busy -= 1
        if self.busy:
            return
        run, row = self.run, self.run.row[worker] * self.run.count
        pushed = np.array(run.pushed[row : row + run.count]).reshape(self.items, -1)[::-1]
        over = float((pushed.max(axis=1) + run.job.items.apply_s).max())
        run.log.updates[run.step[worker]] = over
        self.busy = run.workers
        self.begin_all(list(range(run.workers)), over)


class Spares(Rule):
    """A step is over when `required` gradients of each item are there; later ones are dropped."""

    counts = True

    def __init__(self, run: Run, required: int) -> None:
        super().__init__(run)
        self.required, self.step, self.over = required, 0, 0.0
        self.got, self.open = [0] * self.items, self.items
        self.waiting: list[int] = []

    def added(self, number: int, step: int) -> None:
        if step != self.step:
            return
        item = number // self.run.workers
        self.got[item] += 1
        if self.got[item] == self.required:
            self.over = max(self.over, self.run.engine.now + float(self.run.job.items.apply_s[self.items - 1 - item]))
            self.open -= 1
            if not self.open:
                self.run.engine.at(self.over, self.update)

    def update(self) -> None:
        """The step is over: workers that wait for it go on, late ones when they have finished."""
        self.run.log.updates[self.step] = self.over
        self.step += 1
        self.got, self.open = [0] * self.items, self.items
        waiting, self.waiting = sorted(self.waiting), []
        self.begin_all(waiting, self.over)

    def finished(self, worker: int) -> None:
        if self.run.step[worker] == self.step:
            self.waiting.append(worker)
            return
        self.dropped += 1
        self.run.step[worker] = self.step - 1  # what it missed it does not make up for
        self.begin_all([worker], self.over)

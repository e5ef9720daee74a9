"""Record: the moments of a simulated training run. Both engines write the same.

Rule: moments are seconds since the start. A moment that a step never reached is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dtflab.sim.engine.job import Work
from dtflab.sim.engine.traffic import Array


class Moments(NamedTuple):
    """One step, `[item, worker]`, `[item, device]` or `[device]`; with a first axis `[step]` many."""

    pulled: Array  # [item, worker]: the item has come
    there: Array  # [item, device]: also to the device
    computed_from: Array  # [device]: from when on it had its examples
    forward: Array  # [device]: the way forward was done
    ready: Array  # [item, device]: the gradient was computed
    summed: Array  # [item, worker]: and added up within the worker
    pushed: Array  # [item, worker]: and on its server


@dataclass(kw_only=True)
class Record:
    """A run.

    `updates` are the moments at which the model changed, `steps` how long steps took: of all workers together, or of
    each if they never wait. `examples` were used in `seconds`. `computing[device]` and `busy[wire]` are seconds.
    `staleness[i]` is how many updates by others came between a worker's pull and its update; `dropped` gradients came
    too late. `started`, `ended` are `[step, worker]`; `trace` has the moments of all steps, or of the last alone.
    """

    updates: Array
    steps: Array
    seconds: float
    examples: float
    computing: Array
    busy: Array
    staleness: Array
    dropped: int = 0
    started: Array
    ended: Array
    trace: Moments | None = None


class Log:
    """Records one step after the other; without `trace` only the last is kept whole."""

    def __init__(self, job: Work, steps: int, trace: bool) -> None:
        items, shape = len(job.items.names), (steps if trace else 1,)
        workers, devices = (items, job.workers), (items, job.devices)
        sizes = (workers, devices, devices[1:], devices[1:], devices, workers, workers)
        self.job = job
        self.trace = Moments(*(np.full(shape + size, np.nan) for size in sizes))
        self.started, self.ended = np.full((2, steps, job.workers), np.nan)
        self.updates = np.full(steps, np.nan)

    def write(self, step: int, started: Array, moments: Moments, ended: Array) -> None:
        """One step of all workers."""
        rows = len(self.trace.pulled)
        if step >= len(self.started) - rows:
            for kept, seen in zip(self.trace, moments, strict=True):
                kept[step - (len(self.started) - rows)] = seen
        self.started[step], self.ended[step] = started, ended

    def synchronous(self, factors: Array, required: int, dropped: int) -> Record:
        """The record of synchronous steps."""
        devices = required * self.job.devices / self.job.workers
        return Record(
            updates=self.updates,
            steps=np.diff(self.updates, prepend=0.0),
            seconds=float(self.updates[-1]),
            examples=len(self.updates) * devices * self.job.batch,
            computing=self._computing(factors, np.isfinite(self.started)),
            busy=self.job.held_s * np.isfinite(self.started).sum() / self.job.workers,
            staleness=np.zeros(len(self.updates) * required, int),
            dropped=dropped,
            started=self.started,
            ended=self.ended,
            trace=self.trace,
        )

    def asynchronous(self, factors: Array) -> Record:
        """The record of free-running workers: until the first of them has made all its steps, in parts of steps."""
        seconds = float(self.ended[-1].min())
        done = np.clip((seconds - self.started) / (self.ended - self.started), 0.0, 1.0)  # the part of each step
        counted = seconds / self.ended.max()  # links and devices are as busy as in the whole run
        devices = np.bincount(self.job.owner)
        return Record(
            updates=np.sort(self.ended, axis=None),
            steps=np.diff(self.ended, axis=0, prepend=0.0).ravel(),
            seconds=seconds,
            examples=float((done * devices).sum()) * self.job.batch,
            computing=self._computing(factors, np.ones_like(done)) * counted,
            busy=self.job.held_s * len(done) * counted,
            staleness=staleness(self.started, self.ended),
            started=self.started,
            ended=self.ended,
            trace=self.trace,
        )

    def _computing(self, factors: Array, counted: Array) -> Array:
        taken = (factors * counted[:, self.job.owner]).sum(axis=0)
        seconds: Array = taken * self.job.slowness * self.job.items.compute_s
        return seconds


def staleness(started: Array, ended: Array) -> Array:
    """Updates by others between start and end of each step, in the order of the ends.

    At the same moment, workers go in their order, and one that ends a step starts the next at once.
    """
    steps, workers = ended.shape
    who = np.tile(np.arange(workers), 2 * steps)
    moments = np.concatenate([ended.ravel(), started.ravel()])
    begins = np.repeat([0, 1], steps * workers)
    order = np.lexsort((begins, who, moments))
    updates = np.cumsum(begins[order] == 0)
    seen = np.empty(len(order), int)
    seen[order] = updates
    between = seen[: steps * workers] - seen[steps * workers :] - 1
    return between[np.lexsort((who[: steps * workers], ended.ravel()))]

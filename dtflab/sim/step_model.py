"""Step model: one step of all workers after the other, each as a few scans in NumPy.

Left out: all-reduce (`reductions`) and pipelines (`pipelines`).

Rules. A gradient leaves when it is computed, and a pull is needed when its layer starts. Within a step every message
waits for those sent before it on each of its wires, exactly. So it does across steps, but for the gradients of a spare
that comes later than the next step's first ones could. Asynchronous workers have no steps in common: for them, and for
the last percent, there is `messages`.
"""

from __future__ import annotations

import numpy as np

from dtflab.sim.job import Job
from dtflab.sim.record import Log, Moments, Record
from dtflab.sim.traffic import Array
from dtflab.sim.transfers import Batch, Flow


class StepModel:
    """A job whose wires remember until when they are taken."""

    def __init__(self, job: Job, quickest: float = 1.0) -> None:
        """`quickest` is the least factor of any step of any device."""
        self.job, self.quickest = job, quickest
        self.free = np.zeros(len(job.wires))
        self.pull, self.push = self._batch(job.pull), self._batch(job.push)
        self.scatter = self._batch(job.scatter) if job.scatter else None
        self.gather = self._batch(job.gather) if job.gather else None
        self.inputs = self._batch(job.inputs) if job.inputs else None
        self._first = np.flatnonzero(np.diff(job.owner, prepend=-1))  # device of each worker
        self._tail = np.cumsum(job.items.forward_s[::-1])[::-1, None]
        self._read: Array | None = None

    def _batch(self, flow: Flow) -> Batch:
        return Batch(self.job.wires, flow, self.job.idle)

    def step(self, start: Array, factors: Array) -> Moments:
        """One step of workers that start at `start[worker]`, whose devices compute `factors[device]` times as long."""
        items, owner = self.job.items, self.job.owner
        count = len(items.names)
        pulled = there = self._sent(self.pull, np.tile(start, (count, 1)))
        if self.scatter:
            there = self._sent(self.scatter, pulled[:, owner])
        since = self._fed(start)[owner]
        slow = factors * self.job.slowness
        forward = since + slow * (items.head_s + items.forward_s.sum())
        forward = np.maximum(forward, (there + slow * self._tail).max(axis=0))
        ready = summed = (forward + slow * items.ready_s[:, None])[::-1]  # they leave from the last to the first
        if self.gather:
            summed = np.maximum.reduceat(self._sent(self.gather, ready), self._first, axis=1)
        pushed = self._sent(self.push, summed)
        return Moments(pulled, there, since, forward, ready[::-1], summed[::-1], pushed[::-1])

    def _sent(self, batch: Batch, moments: Array) -> Array:
        return batch.arrivals(moments.ravel(), self.free).reshape(moments.shape)

    def _fed(self, start: Array) -> Array:
        """When each worker has the examples of a step that starts at `start`."""
        if not self.inputs:
            return start
        if self._read is None or not self.job.reads_ahead:
            self._read = self._sent(self.inputs, start)
        there = self._read
        if self.job.reads_ahead:
            self._read = self._sent(self.inputs, start)
        return np.maximum(start, there)

    def forget(self, over: float, took_part: Array, moments: Moments) -> None:
        """A step is over: the next one's messages must not wait for what is sent behind them.

        Who is so late that the step is over when it starts has sent nothing; and gradients that leave when those of the
        next step already could, leave no trace.
        """
        items, slow = self.job.items, self.job.slowness.min()
        soonest = over + slow * (items.head_s + items.forward_s.sum() + items.ready_s[-1]) * self.quickest
        idle = np.broadcast_to(~took_part, moments.pulled.shape)
        for batch, gone in ((self.pull, idle), (self.push, (idle | (moments.summed > soonest))[::-1])):
            if gone.any():
                batch.take_back(gone.ravel(), self.free)


def synchronous(job: Job, factors: Array, required: int, trace: bool = False) -> Record:
    """Steps of workers that wait for each other; a step needs the gradients of `required`, those of others are dropped.

    `factors[step, device]` says how much longer than planned each computes.
    """
    model, log = StepModel(job, float(factors.min())), Log(job, len(factors), trace)
    start, over, dropped = np.zeros(job.workers), 0.0, 0
    for k, drawn in enumerate(factors):
        moments = model.step(start, drawn)
        last = np.partition(moments.pushed, required - 1, axis=1)[:, required - 1] + job.items.apply_s
        over, ended = float(last.max()), moments.pushed.max(axis=0)
        took_part = start < over
        dropped += int(np.count_nonzero(took_part & (ended > over)))
        if required < job.workers:
            model.forget(over, took_part, moments)
        log.write(k, np.where(took_part, start, np.nan), moments, ended)
        log.updates[k] = over
        start = np.maximum(over + job.told_s, np.where(took_part, ended, start))
    return log.synchronous(factors, required, dropped)

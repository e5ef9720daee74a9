"""Step model: the steps of all workers, one after another, each as a few scans in NumPy.

Left out: all-reduce (`reductions`) and pipelines (`pipelines`).

Rules. A gradient leaves when it is computed, and a pull is needed when its layer starts. All messages of one kind and
step are one scan, in the order in which they are sent. That is exact unless some wire gets messages of two kinds or
steps mixed, as when a spare's gradient leaves after the next step's first ones, or unless a worker misses a step. Such
a run is simulated by `messages`, as are asynchronous workers, which have no steps in common.
"""

from __future__ import annotations

import numpy as np

from dtflab.sim.engine import messages
from dtflab.sim.engine.job import Job
from dtflab.sim.engine.record import Log, Moments, Record
from dtflab.sim.engine.traffic import Array
from dtflab.sim.engine.transfers import Batch, Flow


class StepModel:
    """A job whose wires remember until when they are taken. `exact`: no wire got messages in another order."""

    def __init__(self, job: Job) -> None:
        self.job, self.exact = job, True
        self.free = np.zeros(len(job.wires))
        self._latest: dict[Batch, float] = {}  # when the last message of each kind was sent
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
        pulled = there = self._sent(self.pull, np.tile(start, (len(items.names), 1)))
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
        first = moments.min()
        if any(first < latest and not batch.wires.isdisjoint(other.wires) for other, latest in self._latest.items()):
            self.exact = False
        self._latest[batch] = moments.max()
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


def synchronous(job: Job, factors: Array, required: int, trace: bool = False) -> Record:
    """Steps of workers that wait for each other; a step needs the gradients of `required`, those of others are dropped.

    `factors[step, device]` says how much longer than planned each computes.
    """
    model, log = StepModel(job), Log(job, len(factors), trace)
    start, dropped = np.zeros(job.workers), 0
    for k, drawn in enumerate(factors):
        moments = model.step(start, drawn)
        last = np.partition(moments.pushed, required - 1, axis=1)[:, required - 1] + job.items.apply_s
        over, ended = float(last.max()), moments.pushed.max(axis=0)
        if not model.exact or start.max() >= over:
            return messages.synchronous(job, factors, required, trace)
        dropped += int(np.count_nonzero(ended > over))
        log.write(k, start, moments, ended)
        log.updates[k] = over
        start = np.maximum(over + job.notified_s, ended)
    return log.synchronous(factors, required, dropped)

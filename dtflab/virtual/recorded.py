"""RecordedSlots: a processor that notes when each kernel became ready, began and ended; one may be let go first.

Rule: a world has these only while a run is recorded (cluster/replay.py), so that nobody else pays for it.
"""

from __future__ import annotations

import dataclasses
import math
from heapq import heappop

from dtflab.hardware.parts import Processor
from dtflab.virtual.engine import Engine
from dtflab.virtual.world import Job, Label, Slots, World


@dataclasses.dataclass(slots=True)
class Noted:
    """A kernel and its moments; infinite for what did not come."""

    label: Label
    ready: float
    started: float = math.inf
    ended: float = math.inf


class RecordedSlots(Slots):
    """A processor whose kernels are noted in `notes`, in the order in which they became ready.

    `first` is the kernel (step, node, device) that goes next, as soon as it is ready.
    """

    def __init__(self, notes: list[Noted], engine: Engine, hardware: Processor, count: int) -> None:
        super().__init__(engine, hardware, count)
        self.first: tuple[int, str, str] | None = None
        self._notes = notes
        self._open: dict[int, Noted] = {}  # by the identity of a job that has not ended

    def submit(self, job: Job) -> None:
        """Let a job run as soon as a slot is free; before one is chosen out of turn, all of this moment have come."""
        if job.label is not None:
            self._open[id(job)] = Noted(job.label, self._engine.now)
            self._notes.append(self._open[id(job)])
        if self.first is None:
            super().submit(job)
        else:
            self._queue.append(job)
            self._engine.at(self._engine.now, self._choose)

    def _choose(self) -> None:
        self._put_first()
        while self._free and self._queue:
            self._run(self._queue.popleft(), heappop(self._free))

    def _put_first(self) -> None:
        for job in list(self._queue) if self.first else ():
            if job.label is not None and (job.label.step, job.label.node.name, job.label.device) == self.first:
                self._queue.remove(job)
                self._queue.appendleft(job)
                self.first = None
                return

    def _run(self, job: Job, lane: int) -> None:
        if id(job) in self._open:
            self._open[id(job)].started = self._engine.now
        super()._run(job, lane)

    def _done(self, job: Job, lane: int, seconds: float) -> None:
        if id(job) in self._open:
            self._open.pop(id(job)).ended = self._engine.now
        self._put_first()
        super()._done(job, lane, seconds)


def let_go_first(world: World, kernel: tuple[int, str, str]) -> None:
    """From now on, the kernel (step, node, device) is the next on its processor, as soon as it is ready."""
    slots = world.processor(kernel[2])
    assert isinstance(slots, RecordedSlots)  # of a world that is recorded
    slots.first = kernel

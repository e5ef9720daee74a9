"""World: the simulated machines of a cluster while it runs. Who is busy, what is on its way, what has happened.

Rules: a GPU runs one kernel after the other, in the order in which they became ready; so do the cores of a host, which
all its tasks share. Chance comes from one seed, a generator per task, so that what one task draws changes nothing for
the others.
"""

from __future__ import annotations

import itertools
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from dtflab.graph.node import Node
from dtflab.hardware import costs
from dtflab.hardware.machines import Machines, Place
from dtflab.hardware.parts import Processor
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.engine import Engine
from dtflab.virtual.event_log import EventLog
from dtflab.virtual.wires import Wires

Begin = Callable[[], float]  # begins a job, and says how many seconds it takes
End = Callable[[], Any]


class Distribution(Protocol):
    """By how much longer than planned a task computes, step by step (`sim.stragglers`)."""

    def factors(self, steps: int, devices: int, seed: Any) -> Any:
        """float64 `[steps, devices]`; 1 is as planned."""


class Slots:
    """A processor at work: a GPU, which does one thing at a time, or the cores of a host."""

    def __init__(self, engine: Engine, hardware: Processor, count: int) -> None:
        self.hardware = hardware
        self.slowness = 1.0  # by how much everything takes longer from now on
        self.busy = 0.0  # seconds of work so far, all slots together
        self._engine = engine
        self._free = count
        self._queue: deque[tuple[Begin, End]] = deque()

    def submit(self, begin: Begin, end: End) -> None:
        """Let a job run as soon as a slot is free; `end()` is called when it is done."""
        if self._free:
            self._free -= 1
            self._run(begin, end)
        else:
            self._queue.append((begin, end))

    def _run(self, begin: Begin, end: End) -> None:
        seconds = begin() * self.slowness
        self.busy += seconds
        self._engine.after(seconds, self._done, end)

    def _done(self, end: End) -> None:
        if self._queue:
            self._run(*self._queue.popleft())
        else:
            self._free += 1
        end()


class World:
    """The machines of a cluster in virtual time. `stragglers` says how steps vary, None: not at all."""

    def __init__(
        self, clock: VirtualClock, machines: Machines, seed: int = 0, stragglers: Distribution | None = None
    ) -> None:
        clock.world = self
        engine = self.engine = clock.engine
        self.machines = machines
        self.seed = seed
        self.log = EventLog(engine)
        self.wires = Wires(engine, machines, self.cores_of, self.log)
        self.steps = 0  # begun so far
        self._stragglers = stragglers
        self._chances: dict[str, Iterator[float]] = {}
        self._slots: dict[Place, Slots] = {}
        self._of_device: dict[str, Slots] = {}

    def processor(self, device: str) -> Slots:
        """What computes for a device, by its full name. The CPU devices of a host's tasks are the same cores."""
        if device not in self._of_device:
            hardware, _ = self.machines.processor(device)
            place = self.machines.place(device)
            if place not in self._slots:
                self._slots[place] = Slots(self.engine, hardware, hardware.cores if place.card is None else 1)
            self._of_device[device] = self._slots[place]
        return self._of_device[device]

    def cores_of(self, device: str) -> Slots:
        """The cores of the host on which a device is."""
        return self.processor(f"{device.rpartition('/device:')[0]}/device:CPU:0")

    def seconds(self, node: Node, ins: Sequence[Any], outs: Sequence[Any], device: str) -> float:
        """How long a kernel takes on a device, as planned. What has no size, a handle, is a scalar."""
        ins, outs = ([x if hasattr(x, "shape") else costs.HANDLE for x in values] for values in (ins, outs))
        return costs.seconds(costs.of_node(node, ins, outs), self.processor(device).hardware, costs.dtype_of(node))

    def chance(self, task: str) -> float:
        """The factor by which the next step takes longer on a task than planned."""
        if task not in self._chances:
            self._chances[task] = self._draws(task)
        return next(self._chances[task])

    def _draws(self, task: str) -> Iterator[float]:
        for block in itertools.count():
            if self._stragglers is None:
                yield 1.0
            else:
                seed = (self.seed, zlib.crc32(task.encode()), block)
                yield from map(float, self._stragglers.factors(256, 1, seed).ravel())

    def slow_down(self, device: str, factor: float) -> None:
        """From now on, everything takes `factor` times as long on what computes for a device."""
        self.processor(device).slowness = factor

"""World: the simulated machines of a running cluster: what is busy, on its way, and past.

Rules: a GPU runs one kernel after the other, in the order in which they became ready; so do the cores of a host, which
all its tasks share.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from dtflab.base.grouping import grouped
from dtflab.graph.node import Node
from dtflab.hardware.machines import SIMULATED, Machines, Place
from dtflab.hardware.parts import Processor
from dtflab.machine.node_stats import SLOT
from dtflab.runtime.executor import Executor
from dtflab.virtual.chance import Chance, Distribution
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.engine import Engine
from dtflab.virtual.event_log import EventLog
from dtflab.virtual.loads import LinkLoad, Loads, ProcessorLoad, share
from dtflab.virtual.plan import Plan
from dtflab.virtual.wires import Wires


class Label(NamedTuple):
    """Which kernel it is: the node of a step, on a device by its full name."""

    step: int
    node: Node
    device: str


class Job(Protocol):
    """Something that a processor does. `label` says which kernel it is; None for work with a message."""

    @property
    def label(self) -> Label | None: ...

    def begin(self) -> float:
        """Start a kernel whose turn has come; returns the seconds that it takes."""

    def end(self, lane: Lane) -> None:
        """End the kernel after these seconds."""


class Lane(NamedTuple):
    """The stand-in for a thread in a trace: one slot of a processor."""

    name: str


class Slots:
    """A processor at work: a GPU, which does one thing at a time, or the cores of a host.

    A job learns on which of the `lanes` it runs: the free one with the lowest number.
    """

    def __init__(self, engine: Engine, hardware: Processor, count: int) -> None:
        self.hardware = hardware
        self.slowness = 1.0  # by how much everything takes longer from now on
        self.busy = 0.0  # seconds of work so far, all slots together
        self._engine = engine
        kind = "core" if hardware.kind == "CPU" else "GPU"
        numbers = [f" {number}" for number in range(count)] if count > 1 else [""]  # "GPU 0" could be read as a device
        self.lanes = [Lane(f"{SLOT} {kind}{number}") for number in numbers]
        self._free = list(range(count))  # a heap
        self._queue: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Let a job run as soon as a slot is free."""
        if self._free:
            self._run(job, heappop(self._free))
        else:
            self._queue.append(job)

    def _run(self, job: Job, lane: int) -> None:
        seconds = job.begin() * self.slowness
        engine = self._engine
        engine.at(engine.now + seconds, self._done, job, lane, seconds)

    def _done(self, job: Job, lane: int, seconds: float) -> None:
        self.busy += seconds
        if self._queue:
            self._run(self._queue.popleft(), lane)
        else:
            heappush(self._free, lane)
        job.end(self.lanes[lane])


class World:
    """The machines of a cluster in virtual time. `stragglers` says how steps vary, None: not at all."""

    make_slots: Callable[[Engine, Processor, int], Slots] = Slots

    def __init__(
        self, clock: VirtualClock, machines: Machines, seed: int = 0, stragglers: Distribution | None = None
    ) -> None:
        clock.world = self
        SIMULATED[clock] = machines
        engine = self.engine = clock.engine
        self.machines = machines
        self.log = EventLog()
        self.wires = Wires(engine, machines, self.cores_of, self.log)
        self.steps = 0  # begun so far
        self.chance = Chance(machines.tasks, seed, stragglers)
        self._plans: weakref.WeakKeyDictionary[Executor, Plan] = weakref.WeakKeyDictionary()
        self._slots: dict[Place, Slots] = {}
        self._of_device: dict[str, Slots] = {}

    def processor(self, device: str) -> Slots:
        """The processor behind a device's full name. The CPU devices of a host's tasks are the same cores."""
        if device not in self._of_device:
            hardware, _ = self.machines.processor(device)
            place = self.machines.place(device)
            if place not in self._slots:
                self._slots[place] = self.make_slots(self.engine, hardware, hardware.cores if place.card is None else 1)
            self._of_device[device] = self._slots[place]
        return self._of_device[device]

    def cores_of(self, device: str) -> Slots:
        """The cores of the host on which a device is."""
        return self.processor(f"{device.rpartition('/device:')[0]}/device:CPU:0")

    def plan(self, executor: Executor) -> Plan:
        """The times of a partition's nodes on the processor of its device."""
        if executor not in self._plans:
            self._plans[executor] = Plan(executor, self.processor(executor.device.name))
        return self._plans[executor]

    def loads(self) -> Loads:
        """How busy all processors, and the links that were used, have been so far."""
        devices = grouped((self.processor(device), device) for device in self.machines.devices)
        now = self.engine.now
        processors = [
            ProcessorLoad(tuple(own), slots.hardware.name, slots.busy, share(slots.busy, now, len(slots.lanes)))
            for slots, own in devices.items()
        ]
        links = [
            LinkLoad(wire.link.short, wire.messages, wire.nbytes, wire.busy, share(wire.busy, now))
            for wire in self.wires.used
        ]
        processors.sort(key=lambda load: -load.share)
        links.sort(key=lambda load: -load.share)
        return Loads(now, tuple(processors), tuple(links))

    def slow_down(self, task: str, factor: float, network: float) -> None:
        """From now on, multiply a task's compute time by `factor` and the time on its host's network card by `network`.

        The cores and the card are the host's: its other tasks feel it, too.
        """
        for device in self.machines.devices:
            if device.startswith(f"{task}/device:"):
                self.processor(device).slowness = factor
        self.wires.slow_down(self.machines.place(f"{task}/device:CPU:0").host.name, network)

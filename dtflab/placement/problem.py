"""The problem of the dynamic placer: tasks, units that share a device, their candidates; and the judge of an answer.

Stands for nothing in TensorFlow. Left out: memory that an allocator loses by rounding and gaps.

Rules: a unit is a group of tasks that share a device; an assignment gives each unit one of its candidates. The judge is
the simulated schedule: it compares the bytes that exceed the memory, then the makespan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dtflab.hardware.parts import Processor
from dtflab.hardware.schedule import Fabric, Plan, Schedule, Task
from dtflab.machine.cards import grab_all_limit

Assignment = Sequence[int]  # of each unit: the number of its device


class Verdict(NamedTuple):
    """The quality of an assignment; smaller is better."""

    over: int  # bytes that do not fit
    makespan: float  # seconds


class Problem:
    """All by number: tasks in their order, devices as in `fabric.devices`, units as in `candidates`.

    `seconds[d]` are the times of the tasks on device d (those in the tasks don't count, nor do their devices);
    `unit_of` is the unit of each task, `candidates` the devices of each unit, best first.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        fabric: Fabric,
        seconds: Sequence[Sequence[float]],
        unit_of: Sequence[int],
        candidates: Sequence[Sequence[int]],
    ) -> None:
        self.plan = Plan(tasks)
        self.fabric = fabric
        self.devices = fabric.devices
        self.seconds = seconds
        self.unit_of = unit_of
        self.candidates = candidates
        self.units: list[list[int]] = [[] for _ in candidates]
        for task, unit in enumerate(unit_of):
            self.units[unit].append(task)
        self.capacity = [_usable(fabric.machines.processor(device)[0]) for device in self.devices]
        self.spent = 0  # events of all simulations so far

    def schedule(self, assignment: Assignment) -> Schedule:
        """The simulated step with the units on these devices."""
        where = [assignment[unit] for unit in self.unit_of]
        seconds = [self.seconds[device][task] for task, device in enumerate(where)]
        schedule = self.plan.run(self.fabric, seconds, where)
        self.spent += schedule.events
        return schedule

    def judge(self, assignment: Assignment) -> tuple[Verdict, Schedule]:
        """The quality of an assignment, and its schedule."""
        schedule = self.schedule(assignment)
        return Verdict(sum(self.over(schedule).values()), schedule.makespan), schedule

    def over(self, schedule: Schedule) -> dict[str, int]:
        """Missing bytes by device; devices of one processor share its memory."""
        if not self._excess(schedule.made):
            return {}
        self.spent += 2 * len(self.unit_of)  # computing the peak takes as long as that many events
        return self._excess(schedule.peak)

    def _excess(self, nbytes: Mapping[str, int]) -> dict[str, int]:
        """The bytes by device that exceed its processor's memory."""
        held: dict[int, int] = {}
        found: dict[str, int] = {}
        for d, device in enumerate(self.devices):
            processor = self.fabric.processors[d]
            before = max(held.get(processor, 0), self.capacity[d])
            held[processor] = held.get(processor, 0) + nbytes[device]
            if held[processor] > before:
                found[device] = held[processor] - before
        return found

    def work(self, unit: int) -> float:
        """Seconds that a unit takes on the fastest of its devices."""
        return min(sum(self.seconds[d][task] for task in self.units[unit]) for d in self.candidates[unit])

    def kept(self, unit: int) -> int:
        """Bytes that a unit holds as long as the session lives."""
        return sum(self.plan.kept.get(task, 0) for task in self.units[unit])

    def on_one(self, device: int) -> Assignment:
        """All units on one device, except those that may not be there: they get their best device."""
        return [device if device in found else found[0] for found in self.candidates]


def _usable(processor: Processor) -> int:
    """Bytes that a session can have: TensorFlow leaves some of a GPU's memory to others."""
    return grab_all_limit(processor.memory_bytes) if processor.kind == "GPU" else processor.memory_bytes

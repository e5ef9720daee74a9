"""Vital signs of a task: what it has done, as sums that a panel turns into rates; what it holds, and what it waits for.

Stands for nothing in TensorFlow, whose servers do not report them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.cluster.resources_held import variables_on

if TYPE_CHECKING:
    from dtflab.cluster.task import Task
    from dtflab.machine.devices import Device


class Held(NamedTuple):
    """The bytes in the memory of a device: of a GPU all that is in use, of a CPU its variables, whose limit is 0."""

    device: str
    nbytes: int
    limit: int


class Vitals(NamedTuple):
    """The sums of a task at a moment of its clock, in seconds, and its state then."""

    at: float
    steps: int  # that have begun there while somebody looked
    busy: float  # seconds in which it computed then
    sent: Mapping[str, int]  # bytes of tensors, by the task that got them
    held: Sequence[Held]
    waits: Sequence[str]
    error: str  # the last one with which a step failed here

    @classmethod
    def read(cls, row: Sequence[Any]) -> Vitals:
        """The vital signs that a row of a view describes."""
        found = cls(*row)
        return found._replace(held=[Held(*each) for each in found.held])


def of(task: Task) -> Vitals:
    """The vital signs of a task now."""
    held = [_held(device) for device in task.devices]
    return Vitals(
        at=task.clock.now(),
        steps=task.meter.steps,
        busy=task.meter.busy(),
        sent=dict(task.log.sent),
        held=held,
        waits=task.worker.waits(),
        error=task.meter.error,
    )


def _held(device: Device) -> Held:
    memory = getattr(device, "memory", None)  # of a GPU
    if memory is not None:
        return Held(device.name, memory.bytes_in_use, memory.allocator.limit)
    return Held(device.name, sum(variable.nbytes for variable in variables_on([device])), 0)

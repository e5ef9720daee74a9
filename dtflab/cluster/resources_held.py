"""Holdings: which task holds which variable, and what is in which queue, read from the containers of tasks.

Stands for nothing in TensorFlow, whose servers do not report them.

Rule: nothing is run and nothing is locked for long; a variable that is written at this moment is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import events
from dtflab.graph.device_spec import task_name
from dtflab.ops.cell import Cell
from dtflab.ops.queues.shared_queue import Queue
from dtflab.ops.resource_mgr import plain_name

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.runtime.session import BaseSession


class HeldVariable(NamedTuple):
    """A variable in a container of a task. Before it is initialized it holds no bytes; its shape is as declared."""

    task: str
    device: str
    container: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    initialized: bool

    @classmethod
    def of(cls, row: Sequence[Any]) -> HeldVariable:
        """The variable that a row of a view describes."""
        found = cls(*row)
        return found._replace(shape=tuple(found.shape))


class HeldQueue(NamedTuple):
    """A queue as it is now. `capacity` is 0 for no limit; `waiting` are (op, `put`, `take` or `close`, client)."""

    device: str
    container: str
    name: str
    kind: str
    level: int
    capacity: int
    closed: bool
    waiting: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, row: Sequence[Any]) -> HeldQueue:
        """The queue that a row of a view describes."""
        found = cls(*row)
        return found._replace(waiting=tuple((op, does, client) for op, does, client in found.waiting))


def variables_of(session: BaseSession) -> list[HeldVariable]:
    """The variables that the tasks of a session hold, also those of other sessions; on a cluster, all of its tasks'.

    NotImplementedError for a session whose master is in another process, which does not report them.
    """
    return variables_on(session.local_devices())


def variables_on(devices: Iterable[Device]) -> list[HeldVariable]:
    """The variables in the containers of some devices, in the order in which they were made."""
    return [
        _variable(device.name, container, name, cell)
        for device in devices
        for container, name, cell in device.resources.items()
        if isinstance(cell, Cell)
    ]


def queues_on(devices: Iterable[Device]) -> list[HeldQueue]:
    """The queues in the containers of some devices."""
    return [
        _queue(device.name, container, queue)
        for device in devices
        for container, _, queue in device.resources.items()
        if isinstance(queue, Queue)
    ]


def _variable(device: str, container: str, name: str, cell: Cell) -> HeldVariable:
    dtype, shape = cell.dtype.name, tuple(getattr(cell.value, "shape", cell.shape))
    return HeldVariable(task_name(device), device, container, name, dtype, shape, cell.nbytes, cell.initialized)


def _queue(device: str, container: str, queue: Queue) -> HeldQueue:
    waiting = tuple((attempt.op, attempt.does, events.client_of(attempt.step)) for attempt in queue.waiting())
    name = plain_name(queue.state.name)
    return HeldQueue(device, container, name, queue.spec.kind, len(queue), queue.capacity, queue.closed, waiting)

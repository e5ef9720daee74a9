"""Views of a task: its calls, waits, variables, queues, vital signs and the calls that chaos has lost, as rows that
can travel.

Stands for nothing in TensorFlow, whose servers do not report them.

Rule: a view is JSON (numbers, texts, lists), so a cluster asks a task in another process as one in its own. It is read
without running anything, and without holding a lock for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtflab.cluster import vitals
from dtflab.cluster.resources_held import queues_on, variables_on
from dtflab.runtime import standstill

if TYPE_CHECKING:
    from dtflab.cluster.task import Task

View = Callable[["Task"], Sequence[object]]


def _waits(task: Task) -> Sequence[object]:
    return task.worker.waits()


def _standstill(task: Task) -> Sequence[object]:
    return standstill.rows_of(standstill.facts(task.worker, task.master))


def _calls(task: Task) -> Sequence[object]:
    return task.log.kept()


def _variables(task: Task) -> Sequence[object]:
    return variables_on(task.worker.stateful_devices())


def _queues(task: Task) -> Sequence[object]:
    return queues_on(task.worker.stateful_devices())


def _lost(task: Task) -> Sequence[object]:
    return list(task.faults.lost)


def _members(task: Task) -> Sequence[object]:
    """The tasks of its cluster, name and address; its own has the port that it got, if the spec asks for any."""
    return list((task.members.addresses | {task.name: task.address}).items())


def _vitals(task: Task) -> Sequence[object]:
    return [vitals.of(task)]


# The name of each, which is also that of its method on the wire.
VIEWS: Mapping[str, View] = MappingProxyType(
    {
        "Calls": _calls,
        "Waits": _waits,
        "Standstill": _standstill,
        "Variables": _variables,
        "Queues": _queues,
        "Members": _members,
        "Lost": _lost,
        "Vitals": _vitals,
    }
)

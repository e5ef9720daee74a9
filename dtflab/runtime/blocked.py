"""Blocked: a step that its thread waits in for long says, once and in one line, what it waits for.

Stands for nothing in TensorFlow, where a program that waits for an empty queue prints nothing.

Rules: only in real time, after `timeouts.notice` seconds in which nothing of the step has happened. A queue is named
before a tensor, whose maker may be waiting for that queue: a tensor is named after twice that time, and only if no
other task of the step has said something. A step that was reported and then ended well waits by its
nature, as one that takes a token of SyncReplicas: others of its kind are not reported any more. Nor are steps of queue
runners, which wait for room in a full queue most of the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dtflab.base.timeouts import timeouts
from dtflab.graph import device_spec, op_registry
from dtflab.graph.node import Node
from dtflab.machine.clock import REAL
from dtflab.machine.console import listener, say
from dtflab.ops.queues.shared_accumulator import Accumulator
from dtflab.ops.queues.shared_queue import Queue

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.runtime.runner import Step
    from dtflab.runtime.transport import WorkerInterface

_BLOCKED = "a step has been blocked"
_MOST = 2  # things that a line names
_EDGE = re.compile(r"^edge_\d+_")  # before the name of a tensor that crosses to another task
_OF_NO_CLUSTER = re.compile(r"^/job:localhost/\S+: ")


def may_wait(nodes: Iterable[Node]) -> bool:
    """Whether a step of these nodes can wait for something."""
    return any(op_registry.get(node.op).is_async for node in nodes)


def queues_waits(devices: Iterable[Device]) -> list[str]:
    """A line for each op that waits at a queue or an accumulator of these devices."""
    found = [(device.name, r) for device in devices for _, _, r in device.resources.items()]
    lined_up = [(name, r) for name, r in found if isinstance(r, Queue | Accumulator)]
    return [f"{name}: {line}" for name, resource in lined_up for line in resource.waits()]


def tensor_wait(key: str, step_id: int) -> str:
    """The line of a tensor that is waited for, by its key."""
    sender, _, receiver, _, _ = key.split(";")
    return f"{receiver} waits for {tensor_of(key)} from {device_spec.task_name(sender)} (step {step_id})"


def tensor_of(key: str) -> str:
    """The name of a tensor, by its key."""
    return _EDGE.sub("", key.split(";")[3])


class Report:
    """The report of a blocked step, for all steps of a kind. `workers` are those of its tasks."""

    def __init__(self, workers: Sequence[WorkerInterface]) -> None:
        self._workers = workers
        self._is_normal = False  # a step that was reported has ended well

    def watch(self, step: Step) -> None:
        """Have a step of this thread say what it waits for, unless steps of its kind wait by their nature."""
        if not self._is_normal and step.clock is REAL:
            step.when_blocked = self._tell
            if len(self._workers) > 1:  # others tell it, too
                step.tell = Once(_listener(step))

    def ended_well(self) -> None:
        """A step that was reported has ended by itself."""
        self._is_normal = True

    def _tell(self, step: Step, times: int = 1) -> None:
        end = f" (step {step.step_id})"
        lines = [line.removesuffix(end) for worker in self._workers for line in worker.waits() if line.endswith(end)]
        queues = [line for line in lines if " waits at " in line]
        if not queues and times == 1:
            step.when_blocked = partial(self._tell, times=2)
        elif lines:
            more = f" (and {len(queues or lines) - _MOST} more)" if len(queues or lines) > _MOST else ""
            named = [_OF_NO_CLUSTER.sub("", device_spec.plain(line)) for line in (queues or lines)[:_MOST]]
            _listener(step)(f"{_BLOCKED} for {times * timeouts.notice:g} s: {'; '.join(named)}{more}")


def _listener(step: Step) -> Callable[[str], object]:
    return listener() if step.tell is say else step.tell


class Once:
    """The way to the person who waits for a step; it takes one line that says that the step is blocked."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._is_told = False

    def __call__(self, line: str) -> None:
        if line.startswith(_BLOCKED):
            if self._is_told:
                return
            self._is_told = True
        self._tell(line)

    def __eq__(self, other: object) -> bool:  # both lead to the same person
        return self._tell == (other._tell if isinstance(other, Once) else other)

    def __hash__(self) -> int:
        return hash(self._tell)

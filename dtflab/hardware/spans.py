"""A schedule and its parts: spans on devices, messages on links, memory, the critical path.

Stands for nothing in TensorFlow. Left out of the memory: what a kernel needs inside itself, outputs that take over the
memory of an argument, the allocator's rounding.

Rules: an output owns memory from the start of its op until the last of its consumers on the device has ended and the
last message with it has arrived; a copy owns memory from its arrival until its last consumer has ended. A `kept` task
owns its memory during the whole step. At one moment memory is released before more is allocated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.graph.node import Edge

if TYPE_CHECKING:
    from dtflab.hardware.schedule import Fabric, Plan
    from dtflab.hardware.topology import Link


class Task(NamedTuple):
    """An op on its device. `seconds` is its time on a processor; with 0 it does not wait for one.

    `inputs` are (name of a task, number of its output), as in a Node, `controls` names; `outputs` are the bytes of each
    output. `kept` are bytes held on the device during the whole step: a variable's. With `view` the outputs own no
    memory, but share that of the input of this number.
    """

    name: str
    device: str
    seconds: float
    inputs: Sequence[Edge] = ()
    controls: Sequence[str] = ()
    outputs: Sequence[int] = ()
    kept: int = 0
    view: int = -1


class Span(NamedTuple):
    """A task on its device, in seconds; it could have started at `ready`."""

    name: str
    device: str
    ready: float
    start: float
    end: float


class Hop(NamedTuple):
    """A message on one link of its path, in seconds; others may pass meanwhile if another link slows it down."""

    link: Link
    start: float
    end: float


class Message(NamedTuple):
    """One tensor on its way to another device, in seconds; output -1 only signals that its op has finished."""

    source: str
    output: int
    source_device: str
    target_device: str
    nbytes: int
    sent: float
    arrived: float
    hops: tuple[Hop, ...]


class Record(NamedTuple):
    """The record of a run, by the numbers of tasks: three moments of each, and the cause of its start.

    A cause is a task's number, or that of a message counted on behind the tasks; -1 is the beginning.
    """

    where: Sequence[int]  # devices of the fabric
    ready: list[float]
    start: list[float]
    end: list[float]
    cause: list[int]
    messages: list[tuple[int, int, int, float, float, list[tuple[float, float]]]]  # source, output, target, sent, …
    events: int


class Schedule:
    """A placed graph in modelled time. Everything but `makespan` is worked out when it is asked for."""

    def __init__(self, plan: Plan, fabric: Fabric, record: Record) -> None:
        self._plan, self._fabric, self._record = plan, fabric, record
        self.makespan: float = max(record.end, default=0.0)  # seconds until the last task has ended
        self.events = record.events  # that it took to find out

    def __repr__(self) -> str:
        return f"<Schedule: {plural(len(self._record.end), 'task')}, {self.makespan:.6g} s>"

    @cached_property
    def tasks(self) -> dict[str, Span]:
        """When each task ran, by name."""
        rows = zip(self._plan.names, self._record.where, self._record.ready, self._record.start, self._record.end)
        return {name: Span(name, self._fabric.devices[d], ready, start, end) for name, d, ready, start, end in rows}

    @cached_property
    def spans(self) -> dict[str, list[Span]]:
        """The tasks that took time, by device, in order of their start."""
        spans = sorted(self.tasks.values(), key=lambda span: span.start)
        return grouped(((span.device, span) for span in spans if span.end > span.start), self._fabric.devices)

    @cached_property
    def messages(self) -> list[Message]:
        """The messages between devices, in the order in which they were sent."""
        return [self._message(i) for i in range(len(self._record.messages))]

    def _message(self, number: int) -> Message:
        source, output, target, sent, arrived, times = self._record.messages[number]
        here = self._record.where[source]
        links = self._fabric.route(here, target).links
        hops = tuple(Hop(link, start, end) for link, (start, end) in zip(links, times, strict=True))
        devices = self._fabric.devices
        nbytes = self._plan.bytes_of(source, output)
        return Message(self._plan.names[source], output, devices[here], devices[target], nbytes, sent, arrived, hops)

    @cached_property
    def links(self) -> dict[Link, list[Message]]:
        """The messages that each link carried, in the order in which it did."""
        return grouped((hop.link, message) for message in self.messages for hop in message.hops)

    @cached_property
    def busy(self) -> dict[str, float]:
        """Seconds that each device computed; on several cores at once they count several times."""
        return {device: sum(span.end - span.start for span in spans) for device, spans in self.spans.items()}

    @cached_property
    def idle(self) -> dict[str, float]:
        """Seconds of the makespan in which nothing ran on a device."""
        return {device: self.makespan - _covered(spans) for device, spans in self.spans.items()}

    @cached_property
    def link_busy(self) -> dict[Link, float]:
        """Seconds that each link took for its bytes."""
        return {link: sum(message.nbytes for message in held) / link.bandwidth for link, held in self.links.items()}

    @cached_property
    def memory(self) -> dict[str, list[tuple[float, int]]]:
        """By device: from each moment on, how many bytes are held."""
        changes: list[list[tuple[float, int]]] = [[] for _ in self._fabric.devices]
        for device, begin, end, nbytes in _lifetimes(self._plan, self._record):
            changes[device] += [(begin, nbytes), (end, -nbytes)]
        for task, kept in self._plan.kept.items():
            changes[self._record.where[task]].append((0.0, kept))
        return {device: _levels(own) for device, own in zip(self._fabric.devices, changes, strict=True)}

    @cached_property
    def peak(self) -> dict[str, int]:
        """By device: the most bytes that it held at one moment."""
        return {device: max((held for _, held in levels), default=0) for device, levels in self.memory.items()}

    @cached_property
    def made(self) -> dict[str, int]:
        """By device: all bytes made or received there, a bound of the peak that is quicker to compute."""
        found = [0] * len(self._fabric.devices)
        for device, nbytes in zip(self._record.where, self._plan.made, strict=True):
            found[device] += nbytes
        for source, output, target, *_ in self._record.messages:
            found[target] += self._plan.bytes_of(source, output)
        return dict(zip(self._fabric.devices, found, strict=True))

    @cached_property
    def critical_path(self) -> list[Span | Message]:
        """The tasks and messages without a gap between them that determine the makespan, first to last.

        Before a task comes the message or task that it waited for last, or the task that occupied its processor.
        """
        record, names = self._record, self._plan.names
        path: list[Span | Message] = []
        at = max(range(len(names)), key=record.end.__getitem__, default=-1)
        while at >= 0:
            number = at - len(names)
            path.append(self.tasks[names[at]] if number < 0 else self._message(number))
            at = record.cause[at] if number < 0 else record.messages[number][0]
        return path[::-1]


def _covered(spans: Sequence[Span]) -> float:
    """Seconds in which at least one of spans ran; they are in order of their start."""
    total = until = 0.0
    for span in spans:
        total += max(0.0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total


def _levels(changes: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Bytes held after each moment at which something changed."""
    changes.sort()  # of one moment the negative ones come first
    held = zip((moment for moment, _ in changes), itertools.accumulate(nbytes for _, nbytes in changes), strict=True)
    return list(dict(held).items())  # the last of a moment


def _lifetimes(plan: Plan, record: Record) -> list[tuple[int, float, float, int]]:
    """(device, from, until, bytes) of each buffer."""
    where, end = record.where, record.end
    came = {(source, output, to): arrived for source, output, to, _, arrived, _ in record.messages}
    last: dict[tuple[int, int, int], float] = {}

    def hold(source: int, output: int, device: int, until: float) -> None:
        while plan.view[source] >= 0 and where[source] == device:
            source, output = plan.inputs[source][plan.view[source]]
        key = source, output, device
        last[key] = max(last.get(key, 0.0), until)

    for task, inputs in enumerate(plan.inputs):
        for output in range(len(plan.outputs[task])):
            hold(task, output, where[task], end[task])
        for source, output in inputs:
            hold(source, output, where[task], end[task])
    for source, output, _, _, arrived, _ in record.messages:
        if output >= 0:
            hold(source, output, where[source], arrived)
    return [
        (device, record.start[source] if where[source] == device else came[source, output, device], until, nbytes)
        for (source, output, device), until in last.items()
        if (nbytes := plan.bytes_of(source, output)) and not (source in plan.kept and where[source] == device)
    ]

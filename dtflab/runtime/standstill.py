"""Standstill: ops in line, tensors that are owed, and the sessions whose steps these are, as plain data.

Stands for nothing in TensorFlow. `blocked.py` says in a line what one step waits for; these facts say in addition who
could end a wait: the ops of each session's graph that put into or take from a queue, and whether they ever ran.

Rule: facts are read without running anything, and each is a row that can travel as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import events
from dtflab.graph import device_spec
from dtflab.graph.node import Node
from dtflab.ops.queues.shared_accumulator import Accumulator
from dtflab.ops.queues.shared_queue import Queue
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER, plain_name
from dtflab.runtime.blocked import tensor_of

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.runtime.master import Master, MasterSession
    from dtflab.runtime.worker import Worker

_DOES = {"Enqueue": "put", "Dequeue": "take", "Apply": "put", "Take": "take"}  # parts of names of ops


class InLine(NamedTuple):
    """An op of a step that waits at a queue or an accumulator for somebody to `put` or to `take`."""

    step: int
    op: str
    device: str
    container: str
    name: str
    private: bool  # of one session: no other one reaches it
    needs: str
    wants: str  # `room for 1 more`, `1 more`
    level: str


class Owed(NamedTuple):
    """A tensor of a step that task `receiver` waits for and task `owes` has not sent."""

    step: int
    receiver: str
    owes: str
    tensor: str


class Uses(NamedTuple):
    """An op of a session's graph that does `put` or `take`, and whether a step of the session has had it."""

    op: str
    does: str
    device: str
    container: str
    name: str
    has_run: bool


class Program(NamedTuple):
    """A session, its steps that run now, and the ops by which it could end the wait of another one."""

    handle: str
    master: str
    client: str  # the name of its thread, if somebody watches or virtual time knows it
    steps: tuple[int, ...]
    uses: tuple[Uses, ...]


class Reserving(NamedTuple):
    """A client that waits for GPUs, and the clients that hold what it wants."""

    holder: str
    wants: str
    held_by: tuple[str, ...]


class Silent(NamedTuple):
    """A task that does not answer, and why."""

    task: str
    why: str


class Resting(NamedTuple):
    """A thread in virtual time that waits for `what`: a step, the end of another thread."""

    thread: str
    what: str


Fact = InLine | Owed | Program | Reserving | Silent | Resting
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (InLine, Owed, Program)}


def rows_of(facts: Iterable[Fact]) -> list[list[object]]:
    """Facts as rows of JSON."""
    return [[type(fact).__name__, *fact] for fact in facts]


def facts_of(rows: Iterable[Sequence[Any]]) -> Iterator[Fact]:
    """The facts that rows of a task describe."""
    for kind, *fields in rows:
        fact = _KINDS[kind](*fields)
        if isinstance(fact, Program):
            fact = fact._replace(steps=tuple(fact.steps), uses=tuple(Uses(*use) for use in fact.uses))
        yield fact


def facts(worker: Worker, master: Master) -> list[Fact]:
    """The waits at a task, and the sessions of its master."""
    owed = [_owed(step, key) for step, key in worker.rendezvous.waiting()]
    return [*owed, *_in_line(worker.stateful_devices()), *map(_program, list(master._sessions.values()))]


def _owed(step: int, key: str) -> Owed:
    owes, _, receiver, _, _ = key.split(";")
    return Owed(step, device_spec.task_name(receiver), device_spec.task_name(owes), tensor_of(key))


def _in_line(devices: Iterable[Device]) -> Iterator[InLine]:
    for device in devices:
        for container, name, thing in device.resources.items():
            if isinstance(thing, Queue):
                for attempt in thing.waiting():
                    needs = "put" if attempt.does == "take" else "take"
                    wants = "to close" if attempt.does == "close" else _wanted(attempt.wants, needs)
                    yield _line(device, container, name, attempt.step, attempt.op, needs, wants, thing.state.level())
            elif isinstance(thing, Accumulator):
                for take in thing.waiting():
                    wants = f"{take.required} gradients"
                    level = f"{thing.num_accumulated} gradients"
                    yield _line(device, container, name, take.step, take.op, "put", wants, level)


def _wanted(count: int, needs: str) -> str:
    return f"room for {count} more" if needs == "take" else f"{count} more"


def _line(device: Device, container: str, name: str, step: int, op: str, needs: str, wants: str, level: str) -> InLine:
    plain = plain_name(name)
    return InLine(step, op, device.name, container, plain, plain != name, needs, wants, level)


def _program(session: MasterSession) -> Program:
    steps = tuple(session._running)
    client = next(filter(None, map(events.client_of, steps)), "")
    return Program(session.handle, session.task, client, steps, tuple(_uses(session)))


def _uses(session: MasterSession) -> Iterator[Uses]:
    nodes = {node.name: node for node in session._graph.known()}
    have_run = {node.name for signature in list(session.signatures.values()) for node in signature.nodes}
    for node in nodes.values():
        does = next((does for part, does in _DOES.items() if part in node.op), None)
        if does and node.op.startswith(("Queue", "Accumulator", "SparseAccumulator")) and node.inputs:
            made = _made(node, nodes)
            name = made.attrs.get("shared_name", b"").decode() or made.name
            container = made.attrs.get("container", b"").decode() or DEFAULT_CONTAINER
            yield Uses(node.name, does, made.device, container, name, node.name in have_run)


def _made(node: Node, nodes: dict[str, Node]) -> Node:
    """The node that makes the queue that `node` uses; an Identity or Enter between them is passed."""
    while node.inputs:
        node = nodes[node.inputs[0][0]]
    return node

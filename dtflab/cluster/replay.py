"""Replay: a run in virtual time is recorded, and computed again with one thing changed from a moment on: a fork.

Stands for nothing in TensorFlow, where no two runs are the same.

Rules: every run begins at virtual time 0 on a fresh copy of the cluster, so nothing of the program's own cluster
changes, and equal runs are equal event for event. A step of a session finds its variables as they were; other state
(queues, tables, iterators) is not copied, and a step that needs some is refused. A fork must be the same as the
original up to its moment, else the program is not a function of its cluster, and no fork means anything. A run keeps
its clock to its own threads, so that it may be computed on one of its own, while the program goes on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from dtflab.base.events import PROCESS, Begins, Happened, QueueEvent
from dtflab.base.suggestions import did_you_mean
from dtflab.cluster.chaos import chaos
from dtflab.cluster.chaos_options import KINDS, fault, short
from dtflab.cluster.clients import Client
from dtflab.cluster.cluster import Cluster, at_target
from dtflab.cluster.engines import InProcessTask
from dtflab.graph import device_spec
from dtflab.graph.node import Node
from dtflab.machine import clock as clocks
from dtflab.machine.clock import current
from dtflab.machine.devices import Device
from dtflab.ops.cell import Cell
from dtflab.ops.resource_mgr import plain_name
from dtflab.runtime.session import BaseSession, Session, open_sessions
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.recorded import Noted, RecordedSlots, let_go_first

MOST_EVENTS = 50_000  # of a run that is recorded
_WRITES = re.compile(r"(Resource)?(Sparse)?(Assign|Apply|Scatter(?!Nd$)|CountUpTo)")  # ops that change a variable
_NETWORK = re.compile(r"(?P<task>\w+:\d+)=(?P<factor>\d*\.?\d+)x")

Program = Callable[[Cluster], Any]


class NotReplayable(ValueError):
    """A run that can't be computed again exactly, or a change that means nothing in it."""


class Stop:
    """The end of a run that is being computed, asked for by any thread: it comes with the next event or step there.

    A client that asks for neither runs on; nobody waits for it.
    """

    is_asked = False
    _clock: VirtualClock | None = None

    @property
    def now(self) -> float:
        """The virtual time that the run has reached."""
        return self._clock.now() if self._clock is not None else 0.0

    def ask(self) -> None:
        """End the run."""
        self.is_asked = True
        if self._clock is not None:
            self._clock.engine.at(self._clock.now(), self._clock.tell, self.error())

    def of(self, clock: VirtualClock) -> None:
        """Say of which run, before anything happens there."""
        self._clock = clock
        if self.is_asked:
            raise self.error()

    def error(self) -> NotReplayable:
        """The error of the run."""
        return NotReplayable("The run was cancelled while it was being computed.")


class Ran(NamedTuple):
    """A kernel: when its inputs were there, when it began and ended; infinite for what did not come."""

    step: int
    name: str
    op: str
    device: str
    ready: float
    started: float
    ended: float
    writes: str = ""  # the variable that it changes


@dataclasses.dataclass(frozen=True)
class Run:
    """A run from virtual time 0 to its `end`. `error` is what it ended with, if it failed."""

    kernels: list[Ran]
    lines: list[Happened]  # of its log
    queues: list[QueueEvent]
    end: float
    hash: str
    results: Any = None
    error: Exception | None = None

    @property
    def messages(self) -> list[Happened]:
        """The messages, in the order in which they set out; one that was lost is called `lost: …`."""
        return [line for line in self.lines if line.target and line.step]

    @property
    def faults(self) -> list[Happened]:
        """The lines of `dtflab.chaos`."""
        return [line for line in self.lines if not line.step]

    def waiting(self, at: float) -> list[Ran]:
        """The kernels that are ready at a moment and begin no earlier, one processor after the other."""
        found = [kernel for kernel in self.kernels if kernel.ready <= at <= kernel.started]
        return sorted(found, key=lambda kernel: (kernel.device, kernel.started))


class Change(NamedTuple):
    """A choice that a fork makes at a moment; `words` say which."""

    at: float
    words: str
    kernel: Ran | None = None  # goes next
    message: Happened | None = None  # is lost
    network: tuple[str, float] | None = None  # a task, and by which factor its network is slower
    faults: Mapping[str, Any] = MappingProxyType({})  # texts of dtflab.chaos


class Difference(NamedTuple):
    """The first event that two runs do not share; None on the side that had ended."""

    at: float
    original: Happened | None
    fork: Happened | None


class Replay:
    """A run of `program(cluster)` on a copy of a cluster in virtual time, and its forks."""

    def __init__(self, program: Program, cluster: Cluster) -> None:
        if cluster.world is None:
            raise NotReplayable(
                f"{cluster.name} runs in real time, where no two runs are the same. Make it with clock='virtual'."
            )
        self._program, self.cluster = program, cluster
        self.run = record(program, cluster)

    def fork(
        self,
        at: float,
        *,
        next: str | Ran = "",
        lose: str | Happened = "",
        network: str = "",
        stop: Stop | None = None,
        **faults: str,
    ) -> tuple[Change, Run]:
        """The run with one thing changed from virtual second `at` on; NotReplayable for what means nothing then."""
        if not 0 <= at <= self.run.end:
            raise NotReplayable(f"at={at!r}: the run lasts from 0 to {self.run.end:.9g} s of virtual time.")
        kernel = self._kernel(at, next) if next else None
        message = self._message(at, lose) if lose else None
        self._check(faults)
        host = self._network(network) if network else None
        words = [
            *([f"{kernel.name} next on {device_spec.label(kernel.device)}"] if kernel else []),
            *([f"{plain_message(message.what)} is lost"] if message else []),
            *([_network_words(*host)] if host else []),
            *(f"{kind} {text}" for kind, text in faults.items()),
        ]
        change = Change(at, ", ".join(words) or "no change", kernel, message, host, faults)
        forked = record(self._program, self.cluster, change, stop)
        self._check_beginning(forked, at)
        return change, forked

    def _check(self, faults: Mapping[str, str]) -> None:
        """Raise for faults that dtflab.chaos does not know, or that have a moment of their own."""
        if unknown := set(faults) - set(KINDS):
            there = ", ".join(("next", "lose", "network", *KINDS))
            name = unknown.pop()
            raise TypeError(f"A fork knows no {name}=…; there are {there}.{did_you_mean(name, there.split(', '))}")
        for kind, text in faults.items():
            if "@" in text:
                raise NotReplayable(f"{kind}={text!r} says when it begins, but a fork begins at `at`: leave it out.")
            try:
                fault(kind, text, [task.name for task in self.cluster.tasks])
            except ValueError as error:  # its example, without a moment
                raise NotReplayable(re.sub(r"@[^@']*'$", "'", str(error))) from None

    def _kernel(self, at: float, wanted: str | Ran) -> Ran:
        waiting = self.run.waiting(at)
        found = [kernel for kernel in waiting if wanted in (kernel, kernel.name)]
        if not found:
            names = ", ".join(dict.fromkeys(kernel.name for kernel in waiting)) or "none"
            raise NotReplayable(
                f"next={_name(wanted)!r}: it does not wait for a processor at {at:.9g} s. There: {names}."
            )
        return found[0]

    def _message(self, at: float, wanted: str | Happened) -> Happened:
        between = [m for m in self.run.messages if m.started >= at and _is_between_tasks(m)]
        found = [message for message in between if wanted in (message, message.what, plain_message(message.what))]
        if not found:
            names = ", ".join(dict.fromkeys(plain_message(message.what) for message in between[:10])) or "none"
            raise NotReplayable(
                f"lose={_name(wanted)!r}: no message of that name sets out between tasks at {at:.9g} s or later. "
                f"The next ones: {names}."
            )
        return found[0]

    def _network(self, text: str) -> tuple[str, float]:
        tasks = {short(task.name): task.name for task in self.cluster.tasks}
        found = _NETWORK.fullmatch(text.replace(" ", ""))
        if found is None or found["task"] not in tasks or not float(found["factor"]):
            raise NotReplayable(
                f"network={text!r} does not say whose network is how many times as fast. For example: "
                f"network='{next(iter(tasks))}=10x', or 0.1x. The tasks: {', '.join(tasks)}."
            )
        return tasks[found["task"]], 1 / float(found["factor"])

    def _check_beginning(self, forked: Run, at: float) -> None:
        """NotReplayable unless the fork was the original up to its moment."""
        before, again = ([line for line in run.lines if _known(line) < at] for run in (self.run, forked))
        if before != again:
            other = next((a for a, b in zip(before, again, strict=False) if a != b), None)
            where = f", first at {_known(other):.9g} s" if other else ""
            raise NotReplayable(
                f"The run is not the same when it is computed again{where}, before anything was changed. It must make "
                "all that it uses itself: its graph, its random generators, its lists."
            )


def _network_words(task: str, slower: float) -> str:
    much = f"{slower:.4g} times slower" if slower > 1 else f"{1 / slower:.4g} times as fast"
    return f"network of {short(task)} {much}"


def _name(wanted: str | Ran | Happened) -> str:
    return wanted if isinstance(wanted, str) else wanted.name if isinstance(wanted, Ran) else wanted.what


def _known(line: Happened) -> float:
    """When an event was known: a message when it set out, a kernel at its end."""
    return line.started if line.target else line.ended


def _is_between_tasks(message: Happened) -> bool:
    return device_spec.task_name(message.where) != device_spec.task_name(message.target)


def plain_message(what: str) -> str:
    """The name of the tensor that a message carries: `w/read` for `edge_3_w/read`."""
    return re.sub(r"^(lost: )?edge_\d+_", r"\1", what)


def first_difference(original: Run, fork: Run) -> Difference | None:
    """The first event that differs: by its beginning, or by the end of one that begins alike. None if all are equal.

    What chaos notes of itself does not count.
    """
    ours, theirs = (sorted((line for line in run.lines if line.step), key=_begin) for run in (original, fork))
    found: list[Difference] = []
    for a, b in zip([*ours, None], [*theirs, None], strict=False):
        if a and b and _begin(a) == _begin(b):
            found += [Difference(min(a.ended, b.ended), a, b)] if a != b else []
        elif a != b:
            begun = (line.started if line else run.end for line, run in ((a, original), (b, fork)))
            found.append(Difference(min(begun), a, b))
            break
    return min(found, key=lambda one: one.at, default=None)


def _begin(line: Happened) -> tuple[float, str, str, str]:
    return line.started, line.what, line.where, line.target


# -- recording --------------------------------------------------------------------------------------------------


class _Heard:
    """Hears of what happens at the queues of one cluster; ends a run that has too many events, or is to stop."""

    def __init__(self, cluster: Cluster, stop: Stop) -> None:
        self._clock, self._stop = cluster.clock, stop
        self._targets = {task.target for task in cluster.tasks}
        self._left = MOST_EVENTS
        self.queues: list[QueueEvent] = []

    def on_happened(self, event: Happened) -> None:
        if current() is self._clock:
            self._left -= 1
            if self._left == 0:  # once: its program is ending then
                raise NotReplayable(
                    f"The run has {MOST_EVENTS:,} events by {event.ended:.6g} s of virtual time, as many as a replay "
                    "shows. Let it do fewer steps, or end: a client that polls for what never comes does not."
                )

    def on_begins(self, step: Begins) -> None:
        if self._stop.is_asked and step.target in self._targets:
            raise SystemExit(str(self._stop.error()))  # which a program that tries again and again lets pass

    def on_queue(self, event: QueueEvent) -> None:
        if current() is self._clock:
            # A private name is never given twice; whose step it is, is known only while somebody watches calls.
            self.queues.append(event._replace(queue=plain_name(event.queue), client=""))


def record(program: Program, cluster: Cluster, change: Change | None = None, stop: Stop | None = None) -> Run:
    """Run a program on a fresh copy of a cluster, with a change if there is one."""
    stop = stop or Stop()
    with contextlib.ExitStack() as ending:
        copy = ending.enter_context(cluster.fresh_copy())
        world, clock, notes, heard = copy.world, copy.clock, list[Noted](), _Heard(copy, stop)
        assert world is not None and isinstance(clock, VirtualClock)  # it is a copy of one in virtual time
        clocks.end(clock)  # for all other threads: they are not part of the run
        ending.enter_context(clocks.using(clock))
        world.make_slots = partial(RecordedSlots, notes)
        results, failed = None, None
        ending.callback(_close_sessions, copy)
        PROCESS.add(heard)
        ending.callback(PROCESS.remove, heard)
        stop.of(clock)
        with _changed(copy, change):
            try:
                results = program(copy)
            except NotReplayable:
                raise
            except Exception as error:
                failed = error
            end = copy.now()
        if not world.log.count:
            raise failed or NotReplayable(
                "Nothing ran on the copy of the cluster. A function must use the client that it is given: "
                "tf.Session(client.target)."
            )
        lines = world.log.lines
        return Run(_kernels(notes, lines), lines, heard.queues, end, world.log.hash(), results, failed)


@contextlib.contextmanager
def _changed(copy: Cluster, change: Change | None) -> Iterator[None]:
    """In the block, the run is changed from the moment of the change on."""
    world = copy.world
    if change is None or world is None:
        yield
        return

    def due(call: Callable[..., object], *args: object) -> None:
        """At the moment of the change before all else; what is there at 0 has begun before the first event."""
        world.engine.at(change.at, call, *args) if change.at else call(*args)

    if change.kernel is not None:
        kernel = change.kernel
        due(let_go_first, world, (kernel.step, kernel.name, kernel.device))
    if change.message is not None:
        world.wires.loses = _loses(change.message, lambda: world.engine.now >= change.at)
    if change.network is not None:
        task, factor = change.network
        host = world.machines.place(f"{task}/device:CPU:0").host.name
        due(world.wires.slow_down, host, factor)
    moment = f"@{Decimal(change.at):f}s" if change.at else ""
    with chaos(copy, **{kind: text + moment for kind, text in change.faults.items()}):
        yield


def _loses(message: Happened, is_time: Callable[[], bool]) -> Callable[[int, str, str, str], bool]:
    """Lose that message, once."""
    left = [(message.step, message.what, message.where, message.target)]

    def loses(*asked: Any) -> bool:
        if asked in left and is_time():
            left.remove(asked)
            return True
        return False

    return loses


def _close_sessions(copy: Cluster) -> None:
    """Close what the program has left open, so that it is not taken for the newest session."""
    targets = {task.target.encode() for task in copy.tasks}
    for session in open_sessions():
        if session.sess_str in targets:
            session.close()


def _kernels(notes: Sequence[Noted], lines: Sequence[Happened]) -> list[Ran]:
    """All kernels in the order in which they became ready; functions of the program have no processor to wait for."""
    nodes: dict[str, Node] = {note.label.node.name: note.label.node for note in notes}
    found = [_ran(note, nodes) for note in notes]
    known = {(one.step, one.name, one.device, one.started) for one in found}
    found += [
        Ran(line.step, line.what, "", line.where, line.started, line.started, line.ended)
        for line in lines
        if line.step and not line.target and (line.step, line.what, line.where, line.started) not in known
    ]
    return sorted(found, key=lambda one: one.ready)


def _ran(note: Noted, nodes: Mapping[str, Node]) -> Ran:
    step, node, device = note.label
    return Ran(step, node.name, node.op, device, note.ready, note.started, note.ended, _written(node, nodes))


def _written(node: Node, nodes: Mapping[str, Node]) -> str:
    """The variable that a node changes, by its name; "" for one that changes none."""
    if not _WRITES.match(node.op) or not node.inputs:
        return ""
    name = node.inputs[0][0]
    while name in nodes and nodes[name].inputs:  # through an Enter of a loop, or what hands on the variable
        name = nodes[name].inputs[0][0]
    return name


# -- programs ---------------------------------------------------------------------------------------------------


def of_clients(work: Callable[[Client], Any], job: str) -> Program:
    """The program `cluster.run(work, job)`."""
    return lambda copy: copy.run(work, job)


def of_step(session: BaseSession, fetches: Any, feed_dict: Any = None) -> tuple[Program, Cluster]:
    """The program of one step of a session, from the values that its variables have now; and its cluster."""
    target = session.sess_str.decode()
    cluster = at_target(target)
    if cluster is None:
        raise NotReplayable(
            f"The session's target {target!r} is not a task of a cluster of this program. Open one in virtual time: "
            "tf.Session(dtflab.Cluster(worker=1, clock='virtual').target)."
        )
    if cluster.world is None:  # before anything is asked of it
        return lambda copy: None, cluster
    number = [task.target for task in cluster.tasks].index(target)
    held = [[_cells(device) for device in devices] for devices in _devices(cluster)]
    placed = _places(session, fetches)

    def program(copy: Cluster) -> Any:
        for devices, own in zip(_devices(copy), held, strict=True):
            for device, cells in zip(devices, own, strict=True):
                _put(device, cells)
        with Session(copy.tasks[number].target, graph=session.graph, config=session.config) as again:
            if _places(again, fetches) != placed:
                raise NotReplayable(
                    "The session has a placer of its own, so that a copy of it would be placed otherwise."
                )
            try:
                return again.run(fetches, feed_dict)
            finally:
                _refuse_other_state(cluster, copy)

    return program, cluster


def _places(session: BaseSession, fetches: Any) -> dict[str, str]:
    return {node.name: node.device for node in session.placed_nodes(fetches)}


def _devices(cluster: Cluster) -> list[list[Device]]:
    return [task.server.task.devices for task in cluster.tasks if isinstance(task, InProcessTask)]


_Held = tuple[str, str, Cell, Any]  # container, name, the variable and its value


def _cells(device: Device) -> list[_Held]:
    """The variables of a device. An array that was handed out never changes, so none is copied."""
    found = device.resources.items()
    return [(c, name, cell, cell.read()) for c, name, cell in found if isinstance(cell, Cell) and cell.initialized]


def _put(device: Device, cells: Sequence[_Held]) -> None:
    for container, name, cell, value in cells:
        kind, given = type(cell), (cell.name, cell.dtype, cell.shape)
        device.resources.lookup_or_create(container, name, kind, partial(kind, *given)).assign(value)


def _refuse_other_state(cluster: Cluster, copy: Cluster) -> None:
    """NotReplayable if the step used a resource that holds something in the original and nothing in the copy."""
    there, here = ({*_others(each)} for each in (cluster, copy))
    for device, kind, name in sorted(there & here):
        raise NotReplayable(
            f"The step uses the {kind} {name!r} on {device_spec.label(device)}, and only variables are copied for a "
            "replay. Put it into a function that makes its graph and runs it, `def work(client): …`, and replay that."
        )


def _others(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    for devices in _devices(cluster):
        for device in devices:
            for _, name, resource in device.resources.items():
                if not isinstance(resource, Cell):
                    yield device.name, type(resource).__name__, plain_name(name)

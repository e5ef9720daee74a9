"""Events: what happens in this process, and how listeners learn of it.

Stands for nothing in TensorFlow, where calls and queues leave no trace.

An `Instrument` has the listeners of one place: `PROCESS` those of everything that happens here (`tf.watch`), a task the
log of the calls that it gets, a step its trace, a registry of cards its journal. A listener is an object with some of
the methods in `KINDS`; each gets the events of one kind.

Rules: mostly nobody listens, so a room first checks whether the tuple of listeners is empty, and that is all it costs.
Each kind of event is built in one place, by keyword. A listener may be called while the room holds its own lock, so it
must not call back.

Two names are set from above, as this room knows no clock and no session: machine/clock.py assigns `moment`, and
runtime/watched_master.py keeps `clients` while it runs a step.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self


class Call(NamedTuple):
    """One call between a client and a task, or between two tasks, as the wire would have seen it.

    Moments are seconds on the caller's clock. `nbytes` is the tensor data that it carried, `sent` the part of it
    that went along with the request; the rest came with the answer. `step` is 0 for what belongs to no step. `turn` and
    `answered` number requests and answers in the order in which they were made: in virtual time many share a moment.
    Of a call between workers over gRPC, and of one that comes from `another process`, all bytes of its messages count.
    """

    at: float
    method: str  # as the protocol calls it: RunStep, RegisterGraph, RunGraph, RecvTensor, …
    source: str  # the caller: a task, or a client by the name of its thread
    target: str  # the task that is called
    nbytes: int
    detail: str  # what about: fetches of a step, the key of a tensor
    ended: float = 0.0  # when the answer had come
    sent: int = 0
    step: int = 0
    error: str = ""  # the class of the error with which it ended
    turn: int = 0
    answered: int = 0
    pushed: bool = False  # a RecvTensor that needed no request, as its target knew that it would come


class Message(NamedTuple):
    """A request of one task to another, noted by the other one for `cluster.calls()`: a part of a step, or a tensor.

    It is short, as it is always noted. The names are those of Call.
    """

    at: float  # when the part was asked for, or the tensor handed over
    method: str
    source: str
    target: str
    nbytes: int
    detail: str
    pushed: bool = False


class QueueEvent(NamedTuple):
    """Something that happened at a queue; `level` is how many elements it held then.

    `what` is `put` or `take` (that many `elements`), `wait` (an op is blocked: `wants` says on what), `end` (its wait
    ended with an `error`) or `close`. An op of many elements may put or take them in several events; `over` is true for
    the last one.
    """

    at: float
    device: str
    queue: str
    what: str
    elements: int
    level: int
    capacity: int  # 0 for a queue without a limit
    op: str
    client: str  # the name of the thread that runs the step; "" if it is in another process
    step: int
    over: bool = True
    wants: str = ""  # of an op that waits: `put` or `take`
    error: str = ""


class NodeRan(NamedTuple):
    """A node ran on a device of this process, between two moments, on a thread: a line of a step's trace.

    `parts` says what which thread did of it, if that were several.
    """

    step: int
    device: str  # or what copies for it: "…/memcpy", "…/wire"
    node: Any  # graph.node.Node; this room is below the one of graphs
    started: float
    ended: float
    thread: Any  # with a `name`
    outputs: Sequence[Any] = ()  # machine.node_stats.Output
    allocations: Sequence[Any] = ()  # machine.node_stats.Allocation
    parts: Sequence[Any] = ()  # machine.pools.Part


class CardEvent(NamedTuple):
    """A program, process `pid`, `takes` memory of a card, is `refused` some, or `ends` and gives back what it has.

    `before` and `held` are the bytes that it holds before and after, with its context. For a refusal, `asked` is what
    it wanted besides, and `free` what nobody held. `at` is seconds since 1970.
    """

    at: float
    host: str
    card: int
    pid: int
    program: str
    what: str
    before: int
    held: int
    asked: int = 0
    free: int = 0


class Happened(NamedTuple):
    """In virtual time, in a step, a kernel ran on `where`, or a message of `nbytes` went to `target`.

    Moments are virtual seconds. A message is reported when it sets out, because its arrival is known then.
    """

    started: float
    ended: float
    step: int
    what: str
    where: str
    target: str = ""
    nbytes: int = 0

    def __str__(self) -> str:
        return line_of(*self)


def line_of(started: float, ended: float, step: int, what: str, where: str, target: str = "", nbytes: int = 0) -> str:
    """The text of a Happened; without the object, as every line is hashed."""
    way = f"{where} -> {target} {nbytes} B" if target else where
    return f"{started:.9f} {ended:.9f} step {step} {what} {way}"


class Use(NamedTuple):
    """A client whose steps need a variable; `container` is "" for the one that all share.

    `step` is the `detail` of these steps' calls, `ops` the types of the ops that take the variable there, by name.
    """

    client: str
    device: str
    container: str
    variable: str
    step: str = ""
    ops: tuple[str, ...] = ()


class Begins(NamedTuple):
    """A client of this process is about to ask the master at a session's target for a step.

    `metadata`, if the step fills one, is complete once the step has ended well: `RunMetadata`, or None.
    """

    target: str
    metadata: object = None


# The methods of a listener.
KINDS = ("on_call", "on_queue", "on_use", "on_node", "on_card", "on_happened", "on_message", "on_begins", "on_traced")
HEARD = KINDS[:6]  # those of tf.watch: a task keeps each Message, and chaos acts on what begins


class Instrument:
    """The listeners of one place: for each kind of event, the methods that get it."""

    call: tuple[Callable[[Call], object], ...]
    queue: tuple[Callable[[QueueEvent], object], ...]
    use: tuple[Callable[[Use], object], ...]
    node: tuple[Callable[[NodeRan], object], ...]
    card: tuple[Callable[[CardEvent], object], ...]
    happened: tuple[Callable[[Happened], object], ...]
    message: tuple[Callable[[Message], object], ...]
    begins: tuple[Callable[[Begins], object], ...]
    traced: tuple[Callable[[Begins], object], ...]

    def __init__(self, *listeners: object) -> None:
        self._changing = threading.Lock()
        self._set(listeners)

    def _set(self, listeners: tuple[object, ...]) -> None:
        self._listeners = listeners
        for kind in KINDS:
            setattr(self, kind.removeprefix("on_"), _methods(listeners, kind))

    def add(self, listener: object) -> None:
        """From now on, `listener` hears of the events for which it has methods."""
        with self._changing:
            self._set((*self._listeners, listener))

    def remove(self, listener: object) -> None:
        """`listener` hears of nothing any more."""
        with self._changing:
            self._set(tuple(other for other in self._listeners if other is not listener))


def _methods(listeners: tuple[object, ...], name: str) -> tuple[Callable[..., object], ...]:
    return tuple(getattr(listener, name) for listener in listeners if hasattr(listener, name))


PROCESS = Instrument()  # those who watch everything that happens here
moment: Callable[[], float] = time.perf_counter  # on the clock of the calling thread; machine/clock.py knows it
turn = itertools.count(1).__next__
clients: dict[int, str] = {}  # step → whose it is, of steps that began while somebody watched


class OpenCall:
    """A call that has been made and has no answer yet, while somebody listens. In a `with` block, the call is made.

    `now` is the caller's clock.
    """

    def __init__(
        self,
        method: str,
        source: str,
        target: str,
        detail: str = "",
        step: int = 0,
        sent: int = 0,
        now: Callable[[], float] = lambda: moment(),
        pushed: bool = False,
    ) -> None:
        self.method, self.source, self.target, self.detail = method, source, target, detail
        self.step, self.sent = step, sent
        self._pushed = pushed
        self.received = 0  # bytes of tensors in the answer
        self._now, self._at, self._turn = now, now(), turn()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.ended(error)

    def ended(self, error: BaseException | None) -> None:
        """The answer is there."""
        call = Call(
            at=self._at,
            method=self.method,
            source=self.source,
            target=self.target,
            nbytes=self.sent + self.received,
            detail=self.detail,
            ended=self._now(),
            sent=self.sent,
            step=self.step,
            error="" if error is None else type(error).__name__,
            turn=self._turn,
            answered=turn(),
            pushed=self._pushed,
        )
        for hear in PROCESS.call:
            hear(call)


def client_of(step: int) -> str:
    """The client that runs this step; "" if it is not known."""
    return clients.get(step, "")


def client_name() -> str:
    """The calling thread's name as a client: `client`, or the name that the thread was given."""
    thread = threading.current_thread()
    return "client" if thread is threading.main_thread() else thread.name

"""Watch: what happens between clients, tasks and queues while somebody looks.

Stands for nothing in TensorFlow, where calls and queues leave no trace. A room that sees something happen tells it
here; `machine/watch.py` opens a watch, `dtflab.viz` draws what it has seen.

Rules: nobody watches as a rule, so a room first looks whether `watchers` is empty, and that is all it costs. An event
is a tuple that is appended to a list: whoever tells it waits for nobody, and holds no lock of the watch.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One call between a client and a task, or between two tasks, as the wire would have seen it.

    Moments are seconds on the clock of who calls. `nbytes` is the tensor data that it carried, `sent` the part of it
    that went along with the request; the rest came with the answer. `step` is 0 for what belongs to no step. `turn` and
    `answered` number requests and answers in the order in which they were made: in virtual time many share a moment.
    Of a call between workers over gRPC, and of one that comes from `another process`, all bytes of its messages count.
    """

    at: float
    method: str  # as the protocol calls it: RunStep, RegisterGraph, RunGraph, RecvTensor, …
    source: str  # who calls: a task, or a client by the name of its thread
    target: str  # the task that is called
    nbytes: int
    detail: str  # what about: fetches of a step, the key of a tensor
    ended: float = 0.0  # when the answer had come
    sent: int = 0
    step: int = 0
    error: str = ""  # the class of the error with which it ended
    turn: int = 0
    answered: int = 0


class QueueEvent(NamedTuple):
    """Something that happened at a queue; `level` is how many elements it held then.

    `what` is `put` or `take` (that many `elements`), `wait` (it can not go on: `wants` says to do what), `end` (it went
    with an `error`) or `close`. One who wants many elements may put or take them in several events; `over` is true for
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
    wants: str = ""  # of who waits: `put` or `take`
    error: str = ""


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


class Watch:
    """Sees everything that happens in this process from `__enter__` to `__exit__`.

    `calls` and `queues` are plain lists, in the order in which things became known: a call when its answer came. `uses`
    are the variables that the graphs of the steps contain, each client's once, where the master is in this process.
    `clock()` is the clock that counts for the thread that asks.
    """

    def __init__(self, clock: Callable[[], Any]) -> None:
        self._clock = clock
        self._own: Any = None  # the clock on which it began
        self.calls: list[Call] = []
        self.queues: list[QueueEvent] = []
        self.uses: dict[Use, None] = {}  # in the order in which they were first seen
        self.began = self.ended = 0.0  # `ended` is 0 while it goes on

    def __enter__(self) -> Watch:
        global watchers
        with _changing:
            if self in watchers:
                raise RuntimeError("This watch is under way. To watch twice at once, open another one: tf.watch().")
            self._own = self._clock()
            self.began, self.ended = self._own.now(), 0.0
            watchers = (*watchers, self)
        return self

    def __exit__(self, *exc: Any) -> None:
        global watchers
        with _changing:
            watchers = tuple(other for other in watchers if other is not self)
            self.ended = self._own.now()
            if not watchers:
                kept.clear()

    def now(self) -> float:
        """The moment, for the thread that asks."""
        return float(self._clock().now())

    def end_after(self, last: float) -> float:
        """When it ended, or now while it goes on; `last` if what happened then went by another clock."""
        if self._own is None or self.began > last:
            return last
        return max(last, self.ended or float(self._own.now()))

    def __repr__(self) -> str:
        state = "" if self.ended else ", and goes on"
        return f"<Watch: {len(self.calls):,} calls, {len(self.queues):,} queue events{state}>"


watchers: tuple[Watch, ...] = ()  # those that look now
_changing = threading.Lock()  # who comes and goes
turn = itertools.count(1).__next__
kept: dict[tuple[Any, ...], Any] = {}  # what a room need not find out again while anybody watches
clients: dict[int, str] = {}  # step → whose it is, of steps that began while somebody watched


def tell(call: Call) -> None:
    """Tell of a call that has just ended."""
    told = call._replace(answered=turn())
    for one in watchers:
        one.calls.append(told)


def queue_event(*fields: Any) -> None:
    """Tell what happened at a queue; the arguments are QueueEvent's without the first, which is now."""
    for one in watchers:
        one.queues.append(QueueEvent(one.now(), *fields))


def use(told: Use) -> None:
    """Tell that a client uses a variable."""
    for one in watchers:
        one.uses[told] = None


def now() -> float:
    """The moment for an event that begins."""
    return watchers[0].now() if watchers else 0.0


def client_of(step: int) -> str:
    """Whose step it is; "" if that is not known."""
    return clients.get(step, "")


def client_name() -> str:
    """Who the calling thread is as a client: `client`, or the name that its thread was given."""
    thread = threading.current_thread()
    return "client" if thread is threading.main_thread() else thread.name


def rpc(method: str) -> str:
    """`run_step` → `RunStep`, as the protocol calls it."""
    return "".join(word.capitalize() for word in method.split("_"))

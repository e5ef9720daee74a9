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

from dtflab.graph import device_spec, errors


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

    `what` is `put` or `take` (so many `elements`), `wait` (it can not go on: `wants` says to do what), `end` (it went
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
    """A client whose steps need a variable; `container` is "" for the one that all share."""

    client: str
    device: str
    container: str
    variable: str


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
                _needed.clear()

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
_needed: dict[tuple[Any, ...], list[tuple[str, str, str]]] = {}  # kind of step → its variables, while anybody watches
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp")
_clients: dict[int, str] = {}  # step → whose it is, of steps that began while somebody watched


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
    return _clients.get(step, "")


def client_name() -> str:
    """Who the calling thread is as a client: `client`, or the name that its thread was given."""
    thread = threading.current_thread()
    return "client" if thread is threading.main_thread() else thread.name


# -- clients -------------------------------------------------------------------------------------------------


class AskedMaster:
    """A method of a master as a client calls it while somebody watches: the call is told when its answer has come."""

    def __init__(self, master: Any, method: str) -> None:
        self._master, self._method = master, method
        self._step = 0
        self._turn = turn()

    def __call__(self, *args: Any) -> Any:
        began, answer, error, who = now(), None, "", client_name()
        here = {"watch": self._begins} if self._method == "run_step" and hasattr(self._master, "session") else {}
        try:
            answer = getattr(self._master, self._method)(*args, **here)
            return answer
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            _clients.pop(self._step, None)
            sent, detail = _request(self._method, args)
            nbytes, to = sent + _size(answer), getattr(self._master, "task", "")
            if here and watchers:  # it may be the last of them that has gone meanwhile
                self._tell_uses(who, args)
            name = rpc(self._method)
            tell(Call(began, name, who, to, nbytes, detail, now(), sent, self._step, error, self._turn))

    def _tell_uses(self, who: str, args: Any) -> None:
        """Which variables the step needed, by the graph of its session; found out once per kind of step."""
        handle, _, fetches, targets, *_ = args
        key = handle, tuple(fetches), tuple(targets)
        found = _needed.get(key)
        if found is None:
            found = [_place(node) for node in _nodes_of(self._master, *key) if node.op in _VARIABLES]
            _needed[key] = found
        for place in found:
            use(Use(who, *place))

    def _begins(self, step: Any) -> None:
        """A master of this process begins the step, on the thread of the client."""
        self._step = step.step_id
        _clients[self._step] = client_name()


def _nodes_of(master: Any, handle: str, fetches: Any, targets: Any) -> Any:
    """The part of a session's graph that a step needed; nothing if the step failed because there is no such part."""
    try:
        return master.session(handle).placed(fetches, targets)
    except errors.OpError:
        return ()


def _place(node: Any) -> tuple[str, str, str]:
    """Device, container and name of the variable behind a node."""
    shared_name, container = (node.attrs.get(name, b"").decode() for name in ("shared_name", "container"))
    return node.device, container, shared_name or node.name


def asked(master: Any, method: str) -> Any:
    """The method of a master, for a client to call."""
    return AskedMaster(master, method) if watchers and method != "step_through" else getattr(master, method)


ELSEWHERE = "another process"  # who calls, as far as one knows


class Told:
    """A call over gRPC between tasks that is under way while somebody watches; `request` is its message, if known."""

    def __init__(self, method: str, source: str, target: str, request: Any, sent: int) -> None:
        self._began, self._turn = now(), turn()
        self._of = method, source, target
        self._sent = sent
        self._step = getattr(request, "step_id", 0)
        self._detail = getattr(request, "rendezvous_key", "")
        if source == ELSEWHERE and self._detail:
            self._of = method, device_spec.task_name(self._detail.split(";")[2]), target  # who will receive it

    def ended(self, answer: bytes, error: BaseException | None) -> None:
        """Tell it, now that its answer is there."""
        failed = "" if error is None else type(error).__name__
        nbytes = self._sent + len(answer)
        tell(Call(self._began, *self._of, nbytes, self._detail, now(), self._sent, self._step, failed, self._turn))


def rpc(method: str) -> str:
    """`run_step` → `RunStep`, as the protocol calls it."""
    return "".join(word.capitalize() for word in method.split("_"))


def _request(method: str, args: Any) -> tuple[int, str]:
    """Bytes of tensors in a request to a master, and what it is about."""
    match method, args:
        case "run_step", (_, feeds, fetches, targets, *_):
            return _size(value for _, value in feeds), ", ".join([*fetches, *targets])
        case "partial_run", (_, _, feeds, fetches):
            return _size(value for _, value in feeds), ", ".join(fetches)
        case "create_session", (nodes, *_):
            return 0, f"{len(nodes)} nodes"
        case "extend_session", (_, nodes):
            return 0, f"{len(nodes)} nodes"
    return 0, ""


def _size(values: Any) -> int:
    """Bytes of the tensors among some values."""
    return sum(getattr(value, "nbytes", 0) for value in values) if values and not isinstance(values, str) else 0


# -- workers -------------------------------------------------------------------------------------------------


def about(method: str, args: Any) -> tuple[int, str]:
    """Of a request to a worker, the step that it belongs to (0: none) and what it is about."""
    match method, args:
        case "run_graph", (_, graph_handle, step):
            return step.step_id, graph_handle
        case "register_graph", (_, nodes):
            return 0, f"{len(nodes)} nodes"
        case "cleanup_graph", (step_id, *_):
            return step_id, ""
    return 0, ""

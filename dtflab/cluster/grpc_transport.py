"""gRPC: the wire between processes. Stubs call from here, `serve` answers here.

Stands for `rpc/grpc_channel.cc`, `grpc_util.h` and `grpc_server_lib.cc` of `core/distributed_runtime`. Left
out: response caching, compression.

Rules: this is the only file that imports grpc. A message is as large as it needs to be. A server that has a token
answers nobody without it, whatever the method. A call that is
answered here has a thread of its own, and there is always another one. An error crosses as TensorFlow's:
canonical code and text; one that is only the connection's says whose.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Callable
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

# Before grpc is imported: else every fork of a notebook (`!ls`) writes to stderr.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc
from google.protobuf.message import DecodeError

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.base.events import PROCESS, OpenCall
from dtflab.base.timeouts import timeouts
from dtflab.cluster import handshake, negotiation, stubs
from dtflab.cluster.answering import Answer, ServerCall, answer, status_of
from dtflab.cluster.link import Link
from dtflab.cluster.services import MasterService, Method, WorkerService, pushed_tensor, recv_tensor_response
from dtflab.cluster.silence import LOOKOUT, Tell
from dtflab.cluster.stubs import Answered
from dtflab.cluster.tensor_codec import Buffer, Pieces
from dtflab.machine.clock import REAL, Clock, Pool
from dtflab.machine.console import listener, say
from dtflab.runtime.pushing import PUSHED
from dtflab.runtime.rendezvous import Failed

if TYPE_CHECKING:
    from dtflab.cluster.task import Task

P = ParamSpec("P")
T = TypeVar("T")
Metadata = tuple[tuple[str, str], ...]

_MASTER, _WORKER = "/tensorflow.MasterService/", "/tensorflow.WorkerService/"
_UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
_CHANNEL_OPTIONS = [
    *_UNLIMITED,
    ("grpc.use_local_subchannel_pool", 1),  # a new channel tries to connect at once, whatever another one has met
    ("grpc.enable_http_proxy", 0),  # tasks reach each other directly
    ("grpc.max_metadata_size", 1 << 20),  # where the text of an error travels
    # A task that is started, or started again, is found soon.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_SERVER_OPTIONS = [*_UNLIMITED, ("grpc.so_reuseport", 0)]  # a port has one owner
_METADATA: Metadata = (("tf-rpc", "1"),)
_TOKEN = "authorization"
_NEVER_SENT = "failed to connect"  # gRPC's words for that
# And for a connection that was made, and was of no use.
_NO_USE = ("Socket closed", "reset by peer", "handshake failed", "verification check failed")
_CLOSED = "Channel closed!"  # and those for a call of a channel that was closed here
# Nobody has that method, and every gRPC server says so at once. GetStatus would wait for a thread of TensorFlow's pool,
# which may compute, and a ping of HTTP/2 is answered by closing the connection if more than three come in 15 minutes.
_PING = "/dtflab.Links/Ping"
_UNANSWERED = (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
_CUT_OFF = "CANCELLED"  # its word for a call that meets a server as it stops; a caller that gives up says more
_pool = Pool(REAL, name="opening links")
_STATUS = {status.value[0]: status for status in grpc.StatusCode}


# -- calling ------------------------------------------------------------------------------------------------


class _Connection:
    """The channel to one address, shared by all stubs of a task or of the clients, closed with the last of them."""

    def __init__(self, address: str, credentials: Credentials, own: Task | None = None) -> None:
        self.address = address
        self.task = ""  # who lives there, once it has said so
        self.credentials = credentials
        self.own = own  # the task here that asks; None: a client
        self.metadata = _METADATA
        if credentials.token:
            self.metadata += ((_TOKEN, f"Bearer {credentials.token}"),)
        self._opened: Link | None = None  # by this client
        self._open_channel()
        self.may_link = self.could_link()
        self.is_watched = self.is_used = False  # (silence.Awaited)
        self.is_silent = False  # it was given up, and has not answered since
        self.gave_up = ""  # why, the last time
        self.calls: dict[object, Tell | None] = {}  # those under way over gRPC, and how to tell those who wait for them
        self._answers = 0  # to pings
        self._ping: grpc.Future[bytes] | None = None  # one that is under way

    def _open_channel(self) -> None:
        if self.credentials.is_tls:
            shown = grpc.ssl_channel_credentials(*_for_grpc(self.credentials))
            self._channel = grpc.secure_channel(self.address, shown, _CHANNEL_OPTIONS)
        else:
            self._channel = grpc.insecure_channel(self.address, _CHANNEL_OPTIONS)
        self._methods: dict[str, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {}
        # Not at the end of the process: until then its servers answer calls, for which they may have to ask others.
        weakref.finalize(self, self._channel.close).atexit = False

    def could_link(self) -> bool:
        """Whether the task at this address is worth asking for a link, as long as nothing is known of it."""
        return not self.credentials.is_tls and negotiation.are_on()

    def method(self, path: str) -> grpc.UnaryUnaryMultiCallable[bytes, bytes]:
        """The callable of one method, bytes to bytes."""
        if path not in self._methods:
            self._methods[path] = self._channel.unary_unary(path)
        return self._methods[path]

    @property
    def link(self) -> Link | None:
        """The link to this address, if there is one; a client's is for those with the same credentials."""
        found = negotiation.between(self._own_address, self.address) if self.may_link else None
        return found if self.own is not None or found is self._opened else None

    @property
    def _own_address(self) -> str:
        return "" if self.own is None else self.own.address

    def open_link(self) -> None:
        """Agree on a link, now that the task at this address has answered; over gRPC it answers in any case."""
        serving = None if self.own is None else _serving.get(self.own)
        if not self.may_link or self.link is not None or (self.own is not None and not (serving and serving.may_link)):
            return
        try:
            link = negotiation.open_to(self.address, self.ask, serving or _CLIENT, self._own_address)
        except errors.UnimplementedError:  # TensorFlow, or a task that uses gRPC alone
            self.may_link = False
            return
        if link is not None and self.own is None:
            self._opened = link
            weakref.finalize(self, link.close).atexit = False
        elif link is not None and self.own is not None and _serving.get(self.own) is not serving:
            link.close()  # the task was stopped meanwhile

    def ask(self, path: str, request: bytes, seconds: float) -> bytes:
        """Call a method over gRPC; raises a class of `errors`."""
        try:
            return self.method(path)(request, timeout=seconds, metadata=self.metadata)
        except grpc.RpcError as error:
            raise errors.from_code(error.code().value[0], error.details() or "") from None

    # -- whether it is there (silence.Awaited) --------------------------------------------------------------

    def who(self) -> str:
        known = self.task or ("" if self.own is None else self.own.at(self.address))
        return known.replace("/replica:0", "") or self.address

    def awaiting(self) -> list[Tell]:
        found = [tell for tell in list(self.calls.values()) if tell is not None]
        if (link := self.link) is not None:
            found += link.awaiting()
            if self.own is not None and self.own.worker.rendezvous.awaits(self.own.at(self.address)):
                found.append(say)
        return found

    def signs(self) -> tuple[object, ...]:
        link = self.link
        return self._answers, id(link), None if link is None else link.signs

    def ping(self) -> None:
        if (link := self.link) is not None:
            link.ping()
        elif self._ping is None:
            call = self._ping = self.method(_PING).future(b"", timeout=3 * timeouts.silence, wait_for_ready=True)
            call.add_done_callback(self._heard)

    def _heard(self, call: grpc.Future[bytes]) -> None:
        if self._ping is call:
            self._ping = None
        try:
            error = call.exception()
        except grpc.FutureCancelledError:
            return
        if not (isinstance(error, grpc.RpcError) and error.code() in _UNANSWERED):
            self._answers += 1
            self.is_silent = False

    def give_up(self, why: str) -> None:
        self.is_silent, self.gave_up, link, channel = True, why, self.link, self._channel
        if link is not None:
            link.close(why)
        self._open_channel()
        self._ping = None
        channel.close()
        self.ping()  # until that is answered, calls fail at once


_CLIENT = negotiation.Client()
_connections: weakref.WeakValueDictionary[tuple[str, Credentials, str], _Connection] = weakref.WeakValueDictionary()
_connections_lock = threading.Lock()


def _connect(address: str, credentials: Credentials, own: Task | None = None) -> _Connection:
    with _connections_lock:
        key = address, credentials, "" if own is None else own.address
        found = _connections.get(key)
        if found is None or found.own is not own:
            found = _connections[key] = _Connection(address, credentials, own)
        return found


class _Wire:
    """One stub's way to an address (stubs.Wire)."""

    def __init__(self, address: str, credentials: Credentials, who: str = "", own: Task | None = None) -> None:
        self.address = address
        self._who = who
        self._connection: _Connection | None = _connect(address, credentials, own)

    @property
    def task(self) -> str:
        return self._connection.task if self._connection is not None else self._who

    @task.setter
    def task(self, name: str) -> None:
        self._open().task = name

    def close(self) -> None:
        self._connection = None

    def _open(self) -> _Connection:
        if self._connection is None:
            raise errors.CancelledError.of(f"The connection to {self._peer()} was closed.")
        return self._connection

    def call(self, path: str, request: Pieces, timeout: float | None = None) -> Buffer:
        connection = self._open()
        LOOKOUT.uses(connection)
        if (link := connection.link) is not None:
            code, text, answer = link.ask(path, request, timeout, listener())
            if code:
                raise self._failed(code, text)
            return answer
        if connection.is_silent:
            connection.ping()
            raise self._failed(errors.UNAVAILABLE, connection.gave_up)
        token = object()
        connection.calls[token] = listener()
        try:
            answer = connection.method(path)(b"".join(request), timeout=timeout, metadata=connection.metadata)
        except grpc.RpcError as error:
            raise self._error(error) from None
        finally:
            del connection.calls[token]
        connection.open_link()
        return answer

    def start(
        self, path: str, request: Pieces, done: Answered | None = None, tell: Tell | None = None
    ) -> Callable[[], object]:
        connection, done = self._open(), done or _nothing
        LOOKOUT.uses(connection)
        if (link := connection.link) is not None:
            return link.request(path, request, partial(self._answered, done), tell)
        if connection.is_silent:
            connection.ping()
            done(b"", self._failed(errors.UNAVAILABLE, connection.gave_up))
            return _do_nothing
        return _Started(self, connection, path, b"".join(request), done, tell).cancel

    def expect(self) -> None:
        LOOKOUT.uses(self._open())

    def tell(self, path: str, request: Pieces) -> None:
        if (link := self.link) is not None:
            link.tell(path, request)
        else:
            self.start(path, request)

    @property
    def link(self) -> Link | None:
        return None if self._connection is None else self._connection.link

    def lost(self, why: str) -> errors.OpError:
        return self._failed(errors.UNAVAILABLE, why)

    def _answered(self, done: Answered, code: int, text: str, answer: Buffer) -> None:
        done(answer, self._failed(code, text) if code else None)

    def result(self, call: grpc.Future[bytes]) -> tuple[bytes, errors.OpError | None]:
        """The answer or the error of a call that has ended."""
        try:
            return call.result(), None
        except grpc.RpcError as error:
            return b"", self._error(error)
        except grpc.FutureCancelledError:
            return b"", errors.CancelledError.of(f"The call to {self._peer()} was cancelled.")

    def _error(self, error: grpc.RpcError) -> errors.OpError:
        """The class of `errors` for a call that failed over gRPC."""
        code, text = error.code().value[0], error.details() or ""
        if code == errors.CANCELLED and text == _CUT_OFF:
            code, text = errors.UNAVAILABLE, "it ended while the call was on its way"
        if code == errors.CANCELLED and text == _CLOSED and self._connection is not None:
            code, text = errors.UNAVAILABLE, self._connection.gave_up or text
        if code == errors.UNAVAILABLE and self._connection is not None:
            self._connection.may_link = self._connection.could_link()  # another program may come up there
            was_made = _NEVER_SENT in text and any(words in text for words in _NO_USE)
            if was_made and (why := handshake.mismatch(self.address, self._connection.credentials)):
                return errors.UnauthenticatedError.of(f"{self._peer()} can't be used: {why}")
        return self._failed(code, text)

    def _failed(self, code: int, text: str) -> errors.OpError:
        # A lost connection is grpc's own message; an unavailable task further away has its name in it.
        if code == errors.UNAVAILABLE and "/job:" not in text:
            text = (
                f"{self._peer()} does not answer ({_reason(text)}).\nIs it still running? If it was started "
                "again, make a new session, and initialize or restore the variables that lived there."
            )
        elif code == errors.DEADLINE_EXCEEDED and "/job:" not in text:
            text = f"{self._peer()} did not answer in the time that was allowed ({text})."
        return errors.from_code(code, text)

    def _peer(self) -> str:
        who = self._who or self.task
        return f"Task {who} at {self.address}" if who else f"The server at {self.address}"


def _reason(details: str) -> str:
    """Why gRPC could not connect: `connection refused`, the end of its chain of causes; other details as they are."""
    if _NEVER_SENT in details or "lookup failed" in details:
        return details.rpartition(": ")[2].rstrip("])").lower()
    return details


def _nothing(answer: Buffer, error: errors.OpError | None) -> None:
    """Ignore the answer to a call that nobody waits for."""


def _do_nothing() -> None:
    """Give up a call that has failed."""


class _Started:
    """A call under way. If nobody was there it is asked once more, over a connection of its own.

    For gRPC says what it met when it last tried, up to a second ago, and the task may have come up since: the first
    thing that a new task does may be a step in which the others pull from it.
    """

    def __init__(
        self,
        wire: _Wire,
        connection: _Connection,
        path: str,
        request: bytes,
        done: Answered,
        tell: Tell | None,
    ) -> None:
        self._wire, self._path, self._request, self._done, self._tell = wire, path, request, done, tell
        self._cancelled = False
        self._ask(connection, self._ended_at_first)

    def _ask(self, connection: _Connection, ended: Callable[[grpc.Future[bytes]], None]) -> None:
        self._connection = connection
        LOOKOUT.uses(connection)
        connection.calls[self] = self._tell
        self._call = connection.method(self._path).future(self._request, metadata=connection.metadata)
        # Always a callback: a call that nobody refers to is cancelled by its destructor.
        self._call.add_done_callback(ended)

    def _ended_at_first(self, call: grpc.Future[bytes]) -> None:
        if not (self._call.code() == grpc.StatusCode.UNAVAILABLE and _NEVER_SENT in self._call.details()):
            self._ended(call)
            return
        met = self._connection
        met.calls.pop(self, None)
        self._ask(_Connection(met.address, met.credentials, met.own), self._ended)
        if self._cancelled:  # meanwhile
            self._call.cancel()

    def _ended(self, call: grpc.Future[bytes]) -> None:
        self._connection.calls.pop(self, None)
        answer, error = self._wire.result(call)
        if error is None:
            _pool.submit(self._connection.open_link)
        self._done(answer, error)

    def cancel(self) -> None:
        """Give up waiting."""
        self._cancelled = True
        self._call.cancel()


class MasterStub(stubs.MasterStub):
    """The master at an address, for a client of another process."""

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        super().__init__(_Wire(address, the_credentials.at(address, credentials)))


class WorkerStub(stubs.WorkerStub):
    """The worker `task` at an address, for the task `own` of another process, or for a client that looks for it.

    It `pushes` what that task waits for, over a link, unless a session brings names of its own for both.
    """

    def __init__(
        self,
        task: str,
        address: str,
        credentials: Credentials | None = None,
        own: Task | None = None,
        pushes: bool = True,
    ) -> None:
        wire = _Wire(address, the_credentials.at(address, credentials), task, own)
        if own is None:
            super().__init__(task, wire)
        else:
            super().__init__(task, wire, own.name, own.worker.rendezvous if pushes else None, own.faults)


# -- answering ----------------------------------------------------------------------------------------------


def _probe(host: str, port: int) -> None:
    """OSError if the address can't be had. Asked first, because grpc's core writes its complaint to stderr."""
    socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()


class _Executor(futures.Executor):
    """A pool of dtflab as an executor, of which grpc needs only `submit`, whatever its types say."""

    def __init__(self, clock: Clock) -> None:
        self._pool = Pool(clock, name="grpc")

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> futures.Future[T]:
        future: futures.Future[T] = futures.Future()

        def run() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._pool.submit(run)
        return future


class Serving:
    """A task's services on a port, from `serve` until `stop`."""

    def __init__(self, task: Task, address: str, credentials: Credentials) -> None:
        self.task = task
        self.address = address
        self._calls: set[ServerCall] = set()
        self._methods: dict[str, Method] = {
            prefix + name: method
            for prefix, service in ((_MASTER, MasterService(task)), (_WORKER, WorkerService(task)))
            for name, method in service.methods().items()
        }
        # Over a link the other end may call whatever is served here: not in plain text, whichever end opens it.
        self.may_link = not credentials.is_tls and negotiation.are_on()
        self._credentials = credentials
        self._listener: negotiation.Listener | None = None
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path: grpc.unary_unary_rpc_method_handler(self._handler(path)) for path in self._methods
        }
        if self.may_link:
            handlers[negotiation.OPEN] = _of_links("Open", self._open_link)
            handlers[negotiation.CONFIRM] = _of_links("Confirm", lambda data: negotiation.confirm(data, task.address))
        executor = _Executor(task.master.clock)
        answering = _Handlers(handlers, task.name, credentials.token)
        self._server = grpc.server(executor, [answering], options=_SERVER_OPTIONS)  # type: ignore[arg-type]
        self.port = self._bind(address)
        self._host = address.rpartition(":")[0]
        self.address = f"{self._host}:{self.port}"
        self._server.start()
        _serving[task] = self

    def _bind(self, address: str) -> int:
        host, _, port = address.rpartition(":")
        if host == "localhost":  # one family: else a busy port of the other goes unnoticed
            address = f"127.0.0.1:{port}"
        bind = self._server.add_insecure_port
        if self._credentials.is_tls:
            ca, key, certificate = _for_grpc(self._credentials)
            secured = grpc.ssl_server_credentials([(key, certificate)], ca, require_client_auth=True)
            bind = partial(self._server.add_secure_port, server_credentials=secured)
        try:
            _probe(host.strip("[]"), int(port))
            return bind(address)
        except (RuntimeError, OSError):
            raise errors.UnknownError.of(
                f"Could not start gRPC server: {self.task.name} can't have {self.address}. Is another "
                "program using that port, or is it not an address of this machine? Port 0 is a free one."
            ) from None

    def _handler(self, path: str) -> Callable[[bytes, grpc.ServicerContext], bytes]:
        def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
            code, text, found = self.answer(path, data, ServerCall(context.add_callback))
            if code:
                context.set_code(_STATUS.get(code, grpc.StatusCode.UNKNOWN))
                context.set_details(text)
            return b"".join(found)

        return handle

    def answer(self, path: str, data: Buffer, call: ServerCall) -> Answer:
        """Answer a call, whatever wire it came over."""
        method = self._methods.get(path)
        if method is None:
            return errors.UNIMPLEMENTED, f"{self.task.name} has no method {path}.", []
        self._calls.add(call)
        try:
            return answer(self.task.name, path.rpartition("/")[2], method, data, call)
        finally:
            self._calls.discard(call)

    def knows(self, address: str) -> bool:
        """Whether a task of the cluster is at that address (link.End)."""
        return bool(self.task.at(address))

    def push_over(self, link: Link) -> None:
        """Push what steps here compute for the task at the other end (link.End)."""
        task = self.task.at(link.peer)
        end = self.task.worker.rendezvous.push_to(task, partial(self._push, task, link))
        link.on_lost(lambda why: end())

    def _push(self, task: str, link: Link, step_id: int, key: str, value: object) -> Callable[[], object]:
        if value is PUSHED:
            link.lose(step_id, key)
            return link.send_off
        self.task.note("RecvTensor", task, key, value, pushed=True)
        if PROCESS.call:
            _note_push(task, self.task.name, step_id, key, value)
        return link.push(step_id, key, pushed_tensor(value))

    def pushed(self, step_id: int, key: str, tensor: Buffer) -> None:
        """Keep a tensor for a step that runs here, or will (link.End)."""
        value: object
        try:
            value = stubs.received_push(tensor)
            if PROCESS.call:
                _note_push(self.task.name, stubs.sender(key), step_id, key, value)
        except (DecodeError, errors.InvalidArgumentError, IndexError) as error:
            value = Failed(partial(errors.DataLossError.of, f"The tensor {key} pushed to here can't be read: {error}"))
        with contextlib.suppress(errors.OpError):  # the step has ended
            self.task.worker.rendezvous.find(step_id).send(key, value)

    def lose(self, step_id: int, key: str) -> None:
        """Fail the consumer of a tensor that was pushed over an earlier link (link.End)."""
        self.task.worker.rendezvous.lose(step_id, key)

    def _open_link(self, data: bytes) -> bytes:
        with _serving_lock:
            if _serving.get(self.task) is not self:
                raise errors.UnavailableError.of(f"Task {self.task.name} is being stopped.")
            if self._listener is None:
                host = "127.0.0.1" if self._host == "localhost" else self._host.strip("[]")
                self._listener = negotiation.Listener(
                    host, self.task.address, self, lambda address: _connect(address, self._credentials).ask
                )
        return self._listener.open(data)

    def stop(self, seconds: float = 0.0) -> None:
        """Take no more calls, and give those under way some seconds; the rest end with an error that says why."""
        with _serving_lock:
            _serving.pop(self.task, None)
        # By its own deadline gRPC cancels calls without a word: ours comes first.
        self._server.stop(seconds + 60.0).wait(seconds)
        why = errors.UnavailableError.of(f"Task {self.task.name} at {self.address} was stopped.")
        for call in list(self._calls):
            call.end(why)
        if self._listener is not None:
            self._listener.close()
        negotiation.close(self.task.address, 1.0)
        self._server.stop(1.0).wait()


_serving: weakref.WeakKeyDictionary[Task, Serving] = weakref.WeakKeyDictionary()
_serving_lock = threading.Lock()


def _note_push(source: str, target: str, step_id: int, key: str, value: object) -> None:
    """Listeners hear of a pushed tensor as of the RecvTensor that it replaces."""
    call = OpenCall("RecvTensor", source, target, key, step_id, pushed=True)
    call.received = sum(map(len, recv_tensor_response(value)))
    call.ended(None)


def _of_links(name: str, method: Callable[[bytes], bytes]) -> grpc.RpcMethodHandler[bytes, bytes]:
    """The handler of a method that neither waits nor is watched."""

    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return method(data)
        except Exception as error:
            code, text = status_of(name, error)
            context.set_code(_STATUS[code])
            context.set_details(text)
            return b""

    return grpc.unary_unary_rpc_method_handler(handle)


class _Handlers(grpc.GenericRpcHandler):
    """Path → handler, for callers that have the token, if there is one."""

    def __init__(self, handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]], task: str, token: str) -> None:
        self._handlers = handlers
        self._task = task
        self._token = f"Bearer {token}".encode() if token else b""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if self._token:
            shown = [value for name, value in handler_call_details.invocation_metadata or () if name == _TOKEN]
            if not (shown and secrets.compare_digest(_bytes(shown[0]), self._token)):
                return _refusal(self._task, "another" if shown else "none")
        return self._handlers.get(handler_call_details.method)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _refusal(task: str, found: str) -> grpc.RpcMethodHandler[bytes, bytes]:
    """Refuse a call whatever it is for."""

    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        context.set_code(grpc.StatusCode.UNAUTHENTICATED)
        context.set_details(
            f"Task {task} asks each caller for its token, and this call has {found}. Sessions of the program that "
            "started the cluster have it. Another program gives tf.Session(target, credentials=…), or names a folder "
            "in DTFLAB_CREDENTIALS that cluster.credentials.save(folder) has written. A program of TensorFlow has no "
            "token: dtflab.Cluster(…, token=None) admits it."
        )
        return b""

    return grpc.unary_unary_rpc_method_handler(handle)


def _for_grpc(credentials: Credentials) -> tuple[bytes, bytes, bytes]:
    """The authority, key and certificate; ValueError for those of which gRPC would only say that a connection fails."""
    handshake.context_of(credentials)
    return credentials.ca.encode(), credentials.key.encode(), credentials.certificate.encode()


def serve(task: Task, address: str, credentials: Credentials = PLAIN) -> Serving:
    """Answer for `task` at `address`, over TLS and to those with the token if credentials have them.

    Raises UnknownError if the address is in use.
    """
    return Serving(task, address, credentials)

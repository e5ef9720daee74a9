"""gRPC: the wire between processes. Stubs call from here, `serve` answers here.

Stands for `rpc/grpc_channel.cc`, `grpc_util.h` and `grpc_server_lib.cc` of `core/distributed_runtime`. Left
out: response caching, compression.

Rules: this is the only file that imports grpc. A message is as large as it needs to be. A call that is
answered here has a thread of its own, and there is always another one. An error crosses as TensorFlow's:
canonical code and text; one that is only the connection's says whose.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from google.protobuf.message import DecodeError

# Before grpc is imported: else every fork of a notebook (`!ls`) writes to stderr.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc

from dtflab.base import errors
from dtflab.base.events import PROCESS, OpenCall
from dtflab.cluster import stubs
from dtflab.cluster.services import MasterService, Method, WorkerService, request_of
from dtflab.cluster.stubs import Answered
from dtflab.machine.clock import Clock, Pool

if TYPE_CHECKING:
    from dtflab.cluster.task import Task

P = ParamSpec("P")
T = TypeVar("T")
Credentials = grpc.ChannelCredentials | None  # None: plain text
ServerCredentials = grpc.ServerCredentials | None

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
_METADATA = (("tf-rpc", "1"),)
_MAX_TEXT = 3000  # TensorFlow's limit; metadata has 8 KiB
_NEVER_SENT = "failed to connect"  # gRPC's words for that
_CUT_OFF = "CANCELLED"  # its word for a call that meets a server as it stops; a caller that gives up says more
_STATUS = {status.value[0]: status for status in grpc.StatusCode}


# -- calling ------------------------------------------------------------------------------------------------


class _Connection:
    """The channel to one address, shared by all stubs of this process, closed with the last of them."""

    def __init__(self, address: str, credentials: Credentials) -> None:
        self.address = address
        self.task = ""  # who lives there, once it has said so
        self.credentials = credentials
        if credentials is None:
            self._channel = grpc.insecure_channel(address, _CHANNEL_OPTIONS)
        else:
            self._channel = grpc.secure_channel(address, credentials, _CHANNEL_OPTIONS)
        self._methods: dict[str, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {}
        # Not at the end of the process: until then its servers answer calls, for which they may have to ask others.
        weakref.finalize(self, self._channel.close).atexit = False

    def method(self, path: str) -> grpc.UnaryUnaryMultiCallable[bytes, bytes]:
        """The callable of one method, bytes to bytes."""
        if path not in self._methods:
            self._methods[path] = self._channel.unary_unary(path)
        return self._methods[path]


_connections: weakref.WeakValueDictionary[tuple[str, Credentials], _Connection] = weakref.WeakValueDictionary()
_connections_lock = threading.Lock()


def _connect(address: str, credentials: Credentials) -> _Connection:
    with _connections_lock:
        found = _connections.get((address, credentials))
        if found is None:
            found = _connections[address, credentials] = _Connection(address, credentials)
        return found


class _Wire:
    """One stub's way to an address (stubs.Wire)."""

    def __init__(self, address: str, credentials: Credentials, who: str = "") -> None:
        self.address = address
        self._who = who
        self._connection: _Connection | None = _connect(address, credentials)

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

    def call(self, path: str, request: bytes, timeout: float | None = None) -> bytes:
        try:
            return self._open().method(path)(request, timeout=timeout, metadata=_METADATA)
        except grpc.RpcError as error:
            raise self._error(error) from None

    def start(self, path: str, request: bytes, done: Answered | None = None) -> Callable[[], object]:
        return _Started(self, self._open(), path, request, done or _nothing).cancel

    def result(self, call: grpc.Future[bytes]) -> tuple[bytes, errors.OpError | None]:
        """The answer or the error of a call that has ended."""
        try:
            return call.result(), None
        except grpc.RpcError as error:
            return b"", self._error(error)
        except grpc.FutureCancelledError:
            return b"", errors.CancelledError.of(f"The call to {self._peer()} was cancelled.")

    def _error(self, error: grpc.RpcError) -> errors.OpError:
        """The class of `errors` for a failed call."""
        code, text = error.code().value[0], error.details() or ""
        if code == errors.CANCELLED and text == _CUT_OFF:
            code, text = errors.UNAVAILABLE, "it ended while the call was on its way"
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


def _nothing(answer: bytes, error: errors.OpError | None) -> None:
    """Ignore the answer to a call that nobody waits for."""


class _Started:
    """A call under way. If nobody was there it is asked once more, over a connection of its own.

    For gRPC says what it met when it last tried, up to a second ago, and the task may have come up since: the first
    thing that a new task does may be a step in which the others pull from it.
    """

    def __init__(self, wire: _Wire, connection: _Connection, path: str, request: bytes, done: Answered) -> None:
        self._wire, self._path, self._request, self._done = wire, path, request, done
        self._cancelled = False
        self._ask(connection, self._ended_at_first)

    def _ask(self, connection: _Connection, ended: Callable[[grpc.Future[bytes]], None]) -> None:
        self._connection = connection
        self._call = connection.method(self._path).future(self._request)
        # Always a callback: a call that nobody refers to is cancelled by its destructor.
        self._call.add_done_callback(ended)

    def _ended_at_first(self, call: grpc.Future[bytes]) -> None:
        if not (self._call.code() == grpc.StatusCode.UNAVAILABLE and _NEVER_SENT in self._call.details()):
            self._ended(call)
            return
        self._ask(_Connection(self._connection.address, self._connection.credentials), self._ended)
        if self._cancelled:  # meanwhile
            self._call.cancel()

    def _ended(self, call: grpc.Future[bytes]) -> None:
        self._done(*self._wire.result(call))

    def cancel(self) -> None:
        """Give up waiting."""
        self._cancelled = True
        self._call.cancel()


class MasterStub(stubs.MasterStub):
    """The master at an address, for a client of another process."""

    def __init__(self, address: str, credentials: Credentials = None) -> None:
        super().__init__(_Wire(address, credentials))


class WorkerStub(stubs.WorkerStub):
    """The worker `task` at an address, for a master or worker of another process."""

    def __init__(self, task: str, address: str, credentials: Credentials = None, source: str = "") -> None:
        super().__init__(task, _Wire(address, credentials, task), source)


# -- answering ----------------------------------------------------------------------------------------------


def _probe(host: str, port: int) -> None:
    """OSError if the address can't be had. Asked first, because grpc's core writes its complaint to stderr."""
    socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()


class _Executor(futures.Executor):
    """The pool of the house as grpc takes it: any executor, whatever its types say."""

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


class _ServerCall:
    """A call that is being answered, as its service sees it (services.Answering)."""

    def __init__(self, context: grpc.ServicerContext) -> None:
        self._context = context
        self._callbacks: list[Callable[[errors.OpError], object]] | None = None
        self._lock = threading.Lock()
        self._why: errors.OpError | None = None
        self._over = False

    def on_end(self, callback: Callable[[errors.OpError], object]) -> None:
        with self._lock:
            first = self._callbacks is None
            self._callbacks = self._callbacks or []
            self._callbacks.append(callback)
            why = self._why
        if why is not None:
            callback(why)
        elif first and not self._context.add_callback(self._gone):
            self._gone()

    def _gone(self) -> None:
        self.end(errors.CancelledError.of("The caller has cancelled the call, or is gone."))

    def end(self, why: errors.OpError) -> None:
        """Wake the thread that works for this call, unless the call is answered."""
        with self._lock:
            if self._over or self._why is not None:
                return
            self._why = why
            callbacks = self._callbacks or []
        for callback in callbacks:
            callback(why)

    def answered(self) -> None:
        with self._lock:
            self._over = True


class Serving:
    """A task's services on a port, from `serve` until `stop`."""

    def __init__(self, task: Task, address: str, credentials: ServerCredentials) -> None:
        self._task = task
        self._address = address
        self._calls: set[_ServerCall] = set()
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            prefix + name: grpc.unary_unary_rpc_method_handler(self._handler(name, method))
            for prefix, service in ((_MASTER, MasterService(task)), (_WORKER, WorkerService(task)))
            for name, method in service.methods().items()
        }
        executor = _Executor(task.master.clock)
        self._server = grpc.server(executor, [_Handlers(handlers)], options=_SERVER_OPTIONS)  # type: ignore[arg-type]
        self.port = self._bind(address, credentials)
        self._address = f"{address.rpartition(':')[0]}:{self.port}"
        self._server.start()

    def _bind(self, address: str, credentials: ServerCredentials) -> int:
        host, _, port = address.rpartition(":")
        if host == "localhost":  # one family: else a busy port of the other goes unnoticed
            address = f"127.0.0.1:{port}"
        try:
            _probe(host.strip("[]"), int(port))
            if credentials is not None:
                return self._server.add_secure_port(address, credentials)
            return self._server.add_insecure_port(address)
        except (RuntimeError, OSError):
            raise errors.UnknownError.of(
                f"Could not start gRPC server: {self._task.name} can't have {self._address}. Is another "
                "program using that port, or is it not an address of this machine? Port 0 is a free one."
            ) from None

    def _handler(self, name: str, method: Method) -> Callable[[bytes, grpc.ServicerContext], bytes]:
        def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
            call = _ServerCall(context)
            self._calls.add(call)
            seen, answer = self._seen(name, data), b""
            failed: Exception | None = None
            try:
                answer = method(data, call)
                return answer
            except Exception as error:
                failed = error if seen is not None else None  # else it would keep the request until a collection
                code, text = _status(name, error)
                context.set_code(_STATUS[code])
                context.set_details(text)
                return b""
            finally:
                call.answered()
                self._calls.discard(call)
                if seen is not None:
                    seen.received = len(answer)
                    seen.ended(failed)

        return handle

    def _seen(self, name: str, data: bytes) -> OpenCall | None:
        """For those who watch: a call from another process."""
        if not PROCESS.call:
            return None
        return stubs.wire_call(name, stubs.ELSEWHERE, self._task.name, request_of(name, data), len(data))

    def stop(self, seconds: float = 0.0) -> None:
        """Take no more calls, and give those under way some seconds; the rest end with an error that says why."""
        # By its own deadline gRPC cancels calls without a word: ours comes first.
        self._server.stop(seconds + 60.0).wait(seconds)
        why = errors.UnavailableError.of(f"Task {self._task.name} at {self._address} was stopped.")
        for call in list(self._calls):
            call.end(why)
        self._server.stop(1.0).wait()


class _Handlers(grpc.GenericRpcHandler):
    """Path → handler."""

    def __init__(self, handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        return self._handlers.get(handler_call_details.method)


def _status(name: str, error: Exception) -> tuple[int, str]:
    """The canonical code and text that a caller gets for an error."""
    if isinstance(error, errors.OpError):
        code, text = error.error_code, error.message
    elif isinstance(error, DecodeError | UnicodeDecodeError):
        code, text = errors.INVALID_ARGUMENT, f"Unable to parse the request of {name}: {error}"
    elif isinstance(error, MemoryError):
        code, text = errors.RESOURCE_EXHAUSTED, f"Out of memory in {name}: {error}"
    else:
        code, text = errors.INTERNAL, f"{type(error).__name__} in {name}: {error}"
    if len(text) > _MAX_TEXT:
        text = text[:_MAX_TEXT] + "… [truncated]"
    return (code if code in _STATUS else errors.UNKNOWN), text


def serve(task: Task, address: str, credentials: grpc.ServerCredentials | None = None) -> Serving:
    """Answer for `task` at `address`, over TLS if credentials are given; UnknownError if it is in use."""
    return Serving(task, address, credentials)

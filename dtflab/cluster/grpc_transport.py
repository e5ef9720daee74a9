"""gRPC: a channel to an address and a server at one, bytes to bytes, with TLS and a token if asked for.

Stands for `rpc/grpc_channel.cc`, `grpc_util.h` and `grpc_server_lib.cc` of `core/distributed_runtime`. Left
out: response caching, compression.

Rules: this is the only file that imports grpc. A message is as large as it needs to be. A server that has a token
answers nobody without it, whatever the method; it is sent over TLS alone, and in plain text both ends prove that they
have it (`proof`). A call that is answered here has a thread of its own, and there is always another one. A call ends as
one over a link does: with a code of `errors` (0: well), a text and the answer.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from functools import partial
from typing import ParamSpec, TypeVar

# Before grpc is imported: else every fork of a notebook (`!ls`) writes to stderr.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc

from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.cluster import handshake, proof
from dtflab.cluster.addresses import of_one_family
from dtflab.cluster.answering import Answer, ServerCall
from dtflab.machine.clock import Clock, Pool

P = ParamSpec("P")
T = TypeVar("T")
Ended = tuple[int, str, bytes]
Handler = Callable[[bytes, ServerCall], Answer]

GIVEN_UP = "the caller gave up"  # the text of such a call
CLOSED = "Channel closed!"  # in the text of a call over a channel that was closed here: gRPC's words, of some of them
ASKS = "asks each caller for its token"  # in the text of a call without
UNPROVEN = "it does not prove that it has the token"  # the text of a call to such a server
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
_METADATA: tuple[tuple[str, str], ...] = (("tf-rpc", "1"),)
_TOKEN = "authorization"
_MOST_UNPROVEN = 1000  # calls whose clients have proven nothing yet
_PATIENCE = 2.0  # seconds for a call that proves nothing to end with a reason
# Without proof: nobody was there, or not for long enough.
_MAY_BE_ABSENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
_STATUS = {status.value[0]: status for status in grpc.StatusCode}


class Channel:
    """A connection to one address, which gRPC opens and opens again as it is needed; closed with its last user."""

    def __init__(self, address: str, credentials: Credentials) -> None:
        if credentials.is_tls:
            shown = grpc.ssl_channel_credentials(*_for_grpc(credentials))
            channel = grpc.secure_channel(address, shown, _CHANNEL_OPTIONS)
        else:
            dialled = of_one_family(address) if credentials.token else address
            channel = grpc.insecure_channel(dialled, _CHANNEL_OPTIONS)
        self.close = channel.close
        self._open: Callable[[str], grpc.UnaryUnaryMultiCallable[bytes, bytes] | _Proving] = channel.unary_unary
        self._methods: dict[str, grpc.UnaryUnaryMultiCallable[bytes, bytes] | _Proving] = {}
        self._metadata = _METADATA
        if credentials.token and credentials.is_tls:
            self._metadata += ((_TOKEN, f"Bearer {credentials.token}"),)
        elif credentials.token:
            self._open = partial(_Proving, channel, credentials.token, address)
        # Not at the end of the process: until then its servers answer calls, for which they may have to ask others.
        weakref.finalize(self, channel.close).atexit = False

    def _method(self, path: str) -> grpc.UnaryUnaryMultiCallable[bytes, bytes] | _Proving:
        if path not in self._methods:
            self._methods[path] = self._open(path)
        return self._methods[path]

    def ask(self, path: str, request: bytes, timeout: float | None = None) -> Ended:
        """Call a method and wait for its end."""
        return _end_of(lambda: self._method(path)(request, timeout=timeout, metadata=self._metadata))

    def request(
        self,
        path: str,
        request: bytes,
        done: Callable[[int, str, bytes], None],
        timeout: float | None = None,
        is_patient: bool = False,
    ) -> Callable[[], object]:
        """Call a method; `done(code, text, answer)` comes later, on any thread. The result gives up waiting.

        A patient call waits for somebody to be there.
        """
        method = self._method(path)
        try:
            call = method.future(request, timeout=timeout, metadata=self._metadata, wait_for_ready=is_patient)
        except ValueError:  # gRPC's, of a channel that was closed meanwhile
            done(errors.CANCELLED, CLOSED, b"")
            return bool
        # Always a callback: a call that nobody refers to is cancelled by its destructor.
        call.add_done_callback(lambda _: done(*_end_of(call.result)))
        return call.cancel


def _end_of(answer: Callable[[], bytes]) -> Ended:
    try:
        return 0, "", answer()
    except grpc.RpcError as error:
        return error.code().value[0], error.details() or "", b""
    except grpc.FutureCancelledError:
        return errors.CANCELLED, GIVEN_UP, b""
    except ValueError:  # gRPC's, of a channel that was closed meanwhile
        return errors.CANCELLED, CLOSED, b""
    except _UnprovenError:
        return errors.UNAUTHENTICATED, UNPROVEN, b""


class _UnprovenError(Exception):
    """A call has reached a server that does not prove that it has the token."""


class _Proving:
    """A method of a server that proves first that it has the token (grpc.UnaryUnaryMultiCallable)."""

    def __init__(self, channel: grpc.Channel, token: str, address: str, path: str) -> None:
        self._call: grpc.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(proof.CALL)
        self._token, self._port, self._path = token, address.rpartition(":")[2], path

    def __call__(self, request: bytes, timeout: float | None, metadata: tuple[tuple[str, str], ...]) -> bytes:
        call = self._call_of(request)
        try:  # a Ctrl-C may come while it begins, too
            return call.begin(timeout, metadata).result()
        except BaseException:
            call.cancel()
            raise

    def future(
        self, request: bytes, timeout: float | None, metadata: tuple[tuple[str, str], ...], wait_for_ready: bool = False
    ) -> _ProvingCall:
        return self._call_of(request).begin(timeout, metadata, wait_for_ready)

    def _call_of(self, request: bytes) -> _ProvingCall:
        return _ProvingCall(self._call, proof.Asking(self._token, self._port), self._path, request)


class _ProvingCall:
    """A call whose request is not sent before the server's proof is here: a stream, so both cross one connection."""

    _call: grpc._CallFuture[bytes]

    def __init__(
        self, method: grpc.StreamUnaryMultiCallable[bytes, bytes], asking: proof.Asking, path: str, request: bytes
    ) -> None:
        self._method, self._asking, self._path, self._request = method, asking, path, request
        self._has_begun = self._is_refused = False
        self._known, self._over = threading.Event(), threading.Event()

    def begin(self, timeout: float | None, metadata: proof.Metadata, is_patient: bool = False) -> _ProvingCall:
        shown = (*metadata, *self._asking.metadata)
        try:
            self._call = self._method.future(self._messages(), timeout, shown, wait_for_ready=is_patient)
            self._call.add_done_callback(lambda _: self._over.set())
            self._has_begun = True
        finally:  # else the thread that asks for messages would outlive a Ctrl-C
            self._known.set()
        return self

    def cancel(self) -> object:
        return self._has_begun and self._call.cancel()

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self._call.add_done_callback(callback)

    def _messages(self) -> Iterator[bytes]:
        """The messages of the client, for which grpc asks on a thread of its own."""
        self._known.wait()
        if not self._has_begun:
            return
        if first := self._proof():
            yield first
            yield self._request
        elif self._call.initial_metadata() or not self._over.wait(_PATIENCE):  # that of a call that fails is empty
            self._is_refused = True
            self.cancel()

    def _proof(self) -> bytes:
        return self._asking.proof(self._path, self._call.initial_metadata() or ())

    def result(self) -> bytes:
        """The answer, waited for; _UnprovenError for that of a server which has proven nothing."""
        try:
            answer = self._call.result()
        except (grpc.RpcError, grpc.FutureCancelledError):
            if self._is_refused or not (self._call.code() in _MAY_BE_ABSENT or self._proof()):
                raise _UnprovenError from None
            raise
        if not self._proof():
            raise _UnprovenError
        return answer


class Server:
    """The port of `task` at an address, whose methods `handlers` answer, by their paths. It is open from the first.

    Clients may know the port as that of `known_as`. Raises UnknownError if the address is in use.
    """

    def __init__(
        self,
        task: str,
        address: str,
        handlers: Mapping[str, Handler],
        credentials: Credentials,
        clock: Clock,
        known_as: str = "",
    ) -> None:
        proves = bool(credentials.token) and not credentials.is_tls
        answering = (_ProvingHandlers if proves else _Handlers)(handlers, task, credentials.token)
        self._server = grpc.server(_Executor(clock), [answering], options=_SERVER_OPTIONS)  # type: ignore[arg-type]
        self.port = self._bind(task, address, credentials)
        answering.ports = {str(self.port), known_as.rpartition(":")[2]}
        self._server.start()

    def _bind(self, task: str, address: str, credentials: Credentials) -> int:
        host, _, port = address.rpartition(":")
        bind = self._server.add_insecure_port
        if credentials.is_tls:
            ca, key, certificate = _for_grpc(credentials)
            secured = grpc.ssl_server_credentials([(key, certificate)], ca, require_client_auth=True)
            bind = partial(self._server.add_secure_port, server_credentials=secured)
        try:
            _probe(host.strip("[]"), int(port))
            return bind(of_one_family(address))
        except (RuntimeError, OSError):
            raise errors.UnknownError.of(
                f"Could not start gRPC server: {task} can't have {address}. Is another "
                "program using that port, or is it not an address of this machine? Port 0 is a free one."
            ) from None

    def drain(self, seconds: float) -> None:
        """Take no more calls, and give those under way some seconds."""
        # By its own deadline gRPC cancels calls without a word: the endpoint's comes first, with one.
        self._server.stop(seconds + 60.0).wait(seconds)

    def stop(self) -> None:
        """Take no more calls, and end those under way within a second."""
        self._server.stop(1.0).wait()


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


class _Handlers(grpc.GenericRpcHandler):
    """Path → handler, for callers that have the token, if there is one."""

    ports: set[str]  # of the server

    def __init__(self, handlers: Mapping[str, Handler], task: str, token: str) -> None:
        self._handlers = handlers
        self._task, self._token = task, token

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if self._token:
            shown = [value for name, value in handler_call_details.invocation_metadata or () if name == _TOKEN]
            if not (shown and secrets.compare_digest(_bytes(shown[0]), f"Bearer {self._token}".encode())):
                return _for_calls(partial(_refused, self._task, "another" if shown else "none"))
        handler = self._handlers.get(handler_call_details.method)
        return None if handler is None else _for_calls(handler)


class _ProvingHandlers(_Handlers):
    """Path → handler, for callers that prove that they have the token, after this end has proven it."""

    def __init__(self, handlers: Mapping[str, Handler], task: str, token: str) -> None:
        super().__init__(handlers, task, token)
        self._unproven: OrderedDict[grpc.ServicerContext, None] = OrderedDict()
        self._lock = threading.Lock()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if handler_call_details.method == proof.CALL:
            return grpc.stream_unary_rpc_method_handler(self._prove)
        return _for_calls(partial(_refused, self._task, "none"))

    def _prove(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """Answer a call whose first message proves that its client has the token."""
        answering = proof.Answering(self._token, self.ports, context.invocation_metadata())
        path = ""
        if answering.is_meant:
            context.send_initial_metadata(answering.metadata())
            path = answering.path(self._first(messages, context))
        if not path:
            return _answered(partial(_refused, self._task, "another"), b"", context)
        return _answered(self._handlers.get(path, _unknown), next(messages, b""), context)

    def _first(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """The first message; of too many clients that are waited for, the first one is let go of."""
        with self._lock:
            self._unproven[context] = None
            surplus = self._unproven.popitem(last=False)[0] if len(self._unproven) > _MOST_UNPROVEN else None
        if surplus is not None:
            surplus.cancel()
        try:
            return next(messages, b"")
        finally:
            with self._lock:
                self._unproven.pop(context, None)


def _for_calls(handler: Handler) -> grpc.RpcMethodHandler[bytes, bytes]:
    return grpc.unary_unary_rpc_method_handler(partial(_answered, handler))


def _answered(handler: Handler, data: bytes, context: grpc.ServicerContext) -> bytes:
    code, text, found = handler(data, ServerCall(context.add_callback))
    if code:
        context.set_code(_STATUS.get(code, grpc.StatusCode.UNKNOWN))
        context.set_details(text)
    return b"".join(found)


def _unknown(data: bytes, call: ServerCall) -> Answer:
    """Say what grpc says of a method that a server does not have."""
    return errors.UNIMPLEMENTED, "Method not found!", []


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _refused(task: str, found: str, data: bytes, call: ServerCall) -> Answer:
    """Refuse a call whatever it is for."""
    text = (
        f"Task {task} {ASKS}, and this call has {found}. Sessions of the program that started "
        " the cluster have it. Another program gives tf.Session(target, credentials=…), or names a folder "
        "in DTFLAB_CREDENTIALS that cluster.credentials.save(folder) has written. A program of TensorFlow has no "
        "token: dtflab.Cluster(…, token=None) admits it."
    )
    return errors.UNAUTHENTICATED, text, []


def _for_grpc(credentials: Credentials) -> tuple[bytes, bytes, bytes]:
    """The authority, key and certificate; ValueError for those of which gRPC would only say that a connection fails."""
    handshake.context_of(credentials)
    return credentials.ca.encode(), credentials.key.encode(), credentials.certificate.encode()

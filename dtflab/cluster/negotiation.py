"""Negotiation of links: how two processes agree on one, through gRPC, and where it is found again.

Rules: only a process that may call the task's gRPC service gets a key, and a key opens one link. The task answers with
the welcome that it gave out with the key, since its port or name may be another process's by then. The port of links is
bound where gRPC's is; over TLS there are none. A link is also the way back to the task that opened it. Tensors are
pushed to that once it has confirmed over gRPC, at its own address, that it did. DTFLAB_WIRE=grpc switches links off,
DTFLAB_WIRE=socket their shared memory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial

from dtflab.base import errors
from dtflab.cluster.addresses import of_one_family
from dtflab.cluster.answering import Answer, ServerCall
from dtflab.cluster.link import End, Link
from dtflab.cluster.silence import LOOKOUT
from dtflab.cluster.tensor_codec import Buffer
from dtflab.machine.clock import REAL, Pool
from dtflab.protos.link_pb2 import ConfirmLinkRequest, OpenLinkRequest, OpenLinkResponse

OPEN, CONFIRM = "/dtflab.Links/Open", "/dtflab.Links/Confirm"
Ask = Callable[[str, bytes, float], bytes]  # (path, request, seconds) over gRPC; raises a class of `errors`

_VERSION = 5
_KEY = 32  # bytes
_KNOWN, _UNKNOWN = b"\1", b"\0"  # before the welcome: whether it is clear which task opened the link
_PATIENCE = 5.0  # seconds for one end to connect and say its key
_TO_CONFIRM = 2.0  # seconds; less, so that an opener that can't be asked gets its link nevertheless
_PAUSE = 0.1  # seconds
_MOST_KEYS = 1000  # that nobody has used yet
_HAS_NAMES = sys.platform == "linux"  # of Unix sockets that leave no file

# Those that are not lost, by the addresses of the task here ("": a client) and of that at the other end; or, of a
# client there and of a second link between two tasks, a name that no address is.
_links: dict[tuple[str, str], Link] = {}
_opening: dict[tuple[str, str], bytes] = {}  # tokens of links that this process is opening, by the same addresses
_pool = Pool(REAL, name="admitting", limit=64)  # connections that bring no key must not take all threads


def _wire() -> str:
    wire = os.environ.get("DTFLAB_WIRE", "")
    if wire not in ("", "socket", "grpc"):
        raise ValueError(f"DTFLAB_WIRE must be empty, socket or grpc, not {wire!r}.")
    return wire


def are_on() -> bool:
    """Whether this process uses links; ValueError for an unknown wire in the environment."""
    return _wire() != "grpc"


def between(own: str, address: str) -> Link | None:
    """The link from the task at `own`, or from a client (""), to the task at `address`, if there is one."""
    link = _links.get((own, address))
    return None if link is None or link.lost else link


def open_to(address: str, ask: Ask, end: End, own: str) -> Link | None:
    """Ask the task at `address` for a link and open it; None if it offers none now, or there is one.

    Raises UnimplementedError if the task has no links, as TensorFlow's, or their port is out of reach: to try that
    again with each call could cost seconds each time. `end` is that of the task at `own`, or of a client ("").
    """
    token = secrets.token_bytes(_KEY)
    if between(own, address) is not None or _opening.setdefault((own, address), token) is not token:
        return None
    try:
        link = _opened(address, ask, end, own, token)
    except errors.UnimplementedError:
        raise
    except errors.OpError:
        return None
    except (TimeoutError, ConnectionRefusedError) as error:
        raise errors.UnimplementedError.of(f"The links of {address} are out of reach: {error}") from None
    except OSError:  # the task is being stopped, perhaps, or there are too many open files
        return None
    finally:
        _opening.pop((own, address))
    return link and _keep(own, address, link)


def _opened(address: str, ask: Ask, end: End, own: str, token: bytes) -> Link | None:
    with contextlib.ExitStack() as undo:
        request = OpenLinkRequest(version=_VERSION, address=own, token=token)
        offered = OpenLinkResponse.FromString(ask(OPEN, request.SerializeToString(), _PATIENCE))
        connection = undo.enter_context(_connected(of_one_family(address).rpartition(":")[0], offered))
        connection.sendall(offered.key)
        answer = _read(connection, 1 + _KEY)  # once this process has confirmed, or not
        if not secrets.compare_digest(answer[1:], offered.welcome or b"none"):
            return None
        connection.settimeout(None)
        undo.pop_all()
    return Link(connection, end, address, is_known=answer[:1] == _KNOWN, shares=not _wire())


def _connected(host: str, offered: OpenLinkResponse) -> socket.socket:
    if _HAS_NAMES and offered.name:
        local = socket.socket(socket.AF_UNIX)
        local.settimeout(_PATIENCE)
        with contextlib.suppress(OSError):  # it is another machine, or another network namespace of this one
            local.connect("\0" + offered.name)
            return local
        local.close()
    connection = socket.create_connection((host.strip("[]"), offered.port), _PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _keep(own: str, address: str, link: Link) -> Link:
    key = own, address if address and between(own, address) is None else secrets.token_hex()
    _links[key] = link
    link.on_lost(lambda why: _links.pop(key) if _links.get(key) is link else None)
    link.open()
    return link


def close(own: str, seconds: float) -> None:
    """End the links of the task at `own` when their calls are answered, or after some seconds."""
    end = REAL.now() + seconds
    for link in [link for (task, _), link in list(_links.items()) if task == own]:
        link.settle(end - REAL.now())
        link.close()


class Client:
    """The end of a process without a task (link.End)."""

    def answer(self, path: str, request: Buffer, call: ServerCall) -> Answer:
        return errors.UNIMPLEMENTED, f"{path}: this process has no task.", []

    def knows(self, address: str) -> bool:
        return False

    def push_over(self, link: Link) -> None:
        """Do nothing: no step runs here."""

    def pushed(self, step_id: int, key: str, tensor: Buffer) -> None:
        """Do nothing: no step here waits for it."""

    def lose(self, step_id: int, key: str) -> None:
        """Do nothing: no step here waits for it."""


def confirm(data: bytes, own: str) -> bytes:
    """Answer a task that was asked for a link by the one at `own`; NotFoundError if that did not ask it.

    A token is good for one link: the server of another cluster, which also gets one, could else claim to be this task.
    """
    request = ConfirmLinkRequest.FromString(data)
    if not secrets.compare_digest(_opening.get((own, request.address), b""), request.token or b"none"):
        raise errors.NotFoundError.of(f"{own} is not opening that link.")
    return b""


class Listener:
    """The port of the links of the task at `own`, bound where its gRPC is. `ask(address)` reaches openers."""

    def __init__(self, host: str, own: str, end: End, ask: Callable[[str], Ask]) -> None:
        self._own, self._end, self._ask = own, end, ask
        self._keys: dict[bytes, tuple[OpenLinkRequest, bytes]] = {}  # whom each is for, and the welcome
        self._lock = threading.Lock()  # over the keys
        self._is_closed = False
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = host == "::" and socket.has_dualstack_ipv6()  # IPv4, too, as gRPC
        self._sockets = [socket.create_server((host, 0), family=family, dualstack_ipv6=both)]
        self._name = ""
        if _HAS_NAMES:
            self._name = f"dtflab-{secrets.token_hex(16)}"
            local = socket.socket(socket.AF_UNIX)
            local.bind("\0" + self._name)
            local.listen()
            self._sockets.append(local)
        for listening in self._sockets:
            REAL.spawn(self._accept, listening, name="links")

    def open(self, data: bytes) -> bytes:
        """Answer a process that wants a link: where, and by which key."""
        request = OpenLinkRequest.FromString(data)
        if request.version != _VERSION:
            raise errors.UnimplementedError.of(f"This task has links of version {_VERSION}, not {request.version}.")
        key, welcome = secrets.token_bytes(_KEY), secrets.token_bytes(_KEY)
        with self._lock:
            self._keys[key] = request, welcome
            if len(self._keys) > _MOST_KEYS:
                del self._keys[next(iter(self._keys))]
        port = self._sockets[0].getsockname()[1]
        return OpenLinkResponse(port=port, name=self._name, key=key, welcome=welcome).SerializeToString()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                if self._is_closed:
                    return
                REAL.sleep(_PAUSE)  # too many open files, perhaps not for long
                continue
            _pool.submit(partial(self._admit, connection))

    def _admit(self, connection: socket.socket) -> None:
        """Admit a connection over which a key comes, and find out whether its task is the one it says it is."""
        try:
            key = _read(connection, _KEY)
            with self._lock:
                opener, welcome = self._keys.pop(key, (None, b""))
            if opener is None or (self._own < opener.address and (self._own, opener.address) in _opening):
                connection.close()  # of two tasks that open links to each other, one is enough
                return
            if connection.family != getattr(socket, "AF_UNIX", None):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            confirmed = opener.address if self._confirms(opener) else ""
            connection.settimeout(None)
            connection.sendall((_KNOWN if confirmed else _UNKNOWN) + welcome)
        except OSError:
            connection.close()
            return
        link = Link(connection, self._end, confirmed, is_known=bool(confirmed), shares=not _wire())
        _keep(self._own, confirmed, link)
        if self._is_closed:  # meanwhile
            link.close()

    def _confirms(self, opener: OpenLinkRequest) -> bool:
        if not self._end.knows(opener.address):
            return False
        try:
            request = ConfirmLinkRequest(token=opener.token, address=self._own).SerializeToString()
            self._ask(opener.address)(CONFIRM, request, _TO_CONFIRM)
        except errors.OpError:
            return False
        return True

    def close(self) -> None:
        """Take no more links; those that there are stay."""
        self._is_closed = True
        for listening in self._sockets:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # so that `accept` ends
            listening.close()


def _read(connection: socket.socket, count: int) -> bytes:
    """The first `count` bytes of a connection, perhaps in pieces; OSError after `_PATIENCE` seconds."""
    end, found = REAL.now() + _PATIENCE, b""
    while len(found) < count:
        connection.settimeout(max(end - REAL.now(), 0.001))
        piece = connection.recv(count - len(found))
        if not piece:
            break
        found += piece
    return found


def _leave_to_parent() -> None:
    """Have a forked child let go of its parent's links, over which it would read nothing."""
    for link in _links.values():
        link.leave()
    _links.clear()
    LOOKOUT.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)

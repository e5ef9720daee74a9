"""The connection to one address: the gRPC channel and the link that all stubs of a task, or all clients, share.

Stands for `rpc/grpc_channel.cc` (GrpcChannelCache).

Rules: it is closed with the last stub that uses it. A link is asked for once the other end has answered over gRPC. A
connection is watched while somebody waits for the other end (`silence`); if that stays silent, calls fail at once until
it has answered a ping.
"""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.base.timeouts import timeouts
from dtflab.cluster import negotiation
from dtflab.cluster.grpc_transport import Channel
from dtflab.cluster.link import Link
from dtflab.cluster.silence import Tell
from dtflab.graph import device_spec
from dtflab.machine.console import aside

if TYPE_CHECKING:
    from dtflab.cluster.task import Task

# Nobody has that method, and every gRPC server says so at once. GetStatus would wait for a thread of TensorFlow's pool,
# which may compute, and a ping of HTTP/2 is answered by closing the connection if more than three come in 15 minutes.
_PING = "/dtflab.Links/Ping"
_UNANSWERED = (errors.CANCELLED, errors.DEADLINE_EXCEEDED)
_CLIENT = negotiation.Client()


class Connection:
    """The way to an address, for a task here or for its clients (silence.Awaited)."""

    def __init__(self, address: str, credentials: Credentials, own: Task | None = None) -> None:
        self.address = address
        self.task = ""  # who lives there, once it has said so
        self.names: set[str] = set()  # by which the stubs know it
        self.credentials = credentials
        self.own = own  # the task here that asks; None: a client
        self.channel = Channel(address, credentials)
        self._opened: Link | None = None  # by this client
        self.may_link = self.could_link()
        self.is_watched = self.is_used = False  # (silence.Awaited)
        self.is_silent = False  # it was given up, and has not answered since
        self.gave_up = ""  # why, the last time
        self.calls: dict[object, Tell | None] = {}  # those under way over gRPC, and how to tell those who wait for them
        self._answers = 0  # to pings
        self._is_asked = False  # a ping is under way

    def could_link(self) -> bool:
        """Whether the task at this address is worth asking for a link, as long as nothing is known of it."""
        return not self.credentials.is_tls and negotiation.are_on()

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
        endpoint = None if self.own is None else self.own.endpoint
        if (
            not self.may_link
            or self.link is not None
            or (self.own is not None and not (endpoint and endpoint.may_link))
        ):
            return
        try:
            link = negotiation.open_to(self.address, self.ask, endpoint or _CLIENT, self._own_address)
        except errors.UnimplementedError:  # TensorFlow, or a task that uses gRPC alone
            self.may_link = False
            return
        if link is not None and self.own is None:
            self._opened = link
            weakref.finalize(self, link.close).atexit = False
        elif link is not None and self.own is not None and self.own.endpoint is not endpoint:
            link.close()  # the task was stopped meanwhile

    def ask(self, path: str, request: bytes, seconds: float) -> bytes:
        """Call a method over gRPC; raises a class of `errors`."""
        code, text, answer = self.channel.ask(path, request, seconds)
        if code:
            raise errors.from_code(code, text)
        return answer

    # -- whether it is there (silence.Awaited) --------------------------------------------------------------

    def who(self) -> str:
        known = self.task or ("" if self.own is None else self.own.at(self.address))
        return device_spec.plain(known) or self.address

    def awaiting(self) -> list[Tell]:
        found = [tell for tell in list(self.calls.values()) if tell is not None]
        if (link := self.link) is not None:
            found += link.awaiting()
            if self.own is not None and self.own.worker.rendezvous.awaits(self.own.at(self.address)):
                found.append(aside())
        return found

    @property
    def _is_cut_off(self) -> bool:
        """Whether chaos lets no sign of life cross; what comes all the same counts as held."""
        return self.own is not None and any(map(self.own.faults.cuts, tuple(self.names)))

    def signs(self) -> tuple[object, ...]:
        if self._is_cut_off:
            return ()
        link = self.link
        return self._answers, id(link), None if link is None else link.signs

    def ping(self) -> None:
        if self._is_cut_off:
            return
        if (link := self.link) is not None:
            link.ping()
        elif not self._is_asked:
            self._is_asked, channel = True, self.channel
            this: weakref.ref[Connection] = weakref.ref(self)  # a ping keeps no connection open
            over: weakref.ref[Channel] = weakref.ref(channel)
            channel.request(_PING, b"", partial(_heard, this, over), 3 * timeouts.silence, is_patient=True)

    def heard(self, channel: Channel | None, is_answer: bool) -> None:
        """Take note that a ping over a channel has ended; None: over one that is gone."""
        if channel is self.channel:
            self._is_asked = False
        if is_answer:
            self._answers += 1
            self.is_silent = False

    def give_up(self, why: str) -> None:
        self.is_silent = not self._is_cut_off  # else chaos holds each call until one can go on at once
        self.gave_up, link, channel = why, self.link, self.channel
        if link is not None:
            link.close(why)
        self.channel = Channel(self.address, self.credentials)
        self._is_asked = False
        channel.close()
        self.ping()  # until that is answered, calls fail at once


def _heard(
    connection: weakref.ref[Connection], channel: weakref.ref[Channel], code: int, text: str, answer: bytes
) -> None:
    if (pinged := connection()) is not None:
        pinged.heard(channel(), code not in _UNANSWERED)


_connections: weakref.WeakValueDictionary[tuple[str, Credentials, str], Connection] = weakref.WeakValueDictionary()
_connections_lock = threading.Lock()


def connect(address: str, credentials: Credentials, own: Task | None = None) -> Connection:
    """The connection of the task `own`, or of the clients here, to an address."""
    with _connections_lock:
        key = address, credentials, "" if own is None else own.address
        found = _connections.get(key)
        if found is None or found.own is not own:
            found = _connections[key] = Connection(address, credentials, own)
        return found

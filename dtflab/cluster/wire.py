"""The wire of one stub: its calls to an address, over a link if there is one, else over gRPC.

Stands for `rpc/grpc_state.h` (RPCState).

Rules: bytes go in and come out, so a stub knows nothing of gRPC. An error of the other end is raised as it is;
one that is only the connection's says whose. A call that found nobody is made once more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.cluster import handshake
from dtflab.cluster.connection import Connection, connect
from dtflab.cluster.grpc_transport import ASKS, CLOSED, GIVEN_UP, UNPROVEN
from dtflab.cluster.silence import LOOKOUT, Tell
from dtflab.cluster.tensor_codec import Buffer, Pieces
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL, Pool
from dtflab.machine.console import listener

if TYPE_CHECKING:
    from dtflab.cluster.link import Link
    from dtflab.cluster.task import Task

Answered = Callable[[Buffer, errors.OpError | None], object]  # with the answer, or its error

# gRPC's words: it failed to connect; a connection that was made was of no use; the call met a server as it stops (a
# caller that gives up says more).
_NEVER_SENT = "failed to connect"
_NO_USE = ("Socket closed", "reset by peer", "handshake failed", "verification check failed")
_CUT_OFF = "CANCELLED"
_pool = Pool(REAL, name="opening links")


class Wire:
    """The way of one stub to one address."""

    def __init__(self, address: str, credentials: Credentials, who: str = "", own: Task | None = None) -> None:
        self.address = address
        self._who = who
        self._connection: Connection | None = connect(address, credentials, own)
        self._connection.names.add(who)

    @property
    def task(self) -> str:
        """The task that lives there, as far as known."""
        return self._connection.task if self._connection is not None else self._who

    @task.setter
    def task(self, name: str) -> None:
        self._open().task = name

    def close(self) -> None:
        """Let the connection go; later calls raise CancelledError."""
        self._connection = None

    def _open(self) -> Connection:
        if self._connection is None:
            raise errors.CancelledError.of(f"The connection to {self._peer()} was closed.")
        return self._connection

    @property
    def link(self) -> Link | None:
        """The connection over which the other end can push, if there is one."""
        return None if self._connection is None else self._connection.link

    def call(self, path: str, request: Pieces, timeout: float | None = None) -> Buffer:
        """Ask and wait for the answer. Raises a class of `errors`."""
        connection = self._open()
        LOOKOUT.uses(connection)
        answer: Buffer
        if (link := connection.link) is not None:
            code, text, answer = link.ask(path, request, timeout, listener())
            if code:
                raise self._failed(code, text)
            return answer
        if connection.is_silent:
            connection.ping()
            raise self.lost(connection.gave_up)
        token = object()
        connection.calls[token] = listener()
        try:
            code, text, answer = connection.channel.ask(path, b"".join(request), timeout)
        finally:
            del connection.calls[token]
        if code:
            raise self.failed_over_grpc(code, text)
        connection.open_link()
        return answer

    def start(
        self, path: str, request: Pieces, done: Answered | None = None, tell: Tell | None = None
    ) -> Callable[[], object]:
        """Ask; `done(answer, error)` comes later, on any thread. The result gives up waiting.

        `tell` takes the news of a call that somebody waits for.
        """
        connection, done = self._open(), done or _nothing
        LOOKOUT.uses(connection)
        if (link := connection.link) is not None:
            return link.request(path, request, partial(self._answered, done), tell)
        if connection.is_silent:
            connection.ping()
            done(b"", self.lost(connection.gave_up))
            return _do_nothing
        return _Started(self, connection, path, b"".join(request), done, tell).cancel

    def expect(self) -> None:
        """Note that the other end is awaited: it will push."""
        LOOKOUT.uses(self._open())

    def tell(self, path: str, request: Pieces) -> None:
        """Ask for what takes no time, and whose answer nobody needs; perhaps only with the next call."""
        if (link := self.link) is not None:
            link.tell(path, request)
        else:
            self.start(path, request)

    def _answered(self, done: Answered, code: int, text: str, answer: Buffer) -> None:
        done(answer, self._failed(code, text) if code else None)

    def lost(self, why: str) -> errors.OpError:
        """The error of what was awaited from an end that is lost."""
        return self._failed(errors.UNAVAILABLE, why)

    def failed_over_grpc(self, code: int, text: str) -> errors.OpError:
        """The error of a call that failed over gRPC; its own words are replaced by reasons."""
        if code == errors.CANCELLED and text == GIVEN_UP:
            return errors.CancelledError.of(f"The call to {self._peer()} was cancelled.")
        if code == errors.CANCELLED and text == _CUT_OFF:
            code, text = errors.UNAVAILABLE, "it ended while the call was on its way"
        connection = self._connection
        if code == errors.CANCELLED and CLOSED in text and connection is not None:  # of a stream: within other words
            code, text = errors.UNAVAILABLE, connection.gave_up or text
        if code == errors.UNAVAILABLE and connection is not None:
            connection.may_link = connection.could_link()  # another program may come up there
            was_made = _NEVER_SENT in text and any(words in text for words in _NO_USE)
            if was_made and (why := handshake.mismatch(self.address, connection.credentials, self._own())):
                return errors.UnauthenticatedError.of(f"{self._peer()} can't be used: {why}")
        if code == errors.UNAUTHENTICATED:
            text = self._refused(text)
        return self._failed(code, text)

    def _own(self) -> str:
        """The task here that asks; "" for a client."""
        own = None if self._connection is None else self._connection.own
        return "" if own is None else device_spec.plain(own.name)

    def _refused(self, text: str) -> str:
        """Why the token of this end and of the other one do not fit, and which end to start with another."""
        own = self._own()
        if text == UNPROVEN:
            return (
                f"{self._peer()} can't be used: it does not prove that it has the token that {handshake.asking(own)} "
                "has. It has another one or none, a tunnel leads to it from another port, or the address is another "
                "program's by now (docs/security.md). All tasks of a cluster and its sessions need one token. "
                + handshake.give(own)
            )
        if own and (found := text.partition(ASKS))[1]:
            return f"{found[0]}{ASKS}, and {own} has shown none that fits. {handshake.give(own)}"
        return text

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
    """A call under way over gRPC. If nobody was there it is made once more, over a connection of its own.

    For gRPC says what it met when it last tried, up to a second ago, and the task may have come up since: the first
    thing that a new task does may be a step in which the others pull from it.
    """

    def __init__(
        self, wire: Wire, connection: Connection, path: str, request: bytes, done: Answered, tell: Tell | None
    ) -> None:
        self._wire, self._path, self._request, self._done, self._tell = wire, path, request, done, tell
        self._is_given_up = False
        self._attempts: list[Callable[[], object]] = []  # give up one each
        self._ask(connection, self._ended_at_first)

    def _ask(self, connection: Connection, ended: Callable[[int, str, bytes], None]) -> None:
        self._connection = connection
        LOOKOUT.uses(connection)
        connection.calls[self] = self._tell
        self._attempts.append(connection.channel.request(self._path, self._request, ended))
        if self._is_given_up:  # meanwhile
            self.cancel()

    def _ended_at_first(self, code: int, text: str, answer: bytes) -> None:
        if not (code == errors.UNAVAILABLE and _NEVER_SENT in text):
            self._ended(code, text, answer)
            return
        met = self._connection
        met.calls.pop(self, None)
        self._ask(Connection(met.address, met.credentials, met.own), self._ended)

    def _ended(self, code: int, text: str, answer: bytes) -> None:
        self._connection.calls.pop(self, None)
        if not code:
            _pool.submit(self._connection.open_link)
        self._done(answer, self._wire.failed_over_grpc(code, text) if code else None)

    def cancel(self) -> None:
        """Give up waiting."""
        self._is_given_up = True
        for give_up in self._attempts:
            give_up()

"""Link: one connection between two processes of dtflab, over which both of them ask, whichever opened it.

Stands for nothing in TensorFlow, where each direction has a gRPC channel of its own.

Rules: what crosses are the messages that gRPC would carry, by the same names; the answer to a RecvTensor may come
without having been asked for, if each end knows which task the other one is. The thread that reads waits for nothing
else: it hands answers on, and says at once that it is there; a request it answers itself, and before it waits for
something, or when that takes long, another thread takes its place. A large body lies in shared memory, if both ends
have that. A lost connection ends every call that it carried.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from dtflab.base import errors
from dtflab.cluster.answering import Answer, ServerCall
from dtflab.cluster.outbox import FD, Handed, Outbox
from dtflab.cluster.shared_memory import LARGE, Arriving, Leaving, close_file
from dtflab.cluster.silence import Tell
from dtflab.cluster.tensor_codec import Buffer
from dtflab.machine.clock import REAL, Pool, before_waiting

Answered = Callable[[int, str, Buffer], object]  # with a code of `errors` (0: well), its text, the answer

_FRAME = struct.Struct("<QQIB")  # bytes of its body, number of the call or step, bytes of its path or key, kind
(_REQUEST, _ANSWER, _ERROR, _CANCEL, _TELL, _PUSH, _PUSH_TO_ME, _LOSE, _SEGMENT, _FREED, _REFUSED, _DROPPED) = range(12)
(_PING, _PONG, _NEWS) = range(12, 15)
_SHARED = 1 << 7  # added to the kind: the body lies in a segment, and here are its number and size
_IN_SEGMENT = struct.Struct("<QQ")
_ROOM = getattr(socket, "CMSG_LEN", int)(FD.size)  # for the file that comes with a frame
_PLENTY = 1 << 20  # bytes; as much as that does not wait for more
_CODE = struct.Struct("<I")  # at the beginning of an error, before its text
_BUFFER = 1 << 16
_LONG = 0.005  # seconds
_QUIET = 100

_MOST_NEWS = 1000  # letters
_NOBODY: tuple[None, None] = (None, None)  # waits for that answer

_pool = Pool(REAL, name="link")


class End(Protocol):
    """One of the two processes, as its link calls it."""

    def answer(self, path: str, request: Buffer, call: ServerCall) -> Answer:
        """Answer a request for the method of that path; it may wait."""

    def knows(self, address: str) -> bool:
        """Whether a task of its cluster is at that address."""

    def push_over(self, link: Link) -> None:
        """Send what is for the task at the other end over the link as soon as it is there."""

    def pushed(self, step_id: int, key: str, tensor: Buffer) -> None:
        """Keep a tensor (`tensor_codec.framed`) for the consumer of that key."""

    def lose(self, step_id: int, key: str) -> None:
        """Fail the consumer of a tensor that was pushed over an earlier link, and does not come again."""


class Link:
    """A connection, from `open` until it is lost or closed. `peer` is the address of the task at the other end.

    It is "" for a client, or for one that could not show which task it is. `is_known` says that the other end knows
    which task is here, so that it can push. `shares` is false if large bodies must not lie in shared memory.
    """

    def __init__(
        self, connection: socket.socket, end: End, peer: str, *, is_known: bool = False, shares: bool = True
    ) -> None:
        self.peer = peer
        self.is_known = is_known
        self.lost = ""  # why, once it is
        self._socket = connection
        self._incoming = _Incoming(connection)
        self._stream = io.BufferedReader(self._incoming, _BUFFER)
        self._end = end
        self._numbers = itertools.count(1)
        # Re-entrant: the collector may close a link on the thread that holds it.
        self._lock = threading.RLock()  # over what is asked, answered and lost
        self._asked: dict[int, tuple[Answered, Tell | None]] = {}
        self._answering: dict[int, ServerCall] = {}
        self._outbox = Outbox(connection)
        self._read: deque[int] = deque()  # segments that nobody here reads any more
        self._leaving = _leaving(connection) if shares else None
        self._arriving = Arriving(self._read.append)
        self._on_lost: list[Callable[[str], object]] = []

    def open(self) -> None:
        """Begin to read."""
        _pool.submit(self._listen)

    # -- asking -------------------------------------------------------------------------------------------------

    def request(
        self, path: str, request: Sequence[Buffer], done: Answered, tell: Tell | None = None
    ) -> Callable[[], object]:
        """Ask; `done(code, text, answer)` comes later, on any thread. The result gives up waiting.

        `tell` takes the news of a call that somebody waits for.
        """
        number = next(self._numbers)
        try:
            self._request(number, path, request, done, tell)
        except BaseException:  # a Ctrl-C
            self._give_up(number)
            raise
        return partial(self._give_up, number)

    def _request(self, number: int, path: str, request: Sequence[Buffer], done: Answered, tell: Tell | None) -> None:
        with self._lock:
            lost = self.lost
            if not lost:
                self._asked[number] = done, tell
        if lost:
            done(errors.UNAVAILABLE, lost, b"")
        else:
            self._send(_REQUEST, number, request, path.encode())

    def ask(
        self, path: str, request: Sequence[Buffer], timeout: float | None = None, tell: Tell | None = None
    ) -> tuple[int, str, Buffer]:
        """Ask and wait. After `timeout` seconds, or a Ctrl-C, the other end learns that nobody waits."""
        arrived, answers = REAL.event(), list[tuple[int, str, Buffer]]()

        def done(code: int, text: str, answer: Buffer) -> None:
            answers.append((code, text, answer))
            arrived.set()

        number = next(self._numbers)
        try:
            self._request(number, path, request, done, tell)
            if not arrived.wait(timeout):
                return errors.DEADLINE_EXCEEDED, f"after {timeout:g} s", b""
            return answers[0]
        finally:
            self._give_up(number)

    def _give_up(self, number: int) -> None:
        with self._lock:
            done, _ = self._asked.pop(number, _NOBODY)
        if done is not None:
            self._send(_CANCEL, number)
            done(errors.CANCELLED, "the caller has given up", b"")

    def tell(self, path: str, request: Sequence[Buffer]) -> None:
        """Ask for what takes no time and has no answer; it goes with what is sent next."""
        self._put(_TELL, 0, request, path.encode())

    def push(self, step_id: int, key: str, tensor: Sequence[Buffer]) -> Callable[[], object]:
        """Put a tensor that the other end will need into the outbox; the result sends it off."""
        self._put(_PUSH, step_id, tensor, key.encode())
        if self._outbox.held >= _PLENTY:
            self.send_off()
        return self.send_off

    def lose(self, step_id: int, key: str) -> None:
        """Say that a tensor was pushed over an earlier link."""
        self._send(_LOSE, step_id, path=key.encode())

    def push_to_me(self) -> None:
        """Ask the other end to push what is for the task here."""
        self._send(_PUSH_TO_ME, 0)

    def ping(self) -> None:
        """Ask the other end whether it is there; the answer is among its `signs`."""
        self._send(_PING, 0)

    @property
    def signs(self) -> tuple[int, int]:
        """Bytes that have come, and bytes that the connection took only after it was full: both need a live reader."""
        return self._incoming.received, self._outbox.taken_late

    def awaiting(self) -> list[Tell]:
        """How to tell those who wait for an answer."""
        return [tell for _, tell in list(self._asked.values()) if tell is not None]

    def on_lost(self, callback: Callable[[str], object]) -> None:
        """Call `callback(why)` once the link is lost; at once if it is."""
        with self._lock:
            lost = self.lost
            if not lost:
                self._on_lost.append(callback)
        if lost:
            callback(lost)

    # -- sending ------------------------------------------------------------------------------------------------

    def _send(self, kind: int, number: int, body: Sequence[Buffer] = (), path: bytes = b"") -> None:
        self._put(kind, number, body, path)
        self.send_off()

    def _put(self, kind: int, number: int, body: Sequence[Buffer] = (), path: bytes = b"") -> None:
        size, leaving = sum(map(len, body)), self._leaving
        frames: list[Buffer | Handed] = []
        if leaving is not None and size >= LARGE:
            if (segment := leaving.filled(body)) is not None:
                body, kind = [_IN_SEGMENT.pack(segment, size)], kind | _SHARED
            elif (offer := leaving.offer(size)) is not None:  # for the next one: here it may yet be refused
                frames.append(Handed(_FRAME.pack(0, offer.number, 0, _SEGMENT), offer.fd))
        carried = sum(map(len, body))
        self._outbox.put([*frames, _FRAME.pack(carried, number, len(path), kind) + path, *body], size)

    def send_off(self) -> None:
        """Send what is in the outbox; what the connection does not take now is sent by another thread."""
        with contextlib.suppress(IndexError):
            while self._read:
                self._outbox.put([_FRAME.pack(0, self._read.popleft(), 0, _FREED)])
        self._outbox.send_off()

    # -- reading ------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Read and answer what is asked, until another thread has taken this one's place."""
        is_mine = True
        while is_mine and (answers := self._next_request()) is not None:
            with _Place(self._listen) as place:
                answers()
            del answers  # and the request, while nothing comes
            is_mine = place.is_mine

    def _next_request(self) -> Callable[[], None] | None:
        """Take note of what comes, up to the next request. The result answers that; None: the connection has ended."""
        try:
            while True:
                answers = self._arrived(*self._next_frame())
                if answers is not None:
                    return answers
        except EOFError:
            self._end_reading("the connection was closed")
        except OSError as error:
            self._end_reading(f"the connection was lost: {error}")
        except Exception as error:  # whatever a broken or malicious end can cause
            self._end_reading(f"what came can't be read: {error!r}")
        return None

    def _end_reading(self, why: str) -> None:
        self.close(why)
        self._stream.close()
        self._socket.close()  # not earlier: another file could get its number while this thread reads
        self._arriving = Arriving(self._read.append)  # a lost link that is still referred to has no segments

    def _next_frame(self) -> tuple[int, int, str, Buffer]:
        """The next frame's kind, number, path and body; EOFError at the end."""
        stream = self._stream
        head = stream.read(_FRAME.size)
        if len(head) < _FRAME.size:
            raise EOFError
        size, number, length, kind = _FRAME.unpack(head)
        path = stream.read(length).decode()
        body: Buffer = stream.read(size)
        if len(body) < size:
            raise EOFError
        if kind & _SHARED:
            if self._read:  # else a task that has nothing to send would keep all that comes
                self.send_off()
            body = self._arriving.message(*_IN_SEGMENT.unpack(body))
        return kind & ~_SHARED, number, path, body

    def _arrived(self, kind: int, number: int, path: str, body: Buffer) -> Callable[[], None] | None:
        """Take note of a frame; the result answers a request."""
        if kind == _REQUEST:
            call = self._answering[number] = ServerCall(tell=partial(self._send_news, number))
            if self.lost:  # meanwhile, and `close` may not have seen the call
                call.gone()
            return partial(self._answer, number, path, body, call)
        if kind in (_PUSH, _LOSE, _PUSH_TO_ME) and not self.peer:
            raise ValueError("a push from no task")
        if kind == _PUSH:
            self._end.pushed(number, path, body)
        elif kind in (_ANSWER, _ERROR):
            self._answered(number, kind == _ERROR, body)
        elif kind == _TELL:
            self._end.answer(path, body, ServerCall())
        elif kind == _CANCEL:
            with self._lock:
                given_up = self._answering.get(number)
            if given_up is not None:
                given_up.gone()
        elif kind == _LOSE:
            self._end.lose(number, path)
        elif kind == _PING:
            self._send(_PONG, 0)
        elif kind == _NEWS:
            self._told(number, str(body, "utf-8", "replace"))
        elif kind == _PUSH_TO_ME:
            self._end.push_over(self)
        elif kind != _PONG:
            self._segment(kind, number)
        return None

    def _segment(self, kind: int, number: int) -> None:
        """Take note of what becomes of a segment."""
        if kind == _SEGMENT:
            taken = self._arriving.take(number, self._incoming.files.popleft())
            self._send(_FREED if taken else _REFUSED, number)
        elif kind == _DROPPED:
            self._arriving.drop(number)
        elif kind == _REFUSED and self._leaving is not None:
            self._leaving.refused(number)
        elif kind == _FREED and self._leaving is not None:
            for dropped in self._leaving.freed(number):
                self._put(_DROPPED, dropped)
        else:
            raise ValueError(f"a frame of kind {kind}")

    def _answered(self, number: int, failed: bool, body: Buffer) -> None:
        with self._lock:
            done, _ = self._asked.pop(number, _NOBODY)
        if done is None:
            return
        if failed:
            (code,) = _CODE.unpack_from(body)
            done(code, str(body[_CODE.size :], "utf-8", "replace"), b"")
        else:
            done(0, "", body)

    def _send_news(self, number: int, line: str) -> None:
        """Tell the caller of a call something while it waits."""
        self._send(_NEWS, number, [line.encode()])

    def _told(self, number: int, line: str) -> None:
        """Pass on what the other end says about a call: one line, and nothing that a terminal would obey."""
        _, tell = self._asked.get(number, _NOBODY)
        if tell is not None:
            tell("".join(letter if letter.isprintable() else " " for letter in line[:_MOST_NEWS]))

    def _answer(self, number: int, path: str, request: Buffer, call: ServerCall) -> None:
        code, text, answer = self._end.answer(path, request, call)
        del request
        if code:
            self._send(_ERROR, number, [_CODE.pack(code), text.encode()])
        else:
            self._send(_ANSWER, number, answer)
        with self._lock:
            self._answering.pop(number, None)

    def leave(self) -> None:
        """Close a forked child's copy of the connection, which belongs to its parent."""
        self._socket.close()

    def settle(self, seconds: float) -> None:
        """Wait until no call is being answered here any more and all is sent, or some seconds."""
        self.send_off()
        end = REAL.now() + seconds
        while (self._answering or self._outbox.is_behind) and not self.lost and REAL.now() < end:
            REAL.sleep(0.005)

    # -- ending -------------------------------------------------------------------------------------------------

    def close(self, why: str = "the connection was closed") -> None:
        """End every call that it carries; harmless if it is lost already."""
        with self._lock:
            if self.lost:
                return
            self.lost = why
            asked = [done for done, _ in self._asked.values()]
            answering, on_lost = list(self._answering.values()), self._on_lost
            self._asked.clear()
            self._answering.clear()
            self._on_lost, self._leaving = [], None
        self._outbox.cut()
        for done in asked:
            done(errors.UNAVAILABLE, why, b"")
        for call in answering:  # to a task in the same step, that is a lost task and not a step that was cancelled
            call.gone(errors.UnavailableError.of(f"The connection of the caller is lost: {why}"))
        for callback in on_lost:
            callback(why)


class _Place:
    """The place of the thread that reads a link, while it answers a request: another thread reads once it is given up.

    That happens before the thread waits, and after `_LONG` seconds. Waking another thread for each request costs more
    than a short step.
    """

    def __init__(self, listen: Callable[[], None]) -> None:
        self._tokens = [listen]  # one; the thread that takes it out has decided who reads on
        self.is_mine = False  # once the request is answered: this thread reads on

    def __enter__(self) -> _Place:
        before_waiting(self.give_up)
        _watch.add(self)
        return self

    def give_up(self) -> None:
        """Let another thread read, unless one does; called by any thread."""
        with contextlib.suppress(IndexError):
            _pool.submit(self._tokens.pop())

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        before_waiting(None)
        _watch.discard(self)
        if kind is not None:
            self.give_up()
        elif self._tokens:
            with contextlib.suppress(IndexError):  # the watch was faster
                self._tokens.pop()
                self.is_mine = True


class _Watch:
    """A thread that gives up places after `_LONG` seconds; it runs while there are some."""

    def __init__(self) -> None:
        self._places: dict[_Place, None] = {}
        self._runs_in = 0  # the process that has the thread: a forked child has none
        self._lock = threading.Lock()

    def add(self, place: _Place) -> None:
        self._places[place] = None
        if self._runs_in != os.getpid():
            self._begin()

    def discard(self, place: _Place) -> None:
        self._places.pop(place, None)

    def _begin(self) -> None:
        with self._lock:
            begins, self._runs_in = self._runs_in != os.getpid(), os.getpid()
        if begins:
            _pool.submit(self._run)

    def _run(self) -> None:
        quiet = 0  # looks at which there was nothing
        while quiet < _QUIET:
            places = list(self._places)
            REAL.sleep(_LONG)
            for place in places:
                if place in self._places:
                    place.give_up()
            quiet = 0 if places else quiet + 1
        self._runs_in = 0
        if self._places:  # meanwhile
            self._begin()


_watch = _Watch()


def hands_over_files(connection: socket.socket) -> bool:
    """True for a Unix socket: its other end is on this machine."""
    return connection.family == getattr(socket, "AF_UNIX", None)


def _leaving(connection: socket.socket) -> Leaving | None:
    """The segments for the other end; None if it is on another machine, or gone."""
    if hands_over_files(connection):
        return Leaving()
    try:
        is_near = connection.getpeername()[0] == connection.getsockname()[0]
    except OSError:
        return None
    return Leaving("no Unix socket joins the two processes") if is_near else None


class _Incoming(io.RawIOBase):
    """The bytes that come over a connection, and the open files that came with them."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._hands_over = hands_over_files(connection)
        self.received = 0  # bytes
        self.files: deque[int] = deque()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._hands_over:
            size = self._socket.recv_into(buffer)
            self.received += size
            return size
        size, ancillary, flags, _ = self._socket.recvmsg_into([buffer], _ROOM, socket.MSG_CMSG_CLOEXEC)
        self.received += size
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.files.extend(fd for (fd,) in FD.iter_unpack(data))
        if flags & socket.MSG_CTRUNC:  # this process can't have more files
            self.files.append(-1)
        if len(self.files) > 1:
            raise OSError("open files came without their frames")
        return size

    def close(self) -> None:
        while self.files:
            close_file(self.files.popleft())
        super().close()

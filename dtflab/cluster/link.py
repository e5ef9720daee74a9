"""Link: one connection between two processes of dtflab, over which both of them ask, whichever opened it.

Stands for nothing in TensorFlow, where each direction has a gRPC channel of its own.

Rules: what crosses are the messages that gRPC would carry, by the same names; the answer to a RecvTensor may come
without having been asked for. The thread that reads waits for nothing else: it hands answers on; a request it answers
itself, after another thread has taken its place. Nobody waits to send: another thread sends what the connection does
not take at once. Frames that are put into the outbox together travel together. A large body lies in shared memory, if
both ends see that. A lost connection ends every call that it carried.
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
from typing import Any, NamedTuple, Protocol

from dtflab.base import errors
from dtflab.cluster.answering import Answer, ServerCall
from dtflab.cluster.shared_memory import Arriving, Leaving
from dtflab.cluster.tensor_codec import Buffer
from dtflab.machine.clock import REAL, Pool

Answered = Callable[[int, str, Buffer], object]  # with a code of `errors` (0: well), its text, the answer

_FRAME = struct.Struct("<QQIB")  # bytes of its body, number of the call or step, bytes of its path or key, kind
(_REQUEST, _ANSWER, _ERROR, _CANCEL, _TELL, _PUSH, _PUSH_TO, _LOSE, _SEGMENT, _FREED, _DROPPED) = range(11)
_SHARED = 1 << 7  # added to the kind: the body lies in a segment, and here are its number and size
_IN_SEGMENT = struct.Struct("<QQ")
_FD = struct.Struct("i")
_ROOM = getattr(socket, "CMSG_SPACE", int)(8 * _FD.size)  # for files that come at once
_PLENTY = 1 << 20  # bytes; as much as that does not wait for more
_CODE = struct.Struct("<I")  # at the beginning of an error, before its text
_AT_ONCE = getattr(socket, "MSG_DONTWAIT", None)  # Windows has none: there a thread sends everything
_MOST_PIECES = 1000  # that one system call takes
_BUFFER = 1 << 16

_pool = Pool(REAL, name="link")


class End(Protocol):
    """One of the two processes, as its link calls it."""

    def answer(self, path: str, request: Buffer, call: ServerCall) -> Answer:
        """Answer a request for the method of that path; it may wait."""

    def push_to(self, task: str, link: Link) -> None:
        """Send what is for `task` over the link as soon as it is there."""

    def pushed(self, step_id: int, key: str, tensor: Buffer) -> None:
        """Keep a tensor (`tensor_codec.framed`) for the consumer of that key."""

    def lose(self, step_id: int, key: str) -> None:
        """That tensor was pushed over an earlier link, and does not come again."""


class _Handed(NamedTuple):
    """A frame that goes with an open file."""

    frame: bytes
    fd: int


class Link:
    """A connection, from `open` until it is lost or closed. `peer` is what messages call the other end.

    `shares` is false if large bodies must not lie in shared memory.
    """

    def __init__(self, connection: socket.socket, end: End, peer: str, shares: bool = True) -> None:
        self.peer = peer
        self.lost = ""  # why, once it is
        self._socket = connection
        self._incoming = _Incoming(connection)
        self._stream = io.BufferedReader(self._incoming, _BUFFER)
        self._end = end
        self._process = os.getpid()  # a forked child has a copy of this link, and of its connection
        self._numbers = itertools.count(1)
        # Re-entrant: the collector may close a link on the thread that holds them.
        self._lock = threading.RLock()  # over what is asked, answered and lost
        self._asked: dict[int, Answered] = {}
        self._answering: dict[int, ServerCall] = {}
        self._sending = threading.RLock()  # over the next four
        self._outbox: deque[Buffer | _Handed] = deque()  # what the connection has not taken yet
        self._held = 0  # bytes there that nobody has asked to be sent off
        self._is_behind = False  # a thread is sending that
        self._read: deque[int] = deque()  # segments that nobody here reads any more
        self._leaving = Leaving() if shares and hands_over_files(connection) else None
        self._arriving = Arriving(self._read.append)
        self._on_lost: list[Callable[[str], object]] = []

    def open(self) -> None:
        """Begin to read."""
        _pool.submit(self._listen)

    # -- asking -------------------------------------------------------------------------------------------------

    def request(self, path: str, request: Sequence[Buffer], done: Answered) -> Callable[[], object]:
        """Ask; `done(code, text, answer)` comes later, on any thread. The result gives up waiting."""
        number = next(self._numbers)
        with self._lock:
            lost = self.lost
            if not lost:
                self._asked[number] = done
        if lost:
            done(errors.UNAVAILABLE, lost, b"")
        else:
            self._send(_REQUEST, number, request, path.encode())
        return partial(self._give_up, number)

    def ask(self, path: str, request: Sequence[Buffer], timeout: float | None = None) -> tuple[int, str, Buffer]:
        """Ask and wait. After `timeout` seconds, or a Ctrl-C, the other end learns that nobody waits."""
        arrived, answers = REAL.event(), list[tuple[int, str, Buffer]]()

        def done(code: int, text: str, answer: Buffer) -> None:
            answers.append((code, text, answer))
            arrived.set()

        give_up = self.request(path, request, done)
        try:
            if not arrived.wait(timeout):
                return errors.DEADLINE_EXCEEDED, f"after {timeout:g} s", b""
            return answers[0]
        finally:
            give_up()

    def _give_up(self, number: int) -> None:
        with self._lock:
            done = self._asked.pop(number, None)
        if done is not None:
            self._send(_CANCEL, number)
            done(errors.CANCELLED, "the caller has given up", b"")

    def tell(self, path: str, request: Sequence[Buffer]) -> None:
        """Ask for what takes no time and has no answer; it goes with what is sent next."""
        self._put(_TELL, 0, request, path.encode())

    def push(self, step_id: int, key: str, tensor: Sequence[Buffer]) -> Callable[[], object]:
        """Put a tensor that the other end will need into the outbox; the result sends it off."""
        self._put(_PUSH, step_id, tensor, key.encode())
        if self._held >= _PLENTY:
            self.send_off()
        return self.send_off

    def lose(self, step_id: int, key: str) -> None:
        """Say that a tensor was pushed over an earlier link."""
        self._send(_LOSE, step_id, path=key.encode())

    def push_to(self, task: str) -> None:
        """Ask the other end to push what is for `task`, which is here."""
        self._send(_PUSH_TO, 0, path=task.encode())

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
        segment = leaving.filled(body, size) if leaving is not None else None
        frames: list[Buffer | _Handed] = []
        if segment is not None:
            if segment.fd >= 0:
                frames.append(_Handed(_FRAME.pack(0, segment.number, 0, _SEGMENT), segment.fd))
            body, kind = [_IN_SEGMENT.pack(segment.number, size)], kind | _SHARED
        carried = sum(map(len, body))
        frames += [_FRAME.pack(carried, number, len(path), kind) + path, *body]
        with self._sending:
            self._outbox.extend(frames)
            self._held += size
            if self.lost:
                self._forget()

    def send_off(self) -> None:
        """Send what is in the outbox; what the connection does not take now is sent by another thread."""
        try:
            with self._sending:
                while self._read:
                    self._outbox.append(_FRAME.pack(0, self._read.popleft(), 0, _FREED))
                self._held = 0
                if self._is_behind or not self._outbox:
                    return
                self._send_at_once()
                self._is_behind = late = bool(self._outbox)
            if late:
                _pool.submit(self._send_the_rest)
        except OSError:
            self._cut()
        except BaseException:  # a Ctrl-C, perhaps within a frame
            self._cut()
            raise

    def _send_at_once(self) -> None:
        while self._outbox and _AT_ONCE is not None:
            pieces, fd = self._next_pieces()
            try:
                rest = self._sent(pieces, fd, _AT_ONCE)
            except BlockingIOError:
                self._outbox.extendleft([_Handed(bytes(pieces[0]), fd)] if fd >= 0 else reversed(pieces))
                return
            if rest:
                self._outbox.extendleft(reversed(rest))
                return

    def _next_pieces(self) -> tuple[list[Buffer], int]:
        """The pieces that one system call sends, and the file that goes with them, or -1."""
        pieces: list[Buffer] = []
        while self._outbox and len(pieces) < _MOST_PIECES:
            piece = self._outbox[0]
            if isinstance(piece, _Handed):
                if not pieces:
                    self._outbox.popleft()
                    return [piece.frame], piece.fd
                break
            pieces.append(piece)
            self._outbox.popleft()
        return pieces, -1

    def _sent(self, pieces: list[Buffer], fd: int, flags: int = 0) -> list[Buffer]:
        """Send what the connection takes, and return the rest."""
        try:
            files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _FD.pack(fd))] if fd >= 0 else ()
            sent = self._socket.sendmsg(pieces, files, flags)
        except BlockingIOError:
            raise
        except OSError:
            _close(fd)
            raise
        _close(fd)
        for n, piece in enumerate(pieces):
            if sent < len(piece):
                return [memoryview(piece)[sent:], *pieces[n + 1 :]]
            sent -= len(piece)
        return []

    def _send_the_rest(self) -> None:
        while True:
            with self._sending:
                if not self._outbox:
                    self._is_behind = False
                    return
                pieces, fd = self._next_pieces()
            try:
                for piece in self._sent(pieces, fd) if fd >= 0 else pieces:
                    self._socket.sendall(piece)
            except OSError:
                self._cut()
                return

    def _cut(self) -> None:
        """Send nothing more; the thread that reads learns of it, and closes the connection."""
        with self._sending:
            self._forget()
        with contextlib.suppress(OSError):  # the other end was faster
            if self._process == os.getpid():
                self._socket.shutdown(socket.SHUT_RDWR)

    def _forget(self) -> None:
        """Send nothing of the outbox."""
        while self._outbox:
            piece = self._outbox.popleft()
            if isinstance(piece, _Handed):
                os.close(piece.fd)

    # -- reading ------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Read until a request comes; this thread answers it, and another one goes on to read."""
        answers: Callable[[], None] | None = None
        try:
            while answers is None:
                answers = self._arrived(*self._next_frame())
        except EOFError:
            self._end_reading("the connection was closed")
        except OSError as error:
            self._end_reading(f"the connection was lost: {error}")
        except Exception as error:  # whatever a broken or malicious end can cause
            self._end_reading(f"what came can't be read: {error!r}")
        else:
            _pool.submit(self._listen)
            answers()

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
            call = self._answering[number] = ServerCall()
            if self.lost:  # meanwhile, and `close` may not have seen the call
                call.gone()
            return partial(self._answer, number, path, body, call)
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
        elif kind == _PUSH_TO:
            self._end.push_to(path, self)
        elif kind == _SEGMENT:
            self._arriving.open(number, self._incoming.files.popleft())
        elif kind == _FREED and self._leaving is not None:
            for dropped in self._leaving.freed(number):
                self._put(_DROPPED, dropped)
        elif kind == _DROPPED:
            self._arriving.drop(number)
        return None

    def _answered(self, number: int, failed: bool, body: Buffer) -> None:
        with self._lock:
            done = self._asked.pop(number, None)
        if done is None:
            return
        if failed:
            (code,) = _CODE.unpack_from(body)
            done(code, str(body[_CODE.size :], "utf-8", "replace"), b"")
        else:
            done(0, "", body)

    def _answer(self, number: int, path: str, request: Buffer, call: ServerCall) -> None:
        code, text, answer = self._end.answer(path, request, call)
        del request
        if code:
            self._send(_ERROR, number, [_CODE.pack(code), text.encode()])
        else:
            self._send(_ANSWER, number, answer)
        with self._lock:
            self._answering.pop(number, None)

    def settle(self, seconds: float) -> None:
        """Wait until no call is being answered here any more and all is sent, or some seconds."""
        self.send_off()
        end = REAL.now() + seconds
        while (self._answering or self._is_behind) and not self.lost and REAL.now() < end:
            REAL.sleep(0.005)

    # -- ending -------------------------------------------------------------------------------------------------

    def close(self, why: str = "the connection was closed") -> None:
        """End every call that it carries; harmless if it is lost already."""
        with self._lock:
            if self.lost:
                return
            self.lost = why
            asked, answering, on_lost = list(self._asked.values()), list(self._answering.values()), self._on_lost
            self._asked.clear()
            self._answering.clear()
            self._on_lost, self._leaving = [], None
        self._cut()
        for done in asked:
            done(errors.UNAVAILABLE, why, b"")
        for call in answering:
            call.gone()
        for callback in on_lost:
            callback(why)


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def hands_over_files(connection: socket.socket) -> bool:
    """True for a Unix socket: its other end is on this machine."""
    return connection.family == getattr(socket, "AF_UNIX", None)


class _Incoming(io.RawIOBase):
    """The bytes that come over a connection, and the open files that came with them."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._hands_over = hands_over_files(connection)
        self.files: deque[int] = deque()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._hands_over:
            return self._socket.recv_into(buffer)
        size, ancillary, _, _ = self._socket.recvmsg_into([buffer], _ROOM, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.files.extend(fd for (fd,) in _FD.iter_unpack(data[: len(data) - len(data) % _FD.size]))
        return size

    def close(self) -> None:
        while self.files:
            os.close(self.files.popleft())
        super().close()

"""Outbox: what one end of a connection has to send.

Stands for nothing in TensorFlow, where gRPC has its own.

Rules: nobody waits to send: what the connection does not take at once, another thread sends. Frames that are put here
together travel together. A connection that failed within a frame is cut, and nothing more is sent over it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from dtflab.cluster.shared_memory import close_file
from dtflab.cluster.tensor_codec import Buffer
from dtflab.machine.clock import REAL, Pool

FD = struct.Struct("i")  # an open file, as it is handed over
_AT_ONCE = getattr(socket, "MSG_DONTWAIT", None)  # Windows has none: there a thread sends everything
_MOST_PIECES = 1000  # that one system call takes
_PART = 1 << 20  # bytes of a piece; after each it is noted that the other end reads

_pool = Pool(REAL, name="outbox")


class Handed(NamedTuple):
    """A frame that goes with an open file."""

    frame: bytes
    fd: int


class Outbox:
    """The frames that wait to be sent over a connection. `is_behind`: a thread is sending them.

    `taken_late` counts the bytes that it has sent.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.held = 0  # bytes that nobody has asked to be sent off
        self.is_behind = False
        self.taken_late = 0
        self._socket = connection
        self._process = os.getpid()  # a forked child has a copy of this outbox, and of its connection
        self._lock = threading.RLock()  # re-entrant: the collector may close a link on the thread that holds it
        self._frames: deque[Buffer | Handed] = deque()
        self._is_cut = False

    def put(self, frames: Sequence[Buffer | Handed], size: int = 0) -> None:
        """Have frames sent with the next ones; `size` is what they count as held."""
        with self._lock:
            self._frames.extend(frames)
            self.held += size
            if self._is_cut:
                self._forget()

    def send_off(self) -> None:
        """Send what is here; what the connection does not take now is sent by another thread."""
        try:
            with self._lock:
                self.held = 0
                if self.is_behind or not self._frames:
                    return
                self._send_at_once()
                self.is_behind = late = bool(self._frames)
            if late:
                _pool.submit(self._send_the_rest)
        except OSError:
            self.cut()
        except BaseException:  # a Ctrl-C, perhaps within a frame
            self.cut()
            raise

    def _send_at_once(self) -> None:
        while self._frames and _AT_ONCE is not None:
            pieces, fd = self._next_pieces()
            try:
                rest = self._sent(pieces, fd, _AT_ONCE)
            except BlockingIOError:
                self._frames.extendleft([Handed(bytes(pieces[0]), fd)] if fd >= 0 else reversed(pieces))
                return
            if rest:
                self._frames.extendleft(reversed(rest))
                return

    def _next_pieces(self) -> tuple[list[Buffer], int]:
        """The pieces that one system call sends, and the file that goes with them, or -1."""
        pieces: list[Buffer] = []
        while self._frames and len(pieces) < _MOST_PIECES:
            piece = self._frames[0]
            if isinstance(piece, Handed):
                if not pieces:
                    self._frames.popleft()
                    return [piece.frame], piece.fd
                break
            pieces.append(piece)
            self._frames.popleft()
        return pieces, -1

    def _sent(self, pieces: list[Buffer], fd: int, flags: int = 0) -> list[Buffer]:
        """Send what the connection takes, and return the rest."""
        try:
            files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, FD.pack(fd))] if fd >= 0 else ()
            sent = self._socket.sendmsg(pieces, files, flags)
        except BlockingIOError:
            raise
        except OSError:
            close_file(fd)
            raise
        close_file(fd)
        for n, piece in enumerate(pieces):
            if sent < len(piece):
                return [memoryview(piece)[sent:], *pieces[n + 1 :]]
            sent -= len(piece)
        return []

    def _send_the_rest(self) -> None:
        while True:
            with self._lock:
                if not self._frames:
                    self.is_behind = False
                    return
                pieces, fd = self._next_pieces()
            try:
                for piece in self._sent(pieces, fd) if fd >= 0 else pieces:
                    self._send_all(piece)
            except OSError:
                self.cut()
                return

    def _send_all(self, piece: Buffer) -> None:
        for start in range(0, len(piece), _PART):
            part = memoryview(piece)[start : start + _PART]
            self._socket.sendall(part)
            self.taken_late += len(part)

    def cut(self) -> None:
        """Send nothing more; the thread that reads learns of it, and closes the connection."""
        with self._lock:
            self._is_cut = True
            self._forget()
        with contextlib.suppress(OSError):  # the other end was faster
            if self._process == os.getpid():
                self._socket.shutdown(socket.SHUT_RDWR)

    def _forget(self) -> None:
        while self._frames:
            piece = self._frames.popleft()
            if isinstance(piece, Handed):
                os.close(piece.fd)

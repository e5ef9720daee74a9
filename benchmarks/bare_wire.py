"""A bare TCP connection between two Python processes, which no call from one to the other can beat without tricks."""

from __future__ import annotations

import socket
import struct
import threading

import numpy as np

_HEAD = struct.Struct("<QQ")  # how many bytes follow, and how many the answer has


class Wire:
    """A connection to a process that serves; both ends receive into memory that they use again."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._memory = np.zeros(1, np.uint8)

    def round_trip(self, sent: int, answered: int) -> None:
        """Send that many bytes, and wait for that many."""
        self._memory = _at_least(self._memory, max(sent, answered))
        _send(self._socket, _HEAD.pack(sent, answered), self._memory[:sent])
        _receive(self._socket, self._memory[:answered])


def serve(address: str) -> None:
    """Answer each connection on a thread of its own."""
    host, _, port = address.rpartition(":")
    listening = socket.create_server((host, int(port)))

    def accept() -> None:
        while True:
            threading.Thread(target=_answer, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def _answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    memory = np.zeros(1, np.uint8)
    while head := connection.recv(_HEAD.size, socket.MSG_WAITALL):
        received, answered = _HEAD.unpack(head)
        memory = _at_least(memory, max(received, answered))
        _receive(connection, memory[:received])
        _send(connection, b"", memory[:answered])


def _send(connection: socket.socket, head: bytes, body: np.ndarray) -> None:
    """One system call for what is small, and no copy of what is large."""
    if body.nbytes < 1 << 16:
        connection.sendall(head + body.tobytes())
    else:
        connection.sendall(head)
        connection.sendall(body)


def _receive(connection: socket.socket, memory: np.ndarray) -> None:
    rest = memoryview(memory)
    while rest:
        rest = rest[connection.recv_into(rest, 0, socket.MSG_WAITALL) :]


def _at_least(memory: np.ndarray, size: int) -> np.ndarray:
    return memory if memory.nbytes >= size else np.zeros(size, np.uint8)

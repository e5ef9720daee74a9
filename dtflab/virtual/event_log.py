"""EventLog: what happened in virtual time, line by line, and a hash that says whether two runs were the same.

Rule: a line names moments, devices, nodes and sizes, and nothing that differs from run to run: no ids, no addresses.
"""

from __future__ import annotations

import hashlib
from collections import deque

from dtflab.base.events import PROCESS, Happened, line_of

_BLOCK = 1000  # lines that are hashed at once
_Line = tuple[float, float, int, str, str, str, int]  # the fields of a Happened


class EventLog:
    """The last `size` events, in the order in which they were known; the hash is over all."""

    def __init__(self, size: int = 100_000) -> None:
        self._kept: deque[_Line] = deque(maxlen=size)  # plain tuples, which the garbage collector does not track
        self._new: list[_Line] = []  # not hashed yet
        self._hashed = 0
        self._hash = hashlib.sha256()

    def add(
        self, started: float, ended: float, step: int, what: str, where: str, target: str = "", nbytes: int = 0
    ) -> None:
        """Note what has ended, or is known to end then; only listeners need a Happened."""
        line = started, ended, step, what, where, target, nbytes
        self._kept.append(line)
        self._new.append(line)
        if PROCESS.happened:
            event = _event(*line)
            for hear in PROCESS.happened:
                hear(event)
        if len(self._new) == _BLOCK:
            self._take_in()

    @property
    def lines(self) -> list[Happened]:
        """The last of them."""
        return [_event(*line) for line in self._kept]

    @property
    def count(self) -> int:
        """How many things have happened."""
        return self._hashed + len(self._new)

    def hash(self) -> str:
        """SHA-256 of all lines so far, in hexadecimal: equal for equal runs, also on another machine."""
        self._take_in()
        return self._hash.hexdigest()

    def _take_in(self) -> None:
        self._hash.update("".join([f"{line_of(*line)}\n" for line in self._new]).encode())
        self._hashed += len(self._new)
        self._new.clear()


def _event(started: float, ended: float, step: int, what: str, where: str, target: str, nbytes: int) -> Happened:
    return Happened(started=started, ended=ended, step=step, what=what, where=where, target=target, nbytes=nbytes)

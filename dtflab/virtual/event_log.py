"""EventLog: what happened in virtual time, line by line, and a hash that says whether two runs were the same.

Rule: a line names moments, devices, nodes and sizes, and nothing that differs from run to run: no ids, no addresses.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import NamedTuple

from dtflab.virtual.engine import Engine


class Happened(NamedTuple):
    """A kernel ran on `where`, or a message of `nbytes` went to `target`; moments in virtual seconds."""

    started: float
    ended: float
    what: str
    where: str
    target: str = ""
    nbytes: int = 0

    def __str__(self) -> str:
        way = f"{self.where} -> {self.target} {self.nbytes} B" if self.target else self.where
        return f"{self.started:.9f} {self.ended:.9f} {self.what} {way}"


class EventLog:
    """The last `size` things that happened, in the order in which they ended; the hash is over all."""

    def __init__(self, engine: Engine, size: int = 100_000) -> None:
        self.count = 0
        self.lines: deque[Happened] = deque(maxlen=size)
        self._engine = engine
        self._hash = hashlib.sha256()

    def add(self, started: float, ended: float, what: str, where: str, target: str = "", nbytes: int = 0) -> None:
        """Note what has ended, or is known to end then."""
        line = Happened(started, ended, what, where, target, nbytes)
        self.count += 1
        self.lines.append(line)
        self._hash.update(f"{line}\n".encode())

    def hash(self) -> str:
        """SHA-256 of all lines so far, in hexadecimal: equal for equal runs, also on another machine."""
        return self._hash.hexdigest()

"""Shared memory: large messages between two processes of one machine, written once and read where they are.

Stands for nothing in TensorFlow, which copies them through gRPC.

Rules: a segment is anonymous memory, handed over as an open file on a Unix socket. It has no name that could be left
behind, and is gone with the last process that has it. One end writes, the other reads, and says when nobody there does
any more; then the segment is written again. It can't shrink, so nobody can be made to read where nothing is. Where a
segment can't be had, the message goes over the socket, and one line says so.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dtflab.machine.console import say

if sys.platform == "linux":
    import fcntl

_LEAST = 1 << 16  # bytes; less costs as much over the socket (measured)
_LONG = 1 << 20  # bytes; to copy less takes no longer than to get the interpreter back
_KEPT = 1 << 28  # bytes of free segments that an end keeps
_MOST = 100  # free segments that an end keeps, and others that it fills: each is an open file at both ends
_told = threading.Event()  # the line has been said


class Segment(NamedTuple):
    """Memory that this end has filled. `fd` is its file if the other end does not have it yet, else -1."""

    number: int
    size: int
    fd: int


class Leaving:
    """The segments that one end of a connection writes."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collector may free a segment on the thread that holds it
        self._memory: dict[int, mmap.mmap] = {}  # by number
        self._free: dict[int, None] = {}  # numbers, the longest unused first
        self._last = 0

    def filled(self, pieces: Sequence[bytes | memoryview], size: int) -> Segment | None:
        """A segment with these bytes; None if they are few, or no memory is to be had."""
        if size < _LEAST:
            return None
        number, fd = self._taken(size), -1
        if number is None:
            if len(self._memory) - len(self._free) >= _MOST:
                return None
            try:
                number, fd = self._made(size)
            except (OSError, AttributeError) as error:  # AttributeError: this system has no anonymous files
                _say_once(error)
                return None
        memory, at = memoryview(self._memory[number]), 0
        for piece in pieces:
            to = memory[at : at + len(piece)]
            if len(piece) < _LONG:
                to[:] = piece
            else:  # NumPy lets other threads run meanwhile
                np.copyto(np.frombuffer(to, np.uint8), np.frombuffer(piece, np.uint8))
            at += len(piece)
        return Segment(number, len(memory), fd)

    def _taken(self, size: int) -> int | None:
        with self._lock:
            fitting = [number for number in self._free if size <= len(self._memory[number]) <= 4 * size]
            if not fitting:
                return None
            number = fitting[-1]  # the one used last is perhaps still in the cache
            del self._free[number]
            return number

    def _made(self, size: int) -> tuple[int, int]:
        fd = os.memfd_create("dtflab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(fd, 0, size)  # an error now if memory is full, else a signal while it is written
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            memory = mmap.mmap(fd, size)
        except BaseException:
            os.close(fd)
            raise
        with self._lock:
            self._last += 1
            self._memory[self._last] = memory
            return self._last, fd

    def freed(self, number: int) -> list[int]:
        """The other end has read a segment. Returns the numbers of those that are given up."""
        dropped = []
        with self._lock:
            if number in self._memory:
                self._free[number] = None
            while len(self._free) > _MOST or sum(len(self._memory[n]) for n in self._free) > _KEPT:
                oldest = next(iter(self._free))
                del self._free[oldest], self._memory[oldest]
                dropped.append(oldest)
        return dropped


class Arriving:
    """The segments that one end of a connection reads; `freed(number)` is called when nobody reads one any more."""

    def __init__(self, freed: Callable[[int], object]) -> None:
        self._freed = freed
        self._memory: dict[int, mmap.mmap] = {}

    def open(self, number: int, fd: int) -> None:
        """Keep a segment that was handed over; ValueError if it could shrink."""
        try:
            if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
                raise ValueError("a segment that could shrink")
            self._memory[number] = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)

    def message(self, number: int, size: int) -> memoryview:
        """The first bytes of a segment, which stays as it is until they are let go; ValueError if it has fewer."""
        memory = self._memory.get(number)
        if memory is None or size > len(memory):
            raise ValueError(f"no segment {number} of {size} bytes")
        read = np.frombuffer(memory, np.uint8, size)
        weakref.finalize(read, self._freed, number).atexit = False
        return read.data

    def drop(self, number: int) -> None:
        """The other end has given up a segment."""
        self._memory.pop(number, None)


def _say_once(why: Exception) -> None:
    if not _told.is_set():
        _told.set()
        say(f"No shared memory is to be had ({why}), so large tensors go over sockets.")

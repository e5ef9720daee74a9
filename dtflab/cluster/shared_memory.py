"""Shared memory: large messages between two processes of one machine, written once and read where they are.

Stands for nothing in TensorFlow, which copies them through gRPC.

Rules: a segment is anonymous memory, handed over as an open file on a Unix socket. It has no name that could be left
behind, and is gone with the last process that has it. It is offered first, and used once the other end has taken it:
a refusal loses nothing. One end writes, the other reads, and says when nobody there does any more; then the segment is
written again. It can't shrink, so nobody can be made to read where nothing is. Where a segment can't be had, messages
go over the socket, and one line says so.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from dtflab.machine.console import say

if sys.platform == "linux":
    import fcntl
    import resource

LARGE = 1 << 16  # bytes; less costs as much over the socket (measured)
_LONG = 1 << 20  # bytes; to copy less takes no longer than to get the interpreter back
_KEPT = 1 << 28  # bytes of free segments that an end keeps; more if that is two, which large messages take in turns
_PART = 8  # segments may have one part in eight of a process's memory: when that is full, the process is ended
_MOST = 100  # free segments that an end keeps, and others that it offers or fills: each is an open file at both ends
_sizes: dict[int, int] = {}  # of the segments that this process has made
_told = threading.Event()  # the line has been said


class Offer(NamedTuple):
    """A new segment, and its open file."""

    number: int
    fd: int


class Leaving:
    """The segments that one end of a connection writes. `why_not` says why it can't have any."""

    def __init__(self, why_not: str = "") -> None:
        self._why_not = why_not
        self._lock = threading.RLock()  # the collector may free a segment on the thread that holds it
        self._memory: dict[int, mmap.mmap] = {}  # by number
        self._free: dict[int, None] = {}  # numbers, the longest unused first
        self._last = 0

    def filled(self, pieces: Sequence[bytes | memoryview]) -> int | None:
        """The number of a free segment that has these bytes now; None if none fits."""
        number = self._taken(sum(map(len, pieces)))
        if number is None:
            return None
        memory, at = memoryview(self._memory[number]), 0
        try:
            for piece in pieces:
                to = memory[at : at + len(piece)]
                if len(piece) < _LONG:
                    to[:] = piece
                else:  # NumPy lets other threads run meanwhile
                    np.copyto(np.frombuffer(to, np.uint8), np.frombuffer(piece, np.uint8))
                at += len(piece)
        except BaseException:  # a Ctrl-C
            self._free[number] = None
            raise
        return number

    def _taken(self, size: int) -> int | None:
        with self._lock:
            fitting = [number for number in self._free if size <= len(self._memory[number]) <= 4 * size]
            if not fitting:
                return None
            number = fitting[-1]  # the one used last is perhaps still in the cache
            del self._free[number]
            return number

    def offer(self, size: int) -> Offer | None:
        """A new segment, to be handed over; it is free once the other end has it. None if it can't be had."""
        if len(self._memory) - len(self._free) >= _MOST:
            return None
        if self._why_not:
            _say_once(self._why_not)
            return None
        try:
            fd, memory = _new_segment(size)
        except (OSError, AttributeError) as error:  # AttributeError: this system has no anonymous files
            _say_once(str(error))
            return None
        with self._lock:
            self._last += 1
            self._memory[self._last] = memory
            return Offer(self._last, fd)

    def freed(self, number: int) -> list[int]:
        """The other end has taken or read a segment. Returns the numbers of those that are given up."""
        dropped = []
        with self._lock:
            if number in self._memory:
                self._free[number] = None
            while len(self._free) > _MOST or (
                len(self._free) > 2 and sum(len(self._memory[n]) for n in self._free) > _KEPT
            ):
                oldest = next(iter(self._free))
                del self._free[oldest], self._memory[oldest]
                dropped.append(oldest)
        return dropped

    def refused(self, number: int) -> None:
        """The other end can't have a segment: it is given up, and no more are offered."""
        with self._lock:
            if number in self._free or self._memory.pop(number, None) is None:
                return
        self._why_not = "the other process can open no more files"
        _say_once(self._why_not)


class Arriving:
    """The segments that one end of a connection reads; `freed(number)` is called when nobody reads one any more."""

    def __init__(self, freed: Callable[[int], object]) -> None:
        self._freed = freed
        self._memory: dict[int, mmap.mmap] = {}

    def take(self, number: int, fd: int) -> bool:
        """Keep a segment that is offered, unless this process needs its files; ValueError if it could shrink."""
        try:
            _leave_others_enough(fd)
            if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
                raise ValueError("a segment that could shrink")
            self._memory[number] = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        except OSError:
            return False
        finally:
            close_file(fd)
        return True

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


def _new_segment(size: int) -> tuple[int, mmap.mmap]:
    fd = os.memfd_create("dtflab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _leave_others_enough(fd)
        if sum(list(_sizes.values())) + size > _most_bytes():
            raise OSError(errno.ENOMEM, f"a process may have {_most_bytes() >> 20} MB of it here")
        os.posix_fallocate(fd, 0, size)  # an error now if memory is full, else a signal while it is written
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        memory = mmap.mmap(fd, size)
        _sizes[id(memory)] = size
        weakref.finalize(memory, _sizes.pop, id(memory)).atexit = False
        return fd, memory
    except BaseException:
        os.close(fd)
        raise


@cache
def _most_bytes() -> int:
    """The bytes of segments that this process may make.

    Too much memory raises nothing in a container: the process is killed.
    """
    most = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for line in _text("/proc/self/cgroup").splitlines():
        group = PurePosixPath(line.split(":", 2)[2])
        for at in (group, *group.parents):
            for limit in (f"/sys/fs/cgroup{at}/memory.max", f"/sys/fs/cgroup/memory{at}/memory.limit_in_bytes"):
                with contextlib.suppress(ValueError):  # there is none
                    most.append(int(_text(limit)))
    return min(most) // _PART


def _text(path: str) -> str:
    """The text of a file of the system; "" if it can't be read."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _leave_others_enough(fd: int) -> None:
    """OSError if half of the files that this process may have are open, or the system had none for it (-1)."""
    if not 0 <= fd < resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def close_file(fd: int) -> None:
    """Close an open file; -1 stands for none."""
    if fd >= 0:
        os.close(fd)


def _say_once(why: str) -> None:
    if not _told.is_set():
        _told.set()
        say(f"Shared memory is not available ({why}); large tensors go over sockets instead, more slowly.")

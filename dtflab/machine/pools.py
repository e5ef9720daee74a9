"""Pools: the threads of a device. Inter-op threads run whole kernels, intra-op threads the parts of one.

Stands for `core/common_runtime/process_util.cc`, the thread pools of `direct_session.cc` and `local_device.cc`, and
`core/util/work_sharder.cc` (Shard). Left out: pinning threads to cores.

Rules: a kernel is cut in parts by its size and the number of intra-op threads, never by what else is going on, so a
result is the same whatever happens next to it. Part i is for thread i, unless that has not begun when the caller has
nothing else to do. Threads start when they are first needed, and end when they have had nothing to do for a while.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.machine.clock import REAL, Clock, Pool

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.protos.config_pb2 import ConfigProto, RunOptions, ThreadPoolOptionProto

MIN_COST_PER_SHARD = 200_000  # nanoseconds
HEAD_START = 60_000  # nanoseconds until another thread has begun and its results are seen; the first part is larger


# -- inside one kernel ----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A thread's share of a kernel, and when it ran."""

    started: float
    ended: float
    thread: Any


class _Here(threading.local):
    parts: list[Part] | None = None  # where `shard` notes its parts, if the kernel on this thread is traced


_here = _Here()


@contextmanager
def noted_parts() -> Iterator[list[Part]]:
    """The parts of the kernels that run in the block on this thread, once they have run."""
    parts: list[Part] = []
    _here.parts = parts
    try:
        yield parts
    finally:
        _here.parts = None


_NOT_ALL = nullcontext()


class IntraOpPool:
    """The threads on which the kernels of a device run in parts: as many as `threads`, with the one that calls.

    In virtual time, too, they compute at once: how long that takes in the model does not concern them.
    """

    def __init__(self, device: str, threads: int) -> None:
        self.threads = threads
        self._device = device
        self._workers: dict[int, Pool] = {}
        self._all = threading.Lock()

    @property
    def all_threads(self) -> float:
        """The nanoseconds from which on a kernel is cut in as many parts as there are threads."""
        return self.threads * MIN_COST_PER_SHARD if self.threads > 1 else math.inf

    def shard(self, total: int, cost_per_unit: float, work: Callable[[int, int], Any]) -> None:
        """Do `work(first, last)` for the units from 0 to `total`, in as many parts as that is worth.

        `cost_per_unit` is in nanoseconds on one thread. The first part runs on the caller's thread. Returns when all
        have ended. Raises the error of the first part that has one. Kernels that use all threads take turns: of two
        at once, one's last part would wait for the other's while a core is idle.
        """
        parts = min(self.threads, total, int(total * cost_per_unit / MIN_COST_PER_SHARD))
        if parts < 2:
            work(0, total)
            return
        with self._all if parts == self.threads else _NOT_ALL:
            _Shards(total, parts, HEAD_START / cost_per_unit, work).run([self._worker(i) for i in range(1, parts)])

    def _worker(self, number: int) -> Pool:
        if number not in self._workers:
            self._workers.setdefault(number, Pool(REAL, f"{self._device} intra-op {number}", limit=1))
        return self._workers[number]

    def close(self) -> None:
        """Let the threads end as soon as they have nothing to do."""
        for worker in self._workers.values():
            worker.close()


class _Shards:
    """The parts of one run of one kernel; the first one is larger than each of the others by `late` units."""

    def __init__(self, total: int, parts: int, late: float, work: Callable[[int, int], Any]) -> None:
        self._bounds = [0, *(total - round((total - late) * (parts - i) / parts) for i in range(1, parts)), total]
        self._work = work
        self._not_begun = set(range(parts))
        self._left = parts
        self._lock = threading.Lock()
        self._ended = REAL.event()
        self._errors: list[BaseException | None] = [None] * parts
        self._ran: dict[int, Part] = {}

    def run(self, workers: Sequence[Pool]) -> None:
        for i, worker in enumerate(workers, 1):
            worker.submit(functools.partial(self._part, i))
        for i in range(len(self._errors)):  # on busy cores, a thread may be late
            self._part(i)
        self._ended.wait()
        del self._work  # and its arrays: the other threads may be slow to forget this
        if _here.parts is not None:
            _here.parts += [self._ran[i] for i in range(len(self._errors))]
        for error in self._errors:
            if error is not None:
                raise error

    def _part(self, i: int) -> None:
        """Do part i, unless another thread has begun it."""
        with self._lock:
            if i not in self._not_begun:
                return
            self._not_begun.remove(i)
        started = REAL.now()
        try:
            with np.errstate(all="ignore"):
                self._work(self._bounds[i], self._bounds[i + 1])
        except BaseException as error:  # also a Ctrl-C in the first part: the others still write
            self._errors[i] = error
        finally:
            self._ran[i] = Part(started, REAL.now(), threading.current_thread())
            with self._lock:
                self._left -= 1
            if not self._left:
                self._ended.set()


def intra_op_threads(config: ConfigProto | None) -> int:
    """How many a ConfigProto asks for; as many as the machine has cores if it does not say."""
    return _threads(config.intra_op_parallelism_threads if config is not None else 0, "TF_NUM_INTRAOP_THREADS")


# -- next to each other ----------------------------------------------------------------------------------------


def inter_op_threads(config: ConfigProto | None) -> int:
    """How many a ConfigProto asks for; as many as the machine has cores if it does not say."""
    return _threads(config.inter_op_parallelism_threads if config is not None else 0, "TF_NUM_INTEROP_THREADS")


def _threads(asked: int, variable: str) -> int:
    return next((n for n in (asked, _from_environment(variable)) if n > 0), os.cpu_count() or 1)


def _from_environment(variable: str) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.removeprefix("-").isdecimal() else 0


class _OfTheProcess:
    """The pools that local sessions share: the one without a name, made by the first session, and the named ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._named: dict[str, tuple[int, Pool]] = {}

    def pool(self, config: ConfigProto | None, clock: Clock) -> Pool:
        """The one without a name; `config` counts only for the first session."""
        with self._lock:
            self._pool = self._pool or Pool(clock, "CPU inter-op", limit=inter_op_threads(config))
            return self._pool

    def named(self, name: str, asked: int, threads: int, clock: Clock) -> Pool:
        """The one of that name; InvalidArgumentError if it was first `asked` for with another number of threads."""
        with self._lock:
            before, pool = self._named.setdefault(name, (asked, Pool(clock, f"{name} inter-op", limit=threads)))
        if before != asked:
            raise errors.InvalidArgumentError.of(
                f"Pool {name} configured previously with num_threads={before}; cannot re-configure with "
                f"num_threads={asked}"
            )
        return pool


PROCESS = _OfTheProcess()


class SessionPools:
    """The inter-op pools of a local session, for its CPUs; `RunOptions.inter_op_thread_pool` names one by number.

    Without a word in the ConfigProto that is the process's pool, with as many threads as the first session wanted.
    """

    def __init__(self, config: ConfigProto | None, devices: Sequence[Device], clock: Clock = REAL) -> None:
        self._own: list[Pool] = []
        self._devices = devices
        self._on_callers_thread = False
        if config is not None and config.session_inter_op_thread_pool:
            asked = enumerate(config.session_inter_op_thread_pool)
            self.pools = [self._optional(number, options, config, clock) for number, options in asked]
        elif config is not None and config.use_per_session_threads:
            self.pools = [self._mine("CPU inter-op", inter_op_threads(config), clock)]
        else:
            self.pools = [PROCESS.pool(config, clock)]
            self._on_callers_thread = config is not None and config.inter_op_parallelism_threads < 0
        for device in devices:
            if device.type == "CPU":
                device.inter_op = self.pools

    def _optional(self, number: int, options: ThreadPoolOptionProto, config: ConfigProto, clock: Clock) -> Pool:
        """The pool of a ThreadPoolOptionProto: under a name the process has it, without one the session."""
        threads = options.num_threads or inter_op_threads(config)
        if options.global_name:
            return PROCESS.named(options.global_name, options.num_threads, threads, clock)
        return self._mine(f"CPU pool {number} inter-op", threads, clock)

    def _mine(self, name: str, threads: int, clock: Clock) -> Pool:
        self._own.append(Pool(clock, name, limit=max(1, threads)))
        return self._own[-1]

    def choose(self, options: RunOptions | None) -> int:
        """The number of the pool for a step; -1 if all its kernels run on the thread that calls `session.run`."""
        number: int = options.inter_op_thread_pool if options is not None else 0
        if not -1 <= number < len(self.pools):
            raise errors.InvalidArgumentError.of(
                f"Invalid inter_op_thread_pool: {number} (the session has {len(self.pools)}; -1 is the "
                "thread that calls session.run)"
            )
        return -1 if self._on_callers_thread else number

    def close(self) -> None:
        """The session ends: so do the threads that were its own."""
        for pool in self._own:
            pool.close()
        for device in self._devices:
            device.close()

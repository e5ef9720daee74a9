"""BLAS's threads: global to the process, so they have one owner here.

In TensorFlow, matrix products run on the intra-op pool (Eigen's device); so they do here: a large one is cut in blocks
of rows or columns (`matmul.py`), and BLAS itself has one thread as long as a step runs.

Rule: the number that the user's own NumPy code sees is put back when no step is running.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Shard = Callable[[int, float, Callable[[int, int], Any]], None]  # (total, nanoseconds per unit, work(first, last))

NANOSECONDS_PER_FLOP = 0.01  # in float32, on one core


def alone(total: int, cost: float, work: Callable[[int, int], Any]) -> None:
    """The Shard of a device without intra-op threads: a GPU has its own."""
    work(0, total)


def on_one_thread(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel` with a BLAS that starts no threads of its own."""

    def run(*arrays: Any) -> Any:
        BLAS.use_one_thread()
        return kernel(*arrays)

    return run


class BlasThreads:
    """How many threads BLAS uses in this process, now."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a session on the thread that holds it
        self._set: list[Callable[[int], Any]] | None = None  # one per BLAS library, from the first kernel on
        self._current = 0
        self._steps = 0
        self.cores = 1

    def _load(self) -> None:
        import threadpoolctl

        libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
        self.cores = self._current = max((lib.num_threads for lib in libraries), default=1)
        # From 3.8 on, its own setter obeys only the first thread that calls it. Here, all callers hold our lock.
        self._set = [getattr(lib, "_real_set_num_threads", lib.set_num_threads) for lib in libraries]

    def __enter__(self) -> None:
        """Around the driving of a step."""
        with self._lock:
            self._steps += 1

    def __exit__(self, *exc: Any) -> None:
        with self._lock:
            self._steps -= 1
            if not self._steps and self._set is not None:
                self._use(self.cores)

    def use_one_thread(self) -> None:
        """Called before a kernel, from within a step. An aborted step may call it, too; its result is not used."""
        if self._current == 1:
            return
        with self._lock:
            if self._set is None:
                self._load()
            if self._steps:
                self._use(1)

    def _use(self, threads: int) -> None:
        if threads != self._current:
            for set_threads in self._set or ():
                set_threads(threads)
            self._current = threads


BLAS = BlasThreads()

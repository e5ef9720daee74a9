"""Garbage: no collection while a large graph is taken in.

Stands for nothing in TensorFlow, whose graphs are no Python objects.

Rule: a function that makes thousands of objects which will all stay is decorated with `@NO_COLLECTION`, unless it may
wait. Python's collector would go over all of them again each time their number has grown by a quarter, and find
nothing; that was half the time of the first run of 5,000 ops. There is one collector in a process, so the last of these
functions that ends, on whatever thread, switches it on again.
"""

from __future__ import annotations

import gc
import threading
from contextlib import ContextDecorator


class _NoCollection(ContextDecorator):
    """Switches the collector off while at least one thread is in such a function."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._was_on = gc.isenabled()
                gc.disable()
            self._running += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running and self._was_on:
                gc.enable()


NO_COLLECTION = _NoCollection()

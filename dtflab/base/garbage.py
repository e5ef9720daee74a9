"""Garbage: no collection while a large graph is taken in, and few while steps of many workers are under way.

Stands for nothing in TensorFlow, whose graphs are not Python objects.

Rule: a function that makes thousands of objects which will all stay is decorated with `@NO_COLLECTION`, unless it may
wait. Python's collector would go over all of them again each time their number has grown by a quarter, and find
nothing; that was half the time of the first run of 5,000 ops. There is one collector in a process, so the last of these
functions that ends, on whatever thread, switches it on again.

Steps in virtual time leave nothing to collect, but thousands of their objects are alive at once, which the collector
takes for a growing heap: with 50 workers it spent a third of the time in walks over 50 graphs. So while one of them
is driven (`RARE_COLLECTION`), it waits for a hundred times as many new objects.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager

_RARER = 100


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


class _RareCollection:
    """Lets the collector come less often while at least one thread is inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                youngest, *older = self._usual = gc.get_threshold()
                gc.set_threshold(youngest * _RARER, *older)
            self._running += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                gc.set_threshold(*self._usual)


@contextmanager
def unseen() -> Iterator[None]:
    """All that there is at the end of this block counts as old: the collector does not go over it before it has to.

    This is for an import, after which the first collection would take a tenth of its time, and find nothing.
    """
    yield
    if not gc.get_freeze_count():  # objects that the program has frozen itself stay frozen
        gc.freeze()
        gc.unfreeze()  # into the oldest generation


NO_COLLECTION = _NoCollection()
RARE_COLLECTION = _RareCollection()

"""Guests that are away: threads of the program that waited inside, went out, and are expected back in a moment.

What they compute meanwhile takes no virtual time, as with the clock's own threads: nobody else has a turn, and nothing
that is due comes. Else a thread that the program started would find that minutes had passed between two of its lines.

Rules: a guest may have gone for good, or wait in real time for another one, so patience is short, and shorter for a
guest that has stayed away before. When one comes, threads that have begun meanwhile may be on their way, and the main
thread about to start more.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from dtflab.machine.clock import REAL, OwnThread
from dtflab.machine.patience import Patience

PATIENCE = 0.1  # seconds
LOOK, MOST = 0.001, 0.008  # real seconds, between two checks whether a thread has ended: longer after each


class Away:
    """Which guests are expected back."""

    def __init__(self) -> None:
        self._until: dict[Any, Patience] = {}  # by thread
        self._patience: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()
        self._inside: weakref.WeakSet[Any] = weakref.WeakSet()
        self._known = weakref.WeakSet(threading.enumerate())
        self._lock = threading.Lock()  # a guest that comes at this moment is not expected
        self._back = REAL.event()
        self._look = LOOK

    def leaves(self, thread: Any) -> None:
        """A guest goes out."""
        with self._lock:
            self._inside.discard(thread)
            self._expect(thread)

    def _expect(self, thread: Any) -> None:
        self._until[thread] = Patience(self._patience.get(thread, PATIENCE))

    def comes(self, thread: Any) -> None:
        """Note that a guest is back, or here for the first time; it stays expected until it is in line."""
        with self._lock:
            self._inside.add(thread)
            new = [t for t in threading.enumerate() if not isinstance(t, OwnThread) and t not in self._known]
            self._known.update(new)
            for one in {*new, threading.main_thread()} - {*self._inside} if new else ():
                self._expect(one)

    def is_in(self, thread: Any) -> None:
        """Note that a guest stands in line, or had nobody before it."""
        with self._lock:
            if self._until.pop(thread, None) is not None:
                self._patience[thread] = PATIENCE
        self._back.set()

    def expects(self) -> bool:
        """True if somebody is expected; by then a moment has passed."""
        there = threading.enumerate() if self._until else []
        for thread, patience in list(self._until.items()):
            if patience.is_over() or thread not in there:  # one that is just being started is there, and not alive yet
                self._until.pop(thread, None)
                self._patience[thread] = self._patience.get(thread, PATIENCE) / 4
        if not self._until:
            return False
        self._back.clear()
        self._look = LOOK if self._back.wait(self._look) else min(2 * self._look, MOST)
        return True

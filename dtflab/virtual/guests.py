"""Guests who are away: threads of the program that waited inside, went out, and are expected back in a moment.

What they compute meanwhile takes no virtual time, as with the clock's own threads: nobody else has a turn, and nothing
that is due comes. Else a thread that the program started would find that minutes had passed between two of its lines.

Rules: a guest may have gone for good, or stand at a lock of the program that another one holds, so patience is short.
When one comes, threads that have begun meanwhile may be on their way, and the main thread about to start more.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from dtflab.machine.clock import REAL, OwnThread

PATIENCE = 0.1  # real seconds
LOOK = 0.001  # real seconds, after which one looks whether a thread has ended meanwhile


class Away:
    """Which guests are expected back."""

    def __init__(self) -> None:
        self._until: dict[Any, float] = {}  # thread → real moment
        self._inside: weakref.WeakSet[Any] = weakref.WeakSet()
        self._known = weakref.WeakSet(threading.enumerate())
        self._back = REAL.event()

    def leaves(self, thread: Any) -> None:
        """A guest goes out."""
        self._inside.discard(thread)
        self._until[thread] = REAL.now() + PATIENCE

    def comes(self, thread: Any) -> None:
        """It is back, or here for the first time."""
        self._inside.add(thread)
        self._until.pop(thread, None)
        new = [t for t in threading.enumerate() if not isinstance(t, OwnThread) and t not in self._known]
        if new:
            self._known.update(new)
            self._until |= dict.fromkeys({*new, threading.main_thread()} - {*self._inside}, REAL.now() + PATIENCE)
        self._back.set()

    def expects(self) -> bool:
        """True if somebody is expected; by then a moment has passed."""
        if not self._until:
            return False
        now = REAL.now()
        for thread, until in list(self._until.items()):
            if until < now or not thread.is_alive():
                self._until.pop(thread, None)
        if all(map(joins, list(self._until))):
            return False
        self._back.clear()
        self._back.wait(LOOK)
        return True


def joins(thread: Any) -> bool:
    """True if a thread stands in a call of `threading`: it joins another, or waits for one in real time.

    Not so if it starts one, and will go on at once.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    outermost = ""
    while frame is not None and frame.f_globals.get("__name__") == threading.__name__:
        outermost, frame = frame.f_code.co_name, frame.f_back
    return outermost not in ("", "start")

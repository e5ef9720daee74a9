"""Call a function for a limited time: an answer that never ends is a result, not a stuck grader.

The answer runs in this process, because it is a living function of the notebook: what it refers to can't be taken to
another process, and nothing here evaluates source. So it runs on a thread of its own. When its time is up, an exception
is raised inside it, again and again for a while, as it may be caught; a thread that is deaf to it (it sleeps, or
computes in C) is left behind, and the caller goes on. Left out: limits of memory, and answers that do harm; for those
a whole submission is run in a process of its own.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from dtflab.machine.clock import REAL, Event, Thread

_AGAIN = 0.05  # seconds between two attempts to stop a thread
_ATTEMPTS = 20


# The time is up. `except Exception` lets it pass; and it ends a thread without a word, wherever it comes: on a busy
# machine a second one may come while the thread leaves. (Python prints the traceback of any subclass.)
Stopped = SystemExit


class Outcome:
    """How a call ended: with a value, with an error, or stopped."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.stopped = False
        self.left_running = False  # deaf to being stopped


def call(function: Callable[[], Any], seconds: float) -> Outcome:
    """Call `function()` for at most `seconds`. Ctrl-C stops it, too."""
    outcome, done = Outcome(), REAL.event()
    ident: list[int] = []

    def run() -> None:
        ident.append(threading.get_ident())
        try:
            outcome.value = function()
        except BaseException as error:
            if not outcome.stopped:
                outcome.error = error
        finally:
            done.set()

    thread = REAL.spawn(run, name="dtflab-answer")
    try:
        done.wait(seconds)  # not join(): interrupted by Ctrl-C, Python 3.11 takes the thread for ended
    finally:
        if not done.is_set():
            outcome.stopped = True
            outcome.left_running = not (ident and _stop(ident[0], thread, done))
    return outcome


def _stop(ident: int, thread: Thread, done: Event) -> bool:
    """Raise Stopped in a thread until it has ended; False if it does not."""
    for _ in range(_ATTEMPTS):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Stopped))
        if done.wait(_AGAIN) or not thread.is_alive():
            return True
    return False

"""Call a function for a limited time: an answer that never ends is a result, not a stuck grader.

The answer runs in this process, because it is a live function of the notebook: the objects that it refers to can't be
taken to another process, and nothing here evaluates source. So it runs on a thread of its own. When its time is up, an
exception is raised inside it, again and again for a while, as it may be caught; a thread that does not react to it (it
sleeps, or computes in C) is left behind, and the caller goes on. Left out: limits of memory, and answers that do harm;
for those a whole submission is run in a process of its own.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dtflab.grading.meter import Meter, used
from dtflab.machine.clock import REAL, Event, Thread
from dtflab.virtual.clock import VirtualClock

_AGAIN = 0.5  # seconds between two attempts to stop a thread: it may have a cluster to stop before it ends
_PIECES = 50  # of that; on a busy machine each of them is longer
_ATTEMPTS = 4
_LOOKS = 500  # of 1 ms each, and more on a busy machine, for a moment at which the clock lets a thread be stopped


# The time is up. `except Exception` lets it pass, and a thread may end with it without a word.
Stopped = SystemExit


class Outcome:
    """How a call ended: with a value, with an error, or stopped."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.stopped = False
        self.seconds = 0.0  # that counted, as `meter` says
        self.over = False  # its thread is about to end
        self.left_running = False  # did not react to being stopped
        self.starved = False  # it was stopped before it had had its seconds

    @property
    def deaf(self) -> str:
        """The sentence on an answer that could not be stopped; empty for another one."""
        return " It did not react: in a notebook, restart the kernel." * self.left_running


def call(function: Callable[[], Any], seconds: float, wall: float = math.inf) -> Outcome:
    """Call `function()` for at most `seconds` that count, and `wall` seconds of the clock. Ctrl-C stops it, too."""
    outcome, done, leaving = Outcome(), REAL.event(), threading.Lock()
    begun, ident = REAL.event(), list[int]()

    def run() -> None:
        ident.append(threading.get_ident())
        with suppress(Stopped):  # one that comes while another one is handled
            try:
                begun.set()
                outcome.value = function()
            except BaseException as error:
                if not outcome.stopped:
                    outcome.error = error
        while not outcome.over:
            with suppress(Stopped), leaving:  # the last one was raised before we got here
                done.set()
                outcome.over = True

    thread = REAL.spawn(run, name="dtflab-answer")
    try:
        begun.wait()  # on a busy machine a thread may be late: its seconds count from here on
        outcome.seconds, outcome.starved = _wait(done, seconds, wall)
    finally:
        if not done.is_set():
            outcome.stopped = True
            outcome.left_running = not (ident and _stop(ident[0], thread, done, leaving))
    return outcome


def _wait(done: Event, seconds: float, wall: float) -> tuple[float, bool]:
    """Wait until the call is done or its time is up; the seconds that counted, and whether they were too few."""
    began = REAL.now()
    meter = Meter(seconds, began, used())
    # Not join(): interrupted by Ctrl-C, Python 3.11 takes the thread for ended.
    while not done.wait(min(meter.pause(now := REAL.now()), max(0.0, began + wall - now))):
        if meter.look(now := REAL.now(), used()) or now - began >= wall:
            return meter.seconds, meter.starved
    meter.look(REAL.now(), used())
    return meter.seconds, False


def _stop(ident: int, thread: Thread, done: Event, leaving: threading.Lock) -> bool:
    """Raise Stopped in a thread until it has ended; False if it does not. One that is leaving is let go."""
    with _lost_without_a_word():
        for _ in range(_ATTEMPTS):
            for look in range(1, 1 + _LOOKS):
                with leaving:
                    if not done.is_set() and (look == _LOOKS or VirtualClock.may_stop(ident)):
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Stopped))
                        break
                if done.wait(0.001):
                    break
            if any(done.wait(_AGAIN / _PIECES) for _ in range(_PIECES)) or not thread.is_alive():
                return True
    return False


@contextmanager
def _lost_without_a_word() -> Iterator[None]:
    """Stopped may come inside `__del__` or a weak reference's callback, which can't raise it. It is raised again."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is Stopped else before(lost)
    try:
        yield
    finally:
        sys.unraisablehook = before

"""Ticker: tells a live picture what changed, on a thread of its own, at most ten times a second.

A computation never waits for its picture: `begin` and `end` return at once. Real seconds decide how often the picture
changes, in a virtual cluster, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from dtflab.machine.clock import REAL, Thread, using
from dtflab.viz.drawing import front_end

EVERY = 0.1  # seconds
PATIENCE = 20.0  # seconds; a page says every five that it shows the picture


class Ticker:
    """Tells `picture` what `state()` returns, until `end()`, and then once more; it sends nothing for None.

    It rests when it has not heard for `patience` seconds that the picture is on a page, and goes on at the next
    `seen()`.
    """

    def __init__(
        self,
        picture: str,
        state: Callable[[], Mapping[str, Any] | None],
        every: float = EVERY,
        patience: float = PATIENCE,
    ) -> None:
        self._picture, self._state = picture, state
        self._every, self._patience = max(every, EVERY), patience
        self._lock = threading.Lock()
        self._wake = REAL.event()
        self._is_over = False
        self._seen = 0.0
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Tell the state from now on."""
        with self._lock:
            self._is_over = False
            self._wake.clear()
            self._go_on()

    def seen(self) -> None:
        """Go on, if it rests: the page shows the picture."""
        with self._lock:
            if not self._is_over:
                self._go_on()

    def end(self) -> None:
        """Tell the last state, soon, and no more."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._go_on()
                self._wake.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, or for that many seconds."""
        if (thread := self._thread) is not None:
            thread.join(timeout)

    def _go_on(self) -> None:
        """Under the lock: let there be a thread."""
        self._seen = REAL.now()
        if self._thread is None:
            self._thread = REAL.spawn(self._run, name=f"dtflab picture {self._picture}")

    def _run(self) -> None:
        with using(REAL):
            try:
                while self._tell():
                    self._wake.wait(self._every)
            except BaseException:
                with self._lock:
                    self._thread = None  # the next `begin` tries again
                raise

    def _tell(self) -> bool:
        """Tell the state; whether another one will follow."""
        is_last = self._is_over  # before the state is taken, which then holds all that came before `end`
        if (says := self._state()) is not None:
            front_end.tell(self._picture, says)
        with self._lock:
            if is_last or (not self._is_over and REAL.now() - self._seen > self._patience):
                self._thread = None
                return False
            return True

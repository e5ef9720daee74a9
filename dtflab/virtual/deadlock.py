"""Deadlocks: when every thread waits and no event is scheduled, whether a thread may yet come, and the error if not.

Rule: no false alarm. A thread that is not known to wait for virtual time might still bring what the others wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.base.thread_frames import is_joining
from dtflab.machine.clock import OwnThread
from dtflab.machine.patience import Patience

if TYPE_CHECKING:
    from dtflab.runtime.standstill import Fact

PATIENCE = 2.0  # seconds in which a thread that nobody knows may turn out to be a guest


class DeadlockError(errors.InternalError):
    """Every thread waits, and no scheduled event can wake one of them. `standstill` is what `tf.viz.waits` draws."""

    standstill: Sequence[Fact] = ()

    @classmethod
    def found(cls, text: str, standstill: Sequence[Fact]) -> DeadlockError:
        """The error of a standstill."""
        error = cls.of(text)
        error.standstill = standstill
        return error

    def again(self) -> DeadlockError:
        """The same error for another thread."""
        return self.found(self.message, self.standstill)


class DeadlockWatch:
    """Looks at the threads of the process for one clock."""

    def __init__(self) -> None:
        self._strangers = set(threading.enumerate())  # older threads, which have nothing to do with the clock
        maker = threading.current_thread()  # a thread of a clock's own does a program's work; main waits for it
        self._main = maker if isinstance(maker, OwnThread) else threading.main_thread()
        # The number of events at the last standstill, and how long guests may still come.
        self._patience = -1, Patience(0.0)
        self._last: tuple[float, str, Sequence[Fact]] | None = None  # moment and content of the last deadlock

    def somebody_may_come(self, inside: Collection[Any], turned: int) -> bool:
        """True while the program's main thread is free to do something, or, for a while, one that might be a guest.

        `inside` are the threads of guests that wait, `turned` is how many events there have been. A main thread that
        joins others is not free, but may be about to be; nor are the threads that it joins.
        """
        main = self._main
        if main not in inside and not is_joining(main.ident):
            return True
        unknown = {t for t in threading.enumerate() if not isinstance(t, OwnThread) and t not in self._strangers}
        if main in inside and unknown <= set(inside):
            return False
        if self._patience[0] != turned:
            self._patience = turned, Patience(PATIENCE)
        return not self._patience[1].is_over()

    def error(self, now: float, lines: Iterable[str], standstill: Sequence[Fact]) -> DeadlockError:
        """The error; at the same moment it says what the first one said, when most threads still waited."""
        if self._last is None or self._last[0] != now:
            head = f"Deadlock at {now:.6g} s of virtual time: every thread is waiting, and no event is scheduled."
            self._last = now, "\n  ".join([head, *lines]), standstill
        return DeadlockError.found(*self._last[1:])

"""Patience with a thread that may come or not: seconds, and more of them while the process gets no processor.

On a busy machine a thread that is about to come may be ready to run for seconds without running. So patience has an end
only when the process has computed for as long, too, or none of its threads is ready: then all of them wait.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from dtflab.machine.clock import REAL

_TASKS = Path("/proc/self/task")
_LOOK = 0.02  # seconds, between two looks at the threads, which cost 0.3 ms


class Patience:
    """Ends after some seconds; while another thread is ready, when the process has also computed for as long."""

    __slots__ = ("_processor", "_until")

    def __init__(self, seconds: float) -> None:
        self._until, self._processor = REAL.now() + seconds, time.process_time() + seconds

    def is_over(self) -> bool:
        now = REAL.now()
        if now < self._until:
            return False
        if time.process_time() >= self._processor or not _is_another_ready():
            return True
        self._until = now + _LOOK
        return False


def _is_another_ready() -> bool:
    """Whether a thread of this process other than the one that asks is ready to run. Only Linux tells."""
    me = str(threading.get_native_id())
    for task in _TASKS.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if task.name != me and (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
    return False

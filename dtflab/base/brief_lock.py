"""BriefLock: a lock that many threads take again and again, and hold only for moments.

Stands for the mutexes of TensorFlow's queues, whose threads need no GIL.

Rule: a thread does not wait in the operating system, which would give it the lock before it has the GIL. The thread
that has the GIL then soon waits for the lock, and so on: from then on the two change places at every operation (a lock
convoy). Here a thread gives way for a moment and tries again when it runs.
"""

from __future__ import annotations

import threading
import time

_MOMENT = 2e-5  # seconds


class BriefLock:
    """A lock for a `with` block that neither waits nor calls anything that does."""

    def __init__(self) -> None:
        lock = threading.Lock()  # its methods are C's; through methods of this class each would be a call more
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        while not self.acquire(False):
            time.sleep(_MOMENT)

    def __exit__(self, *exc: object) -> None:
        self.release()

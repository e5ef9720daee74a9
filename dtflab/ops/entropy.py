"""Entropy: numbers that need not be repeatable: ids, and the seeds of random ops, queues and data sets without seeds.

Stands for `core/lib/random/random.h` (New64). In virtual time these seeds come from the cluster's seed
(`virtual/chance.py`), so that a run is the same every time.

Rules: code that needs a random number calls this page, never the system, and never `random` or `numpy.random`, whose
streams belong to the program. Each number is drawn when it is needed: a fork would copy a generator, and two processes
would then give the same id to two steps, sessions or functions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

Draw = Callable[[], int]


def from_system() -> int:
    """64 bits that cannot be predicted and that no other process draws, not even a fork."""
    return int.from_bytes(os.urandom(8))


class Source(threading.local):
    """Where the numbers of this thread come from."""

    draw: Draw = staticmethod(from_system)


SOURCE = Source()

"""Entropy: numbers that need not be repeatable: ids, and the seeds of random ops, queues and data sets without seeds.

Stands for `core/lib/random/random.h` (New64). In virtual time these seeds come from the cluster's seed
(`virtual/chance.py`), so that a run is the same every time.

Rules: code that needs a random number calls this page, never the streams of `random` or `numpy.random`, which belong to
the program. A forked process seeds the generator again: with a copy of it, two processes would give the same id to two
steps, sessions or functions.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable

Draw = Callable[[], int]


_generator = random.Random()  # seeded by the system
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_generator.seed)


def from_system() -> int:
    """64 bits that no other process draws, not even a fork; each step asks for some."""
    return _generator.getrandbits(64)


class Source(threading.local):
    """Where the numbers of this thread come from."""

    draw: Draw = staticmethod(from_system)


SOURCE = Source()

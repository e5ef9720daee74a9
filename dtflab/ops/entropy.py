"""Entropy: numbers that nobody has asked to be repeatable, for random ops, queues and data sets without seeds.

Stands for `core/lib/random/random.h` (New64). In virtual time they come from the cluster's seed (`virtual/chance.py`),
so that a run is the same every time, too.

Rule: what makes random numbers asks here, never the system.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

Draw = Callable[[], int]


def from_system() -> int:
    """64 bits that nobody can know."""
    return int.from_bytes(os.urandom(8))


class Source(threading.local):
    """Where the numbers of this thread come from."""

    draw: Draw = staticmethod(from_system)


SOURCE = Source()

"""Queues mean something only in programs of several steps; `tests/ops/oracle/test_queues.py` runs those."""

from __future__ import annotations

_KINDS = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
_USES = ("Enqueue", "EnqueueMany", "Dequeue", "DequeueMany", "DequeueUpTo", "Close", "Size", "IsClosed")

IN_PROGRAMS = {
    f"{name}{family}": "tests/ops/oracle/test_queues.py"
    for name in (*_KINDS, *(f"Queue{use}" for use in _USES))
    for family in ("", "V2")
}

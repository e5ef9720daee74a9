"""Meter: for how long a task has computed, and the last error of a step there. The panel of a cluster shows both.

Stands for nothing in TensorFlow, whose servers do not say how busy they are.

Rule: nobody measures unless somebody asks. Each question keeps the meter on for `LEASE_S` seconds; while it is off, all
that a step pays for it is one call per partition.
"""

from __future__ import annotations

import math
import threading

from dtflab.machine.clock import REAL

LEASE_S = 5.0


class Meter:
    """The seconds in which at least one thread computed for a task. In a `with` block a thread computes."""

    def __init__(self) -> None:
        self.is_on = False
        self.steps = 0  # that have begun here
        self.error = ""  # the class and message of the last error with which a step failed here first
        self._step = 0  # the last of them
        self._lock = threading.Lock()
        self._computing = 0  # threads, blocks within blocks counted, too
        self._since = 0.0  # when the first of them began
        self._busy = 0.0
        self._until = -math.inf

    def counts(self, step_id: int) -> bool:
        """Count a step while the meter is on, once for all its partitions here; returns whether it is on."""
        if self.is_on and step_id != self._step:
            self._step = step_id
            self.steps += 1
        return self.is_on

    def busy(self) -> float:
        """The busy seconds that were measured so far. It is measured from now on, for a while."""
        with self._lock:
            now = REAL.now()
            self._until, self.is_on = now + LEASE_S, True
            return self._busy + (now - self._since if self._computing else 0.0)

    def __enter__(self) -> None:
        with self._lock:
            if not self._computing:
                self._since = REAL.now()
            self._computing += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._computing -= 1
            if not self._computing:
                now = REAL.now()
                self._busy += now - self._since
                self.is_on = now < self._until

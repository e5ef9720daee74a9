"""Chance: all that is drawn in a cluster in virtual time, from its one seed.

Rule: each task's master draws for its own steps, so that what one client does changes no other's numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class Distribution(Protocol):
    """By how much longer than planned tasks compute, step by step (`sim.stragglers`)."""

    def factors(self, steps: int, devices: int, seed: int) -> np.ndarray[Any, Any]:
        """float64 `[steps, devices]`; 1 is as planned. More steps begin with the same ones."""


class Chance:
    """Draws for the tasks of a cluster, given by their names."""

    def __init__(self, tasks: Sequence[str], seed: int, stragglers: Distribution | None) -> None:
        self._seed = seed
        self._stragglers = stragglers
        self._peers = Counter(map(_job, tasks))  # how many tasks a job has
        self._steps: Counter[str] = Counter()  # begun by a task
        self._factors: dict[str, np.ndarray[Any, Any]] = {}  # of the steps of a job's tasks
        self._drawn: Counter[str] = Counter()  # for a task

    def slowness(self, task: str) -> float:
        """The factor by which the next step of a task takes longer than planned: as in an estimate with that seed."""
        if self._stragglers is None:
            return 1.0
        job, step = _job(task), self._steps[task]
        self._steps[task] += 1
        known = self._factors.get(job)
        if known is None or step >= len(known):
            known = self._factors[job] = self._stragglers.factors(max(256, 2 * step), self._peers[job], self._seed)
        return float(known[step, int(task.rpartition(":")[2]) % self._peers[job]])

    def draw(self, task: str) -> int:
        """64 bits for what a step of that task makes without a seed."""
        self._drawn[task] += 1
        text = f"{self._seed} {task} {self._drawn[task]}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _job(task: str) -> str:
    return re.sub(r"/task:\d+$", "", task)

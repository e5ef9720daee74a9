"""Admission: how many steps and sessions the services of a task take on.

Stands for nothing in TensorFlow, which takes on as many as it is asked for.

Rule: `limits.steps` and `limits.sessions` hold for each service of a task; a refusal names the task.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.base.limits import beyond, limits

if TYPE_CHECKING:
    from dtflab.cluster.task import Task


class InFlight:
    """The calls of a service that run steps, at most `limits.steps` at a time."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> None:
        with self._lock:
            self.check(self._count)
            self._count += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._count -= 1

    def check(self, count: int) -> None:
        """ResourceExhaustedError if there are `count` steps and that is as many as there may be."""
        if count >= limits.steps:
            raise errors.ResourceExhaustedError.of(beyond("steps", f"{self._task.name} runs {count} steps"))


def check_sessions(count: int, task: Task) -> None:
    """ResourceExhaustedError if a task has `count` sessions and that is as many as there may be."""
    if count >= limits.sessions:
        raise errors.ResourceExhaustedError.of(beyond("sessions", f"{task.name} has {count} sessions"))

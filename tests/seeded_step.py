"""A step whose nodes run in a random order, the same for the same seed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from dtflab.runtime.runner import Step

T = TypeVar("T")


class SeededStep(Step):
    """A step that picks the next ready node by a seeded random generator.

    Any order that the graph allows must give the same values, and none may deadlock. It is also the proof
    that nothing above this seam depends on the order in which threads or time would run the nodes.
    """

    def __init__(self, step_id: int, *args: Any, seed: int = 0, **kwargs: Any) -> None:
        super().__init__(step_id, *args, **kwargs)
        self._random = random.Random(seed)

    def order(self, ready: deque[T]) -> Callable[[], T]:
        def pick() -> T:
            ready.rotate(self._random.randrange(len(ready)))
            return ready.popleft()

        return pick

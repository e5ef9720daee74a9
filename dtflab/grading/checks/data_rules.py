"""Wrong rules by which gradients of several workers become one step: the mistakes of question data/q2.

Each is the library's ConditionalAccumulator, used wrongly in a session of its own. So nothing here is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.queues.functions import ConditionalAccumulator
from dtflab.runtime.session import Session

NEVER_STALE = 10**9  # a local step


class Library:
    """The library's accumulator, in a session that the `with` block closes."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.steps, self.shape = 0, shape
        with Graph().as_default() as graph:
            self._value, self._count = placeholder(dtypes.float64, shape), placeholder(dtypes.int64, [])
            self._required = placeholder(dtypes.int32, [])
            accumulator = ConditionalAccumulator(dtypes.float64, shape=shape)
            self._push = accumulator.apply_grad(self._value, self._count)
            self._take = accumulator.take_grad(self._required)
            self._held = accumulator.num_accumulated()
        self._session = Session(graph=graph)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    @property
    def held(self) -> int:
        return int(self._session.run(self._held))

    def push(self, gradient: Any, local_step: int) -> None:
        self._session.run(self._push, {self._value: gradient, self._count: local_step})

    def take(self, required: int) -> Any:
        """A mean, or None where the library would wait."""
        if self.held < required:
            return None
        self.steps += 1
        return self._session.run(self._take, {self._required: required})


class Sums(Library):
    def take(self, required: int) -> Any:
        held, mean = self.held, super().take(required)
        return None if mean is None else held * mean


class DividesByRequired(Library):
    def take(self, required: int) -> Any:
        held, mean = self.held, super().take(required)
        return None if mean is None else held * mean / required


class GivesOneNumber(Library):
    def take(self, required: int) -> Any:
        mean = super().take(required)
        return None if mean is None else np.mean(mean)


class GivesZero(Library):
    def take(self, required: int) -> Any:
        mean = super().take(required)
        return np.zeros(self.shape) if mean is None else mean


class TakesWhatThereIs(Library):
    def take(self, required: int) -> Any:
        return super().take(max(1, min(self.held, required)))


class WaitsForOneMore(Library):
    def take(self, required: int) -> Any:
        return super().take(required) if self.held > required else None


class KeepsStale(Library):
    def push(self, gradient: Any, local_step: int) -> None:
        super().push(gradient, NEVER_STALE)


class CountsTheStale(Library):
    """A gradient that is dropped counts towards the required number."""

    dropped = 0

    def push(self, gradient: Any, local_step: int) -> None:
        self.dropped += local_step < self.steps
        super().push(gradient, local_step)

    def take(self, required: int) -> Any:
        if not self.held or self.held + self.dropped < required:
            return None
        self.dropped = 0
        return super().take(self.held)


class CountsNoSteps(Library):
    def push(self, gradient: Any, local_step: int) -> None:
        if local_step >= 0:
            super().push(gradient, NEVER_STALE)


class FollowsTheNewest(Library):
    """The step after a mean is the one after the newest of its gradients."""

    at = newest = 0

    def push(self, gradient: Any, local_step: int) -> None:
        if local_step >= self.at:
            self.newest = max(self.newest, local_step)
            super().push(gradient, NEVER_STALE)

    def take(self, required: int) -> Any:
        mean = super().take(required)
        if mean is not None:
            self.at, self.newest = self.newest + 1, 0
        return mean


class CountsEveryTake(Library):
    asked = 0

    def push(self, gradient: Any, local_step: int) -> None:
        if local_step >= self.asked:
            super().push(gradient, NEVER_STALE)

    def take(self, required: int) -> Any:
        self.asked += 1
        return super().take(required)


class OnlyTheSameStep(Library):
    def push(self, gradient: Any, local_step: int) -> None:
        if local_step == self.steps:
            super().push(gradient, local_step)


class KeepsTheFuture(Library):
    """Gradients of a later step wait for it."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__(shape)
        self.later: list[tuple[Any, int]] = []

    def push(self, gradient: Any, local_step: int) -> None:
        if local_step > self.steps:
            self.later.append((gradient, local_step))
        else:
            super().push(gradient, local_step)

    def take(self, required: int) -> Any:
        mean = super().take(required)
        if mean is not None:
            now, self.later = self.later, []
            for one in now:
                self.push(*one)
        return mean


class OnlyTheFuture(Library):
    def push(self, gradient: Any, local_step: int) -> None:
        if local_step > self.steps:
            super().push(gradient, local_step)


class Chooses(Library):
    """Keeps the gradients itself, and gives the library those that it chooses when a step is wanted."""

    loses = False

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__(shape)
        self.kept: list[Any] = []

    def push(self, gradient: Any, local_step: int) -> None:
        if local_step >= self.steps:
            self.kept.append(gradient)

    def take(self, required: int) -> Any:
        if len(self.kept) < required:
            self.kept = [] if self.loses else self.kept
            return None
        for gradient in self.choice(required):
            super().push(gradient, NEVER_STALE)
        self.kept = self.rest(required)
        return super().take(1)

    def choice(self, required: int) -> list[Any]:
        return self.kept

    def rest(self, required: int) -> list[Any]:
        return []


class LosesWhenTooFew(Chooses):
    loses = True


class TakesTheFirst(Chooses):
    def choice(self, required: int) -> list[Any]:
        return self.kept[:required]


class TakesTheLast(Chooses):
    def choice(self, required: int) -> list[Any]:
        return self.kept[-required:]


class KeepsTheRest(TakesTheFirst):
    def rest(self, required: int) -> list[Any]:
        return self.kept[required:]


class TakesTheMedian(Chooses):
    def choice(self, required: int) -> list[Any]:
        return [np.median(self.kept, axis=0)]


class ForgetsTheFirst(Chooses):
    def rest(self, required: int) -> list[Any]:
        return self.kept[required:]


class KeepsWhatWasUsed(Chooses):
    def rest(self, required: int) -> list[Any]:
        return self.kept

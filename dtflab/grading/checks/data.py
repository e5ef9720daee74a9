"""Questions on data parallelism.

q2: the rule by which gradients of several workers become one step. An answer is played the same calls as the library's
own ConditionalAccumulator, in a session, and must give the same values; each mistake is a rule of its own, which is
played the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.text_table import plural
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.queues.functions import ConditionalAccumulator
from dtflab.runtime.session import Session

q2 = from_toml(__file__)


# -- the rule ------------------------------------------------------------------------------------------------


class Push(NamedTuple):
    """A worker brings a gradient that it computed from the variables of a step."""

    gradient: Any
    local_step: int

    def __str__(self) -> str:
        return f"push({_numbers(self.gradient)}, {self.local_step})"


class Take(NamedTuple):
    """The chief wants a step of that many gradients."""

    required: int

    def __str__(self) -> str:
        return f"take({self.required})"


Calls = Sequence[Push | Take]


class Seen(NamedTuple):
    """The result of each take: the evidence. `written`: a gradient was changed; `carried`: another's were counted."""

    calls: Calls
    got: Sequence[Any]
    written: bool = False
    carried: bool = False

    def follows(self, **rule: Any) -> bool:
        """Whether that is what another rule gives."""
        try:
            return not self.written and not self.carried and _same(self.got, played(other(**rule), self.calls))
        except ZeroDivisionError:
            return False


def by_library(calls: Calls) -> list[Any]:
    """The answers of the library's accumulator: for each take a mean, or None where it would wait."""
    with Graph().as_default() as graph, Session(graph=graph) as session:
        value, count = placeholder(dtypes.float64, [2]), placeholder(dtypes.int64, [])
        required = placeholder(dtypes.int32, [])
        accumulator = ConditionalAccumulator(dtypes.float64, shape=[2])
        push, take = accumulator.apply_grad(value, count), accumulator.take_grad(required)
        held = accumulator.num_accumulated()
        got: list[Any] = []
        for call in calls:
            if isinstance(call, Push):
                session.run(push, {value: call.gradient, count: call.local_step})
            elif session.run(held) < call.required:
                got.append(None)
            else:
                got.append(session.run(take, {required: call.required}))
        return got


def other(
    divide: Callable[[int, int], float] = lambda kept, required: kept,
    stale: Callable[[int, int], bool] = lambda local_step, step: local_step < step,
    begins_again: bool = True,
    loses: bool = False,
    only_required: bool = False,
) -> tuple[Any, Any]:
    """A rule that may differ from the right one: a pair (push, take)."""
    kept: list[Any] = []
    steps: list[int] = []

    def push(gradient: Any, local_step: int) -> None:
        if not stale(local_step, len(steps)):
            kept.append(gradient)

    def take(required: int) -> Any:
        if len(kept) < required:
            kept.clear() if loses else None
            return None
        counted = kept[:required] if only_required else kept
        mean = np.sum(counted, axis=0) / divide(len(counted), required)
        kept.clear() if begins_again else None
        steps.append(1)
        return mean

    return push, take


def played(functions: tuple[Any, Any], calls: Calls) -> list[Any]:
    """The result of each take with a pair of functions (push, take)."""
    push, take = functions
    got = []
    for call in calls:
        if isinstance(call, Take):
            value = take(call.required)
            got.append(None if value is None else np.array(value, dtype=float))
        else:
            push(call.gradient, call.local_step)
    return got


def _same(got: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(_equal(one, two) for one, two in zip(got, expected, strict=True))


def _equal(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is two
    return np.shape(one) == np.shape(two) and bool(np.allclose(one, two))


def demand_rule(answer: Any, calls: Calls) -> None:
    """Wrong unless each take gives what the library's accumulator gives, and the gradients are as they were."""
    made = answer()
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise Wrong(f"Two functions (push, take) are expected, not {shown(made)}.")
    given = [call._replace(gradient=call.gradient.copy()) if isinstance(call, Push) else call for call in calls]
    got = played((made[0], made[1]), given)
    if not _same(got, expected := by_library(calls)):
        i = next(i for i, pair in enumerate(zip(got, expected)) if not _equal(*pair))
        raise Wrong(_sentence(calls, i, got[i], expected[i]), Seen(calls, got, _written(calls, given)))
    if _written(calls, given):
        raise Wrong("A gradient that was pushed has other numbers afterwards.", Seen(calls, got, written=True))


def _written(calls: Calls, given: Calls) -> bool:
    pairs = zip(_gradients(calls), _gradients(given), strict=True)
    return any(not _equal(one, two) for one, two in pairs)


def _gradients(calls: Calls) -> list[Any]:
    return [call.gradient for call in calls if isinstance(call, Push)]


def _sentence(calls: Calls, i: int, got: Any, expected: Any) -> str:
    """The calls until the wrong value, and what it should have been."""
    takes = [number for number, call in enumerate(calls) if isinstance(call, Take)]
    until = [str(call) for call in calls[: takes[i] + 1]]
    before = f"after {plural(len(until) - 4, 'call')} more, " if len(until) > 4 else ""
    return f"{before}{', '.join(until[-4:])} gave {_numbers(got)}; expected: {_numbers(expected)}, after step {i}."


def _numbers(value: Any) -> str:
    return "None" if value is None else np.array2string(np.asarray(value), precision=4, separator=", ")


def _gradient(random: Random) -> Any:
    return np.array([float(random.randint(-20, 20)), float(random.randint(1, 99))])


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("A step is the mean of its gradients, and the next one starts from zero", points=3)
def means(answer: Any, random: Random) -> None:
    workers = random.randint(2, 4)
    calls: list[Push | Take] = []
    for step in range(3):
        calls += [*(Push(_gradient(random), step) for _ in range(workers)), Take(workers)]
    demand_rule(answer, calls)


@q2.check("While there are too few gradients, take returns None and loses none", points=2)
def too_few(answer: Any, random: Random) -> None:
    workers = random.randint(3, 5)
    calls: list[Push | Take] = [Push(_gradient(random), 0), Take(1)]  # that a step can be made is another matter
    for _ in range(workers - 1):
        calls += [Take(workers), Push(_gradient(random), 1)]
    demand_rule(answer, [*calls, Take(workers), Push(_gradient(random), 1), Take(workers), Take(1)])


@q2.check("If more have come than are required, all of them count", points=2)
def spares(answer: Any, random: Random) -> None:
    required = random.randint(2, 4)
    more = required + random.randint(1, 3)
    demand_rule(answer, [*(Push(_gradient(random), 0) for _ in range(more)), Take(required)])


@q2.check("Stale gradients are dropped, fresh ones and those of the future are kept", points=2)
def stale(answer: Any, random: Random) -> None:
    calls: list[Push | Take] = []
    for step in range(4):
        calls += [Push(_gradient(random), step), Push(_gradient(random), step - 1), Take(2)]
        calls += [Push(_gradient(random), step + 1), Take(3), Take(2)]
    demand_rule(answer, calls)


@q2.check("Each accumulator counts for itself, and no gradient is changed", points=1)
def alone(answer: Any, random: Random) -> None:
    first, second = answer(), answer()
    gradients = [_gradient(random) for _ in range(4)]
    for gradient in gradients[:3]:
        first[0](gradient, 0)
    if (got := second[1](1)) is not None:
        text = f"3 gradients were pushed to one accumulator; take(1) of another gave {_numbers(got)}, expected: None."
        raise Wrong(text, Seen((), (), carried=True) if np.any(got) else None)  # 0 is nobody's gradient
    demand_rule(answer, [*(Push(one, 0) for one in gradients), Take(4), *(Push(one, 1) for one in gradients), Take(3)])


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def writes_into_gradients(seen: Seen) -> bool:
    """A gradient that was pushed is changed: `total += gradient` writes into the array where the worker still looks.
    `total = total + gradient` makes a new one; so does sum()."""
    return seen.written


@q2.mistake()
def shared_state(seen: Seen) -> bool:
    """Gradients of one accumulator count in another one: what they remember is made once, at the top of the notebook or
    as a default argument. Make it in accumulator."""
    return seen.carried


@q2.mistake()
def sums(seen: Seen) -> bool:
    """That is the sum of the gradients. With twice as many workers, steps would be twice as long. Take the mean."""
    return seen.follows(divide=lambda kept, required: 1)


@q2.mistake()
def divides_by_required(seen: Seen) -> bool:
    """The sum was divided by `required`. If more gradients have come, they are in the sum as well: divide by their
    number."""
    return seen.follows(divide=lambda kept, required: required)


@q2.mistake()
def takes_no_more_than_required(seen: Seen) -> bool:
    """Only `required` gradients count, though more have come. `required` is how many there must be at least: take the
    mean of all that were kept."""
    return seen.follows(only_required=True)


@q2.mistake()
def keeps_what_was_used(seen: Seen) -> bool:
    """Gradients of a step that is over count again in the next one. After a step, forget them and begin with none."""
    return seen.follows(begins_again=False)


@q2.mistake()
def keeps_stale(seen: Seen) -> bool:
    """Stale gradients are kept. A gradient was computed from the variables of step local_step; if steps were taken
    since, drop it in push. Does take count its steps?"""
    return seen.follows(stale=lambda local_step, step: False)


@q2.mistake()
def only_the_same_step(seen: Seen) -> bool:
    """Gradients of the future are dropped. It happens: the accumulator of another variable may be a step ahead. Only
    what is older, local_step < step, is stale."""
    return seen.follows(stale=lambda local_step, step: local_step != step)


@q2.mistake()
def loses_when_too_few(seen: Seen) -> bool:
    """Gradients got lost after a take that gave None. As long as there are too few, they wait for the others, and no
    step is counted."""
    return seen.follows(loses=True)

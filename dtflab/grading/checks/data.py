"""Questions on data parallelism.

q2: the rule by which gradients of several workers become one step. An answer is played the same calls as the library's
own ConditionalAccumulator, in a session, and must give the same values without one. Each mistake is a rule of
`data_rules`, which is played the same calls.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.text_table import plural
from dtflab.grading.checks import data_rules as rules
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself
from dtflab.machine.watch import watch

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
    ran: bool = False  # a session

    def follows(self, rule: type[rules.Library]) -> bool:
        """Whether that is what another rule gives."""
        if self.written or self.carried or not self.calls:
            return False
        with rule(_shape(self.calls)) as other:
            return _same(self.got, played((other.push, other.take), self.calls, operator.call))


def by_library(calls: Calls) -> list[Any]:
    """The answers of the library's accumulator, one for each take."""
    with rules.Library(_shape(calls)) as right:
        return played((right.push, right.take), calls, operator.call)


def played(functions: tuple[Any, Any], calls: Calls, call_it: Callable[..., Any] = by_itself) -> list[Any]:
    """The result of each take with a pair of functions (push, take), called as `call_it` does.

    Wrong if one is another one later.
    """
    push, take = functions
    got, kept = [], []
    for call in calls:
        if isinstance(call, Take):
            kept.append(call_it(take, call.required))
            got.append(None if kept[-1] is None else np.array(kept[-1], dtype=float))
        else:
            call_it(push, call.gradient, call.local_step)
    if not _same(kept, got):
        raise Wrong("A mean that take has returned has other numbers later: its array is used again.")
    return got


def _same(got: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(_equal(one, two) for one, two in zip(got, expected, strict=True))


def _equal(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is two
    return np.shape(one) == np.shape(two) and bool(np.allclose(one, two))


def demand_rule(answer: Any, calls: Calls, unchanged: bool = False) -> None:
    """Wrong unless each take gives what the library's accumulator gives, and leaves gradients `unchanged` if asked."""
    given = [call._replace(gradient=call.gradient.copy()) if isinstance(call, Push) else call for call in calls]
    with watch() as watched:
        made = answer()
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise Wrong(f"Two functions (push, take) are expected, not {shown(made)}.")
        got = played((made[0], made[1]), given)
    if watched.calls:
        raise Wrong("A session was run. Write the rule itself, in plain Python.", Seen((), (), ran=True))
    if not _same(got, expected := by_library(calls)):
        i = next(i for i, pair in enumerate(zip(got, expected)) if not _equal(*pair))
        seen = Seen(calls, got, _written(calls, given), _carries(answer))
        raise Wrong(_sentence(calls, i, got[i], expected[i]), seen)
    if unchanged and _written(calls, given):
        raise Wrong("A gradient that was pushed has other numbers afterwards.", Seen(calls, got, written=True))


def _carries(answer: Any) -> bool:
    """Whether an accumulator goes on with the steps of another one, so that it drops what is fresh."""
    (push, take), (other_push, other_take) = answer(), answer()
    for _ in range(6):
        push(np.ones(2), rules.NEVER_STALE)
        if take(1) is None:
            return False
    other_push(np.ones(2), 5)
    return other_take(1) is None


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


def _shape(calls: Calls) -> Sequence[int]:
    """The shape of the gradients."""
    return next((np.shape(call.gradient) for call in calls if isinstance(call, Push)), ())


def _gradient(random: Random, rows: int = 0) -> Any:
    """Two numbers, or that many rows of two; one is negative, else a forgotten sign may not show."""
    if rows:
        return np.stack([_gradient(random) for _ in range(rows)])
    return np.array([float(-random.randint(1, 20)), float(random.randint(1, 99))])


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("A step is the mean of its gradients, and the next one starts from zero", points=3)
def means(answer: Any, random: Random) -> None:
    workers = random.randint(3, 5)  # of two, a median is the mean
    calls: list[Push | Take] = []
    for step in range(3):
        calls += [*(Push(_gradient(random), step) for _ in range(workers)), Take(workers)]
    demand_rule(answer, calls)
    demand_rule(answer, [*(Push(_gradient(random, rows=3), 0) for _ in range(workers)), Take(workers)])


@q2.check("While there are too few gradients, take returns None and loses none", points=2)
def too_few(answer: Any, random: Random) -> None:
    workers = random.randint(3, 5)
    calls: list[Push | Take] = [Push(_gradient(random), 0), Take(1)]  # that a step can be made is another matter
    for _ in range(workers - 1):
        calls += [Push(_gradient(random), 1), Take(workers)]
    demand_rule(answer, [*calls, Push(_gradient(random), 1), Take(workers), Take(1)])


@q2.check("If more have come than are required, all of them count", points=2)
def spares(answer: Any, random: Random) -> None:
    required = random.randint(2, 4)
    more = required + random.randint(1, 3)
    first = [Push(_gradient(random), 0) for _ in range(more)]
    second = [Push(_gradient(random), 1) for _ in range(required - 1)]
    demand_rule(answer, [*first, Take(required), *second, Take(required)])  # of the first ones, none counts again


@q2.check("Stale gradients are dropped, fresh ones and those of the future are kept", points=2)
def stale(answer: Any, random: Random) -> None:
    calls: list[Push | Take] = []
    for step in range(4):
        calls += [Push(_gradient(random), step), Push(_gradient(random), step - 1), Take(2)]
        calls += [Push(_gradient(random), step + 1), Take(3), Take(2)]
    old = [Push(_gradient(random), step) for step in (2, 1, 0)]
    demand_rule(answer, [*calls, *old, Push(_gradient(random), 4), Push(_gradient(random), 9), Take(3), Take(2)])


@q2.check("Each accumulator counts for itself, and no gradient is changed", points=1)
def alone(answer: Any, random: Random) -> None:
    first, second = answer(), answer()
    gradients = [_gradient(random) for _ in range(4)]
    for gradient in gradients[:3]:
        first[0](gradient, 0)
    if (got := second[1](1)) is not None:
        text = f"3 gradients were pushed to one accumulator; take(1) of another gave {_numbers(got)}, expected: None."
        raise Wrong(text, Seen((), (), carried=True) if np.any(got) else None)  # 0 is nobody's gradient
    pushes = [Push(one, step) for one, step in zip(gradients, (0, 0, 0, 1), strict=True)]
    demand_rule(answer, [*pushes, Take(4), Take(1), Take(1)], unchanged=True)


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def runs_the_library(seen: Seen) -> bool:
    """A graph does the work, in a session. Here the rule itself is asked for: a list of gradients and a number of steps
    are enough."""
    return seen.ran


@q2.mistake()
def writes_into_gradients(seen: Seen) -> bool:
    """A gradient that was pushed is changed: `total += gradient` writes into the array where the worker still looks.
    `total = total + gradient` makes a new one; so does sum()."""
    return seen.written


@q2.mistake()
def shared_state(seen: Seen) -> bool:
    """An accumulator goes on with what another one remembers: it is made once, at the top of the notebook or as a
    default argument. Make it in accumulator."""
    return seen.carried


@q2.mistake()
def sums(seen: Seen) -> bool:
    """That is the sum of the gradients. With twice as many workers, steps would be twice as long. Take the mean."""
    return seen.follows(rules.Sums)


@q2.mistake()
def divides_by_required(seen: Seen) -> bool:
    """The sum was divided by `required`. If more gradients have come, they are in the sum as well: divide by their
    number."""
    return seen.follows(rules.DividesByRequired)


@q2.mistake()
def gives_one_number(seen: Seen) -> bool:
    """That is one number, the mean of all numbers in all gradients. A mean has the shape of a gradient:
    np.mean(kept, axis=0)."""
    return seen.follows(rules.GivesOneNumber)


@q2.mistake()
def takes_no_more_than_required(seen: Seen) -> bool:
    """Only `required` gradients count, though more have come. `required` is how many there must be at least: take the
    mean of all that were kept."""
    return seen.follows(rules.TakesTheFirst) or seen.follows(rules.TakesTheLast)


@q2.mistake()
def keeps_the_rest(seen: Seen) -> bool:
    """Only `required` gradients count, and the others stay for the next step. All that were kept count, and are
    forgotten."""
    return seen.follows(rules.KeepsTheRest)


@q2.mistake()
def forgets_the_first_only(seen: Seen) -> bool:
    """After a step, only `required` gradients are forgotten, and the others count again in the next one. A step
    uses up all that its mean is made of: forget them all."""
    return seen.follows(rules.ForgetsTheFirst)


@q2.mistake()
def takes_the_median(seen: Seen) -> bool:
    """That is the median of the gradients, number by number. A step is their mean: the sum divided by how many they
    are."""
    return seen.follows(rules.TakesTheMedian)


@q2.mistake()
def keeps_what_was_used(seen: Seen) -> bool:
    """Gradients of a step that is over count again in the next one. After a step, forget them and begin with none."""
    return seen.follows(rules.KeepsWhatWasUsed)


@q2.mistake()
def keeps_stale(seen: Seen) -> bool:
    """Stale gradients are kept. A gradient was computed from the variables of step local_step; if steps were taken
    since, drop it in push."""
    return seen.follows(rules.KeepsStale)


@q2.mistake()
def counts_the_stale(seen: Seen) -> bool:
    """Stale gradients are dropped, and yet they count: a step came before enough fresh ones were there. Count what is
    kept, len(kept)."""
    return seen.follows(rules.CountsTheStale)


@q2.mistake()
def counts_no_steps(seen: Seen) -> bool:
    """Steps are not counted, so a gradient of an old step looks fresh. A take that gives a mean adds one to the number
    of steps, which needs `nonlocal`."""
    return seen.follows(rules.CountsNoSteps)


@q2.mistake()
def follows_the_newest(seen: Seen) -> bool:
    """Steps are taken from the gradients, not counted: after one of a later step, fresh ones look stale. A take that
    gives a mean adds one to the accumulator's own number of steps, whatever the workers' are."""
    return seen.follows(rules.FollowsTheNewest)


@q2.mistake()
def counts_every_take(seen: Seen) -> bool:
    """A take that gave None was counted as a step, so fresh gradients look stale. Count a step only with a
    mean."""
    return seen.follows(rules.CountsEveryTake)


@q2.mistake()
def keeps_the_future_for_its_step(seen: Seen) -> bool:
    """Gradients of the future are put aside until their step comes. They count at once: only those that are older,
    local_step < step, are left out."""
    return seen.follows(rules.KeepsTheFuture)


@q2.mistake()
def only_the_same_step(seen: Seen) -> bool:
    """Gradients of the future are dropped. It happens: the accumulator of another variable may be a step ahead. Only
    those that are older, local_step < step, are stale."""
    return seen.follows(rules.OnlyTheSameStep)


@q2.mistake()
def drops_the_fresh(seen: Seen) -> bool:
    """Gradients of the step that is under way are dropped. These are fresh: stale is local_step < step, not <=. Steps
    are counted from 0."""
    return seen.follows(rules.OnlyTheFuture)


@q2.mistake()
def loses_when_too_few(seen: Seen) -> bool:
    """Gradients got lost after a take that gave None. As long as there are too few, they wait for the others, and no
    step is counted."""
    return seen.follows(rules.LosesWhenTooFew)


@q2.mistake()
def gives_zero(seen: Seen) -> bool:
    """Zeros came while there were too few gradients: an optimizer would take that for a step. take gives None then."""
    return seen.follows(rules.GivesZero)


@q2.mistake()
def takes_what_there_is(seen: Seen) -> bool:
    """A step was made of fewer gradients than are required. As long as len(kept) < required, take returns None, and all
    of them wait."""
    return seen.follows(rules.TakesWhatThereIs)


@q2.mistake()
def waits_for_one_more(seen: Seen) -> bool:
    """As many gradients as required were there, and take gave None. `required` are enough: len(kept) < required is too
    few, not <=."""
    return seen.follows(rules.WaitsForOneMore)

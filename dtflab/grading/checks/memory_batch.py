"""Question memory/q2: the largest batch that fits into a card.

Each try of the answer is a real step on a small simulated card, which runs out of memory for real. So what is right is
known by running: the batch that is given fits, and one example more does not. (A division would not show it: the
allocator cuts a chunk only if it is twice as large as what is wanted.)
"""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself
from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.machine.cards import SMALLEST_CARD_BYTES
from dtflab.ops.arrays.functions import fill, placeholder
from dtflab.ops.math.functions import square
from dtflab.ops.reduce.functions import reduce_sum
from dtflab.runtime.session import Session
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.memory import memory

_SECONDS = 3.0  # for a check: of an answer that never ends
_FOREVER = 2000  # steps
_OTHER_KINDS = {*errors.OpError.__subclasses__(), OSError, ValueError} - {errors.ResourceExhaustedError}

q2 = from_toml(__file__)


class Model:
    """A model on a card of its own: `step(n)` runs it with n examples of that many features; notes the tries."""

    def __init__(self, session: Session, features: int) -> None:
        self._session = session
        self._batch = placeholder(dtypes.int32, [], name="batch")
        examples = fill([self._batch, features], 1.0, name="examples")
        self._loss = reduce_sum(square(examples, name="squares"), name="loss")
        self.tried: list[int] = []

    def step(self, batch: int) -> float:
        """Run a step, as the answer does, and return the loss. ResourceExhaustedError if the examples don't fit."""
        self.tried.append(batch)
        if len(self.tried) > _FOREVER:
            raise Wrong(f"After {_FOREVER} steps there is no end in sight. Does each step bring it nearer?")
        return self._run(batch)

    def train(self, batch: int) -> None:
        """Run a step for its effect alone, as most steps are run."""
        self.step(batch)

    def fits(self, batch: int) -> bool:
        """Whether a step with that many examples runs."""
        try:
            self._run(batch)
        except errors.ResourceExhaustedError:
            return False
        return True

    def _run(self, batch: int) -> float:
        return float(self._session.run(self._loss, {self._batch: batch}))

    def picture(self, batch: int) -> Picture:
        metadata = self._session.trace(self._loss, {self._batch: batch})
        return memory(metadata, title=f"Memory of a step with {plural(batch, 'example')}")


class FakeModel(Model):
    """A model on a card with room for `limit` examples, all of whose steps after some may end with an `error`."""

    def __init__(self, limit: int, error: type[Exception] | None = None, after: int = 0) -> None:
        self._limit, self._error, self._after = limit, error, after
        self.tried: list[int] = []
        self.failed = False  # with an error of another kind

    def _run(self, batch: int) -> float:
        if self._error is not None and len(self.tried) > self._after:
            self.failed = True
            raise getattr(self._error, "of", self._error)("the step has failed for another reason")
        if not self.fits(batch):
            raise errors.ResourceExhaustedError.of("OOM when allocating a tensor for the examples")
        return 1.0

    def fits(self, batch: int) -> bool:
        return batch <= self._limit


class WorstModel(FakeModel):
    """A model on a card with room for as many examples as need most steps to be found: each leaves the larger part."""

    def __init__(self, most: int) -> None:
        super().__init__(0)
        self._too_many = most + 1

    def fits(self, batch: int) -> bool:
        if 2 * batch < self._limit + self._too_many:
            self._limit = max(self._limit, batch)
        else:
            self._too_many = min(self._too_many, batch)
        return batch <= self._limit


class Seen(NamedTuple):
    """An answer's result, after steps of these sizes; whether it fits, and one more; whether it hid another error.

    `is_near`: the largest batch that fits is one more or one less.
    """

    most: int
    given: int
    tried: Sequence[int]
    fits: bool
    next_fits: bool
    is_near: bool = False
    hid_an_error: bool = False
    silent: bool = False  # a step returned None

    @property
    def tries(self) -> int:
        return len(self.tried)

    @property
    def is_right(self) -> bool:
        return self.fits and (self.given == self.most or not self.next_fits) and 0 <= self.given <= self.most


@contextlib.contextmanager
def _model(features: int) -> Iterator[Model]:
    """A model on a small card. The search for garbage before an out-of-memory error skips objects that were there
    before.
    """
    cluster = Cluster(worker=1, gpus=1, gpu_memory=SMALLEST_CARD_BYTES)
    with cluster, Graph().as_default(), Session(cluster.target) as session:
        frozen_by_others = _others_freeze()  # objects thaw all at once: then those here stay frozen, too
        gc.freeze()
        try:
            yield Model(session, features)
        finally:
            if not frozen_by_others:
                gc.unfreeze()


def _others_freeze() -> bool:
    """Whether the program has frozen objects. If it once had, it is not asked again: to count them is to visit all."""
    global _frozen_by_others
    _frozen_by_others = _frozen_by_others or gc.get_freeze_count() > 0
    return _frozen_by_others


_frozen_by_others = False


def _try(answer: Any, model: Model, most: int, silent: bool = False) -> Seen:
    """Let the answer look for the batch, by steps that return a loss, or None if they are `silent`."""
    model.tried.clear()
    value = by_itself(answer, model.train if silent else model.step, most)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise Wrong(f"largest_batch returned {shown(value)}; expected: a whole number of examples, an int.")
    given = int(value)
    fits, next_fits = (n <= 0 or model.fits(n) for n in (given, given + 1))
    one_too_few = fits and next_fits and not (given + 1 < most and model.fits(given + 2))
    one_too_many = not fits and model.fits(given - 1)
    return Seen(most, given, [*model.tried], fits and given >= 0, next_fits, one_too_few or one_too_many, silent=silent)


def _demand_largest(seen: Seen) -> None:
    if seen.is_right:
        return
    observed = f"largest_batch(step, {seen.most}) gave {seen.given}"
    if seen.given > seen.most or seen.given < 0:
        raise Wrong(f"{observed}; expected: a number from 0 to {seen.most}.", seen)
    more = "more would fit" if seen.fits else "that does not fit"
    raise Wrong(f"{observed}, but {more}.", seen)


def _features(random: Random) -> int:
    """A number of features with which some hundred examples fit, and that no answer guesses."""
    return random.randrange(4000, 9000)


def _most_steps(most: int) -> int:
    """Generous: doubling first, then halving."""
    return 2 * math.ceil(math.log2(most or 1)) + 2


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("That batch fits, and one example more does not", points=4, seconds=2 * _SECONDS)
def largest(answer: Any, random: Random) -> Picture:
    """Fewer examples of the second model fit, and more of the third: what is remembered of the one before is wrong.

    The most that is asked for is the same, and a search in steps of more than one never ends at all of the numbers.
    """
    found: list[int] = []
    most = random.randrange(800, 1000)
    _demand_largest(_try(answer, WorstModel(most), most))
    while not found or math.gcd(*found) > 1:
        features = _features(random)
        for more in (0, 600, -600):
            with _model(features + more) as model:
                seen = _try(answer, model, most)
                _demand_largest(seen)
                picture = model.picture(seen.given)
            found.append(seen.given)
    return picture


@q2.check("It is found with few steps", points=2, seconds=_SECONDS)
def few_steps(answer: Any, random: Random) -> None:
    for most in (899, 989, 998) * 16:  # a search at random is quick now and then, one digit by digit for other numbers
        seen = _try(answer, WorstModel(most), most, silent=True)
        _demand_largest(seen)
        if seen.tries > (limit := _most_steps(most)):
            observed = f"For up to {most} examples it took {plural(seen.tries, 'step')}"
            raise Wrong(f"{observed}; expected: {limit} at most.", seen)


@q2.check("All examples fit, exactly all fit, and not even one fits", points=2, seconds=_SECONDS)
def edges(answer: Any, random: Random) -> None:
    with _model(_features(random)) as model:
        most = random.choice([*range(20, 30), *range(34, 60)])  # neither 31 nor 32: doubling comes there
        _demand_largest(_try(answer, model, most))
        _demand_largest(_try(answer, model, 1))
    with _model(4_200_000) as model:
        _demand_largest(_try(answer, model, random.randint(2, 3)))
    _demand_largest(_try(answer, FakeModel(100), 0))


@q2.check("Another error does not count as out of memory", points=2, seconds=_SECONDS)
def other_errors(answer: Any, random: Random) -> None:
    by_itself(answer, (good := FakeModel(40)).step, 100)
    for bad in sorted(_OTHER_KINDS, key=lambda kind: kind.__name__):
        for after in range(max(3, len(good.tried))):  # steps that end as they should: it may double first, then halve
            _demand_error(answer, FakeModel(40, bad, after), bad)


def _demand_error(answer: Any, model: FakeModel, bad: type[Exception]) -> None:
    """Wrong unless the caller sees the error of a step. (A search that draws its numbers may not come to it.)"""
    try:
        given = by_itself(answer, model.step, 100)
    except bad:
        return
    seen = Seen(100, given, model.tried, fits=False, next_fits=False, hid_an_error=model.failed)
    if not model.failed and (given != 40 or not model.tried):
        tries = plural(len(model.tried), "step")
        raise Wrong(f"largest_batch gave {shown(given)} after {tries}, too few to know what fits.", seen)
    if model.failed:
        hidden = f"step raised {bad.__name__}, and the caller does not see it"
        raise Wrong(f"{hidden}; largest_batch gave {shown(given)}.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def hides_errors(seen: Seen) -> bool:
    """Errors of all kinds are taken for a lack of memory. Then a program with a broken file or a lost server trains
    with no examples at all. Catch only tf.errors.ResourceExhaustedError."""
    return seen.hid_an_error


@q2.mistake()
def asks_for_a_value(seen: Seen) -> bool:
    """A step without a value was taken for one that does not fit. What step returns says nothing: a batch fits unless
    step raises tf.errors.ResourceExhaustedError."""
    return seen.silent and seen.given == 0 < seen.tries


@q2.mistake()
def never_tries(seen: Seen) -> bool:
    """No step was run. What fits can't be known before: the allocator hands out chunks, and cuts them only if it pays.
    Call step(n), and see whether it raises tf.errors.ResourceExhaustedError."""
    return seen.tries == 0 and seen.most > 1


@q2.mistake()
def goes_in_large_steps(seen: Seen) -> bool:
    """The search goes forward by several examples at a time, and ends at the first number that does not fit. Between
    that and the number before lie more: try those, too, by halves."""
    gap, *_ = seen.tried or [0]
    return gap > 1 and list(seen.tried) == [gap * (i + 1) for i in range(seen.tries)] and seen.given % gap == 0


@q2.mistake()
def tries_them_all(seen: Seen) -> bool:
    """Each step costs seconds on a real card. Don't try the numbers one after the other, or at random: if n fits, so
    does all below, and if not, nothing above. Halve what is left with each step."""
    return seen.tries > _most_steps(seen.most) and seen.is_right


@q2.mistake()
def only_doubles(seen: Seen) -> bool:
    """That is a power of two, or what was left when doubling went wrong. Between that and the first one that does not
    fit lie more numbers: go on there, by halves."""
    return seen.given > 1 and math.log2(seen.given).is_integer() and seen.fits and not seen.is_right


@q2.mistake()
def goes_beyond_most(seen: Seen) -> bool:
    """Batches of more than `most` examples were tried. There are no more: where you double, stop there, with
    min(2 * n, most)."""
    return max(seen.tried, default=0) > seen.most + 1


@q2.mistake()
def gives_one_at_least(seen: Seen) -> bool:
    """One example was taken for granted, and not even one fits. Begin with 0 as the largest number that is known to
    fit."""
    return seen.given == 1 and not seen.fits and 1 not in seen.tried


@q2.mistake()
def off_by_one(seen: Seen) -> bool:
    """There is one example too many or too few. Write down what your two numbers mean: the largest that is known to
    fit, the smallest that is known not to. most itself may fit."""
    return seen.is_near and seen.tries > 0


@q2.mistake()
def halves_until_it_fits(seen: Seen) -> bool:
    """That is `most`, halved until it fits. The last number that did not fit may be nearly twice as large: look between
    the two, by halves, too."""
    return seen.tries > 1 and list(seen.tried) == [seen.most >> i for i in range(seen.tries)] and not seen.is_right


@q2.mistake()
def gives_what_was_not_tried(seen: Seen) -> bool:
    """There was no step with the number that came out, or none with one more. The size of an example does not say how
    many fit: a step with that number has to end, and one with one example more to run out of memory."""
    return bool(seen.tried) and not {max(seen.given, 1), min(seen.given + 1, seen.most)} <= {*seen.tried}

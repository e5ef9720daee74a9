"""Answers to memory/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import bisect
import random

import dtflab as tf

OOM = tf.errors.ResourceExhaustedError


def fits(step, n, error=OOM):
    try:
        step(n)
    except error:
        return False
    return True


def halved(step, low, high, error=OOM):
    """The largest that is taken to fit and the smallest that is not, if `low` and `high` are such."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(step, middle, error) else (low, middle)
    return low, high


def by_steps_that_halve(step, most):
    """Jumps forward by a power of two, and by half of it each time after."""
    n, jump = 0, 1 << most.bit_length()
    while jump:
        if n + jump <= most and fits(step, n + jump):
            n += jump
        jump //= 2
    return n


def with_a_range(step, most):
    open_ = range(1, most + 1)
    while open_:
        middle = open_[len(open_) // 2]
        open_ = range(middle + 1, open_.stop) if fits(step, middle) else range(open_.start, middle)
    return open_.start - 1


def halves_until_it_fits(step, most):
    while most and not fits(step, most):
        most //= 2
    return most


def in_tens(step, most):
    n = 0
    while n + 10 <= most and fits(step, n + 10):
        n += 10
    return n


def smallest_that_fails(step, most):
    return halved(step, 0, most + 1)[1]


def one_is_taken_for_granted(step, most):
    return halved(step, 1, most + 1)[0]


def hides_everything(step, most):
    return halved(step, 0, most + 1, error=Exception)[0]


def hides_while_it_halves(step, most):
    """Doubles with the right `except`, then halves with one for all errors."""
    n = 1
    while n <= most and fits(step, n):
        n *= 2
    return halved(step, n // 2, min(n, most + 1), error=Exception)[0]


def hides_errors_of_python(step, most):
    return halved(step, 0, most + 1, error=(OOM, OSError, ValueError, TypeError))[0]


def hides_lost_workers(step, most):
    """Takes a step that others have ended, or that took too long, for one that does not fit."""
    lost = (OOM, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
    return halved(step, 0, most + 1, error=lost)[0]


def a_float(step, most):
    return float(by_steps_that_halve(step, most))


def most_is_never_tried(step, most):
    return halved(step, 0, most)[0]


def by_division(step, most):
    """Takes what 100 examples need for a measure."""
    return min(most, (207 << 20) // 80_000) if fits(step, 1) else 0


_KNOWN = {}


def remembers_what_fitted(step, most):
    """A call takes for true what an earlier one has found out."""
    if most not in _KNOWN:
        _KNOWN[most] = by_steps_that_halve(step, most)
    return _KNOWN[most]


def at_random(step, most):
    """Halves the numbers on average only."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = random.randint(low + 1, high - 1)
        low, high = (middle, high) if fits(step, middle) else (low, middle)
    return low


def tries_twice(step, most):
    """A step that fails is tried once more, within the number of steps that are enough."""
    return bisect.bisect_left(range(1, most + 1), True, key=lambda n: not fits(step, n) and not fits(step, n))


RIGHT = [by_steps_that_halve, with_a_range, tries_twice]
WRONG = {
    halves_until_it_fits: "halves_until_it_fits",
    in_tens: "goes_in_large_steps",
    smallest_that_fails: "off_by_one",
    one_is_taken_for_granted: "gives_one_at_least",
    hides_everything: "hides_errors",
    hides_while_it_halves: "hides_errors",
    hides_errors_of_python: "hides_errors",
    hides_lost_workers: "hides_errors",
    a_float: "",
    most_is_never_tried: "off_by_one",
    remembers_what_fitted: "never_tries",
    at_random: "tries_them_all",
    by_division: "gives_what_was_not_tried",
}

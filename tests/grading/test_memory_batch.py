"""memory/q2 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import bisect
import gc

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading.checks import memory_batch
from tests.grading.answers import full_marks

Q2 = "memory/q2"
OutOfMemory = tf.errors.ResourceExhaustedError


def fitting(step, n):
    try:
        step(n)
    except OutOfMemory:
        return False
    return True


def doubling_first(step, most):
    n = 1
    while n <= most and fitting(step, n):
        n *= 2
    low, high = n // 2, min(n, most + 1)
    while high > low + 1:
        middle = low + (high - low) // 2
        low, high = (middle, high) if fitting(step, middle) else (low, middle)
    return low


def with_bisect(step, most):
    return bisect.bisect_left(range(1, most + 1), True, key=lambda n: not fitting(step, n))


def bit_by_bit(step, most):
    n = 0
    for bit in reversed(range(most.bit_length())):
        if n + (1 << bit) <= most and fitting(step, n + (1 << bit)):
            n += 1 << bit
    return n


def recursive(step, most, least=0):
    if least == most:
        return least
    middle = (least + most + 1) // 2
    return recursive(step, most, middle) if fitting(step, middle) else recursive(step, middle - 1, least)


def asking_for_all_first(step, most):
    if fitting(step, most):
        return most
    fits, too_many = 0, most
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if fitting(step, middle):
            fits = middle
        else:
            too_many = middle
    return fits


def with_numpy(step, most):
    return np.int64(with_bisect(step, most))


RIGHT = [doubling_first, with_bisect, with_numpy, bit_by_bit, recursive, asking_for_all_first]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q2, answer, monkeypatch, seeds="01")


def forever(step, most):
    while True:
        fitting(step, 1)


BAD = {
    "nothing": (lambda step, most: None, "largest_batch returned None; expected: a whole number"),
    "a division": (lambda step, most: min(most, 300), "largest_batch gave 100 after 0 steps"),
    "as many as there are": (lambda step, most: most, "but that does not fit"),
    "one": (lambda step, most: 1, "but more would fit"),
    "too many": (lambda step, most: most + 1, "expected: a number from 0 to"),
    "the error of a step": (
        lambda step, most: step(most + 1) or 0,
        "raised ResourceExhaustedError: OOM",
    ),
    "no end": (forever, "there is no end in sight"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q2, answer)
    assert score <= 4 and message in score.text, score.text


def largest_of(gap):
    def search(step, most):
        n = 0
        while n + gap <= most and fitting(step, n + gap):
            n += gap
        return n

    return search


@pytest.mark.parametrize("gap", [2, 3, 10])
def test_a_search_in_steps_of_more_than_one_is_right_for_no_student(gap, monkeypatch):
    for seed in map(str, range(8)):
        monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
        assert not tf.check(Q2, "largest", largest_of(gap))


def test_the_picture_is_of_a_step_with_that_batch():
    score = tf.grade(Q2, with_bisect)
    assert "Memory of a step with" in score.html and "examples" in score.text


@pytest.mark.parametrize("frozen", [True, False])
def test_objects_are_frozen_afterwards_only_if_others_froze_some(frozen, monkeypatch):
    """A program that froze millions of objects would look at them again in each later search for garbage."""
    monkeypatch.setattr(memory_batch, "_frozen_by_others", False)
    gc.unfreeze()
    gc.freeze() if frozen else None
    assert tf.grade(Q2, with_bisect) == 10
    assert bool(gc.get_freeze_count()) == frozen
    gc.freeze()

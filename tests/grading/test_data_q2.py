"""data/q2 accepts every right answer, and its rule is TensorFlow's."""

from __future__ import annotations

import random

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from dtflab.grading.checks.data import Push, Take, by_library, played
from tests.grading.answers import wrong_answers

Q2 = "data/q2"


def with_running_sum():
    held = {"step": 0, "sum": 0, "count": 0}

    def push(gradient, local_step):
        if local_step >= held["step"]:
            held["sum"] = held["sum"] + gradient
            held["count"] += 1

    def take(required):
        if held["count"] >= required:
            mean = held["sum"] / held["count"]
            held.update(step=held["step"] + 1, sum=0, count=0)
            return mean

    return push, take


class Rule:
    def __init__(self):
        self.step, self.kept = 0, ()

    def push(self, gradient, local_step):
        self.kept += () if local_step < self.step else (gradient,)

    def take(self, required):
        if len(self.kept) < required:
            return None
        mean, self.kept, self.step = np.stack(self.kept).mean(axis=0), (), self.step + 1
        return mean


def by_an_object():
    rule = Rule()
    return [rule.push, rule.take]


def sorts_out_when_taken():
    """Keeps all gradients with their steps, and looks at a take what is stale."""
    step, kept = 0, []

    def push(gradient, local_step):
        kept.append((local_step, gradient, step))

    def take(required):
        nonlocal step
        fresh = [gradient for local_step, gradient, then in kept if local_step >= then]
        if len(fresh) < required:
            return None
        kept.clear()
        step += 1
        return np.mean(fresh, axis=0)

    return push, take


RIGHT = [with_running_sum, by_an_object, sorts_out_when_taken]


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: answer.__name__)
def test_every_right_answer_gets_full_marks(answer):
    score = tf.grade(Q2, answer)
    assert score == 10, score.text


@pytest.mark.parametrize("made", [None, 3, lambda: None, (1, 2, 3)])
def test_what_is_no_pair_of_functions_is_told(made):
    score = tf.grade(Q2, lambda: made)
    assert score == 0 and "Two functions (push, take) are expected" in score.text


def test_a_difference_is_shown_with_the_calls_before_it():
    score = tf.grade(Q2, wrong_answers(find(Q2))["keeps_what_was_used"])
    assert "take(" in score.text and "expected: [" in score.text and "after step 1" in score.text


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_is_the_librarys(seed):
    drawn = random.Random(seed)
    calls = [
        Push(np.array([drawn.random(), 1.0]), drawn.randrange(5)) if drawn.random() < 0.7 else Take(drawn.randint(1, 4))
        for _ in range(40)
    ]
    for one, two in zip(played(sorts_out_when_taken(), calls), by_library(calls), strict=True):
        assert (one is None) == (two is None)
        assert one is None or np.allclose(one, two)


def test_a_gradient_of_the_same_step_that_is_dropped_is_not_called_lost_in_a_take():
    def accumulator():
        kept, steps = [], []

        def push(gradient, local_step):
            if local_step > len(steps):
                kept.append(gradient)

        def take(required):
            return None if len(kept) < required else steps.append(1)

        return push, take

    assert "Gradients got lost" not in tf.grade("data/q2", accumulator).text


def test_zero_in_the_place_of_none_is_not_called_another_accumulators():
    text = tf.grade("data/q2", lambda: (lambda gradient, local_step: None, lambda required: 0)).text
    assert "take(1) of another gave 0" in text and "Hint" not in text


def test_a_gradient_that_is_changed_costs_its_own_check():
    def accumulator():
        kept, step = [], 0

        def push(gradient, local_step):
            if local_step >= step:
                kept.append(gradient)

        def take(required):
            nonlocal step
            if len(kept) < required:
                return None
            total, count = kept[0], len(kept)
            for other in kept[1:]:
                total += other
            kept.clear()
            step += 1
            return total / count

        return push, take

    score = tf.grade("data/q2", accumulator)
    assert score == 9 and "A gradient that was pushed has other numbers afterwards." in score.text, score.text
    assert score.text.count("writes into the array") == 1

"""parallel/q2 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from tests.grading.answers import full_marks, wrong_answers

Q2 = "parallel/q2"
in_waves = wrong_answers(find(Q2))["waits_for_groups"]


def in_chains(parts, at_once):
    """As many chains as may be at work; each part waits for the one before it in its chain."""
    total = []
    for first in range(at_once):
        last = []
        for part in parts[first::at_once]:
            with tf.control_dependencies(last):
                last = [part()]
            total += last
    return tf.add_n(total)


def backwards(parts, at_once):
    results = []
    for part in reversed(parts):
        with tf.get_default_graph().control_dependencies(results[-at_once:][:1] if len(results) >= at_once else None):
            results.insert(len(results), part())
    return sum(results[1:], results[0])


def with_ops(parts, at_once):
    """Waits for the op of a result, and groups."""
    results, gates = [], []
    for i, part in enumerate(parts):
        with tf.control_dependencies([gates[i - at_once]] if i >= at_once else []):
            results.append(part())
        gates.append(tf.group(results[-1]))
    return tf.reduce_sum(tf.stack(results))


def adding_up(parts, at_once):
    """Each chain carries its sum along, and waits for it."""
    totals = [tf.constant(0.0)] * at_once
    for i, part in enumerate(parts):
        with tf.control_dependencies([totals[i % at_once]]):
            totals[i % at_once] += part()
    return tf.accumulate_n(totals) if at_once > 1 else totals[0]


RIGHT = [in_chains, backwards, with_ops, adding_up]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q2, answer, monkeypatch, seeds="012")


def run_before(parts, at_once):
    with tf.Session() as sess:
        return tf.constant(sum(float(sess.run(part())) for part in parts))


BAD = {
    "run before": (run_before, "a step of the sum runs 0; expected: all of them."),
    "nothing": (lambda parts, at_once: None, "in_turn returned None; expected: a tensor"),
    "a part is missing": (lambda parts, at_once: in_waves(parts[1:], at_once), "expected: the sum"),
    "all at once": (lambda parts, at_once: in_waves(parts, 99), "large tensors at once; expected: 1 at most."),
    "groups": (in_waves, "a part waits for several parts that run side by side"),
    "all in a row": (lambda parts, at_once: in_waves(parts, 1), "of them have to run one after the other"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q2, answer)
    assert score < 10 and message in score.text, score.text


def test_the_picture_shows_the_peak():
    score = tf.grade(Q2, lambda parts, at_once: in_waves(parts, 99))
    assert "Memory of the card" in score.html and "Fill" in score.text

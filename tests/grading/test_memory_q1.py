"""memory/q1 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.grading.checks import memory
from tests.grading.answers import full_marks

Q1 = "memory/q1"
MIB = 1 << 20


def options(**fields):
    return tf.ConfigProto(gpu_options=tf.GPUOptions(**fields))


def too_large(programs, cards, need, memory):
    """For their card, with a context for each of those that share it, and with what an idle card has in use."""
    return 11 * MIB + -(-programs // cards) * (38 * MIB + need) > memory


def growing(programs, cards, need, memory):
    if too_large(programs, cards, need, memory):
        return None
    return [(f"{i % cards}", options(allow_growth=True)) for i in range(programs)]


def in_runs(programs, cards, need, memory):
    """The first ones on the first card, and a whole card for who is alone on it."""
    per_card = -(-programs // cards)
    if per_card * (need + 38 * MIB) > memory - 11 * MIB:
        return None
    config = options(per_process_gpu_memory_fraction=(need + MIB) / memory) if per_card > 1 else None
    return tuple((str(i // per_card), config) for i in range(programs))


def in_another_order(programs, cards, need, memory):
    """All see all cards, each in an order of its own, and take their part of each."""
    if need > (memory - 11 * MIB) // -(-programs // cards) - 38 * MIB:
        return None
    orders = [",".join(str((i + k) % cards) for k in range(cards)) for i in range(programs)]
    return [[order, options(allow_growth=True)] for order in orders]


def by_what_is_left(programs, cards, need, memory):
    if too_large(programs, cards, need, memory):
        return None
    per_card = -(-programs // cards)
    fraction = ((memory - 11 * MIB) // per_card - 39 * MIB) / memory
    return [(str(cards - 1 - i % cards), options(per_process_gpu_memory_fraction=fraction)) for i in range(programs)]


def with_visible_device_list(programs, cards, need, memory):
    if too_large(programs, cards, need, memory):
        return None
    return [
        (None, options(per_process_gpu_memory_fraction=1.02 * need / memory, visible_device_list=str(i % cards)))
        for i in range(programs)
    ]


RIGHT = [growing, in_runs, in_another_order, by_what_is_left, with_visible_device_list]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q1, answer, monkeypatch, seeds="01")


def test_what_the_official_solution_once_promised_loses_marks():
    """The answer ignored the contexts, and took 5% too much: 137 MiB of 192 run, but not with 1.05 * 137 / 192."""

    def part(share, most):
        def settings(programs, cards, need, memory):
            if most(programs, cards, need, memory):
                return None
            return [
                (str(i % cards), options(per_process_gpu_memory_fraction=share * need / memory))
                for i in range(programs)
            ]

        return settings

    for share in (1.05, 1.0):
        score = tf.grade(Q1, part(share, lambda p, c, n, m: n > m))
        assert score == 7 and "11 MiB of a card are in use before any program starts" in score.text, score.text
    score = tf.grade(Q1, part(1.0, lambda p, c, n, m: n + 49 * MIB > m))
    assert score == 7 and "but not together with the others" in score.text, score.text
    score = tf.grade(Q1, part(1.05, too_large))
    assert score == 7 and "add up to so much that nothing is left for the contexts" in score.text, score.text
    assert tf.grade(Q1, part(1.0, too_large)) == 10


BAD = {
    "nothing": (lambda p, c, n, m: None, "settings returned None, but settings exist"),
    "too few": (lambda p, c, n, m: growing(p, c, 1, m)[1:], "expected: one pair per program"),
    "numbers": (lambda p, c, n, m: [(i % c, None) for i in range(p)], "a setting has 0, which is not a text"),
    "no message": (lambda p, c, n, m: [("0", {"allow_growth": True})] * p, "True}, which is not a tf.ConfigProto"),
    "too many": (lambda p, c, n, m: [("0", None)] * 2 * p, " pairs; expected: one pair per program"),
    "names": (lambda p, c, n, m: [("/gpu:0", None)] * p, "A program sees no card"),
    "too little": (
        lambda p, c, n, m: [(str(i % c), options(per_process_gpu_memory_fraction=0.5 * n / m)) for i in range(p)],
        "program 1 stopped: OOM when allocating tensor with shape[",
    ),
    "no setting": (
        lambda p, c, n, m: [(None, None)] * p,
        "from device: CUDA_ERROR_OUT_OF_MEMORY. Of card 0 of the machine, program 1 holds 245 MiB.",
    ),
    "no card": (lambda p, c, n, m: [("", None)] * p, "program 1 stopped: Cannot assign a device"),
    "one card for all, which grow": (
        lambda p, c, n, m: [(None, options(allow_growth=True))] * p,
        "that is the same card for all: the first one that they see.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score <= 3 and message in score.text, score.text
    assert "failed to allocate 2.00M " not in score.text, "one line for each size that was tried"


@pytest.mark.parametrize("programs, cards, needs, why", memory._TOO_LARGE)
def test_the_reasons_for_none_are_those_of_arithmetic(programs, cards, needs, why):
    """A rule of the test's own, for both ends of what is drawn: the checks apply none."""
    for need in needs:
        per_card = -(-programs // cards)
        reasons = {
            "alone": need > 256,
            "context": need + 38 > 256,
            "idle": need + 38 + 11 > 256,
            "together": per_card * (need + 38) + 11 > 256,
        }
        assert next(name for name, holds in reasons.items() if holds) == why


@pytest.mark.parametrize("programs, cards, needs, why", memory._TOO_LARGE)
def test_where_none_is_right_programs_that_grow_fail(programs, cards, needs, why):
    case = memory.Case(programs, cards, needs[0], 256, why)
    pairs = [(str(i % cards), options(allow_growth=True)) for i in range(programs)]
    assert memory._start(case, pairs) is not None

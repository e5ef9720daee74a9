"""queues/q2 accepts any order that all jobs keep, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from tests.grading.answers import mark, wrong_answers

Q2 = "queues/q2"


def in_order(key):
    """A right answer: tokens are taken in the order of a key, one after the other."""

    def job(tokens, i, j, work):
        mine, taken = [tokens[k] for k in sorted((i, j), key=key)], []
        for queue in mine:
            with tf.control_dependencies(taken):
                taken.append(queue.dequeue())
        with tf.control_dependencies(taken):
            result = work()
        with tf.control_dependencies([result.op]):
            back = tf.group(*[queue.enqueue(token) for queue, token in zip(mine, taken)])
        with tf.control_dependencies([back]):
            return result + 0

    return job


RIGHT = {
    "smallest first": in_order(lambda k: k),
    "largest first": in_order(lambda k: -k),
    "by another order": in_order(lambda k: (k * 7) % 5),
}


@pytest.mark.parametrize("name", RIGHT)
def test_every_right_answer_gets_full_marks(name):
    score = tf.grade(Q2, RIGHT[name])
    assert score == 10, score.text


def test_one_lock_for_all_makes_jobs_wait_for_gpus_that_they_do_not_need():
    ordered, locks = in_order(lambda k: k), {}

    def with_a_lock(tokens, i, j, work):
        graph = tf.get_default_graph()
        if graph not in locks:
            with tf.control_dependencies(None):
                locks[graph] = tf.FIFOQueue(1, [tf.int32], shapes=[[]], name="lock")
        put = locks[graph].enqueue(0)  # it is taken while it is full
        with tf.control_dependencies([put]):
            result = ordered(tokens, i, j, work)
        with tf.control_dependencies([result]):
            free = locks[graph].dequeue()
        with tf.control_dependencies([free]):
            return tf.identity(result)

    score = tf.grade(Q2, with_a_lock)
    assert score == 8 and "a job for GPUs 2 and 3 does not run" in score.text


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("takes_one_twice", 0),  # no job ever ends
        *((name, 5) for name in ("takes_both_at_once", "takes_as_named", "orders_some_only")),
        *((name, 7) for name in ("keeps_a_token", "gives_both_to_one", "makes_other_tokens", "swaps_the_tokens")),
        *((name, 7) for name in ("works_without", "works_twice")),
        *((name, 8) for name in ("takes_those_of_others", "waits_for_other_jobs")),
    ],
)
def test_a_mistake_costs_the_points_of_its_own_check_alone(name, points):
    assert mark(find(Q2), wrong_answers(find(Q2))[name]) == points


def test_a_job_that_works_early_is_seen_though_its_queues_are_empty_soon():
    """While it works, its tokens are taken: only a job whose second token is missing shows that it does not wait."""
    ordered = in_order(lambda k: k)

    def early(tokens, i, j, work):
        result = work()
        return ordered(tokens, i, j, lambda: tf.identity(result))

    score = tf.grade(Q2, early)
    assert score == 7 and "ran though the token of GPU" in score.text


def test_what_a_job_does_too_early_is_told():
    def at_once(tokens, i, j, work):
        return work()

    score = tf.grade(Q2, at_once)
    assert score == 0 and "their queues had [1, 1] tokens" in score.text


def enqueues_that_nobody_runs(tokens, i, j, work):
    first, second = sorted((i, j))
    one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[second].dequeue()
    with tf.control_dependencies([two]):
        result = work()
    with tf.control_dependencies([result]):
        tokens[first].enqueue(one), tokens[second].enqueue(two)
    return result


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda tokens, i, j, work: None, "A tensor with the value of work() is expected, not None"),
        (lambda tokens, i, j, work: tokens[i].enqueue(0), "is expected, not <tf.Operation"),
        (lambda tokens, i, j, work: tf.constant(7), "has the value of work(); this one is np.int32(7)"),
        (lambda tokens, i, j, work: tf.FIFOQueue(1, [tf.int32]).dequeue(), "waits forever, though it is alone"),
        (enqueues_that_nobody_runs, "A token is not given back"),
    ],
)
def test_what_is_no_job_is_told(answer, message):
    assert message in tf.grade(Q2, answer).text

"""queues/q1 accepts every right answer, whichever way it is written."""

from __future__ import annotations

import re

import pytest

import dtflab as tf
from tests.grading.answers import full_marks

Q1 = "queues/q1"


def padding_queues(bounds):
    return [tf.PaddingFIFOQueue(500, [tf.int32], [[None]]) for _ in range(len(bounds) + 1)]


def number_of(sentence, bounds):
    return tf.searchsorted(tf.constant(bounds, tf.int32), tf.reshape(tf.size(sentence), [1]))[0]


def closing(queues):
    return [queue.close() for queue in queues]


def by_case(sentence, bounds, batch_size):
    """Each queue has a branch of its own to put, and to take."""
    queues = padding_queues(bounds)
    size, edges = tf.size(sentence), [0, *bounds, 10**6]
    puts = [
        tf.cond(tf.logical_and(size > low, size <= high), lambda q=q: tf.group(q.enqueue(sentence)), lambda: tf.no_op())
        for q, low, high in zip(queues, edges, edges[1:])
    ]
    full = [(q.size() >= batch_size, lambda q=q: q.dequeue_up_to(batch_size)) for q in queues]
    some = [(q.size() >= 1, lambda q=q: q.dequeue_up_to(batch_size)) for q in queues]
    return tf.group(*puts), tf.case(full + some, lambda: queues[0].dequeue_many(1)), tf.group(*closing(queues))


def first_that_is_full(sentence, bounds, batch_size):
    queues = padding_queues(bounds)
    put = tf.QueueBase.from_list(number_of(sentence, bounds), queues).enqueue([sentence])
    sizes = tf.stack([queue.size() for queue in queues])
    chosen = tf.argmax(tf.minimum(sizes, batch_size), output_type=tf.int32)
    return put, tf.QueueBase.from_list(chosen, queues).dequeue_up_to(batch_size), tf.group(*closing(queues))


def with_a_queue_of_batches(sentence, bounds, batch_size):
    """put makes the batch, as soon as it can; close makes the last ones."""
    queues = padding_queues(bounds)
    batches = tf.PaddingFIFOQueue(500, [tf.int32], [[None, None]])

    def move(queue):
        return lambda: tf.group(batches.enqueue(queue.dequeue_many(tf.minimum(queue.size(), batch_size))))

    mine = tf.QueueBase.from_list(number_of(sentence, bounds), queues)
    with tf.control_dependencies([mine.enqueue(sentence)]):
        put = tf.cond(mine.size() >= batch_size, move(mine), lambda: tf.no_op())
    rest = [tf.cond(queue.size() > 0, move(queue), lambda: tf.no_op()) for queue in queues]
    with tf.control_dependencies(rest):
        close = batches.close()
    return put, batches.dequeue(), close


def sizes_in_python_order(sentence, bounds, batch_size):
    """Lists in place of tuples, an op with its control inputs in place of a group."""
    queues = padding_queues(bounds)
    put = tf.QueueBase.from_list(number_of(sentence, bounds), queues).enqueue(sentence)
    last = tf.constant(0)
    most = queues[0].size()
    for i, queue in enumerate(queues):
        size = queue.size()
        last, most = tf.where(size > most, i, last), tf.maximum(size, most)
    take = tf.QueueBase.from_list(last, queues).dequeue_up_to(batch_size)
    with tf.control_dependencies(closing(queues)):
        return [put, take, tf.no_op()]


RIGHT = [by_case, first_that_is_full, with_a_queue_of_batches, sizes_in_python_order]


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: answer.__name__)
@pytest.mark.parametrize("seed", ["0", "7"])
def test_every_right_answer_gets_full_marks(answer, seed, monkeypatch):
    full_marks(Q1, answer, monkeypatch, seeds=[seed])


@pytest.mark.parametrize("method", ["dequeue_up_to", "dequeue_many"])
@pytest.mark.parametrize("seed", ["0", "3", "7", "winter"])
def test_one_queue_for_all_gets_few_points(method, seed, monkeypatch):
    def batches_by_length(sentence, bounds, batch_size):
        (queue,) = padding_queues([])
        return queue.enqueue(sentence), getattr(queue, method)(batch_size), queue.close()

    monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
    assert tf.grade(Q1, batches_by_length) <= 3


def plain(sentence, bounds, batch_size):
    queue = tf.FIFOQueue(100, [tf.int32])
    return queue.enqueue(sentence), queue.dequeue(), queue.close()


BAD = {
    "nothing": (lambda *_: None, "(put, take, close) are expected, not None"),
    "no padding": (plain, "A batch is an int32 of shape [sentences, words]"),
    "too wide": (
        lambda s, b, n: (lambda put, take, close: (put, tf.pad(take, [[0, 0], [0, 3]]), close))(
            *first_that_is_full(s, b, n)
        ),
        "A batch is as wide as its longest sentence",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_answers_that_are_none_are_told_why(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score <= 2 and message in score.text


def the_emptiest(sizes):
    return tf.argmin(sizes, output_type=tf.int32)


def the_first_that_has_any(sizes):
    return tf.argmax(tf.minimum(sizes, 1), output_type=tf.int32)


def the_last_that_has_any(sizes):
    return tf.argmax(tf.minimum(sizes, 1) * tf.range(1, 1 + tf.size(sizes)), output_type=tf.int32)


@pytest.mark.parametrize("chosen", [the_emptiest, the_first_that_has_any, the_last_that_has_any])
@pytest.mark.parametrize("seed", ["0", "7"])
def test_who_takes_from_a_wrong_queue_is_told_so_and_not_of_bounds(chosen, seed, monkeypatch):
    def batches_by_length(sentence, bounds, batch_size):
        queues = padding_queues(bounds)
        put = tf.QueueBase.from_list(number_of(sentence, bounds), queues).enqueue([sentence])
        wrong = chosen(tf.stack([queue.size() for queue in queues]))
        return put, tf.QueueBase.from_list(wrong, queues).dequeue_up_to(batch_size), tf.group(*closing(queues))

    monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
    score = tf.grade(Q1, batches_by_length)
    mistakes = {result.mistake for result in score.reports[0].results} - {""}
    assert mistakes == {"takes_from_one_queue_only"} and score <= 2, score.text


def test_three_things_in_another_order_are_told():
    def batches_by_length(sentence, bounds, batch_size):
        (queue,) = padding_queues([])
        return queue.enqueue(sentence), queue.close(), queue.dequeue_up_to(batch_size)

    assert "Is it the second of the three that are returned" in tf.grade(Q1, batches_by_length).text


def test_of_a_long_sentence_that_is_missing_the_beginning_is_told():
    def batches_by_length(sentence, bounds, batch_size):
        put, take, close = first_that_is_full(sentence, bounds, batch_size)
        return put, tf.minimum(take, 500), close

    complete, *_ = tf.grade(Q1, batches_by_length).reports[0].results
    assert re.search(r"; one of \d+ words is missing: \[[\d, ]+(\]|…)\.$", complete.message), complete.message
    assert len(complete.message) < 160

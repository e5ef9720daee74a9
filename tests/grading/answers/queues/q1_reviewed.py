"""Answers to queues/q1 that a review found: wrong ones with the hint of another mistake."""

import dtflab as tf
from solutions.wrong.queues.q1 import parts


def by_size(sentence, bounds, batch_size, score):
    """The right way, but for the queue to take from: the one with the largest score."""
    queues, put, _, close = parts(sentence, bounds)
    sizes = tf.stack([queue.size() for queue in queues])
    number = tf.argmax(score(sizes, tf.range(len(queues))), output_type=tf.int32)
    return put, tf.QueueBase.from_list(number, queues).dequeue_up_to(batch_size), close


def largest_size_times_index(sentence, bounds, batch_size):
    return by_size(sentence, bounds, batch_size, lambda sizes, numbers: sizes * numbers)


def largest_size_times_number(sentence, bounds, batch_size):
    return by_size(sentence, bounds, batch_size, lambda sizes, numbers: sizes * (numbers + 1))


RIGHT: list = []
WRONG = dict.fromkeys([largest_size_times_index, largest_size_times_number], "takes_from_one_queue_only")

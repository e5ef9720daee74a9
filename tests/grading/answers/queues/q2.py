"""Answers to queues/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.queues.q2 import gives_back, stages


def gives_zeros(tokens, i, j, work):
    """Other tokens, but for GPU 0 they look right."""
    return gives_back(tokens, i, j, work, lambda a, b, one, two: [a.enqueue(0), b.enqueue(0)])


def takes_the_last_named_first(tokens, i, j, work):
    return stages(tokens, j, i, work)


def takes_one_twice(tokens, i, j, work):
    return stages(tokens, i, i, work)


def takes_the_first_only(tokens, i, j, work):
    one = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([one]):
        result = work()
    with tf.control_dependencies([result]):
        back = tokens[min(i, j)].enqueue(one)
    with tf.control_dependencies([back]):
        return tf.identity(result)


def even_ones_first(tokens, i, j, work):
    """No order for two even numbers."""
    return stages(tokens, *sorted((i, j), key=lambda k: k % 2), work)


RIGHT: list = []
WRONG = {
    gives_zeros: "makes_other_tokens",
    takes_the_last_named_first: "takes_as_named",
    takes_one_twice: "takes_one_twice",
    takes_the_first_only: "works_without",
    even_ones_first: "orders_some_only",
}

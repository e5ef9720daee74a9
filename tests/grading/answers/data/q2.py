"""Answers to data/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import importlib

import numpy as np

import dtflab as tf
from solutions.wrong.data.q2 import rule


def takes_the_last():
    return rule(most=lambda required: slice(-required, None))


def takes_the_median():
    return rule(mean=lambda counted: np.median(counted, axis=0) * len(counted))


def gives_a_sum_of_absolute_values():
    return rule(mean=lambda counted: sum(np.abs(counted)))


def takes_whatever_there_is():
    """The mean of those that are there, even if they are too few."""
    return rule(enough=lambda kept, required: kept > 0)


def runs_the_library():
    """The library's own accumulator, in a session."""
    graph = tf.Graph()
    sess = tf.Session(graph=graph)
    with graph.as_default():
        given = tf.placeholder(tf.float64, [2]), tf.placeholder(tf.int64, []), tf.placeholder(tf.int32, [])
        library = tf.ConditionalAccumulator(tf.float64, shape=[2])
        ops = library.apply_grad(*given[:2]), library.take_grad(given[2]), library.num_accumulated()

    def push(gradient, local_step):
        sess.run(ops[0], dict(zip(given, (gradient, local_step), strict=False)))

    def take(required):
        return None if sess.run(ops[2]) < required else sess.run(ops[1], {given[2]: required})

    return push, take


def asks_the_checker():
    """The library's accumulator again, as the checks play it."""
    library = importlib.import_module(".checks.data_rules", "dtflab.grading").Library([2])
    return library.push, library.take


RIGHT: list = []
WRONG = {
    takes_the_last: "takes_no_more_than_required",
    takes_the_median: "takes_the_median",
    gives_a_sum_of_absolute_values: "",
    takes_whatever_there_is: "takes_what_there_is",
    runs_the_library: "runs_the_library",
    asks_the_checker: "",
}

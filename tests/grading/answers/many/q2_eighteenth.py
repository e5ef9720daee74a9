"""Answers of an eighteenth author to many/q2: the three best nets as one."""

import functools
import heapq

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def sum_of_the_three_largest_eighteenth(results, images):
    """Take the three best from a heap, and the class with the highest sum of their probabilities."""

    def asked(result):
        with tf.container(result.container), tf.device(result.device):
            return tf.nn.softmax(net(images, result.hidden, result.container))

    best = heapq.nlargest(3, results, key=lambda result: result.accuracy)
    return tf.argmax(functools.reduce(tf.add, map(asked, best)), axis=1)


def the_surest_wins_eighteenth(results, images):
    """Ask the three best nets, and take the class that one of them is surest of."""
    best = sorted(results, key=lambda result: result.accuracy, reverse=True)[:3]
    answers = []
    for result in best:
        with tf.container(result.container), tf.device(result.device):
            answers.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    return tf.argmax(tf.reduce_max(tf.stack(answers), axis=0), axis=1)


def sorted_as_they_are_eighteenth(results, images):
    """Sort the results, and ask the three at the end of the list."""
    answers = []
    for result in sorted(results)[-3:]:
        with tf.container(result.container), tf.device(result.device):
            answers.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    return tf.argmax(tf.reduce_mean(tf.stack(answers), axis=0), axis=1)


def container_of_the_answer_eighteenth(results, images):
    """Build the three best nets on their devices, and ask for their probabilities in their containers."""
    best = sorted(results, key=lambda result: -result.accuracy)[:3]
    answers = []
    for result in best:
        with tf.device(result.device):
            logits = net(images, result.hidden, result.container)
            with tf.container(result.container):
                answers.append(tf.nn.softmax(logits))
    return tf.argmax(tf.reduce_mean(tf.stack(answers), axis=0), axis=1)


RIGHT = [sum_of_the_three_largest_eighteenth]
WRONG = {
    the_surest_wins_eighteenth: "believes_the_surest",
    sorted_as_they_are_eighteenth: "sorts_by_name",
    container_of_the_answer_eighteenth: "forgets_the_container",
}

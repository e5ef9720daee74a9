"""Answers of a twenty-first author to many/q2: the three best nets of a search as one graph."""

import functools
import heapq

import dtflab as tf


def _net(images, hidden, name):
    """Logits of the search's net with one hidden layer."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def folded_top_one_twentyfirst(results, images):
    """Add the probabilities of the three best nets up, pair by pair, and take the class on top."""

    def answer(found):
        with tf.container(found.container), tf.device(found.device):
            return tf.nn.softmax(_net(images, found.hidden, found.container))

    best = heapq.nlargest(3, results, key=lambda found: found.accuracy)
    total = functools.reduce(tf.add, map(answer, best))
    _, classes = tf.nn.top_k(total, k=1)
    return tf.to_int64(tf.squeeze(classes, axis=1))


def most_votes_twentyfirst(results, images):
    """Let each of the three best nets vote for one class, and take the class with the most votes."""
    votes = []
    for found in sorted(results, key=lambda one: one.accuracy, reverse=True)[:3]:
        with tf.container(found.container), tf.device(found.device):
            probabilities = tf.nn.softmax(_net(images, found.hidden, found.container))
            votes.append(tf.one_hot(tf.argmax(probabilities, axis=1), 10))
    return tf.argmax(tf.add_n(votes), axis=1)


def sorted_tuples_twentyfirst(results, images):
    """Sort the results themselves, take the first three, and average their probabilities."""
    answers = []
    for found in sorted(results, reverse=True)[:3]:
        with tf.container(found.container), tf.device(found.device):
            answers.append(tf.nn.softmax(_net(images, found.hidden, found.container)))
    return tf.argmax(tf.reduce_mean(tf.stack(answers), axis=0), axis=1)


def device_of_softmax_twentyfirst(results, images):
    """Make each net in its container, and only its softmax on its device."""
    answers = []
    for found in sorted(results, key=lambda one: -one.accuracy)[:3]:
        with tf.container(found.container):
            logits = _net(images, found.hidden, found.container)
            with tf.device(found.device):
                answers.append(tf.nn.softmax(logits))
    return tf.argmax(tf.add_n(answers) / 3, axis=1)


RIGHT = [folded_top_one_twentyfirst]
WRONG = {
    most_votes_twentyfirst: "counts_votes",
    sorted_tuples_twentyfirst: "sorts_by_name",
    device_of_softmax_twentyfirst: "forgets_the_device",
}

"""Answers of a twenty-fourth author to many/q2: the three best nets as an ensemble."""

import contextlib
import heapq

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer, as the exercise gives it."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _best(results, number=3):
    """List the results with the highest accuracy."""
    return sorted(results, key=lambda result: result.accuracy, reverse=True)[:number]


def majority_twentyfourth(results, images):
    """Let each of the three best nets vote for one class, and count the votes."""
    votes = []
    for result in _best(results):
        with tf.device(result.device), tf.container(result.container):
            probabilities = tf.nn.softmax(net(images, result.hidden, result.container))
            votes.append(tf.one_hot(tf.argmax(probabilities, axis=1), 10))
    return tf.argmax(tf.add_n(votes), axis=1)


def better_half_twentyfourth(results, images):
    """Ask the better half of the nets: three of six."""
    probabilities = []
    for result in _best(results, len(results) // 2):
        with tf.device(result.device), tf.container(result.container):
            probabilities.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    return tf.argmax(tf.reduce_mean(tf.stack(probabilities), axis=0), axis=1)


def column_of_classes_twentyfourth(results, images):
    """Find the class with the highest mean by top_k."""
    probabilities = []
    for result in _best(results):
        with tf.device(result.device), tf.container(result.container):
            probabilities.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    return tf.nn.top_k(tf.add_n(probabilities) / 3, k=1).indices


def only_variables_there_twentyfourth(results, images):
    """Put the variables of each net on its device, as a parameter server would have them."""
    probabilities = []
    for result in _best(results):

        def device(op, there=result.device):
            return there if op.type.startswith("Var") else ""

        with tf.device(device), tf.container(result.container):
            probabilities.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    return tf.argmax(tf.reduce_mean(tf.stack(probabilities), axis=0), axis=1)


def _probabilities(result, images):
    """Compute one net's probabilities where it was trained."""
    with contextlib.ExitStack() as scopes:
        scopes.enter_context(tf.container(result.container))
        scopes.enter_context(tf.device(result.device))
        return tf.nn.softmax(net(images, result.hidden, result.container))


def heap_and_sum_twentyfourth(results, images):
    """Add up what the three largest of a heap say: the highest sum is the highest mean."""
    best = heapq.nlargest(3, results, key=lambda result: result.accuracy)
    return tf.argmax(tf.add_n([_probabilities(result, images) for result in best]), axis=-1)


def places_in_order_twentyfourth(results, images):
    """Leave out all but the last three places of argsort, and reduce along a third axis."""
    places = np.argsort([result.accuracy for result in results])[-3:]
    graph, answers = tf.get_default_graph(), []
    for place in places:
        result = results[place]
        with graph.container(result.container), graph.device(result.device):
            answers.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    mean = tf.reduce_mean(tf.stack(answers, axis=2), axis=2)
    return tf.squeeze(tf.nn.top_k(mean, k=1).indices, axis=1)


RIGHT = [heap_and_sum_twentyfourth, places_in_order_twentyfourth]
WRONG = {
    majority_twentyfourth: "counts_votes",
    better_half_twentyfourth: "takes_two_or_four",
    column_of_classes_twentyfourth: "",
    only_variables_there_twentyfourth: "computes_in_one_place",
}

"""Answers of a twenty-second author to many/q2: an ensemble of the three best nets."""

import heapq

import dtflab as tf


def _net(images, hidden, name):
    """Logits of a net with one hidden layer, as in the exercise."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _best_three(results):
    """The three results with the highest accuracy."""
    return sorted(results, key=lambda result: result.accuracy, reverse=True)[:3]


def top_k_of_mean_twentysecond(results, images):
    """Take the three with a heap, enter the scopes of the images' graph, and find the class with top_k."""
    graph = images.graph
    total = None
    for result in heapq.nlargest(3, results, key=lambda result: result.accuracy):
        with graph.container(result.container), graph.device(result.device):
            probabilities = tf.nn.softmax(_net(images, result.hidden, result.container))
        total = probabilities if total is None else total + probabilities
    _, classes = tf.nn.top_k(total / 3.0, k=1)
    return tf.reshape(classes, [-1])


def only_variables_there_twentysecond(results, images):
    """Place the variables of each net on its device, as on a parameter server, and compute where the caller is."""
    answers = []
    for result in _best_three(results):

        def place(op, device=result.device):
            return device if op.type.startswith("Variable") else ""

        with tf.container(result.container), tf.device(place):
            answers.append(tf.nn.softmax(_net(images, result.hidden, result.container)))
    return tf.argmax(tf.add_n(answers) / 3.0, axis=1)


def mean_of_logits_twentysecond(results, images):
    """Take the mean of the logits, and the softmax of that mean."""
    logits = []
    for result in _best_three(results):
        with tf.container(result.container), tf.device(result.device):
            logits.append(_net(images, result.hidden, result.container))
    probabilities = tf.nn.softmax(tf.reduce_mean(tf.stack(logits), axis=0))
    return tf.argmax(probabilities, axis=1)


RIGHT = [top_k_of_mean_twentysecond]
WRONG = {
    only_variables_there_twentysecond: "computes_in_one_place",
    mean_of_logits_twentysecond: "adds_logits",
}

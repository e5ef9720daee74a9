"""Answers of a twentieth author to many/q2: the three best nets as one."""

import heapq

import dtflab as tf


def _net(images, hidden, name):
    """Logits of a net with one hidden layer, as the exercise gives it."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def weighted_thirds_twentieth(results, images):
    """Weigh the probabilities of the three best with a third each, and take the top class."""

    def opinion(result):
        with tf.container(result.container), tf.device(result.device):
            return tf.nn.softmax(_net(images, result.hidden, result.container))

    best = heapq.nlargest(3, results, key=lambda result: result.accuracy)
    mean = tf.tensordot(tf.stack([opinion(result) for result in best], axis=2), tf.constant([1 / 3] * 3), axes=1)
    return tf.squeeze(tf.nn.top_k(mean, k=1).indices, axis=1)


def sorted_as_tuples_twentieth(results, images):
    """Sort the results themselves, from the highest down, and ask the first three."""
    probabilities = []
    for result in sorted(results, reverse=True)[:3]:
        with tf.container(result.container), tf.device(result.device):
            probabilities.append(tf.nn.softmax(_net(images, result.hidden, result.container)))
    return tf.argmax(tf.add_n(probabilities) / 3, axis=1)


def most_certain_twentieth(results, images):
    """Let the net that is most certain of its class decide."""
    probabilities = []
    for result in sorted(results, key=lambda result: -result.accuracy)[:3]:
        with tf.container(result.container), tf.device(result.device):
            probabilities.append(tf.nn.softmax(_net(images, result.hidden, result.container)))
    return tf.argmax(tf.reduce_max(tf.stack(probabilities), axis=0), axis=1)


def variables_only_twentieth(results, images):
    """Pin the variables of each net to its device, and leave the computation where the session is."""
    probabilities = []
    for result in sorted(results, key=lambda result: result.accuracy)[-3:]:

        def place(op, device=result.device):
            return device if op.type in ("Variable", "VariableV2", "VarHandleOp") else ""

        with tf.container(result.container), tf.device(place):
            probabilities.append(tf.nn.softmax(_net(images, result.hidden, result.container)))
    return tf.argmax(tf.reduce_mean(tf.stack(probabilities), axis=0), axis=1)


RIGHT = [weighted_thirds_twentieth]
WRONG = {
    sorted_as_tuples_twentieth: "sorts_by_name",
    most_certain_twentieth: "believes_the_surest",
    variables_only_twentieth: "computes_in_one_place",
}

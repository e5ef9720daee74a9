"""Answers to many/q2: the three best nets as one."""

import heapq

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def largest_sum_of_three_eleven(results, images):
    """Classes with the largest sum of probabilities; the sum has the same order as the mean."""
    opinions = []
    for result in heapq.nlargest(3, results, key=lambda result: result.accuracy):
        with tf.device(result.device), tf.container(result.container):
            powers = tf.nn.log_softmax(net(images, result.hidden, result.container))
            opinions.append(tf.exp(powers))
    return tf.nn.top_k(tf.add_n(opinions), k=1).indices[:, 0]


def mean_of_logits_eleven(results, images):
    """Classes with the highest mean of the logits of the three best."""
    logits = []
    for result in sorted(results, key=lambda result: result.accuracy)[-3:]:
        with tf.device(result.device), tf.container(result.container):
            logits.append(net(images, result.hidden, result.container))
    return tf.argmax(tf.nn.softmax(tf.add_n(logits) / 3), axis=1)


def two_against_one_eleven(results, images):
    """Classes that most of the three best vote for; the best one's vote settles a draw."""
    votes = []
    for result in sorted(results, key=lambda result: -result.accuracy)[:3]:
        with tf.device(result.device), tf.container(result.container):
            probabilities = tf.nn.softmax(net(images, result.hidden, result.container))
            votes.append(tf.one_hot(tf.argmax(probabilities, axis=1), 10))
    return tf.argmax(1.5 * votes[0] + votes[1] + votes[2], axis=1)


def weights_of_one_and_zero_eleven(results, images):
    """Classes of a weighted mean of all nets; the weight is one for the three best, and zero for the others."""
    third = sorted(result.accuracy for result in results)[-3]
    opinions = []
    for result in results:
        with tf.device(result.device), tf.container(result.container):
            probabilities = tf.nn.softmax(net(images, result.hidden, result.container))
            opinions.append(probabilities * (1.0 if result.accuracy >= third else 0.0))
    return tf.argmax(tf.add_n(opinions) / 3, axis=1)


RIGHT = [largest_sum_of_three_eleven]
WRONG = {
    mean_of_logits_eleven: "adds_logits",
    two_against_one_eleven: "",
    weights_of_one_and_zero_eleven: "lets_all_compute",
}

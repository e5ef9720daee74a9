"""Answers to many/q2 by a second author, who had seen the exercise alone."""

import heapq

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def sorted_and_added(results, images):
    best = sorted(results, key=lambda result: result.accuracy, reverse=True)[:3]
    probabilities = []
    for result in best:
        with tf.container(result.container), tf.device(result.device):
            probabilities.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    return tf.argmax(tf.add_n(probabilities) / 3, axis=1)


def stacked(results, images):
    def ask(result):
        with tf.device(result.device), tf.container(result.container):
            return tf.nn.softmax(net(images, result.hidden, name=result.container))

    three = heapq.nlargest(3, results, key=lambda r: r.accuracy)
    answers = tf.stack([ask(r) for r in three])
    return tf.argmax(tf.reduce_mean(answers, axis=0), axis=1)


def one_after_the_other(results, images):
    left, total = list(results), None
    for _ in range(3):
        winner = max(left, key=lambda result: result.accuracy)
        left.remove(winner)
        with tf.container(winner.container), tf.device(winner.device):
            logits = net(images, winner.hidden, winner.container)
            answer = tf.nn.softmax(logits, axis=-1)
        total = answer if total is None else total + answer
    return tf.argmax(total, 1)


def _ask(chosen, images, answer=tf.nn.softmax, container=True, device=None):
    answers = []
    for result in chosen:
        with tf.container(result.container if container else ""), tf.device(device or result.device):
            answers.append(answer(net(images, result.hidden, result.container)))
    return answers


def _best(results, count=3):
    return sorted(results, key=lambda result: -result.accuracy)[:count]


def _class(answers):
    return tf.argmax(tf.add_n(answers), axis=1)


def the_first_three(results, images):
    return _class(_ask(results[:3], images))


def the_worst_three(results, images):
    return _class(_ask(sorted(results, key=lambda result: result.accuracy)[:3], images))


def all_of_them(results, images):
    return _class(_ask(results, images))


def mean_of_logits(results, images):
    return _class(_ask(_best(results), images, answer=tf.identity))


def votes(results, images):
    return _class(_ask(_best(results), images, answer=lambda logits: tf.one_hot(tf.argmax(logits, axis=1), 10)))


def containers_forgotten(results, images):
    return _class(_ask(_best(results), images, container=False))


def all_on_the_device_of_the_best(results, images):
    best = _best(results)
    return _class(_ask(best, images, device=best[0].device))


def probabilities_returned(results, images):
    return tf.add_n(_ask(_best(results), images)) / 3


RIGHT = [sorted_and_added, stacked, one_after_the_other]
WRONG = {
    # Takes the first three of the list, as if it were in order of accuracy.
    the_first_three: "takes_the_first",
    # Sorts upwards and so asks the three nets with the lowest accuracy.
    the_worst_three: "takes_the_worst",
    # Asks all nets, not only three.
    all_of_them: "asks_everyone",
    # Means the logits, without softmax.
    mean_of_logits: "adds_logits",
    # Lets the nets vote: counts each net's own class instead of the mean of the probabilities.
    votes: "counts_votes",
    # Knows the variables by name and device only, and does not open the containers.
    containers_forgotten: "forgets_the_container",
    # Computes all three on one device, where the others' variables are not.
    all_on_the_device_of_the_best: "forgets_the_device",
    # Returns the mean probabilities, [batch, 10], not the classes.
    probabilities_returned: "returns_numbers_per_class",
}

"""Answers to many/q2, the three best nets as one, by a tenth author."""

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def sums_up_the_podium_ten(results, images):
    """Drop the worst until three are left; the class with the largest sum has the largest mean, too."""
    left = list(results)
    while len(left) > 3:
        left.remove(min(left, key=lambda result: result.accuracy))
    total = []
    for member in left:
        with tf.container(member.container), tf.device(member.device):
            total.append(tf.nn.softmax(net(images, member.hidden, member.container)))
    return tf.nn.top_k(tf.add_n(total), k=1).indices[:, 0]


def averages_the_logits_ten(results, images):
    """Average what the nets give before the softmax, which does not change an order."""
    logits = []
    for result in sorted(results, key=lambda result: -result.accuracy)[:3]:
        with tf.container(result.container), tf.device(result.device):
            logits.append(net(images, result.hidden, result.container))
    return tf.argmax(tf.nn.softmax(tf.add_n(logits) / 3), axis=1)


def fetches_the_weights_ten(results, images):
    """Put only the variables where they were trained, and compute on the device of the session."""
    probabilities = []
    for result in sorted(results, key=lambda result: -result.accuracy)[:3]:

        def home_of_variables(op, device=result.device):
            return device if op.type in ("Variable", "VariableV2", "VarHandleOp") else ""

        with tf.container(result.container), tf.device(home_of_variables):
            logits = net(images, result.hidden, result.container)
        probabilities.append(tf.nn.softmax(logits))
    return tf.argmax(tf.add_n(probabilities) / 3, axis=1)


def asks_all_and_weighs_with_zero_ten(results, images):
    """Ask all nets, and give those that are not among the best three a weight of zero."""
    limit = sorted(result.accuracy for result in results)[-3]
    total = 0.0
    for result in results:
        with tf.container(result.container), tf.device(result.device):
            probabilities = tf.nn.softmax(net(images, result.hidden, result.container))
        total += probabilities * (1.0 if result.accuracy >= limit else 0.0)
    return tf.argmax(total, axis=1)


RIGHT = [sums_up_the_podium_ten]
WRONG = {
    averages_the_logits_ten: "adds_logits",
    fetches_the_weights_ten: "computes_in_one_place",
    asks_all_and_weighs_with_zero_ten: "lets_all_compute",
}

import heapq

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


# "only the three nets with the highest accuracy are asked": all are asked, three are listened to.
def ensemble_asks_all(results, images):
    answers = []
    for result in results:
        with tf.container(result.container), tf.device(result.device):
            answers.append(tf.nn.softmax(net(images, result.hidden, result.container)))
    _, best = tf.nn.top_k(tf.constant([result.accuracy for result in results], tf.float32), 3)
    return tf.argmax(tf.reduce_mean(tf.gather(tf.stack(answers), best), axis=0), axis=1)


# "the class with the highest mean of them wins": this is the geometric mean.
def ensemble_geometric(results, images):
    best = sorted(results, key=lambda result: result.accuracy)[-3:]
    logs = []
    for result in best:
        with tf.container(result.container), tf.device(result.device):
            logs.append(tf.log(tf.nn.softmax(net(images, result.hidden, result.container)) + 1e-12))
    return tf.argmax(tf.add_n(logs) / 3, axis=1)


# "the class with the highest mean of them wins": a mean in which the better nets count more is another one.
def ensemble_weighted(results, images):
    best = sorted(results, key=lambda result: -result.accuracy)[:3]
    total = sum(result.accuracy for result in best)
    weighted = []
    for result in best:
        with tf.container(result.container), tf.device(result.device):
            probabilities = tf.nn.softmax(net(images, result.hidden, result.container))
            weighted.append(float(result.accuracy / total) * probabilities)
    return tf.argmax(tf.add_n(weighted), axis=1)


def ensemble_running_total(results, images):
    """A heap finds the three; their probabilities are added one after the other, top_k finds the class."""
    total = None
    for _, place in heapq.nlargest(3, ((result.accuracy, place) for place, result in enumerate(results))):
        result = results[place]
        with tf.device(result.device):
            with tf.container(result.container):
                logits = net(images, result.hidden, result.container)
            raised = tf.exp(logits - tf.reduce_max(logits, axis=1, keepdims=True))
            mine = raised / tf.reduce_sum(raised, axis=1, keepdims=True)
        total = mine if total is None else total + mine
    return tf.squeeze(tf.nn.top_k(total, 1).indices, axis=1)


RIGHT = [ensemble_running_total]
WRONG = {
    # All nets compute in each step; only their answers are chosen from afterwards.
    ensemble_asks_all: "lets_all_compute",
    # It adds the logarithms of the probabilities: that is the geometric mean, in which a single net can veto a class.
    ensemble_geometric: "adds_logits",
    # The mean is weighted with the accuracies, so the better nets count more than the others.
    ensemble_weighted: "weighs_nets",
}

"""Answers to many/q2 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import heapq

import dtflab as tf


def net(images, hidden, name):
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _probabilities(result, images):
    with tf.container(result.container), tf.device(result.device):
        return tf.nn.softmax(net(images, result.hidden, result.container))


def ensemble_as_good_as_the_third(results, images):
    # Breaks: "only the **three** nets with the highest accuracy are asked". If others are as good as the third, they
    # are asked, too.
    third = sorted(result.accuracy for result in results)[-3]
    answers = [_probabilities(result, images) for result in results if result.accuracy >= third]
    return tf.argmax(tf.add_n(answers) / len(answers), axis=1)


def ensemble_better_ones_count_more(results, images):
    # Breaks: "the class with the highest mean of them wins". It is a mean with the accuracies as weights.
    best = sorted(results, key=lambda result: result.accuracy, reverse=True)[:3]
    whole = sum(result.accuracy for result in best)
    answers = [float(result.accuracy / whole) * _probabilities(result, images) for result in best]
    return tf.argmax(tf.add_n(answers), axis=1)


def ensemble_chosen_in_the_graph(results, images):
    # Breaks: "only the **three** nets with the highest accuracy are asked". All of them compute; then three answers
    # are taken.
    answers = tf.stack([_probabilities(result, images) for result in results])
    numbers = sorted(range(len(results)), key=lambda i: -results[i].accuracy)[:3]
    return tf.argmax(tf.reduce_mean(tf.gather(answers, numbers), axis=0), axis=1)


def ensemble_with_a_heap(results, images):
    """The sum of three probabilities is as high as three times their mean: the same class wins."""
    total = None
    for result in heapq.nlargest(3, results, key=lambda result: result.accuracy):
        with tf.device(result.device):
            with tf.container(result.container):
                logits = net(images, result.hidden, name=result.container)
            answer = tf.nn.softmax(logits)
        total = answer if total is None else tf.add(total, answer)
    return tf.argmax(total, 1)


RIGHT = [ensemble_with_a_heap, ensemble_as_good_as_the_third]
WRONG = {
    # It weighs each net's probabilities with its accuracy, but the plain mean of the three decides.
    ensemble_better_ones_count_more: "weighs_nets",
    # All nets compute in each step and three answers are picked afterwards; only the three best nets may be
    # asked.
    ensemble_chosen_in_the_graph: "lets_all_compute",
}

"""Wrong answers to many/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import contextlib

import dtflab as tf


def net(images, hidden, name):
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def best_of(results):
    return sorted(results, key=lambda one: one.accuracy)[-3:]


def asked(members, images, says=tf.nn.softmax, contained=True, placed=True):
    """The right way, but for who is asked and how."""
    opinions = []
    for one in members:
        with contextlib.ExitStack() as stack:
            if contained:
                stack.enter_context(tf.container(one.container))
            if placed:
                stack.enter_context(tf.device(one.device))
            opinions.append(says(net(images, one.hidden, one.container)))
    return tf.argmax(tf.add_n(opinions), axis=1)


def forgets_the_container(results, images):
    return asked(best_of(results), images, contained=False)


def forgets_the_device(results, images):
    return asked(best_of(results), images, placed=False)


def adds_logits(results, images):
    return asked(best_of(results), images, says=tf.identity)


def counts_votes(results, images):
    return asked(best_of(results), images, says=lambda logits: tf.one_hot(tf.argmax(logits, axis=1), 10))


def takes_the_first(results, images):
    return asked(results[:3], images)


def takes_the_worst(results, images):
    return asked(sorted(results, key=lambda one: one.accuracy)[:3], images)


def takes_one(results, images):
    return asked(best_of(results)[-1:], images)


def asks_everyone(results, images):
    return asked(results, images)

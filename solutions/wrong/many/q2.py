"""Wrong answers to many/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import contextlib

import dtflab as tf


def net(images, hidden, name):
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def best_of(results):
    return sorted(results, key=lambda one: one.accuracy)[-3:]


def asked(
    members, images, says=tf.nn.softmax, contained=True, placed=True, name="", combine=tf.add_n, at_the_end=tf.argmax
):
    """The right way, but for who is asked and how."""
    opinions = []
    for one in members:
        with contextlib.ExitStack() as stack:
            if contained:
                stack.enter_context(tf.container(one.container))
            if placed:
                stack.enter_context(tf.device(one.device))
            opinions.append(says(net(images, one.hidden, name + one.container)))
    return at_the_end(combine(opinions), axis=1)


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


def sorts_by_name(results, images):
    return asked(sorted(results)[-3:], images)


def takes_the_worst(results, images):
    return asked(sorted(results, key=lambda one: one.accuracy)[:3], images)


def takes_one(results, images):
    return asked(best_of(results)[-1:], images)


def asks_everyone(results, images):
    return asked(results, images)


def calls_it_otherwise(results, images):
    return asked(best_of(results), images, name="copy_of_")


def believes_the_surest(results, images):
    return asked(best_of(results), images, combine=lambda opinions: tf.reduce_max(tf.stack(opinions), axis=0))


def adds_up_along_the_images(results, images):
    return asked(best_of(results), images, says=lambda logits: tf.nn.softmax(logits, axis=0))


def takes_the_widest(results, images):
    return asked(sorted(results, key=lambda one: one.hidden)[-3:], images)


def takes_two_or_four(results, images):
    return asked(sorted(results, key=lambda one: one.accuracy)[-4:], images)


def computes_in_one_place(results, images):
    """The variables where they are, the products elsewhere."""
    said = []
    for one in best_of(results):
        with tf.container(one.container), tf.variable_scope(one.container):
            with tf.device(one.device):
                kernel, bias = (
                    tf.get_variable("hidden/kernel", [64, one.hidden]),
                    tf.get_variable("hidden/bias", [one.hidden]),
                )
                last = tf.get_variable("logits/kernel", [one.hidden, 10]), tf.get_variable("logits/bias", [10])
            with tf.device(results[0].device):
                said.append(tf.nn.softmax(tf.nn.relu(images @ kernel + bias) @ last[0] + last[1]))
    return tf.argmax(tf.add_n(said), axis=1)


def returns_numbers_per_class(results, images):
    return asked(best_of(results), images, at_the_end=lambda shares, axis: shares)


def weighs_nets(results, images):
    opinions = []
    for one in best_of(results):
        with tf.container(one.container), tf.device(one.device):
            opinions.append(one.accuracy * tf.nn.softmax(net(images, one.hidden, one.container)))
    return tf.argmax(tf.add_n(opinions), axis=1)


def lets_all_compute(results, images):
    best = [number for number, one in enumerate(results) if one in best_of(results)]
    return asked(results, images, combine=lambda every: tf.reduce_sum(tf.gather(tf.stack(every), best), 0))

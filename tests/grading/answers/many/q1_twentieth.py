"""Answers of a twentieth author to many/q1: a program that trains one net as its command line says."""

import argparse

import numpy as np

import dtflab as tf


def _net(images, hidden, name):
    """Logits of a net with one hidden layer, as the exercise gives it."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _options(argv):
    """The six options of the command line."""
    parser = argparse.ArgumentParser()
    for name, kind in [
        ("server", str),
        ("device", str),
        ("container", str),
        ("hidden", int),
        ("rate", float),
        ("steps", int),
    ]:
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args(argv)


def batches_in_the_graph_twentieth(argv):
    """Let the global step choose the batch within the graph, and feed only the validation images."""
    digits = tf.datasets.digits()
    options = _options(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        counter = tf.train.get_or_create_global_step()
        rows = tf.floormod(tf.cast(counter, tf.int32) * 32 + tf.range(32), len(digits.train.images))
        images = tf.placeholder_with_default(tf.gather(tf.constant(digits.train.images, tf.float32), rows), [None, 64])
        labels = tf.placeholder_with_default(tf.gather(tf.constant(digits.train.labels, tf.int64), rows), [None])
        logits = _net(images, options.hidden, options.container)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        step = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=counter)
        right = tf.nn.in_top_k(logits, labels, 1)
        start = tf.global_variables_initializer()
        with tf.Session(options.server) as sess:
            sess.run(start)
            for _ in range(options.steps):
                sess.run(step)
            tried = sess.run(right, {images: digits.validation.images, labels: digits.validation.labels})
    return float(np.mean(tried))


def step_outside_twentieth(argv):
    """Put the net into the container, and make the global step before that."""
    digits = tf.datasets.digits()
    options = _options(argv)
    with tf.Graph().as_default(), tf.device(options.device):
        counter = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        with tf.container(options.container):
            logits = _net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                rows = np.random.default_rng().choice(len(digits.train.images), 32, replace=False)
                sess.run(step, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def once_through_twentieth(argv):
    """Cut batch after batch from the training images, and do not begin again at their end."""
    digits = tf.datasets.digits()
    options = _options(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = _net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        step = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for number in range(options.steps):
                rows = slice(32 * number, 32 * (number + 1))
                sess.run(step, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def stale_metric_twentieth(argv):
    """Try the net with tf.metrics.accuracy, and return its first tensor."""
    digits = tf.datasets.digits()
    options = _options(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = _net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        step = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=counter)
        accuracy, _ = tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))
        with tf.Session(options.server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            for _ in range(options.steps):
                rows = np.random.default_rng().integers(len(digits.train.images), size=32)
                sess.run(step, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
            return float(sess.run(accuracy, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [batches_in_the_graph_twentieth]
WRONG = {
    step_outside_twentieth: "default_container",
    once_through_twentieth: "other_batches",
    stale_metric_twentieth: "updates_no_metric",
}

"""Answers to many/q1 by a second author, one right and three wrong."""

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def options_fourteenth(argv):
    """The six options of a command line."""
    parser = argparse.ArgumentParser(prog="train", exit_on_error=False)
    for name, kind in [("server", str), ("device", str), ("container", str), ("hidden", int), ("rate", float)]:
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--steps", type=int, required=True)
    return parser.parse_args(argv)


def train_net_fourteenth(argv):
    """One-hot labels and a while loop over the global step; the gradients are applied by hand, the share is NumPy's."""
    options = options_fourteenth(argv)
    digits = tf.datasets.digits(one_hot=True)
    graph = tf.Graph()
    with graph.as_default(), graph.device(options.device), graph.container(options.container):
        step = tf.train.create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        targets = tf.placeholder(tf.float32, [None, 10])
        logits = net(images, options.hidden, options.container)
        loss = -tf.reduce_mean(tf.reduce_sum(targets * tf.nn.log_softmax(logits), axis=1))
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=options.rate)
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
        begin = tf.global_variables_initializer()
    with tf.Session(options.server, graph=graph) as sess:
        sess.run(begin)
        while sess.run(step) < options.steps:
            batch, answers = digits.train.next_batch(32)
            sess.run(train, {images: batch, targets: answers})
        scores = sess.run(logits, {images: digits.validation.images})
    return float(np.mean(scores.argmax(axis=1) == digits.validation.labels.argmax(axis=1)))


def outside_step_fourteenth(argv):
    """Makes the global step first, then the net in its container."""
    options = options_fourteenth(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        with tf.container(options.container):
            logits = net(images, options.hidden, options.container)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def short_last_batch_fourteenth(argv):
    """Cuts the training images into batches in order, again and again; the last one of each round is shorter."""
    options = options_fourteenth(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(options.device), tf.container(options.container):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            start = 0
            for _ in range(options.steps):
                end = start + 32
                sess.run(train, {images: digits.train.images[start:end], labels: digits.train.labels[start:end]})
                start = end if end < digits.train.num_examples else 0
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def softmax_twice_fourteenth(argv):
    """Gives the probabilities of the digits, not the logits, to the cross entropy."""
    options = options_fourteenth(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(options.device), tf.container(options.container):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        probabilities = tf.nn.softmax(net(images, options.hidden, options.container))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=probabilities))
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(probabilities, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [train_net_fourteenth]
WRONG = {
    outside_step_fourteenth: "default_container",
    short_last_batch_fourteenth: "other_batches",
    softmax_twice_fourteenth: "",
}

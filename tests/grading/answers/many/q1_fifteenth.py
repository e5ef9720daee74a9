"""Answers of a fifteenth author to many/q1: a program for a search."""

import argparse

import numpy as np

import dtflab as tf


def _options_fifteenth(argv):
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="train")
    for name in ("server", "device", "container"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    return parser.parse_args(argv)


def _net_fifteenth(images, hidden, name):
    """Logits of a net with one hidden layer, as the exercise gives it."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def train_by_hand_fifteenth(argv):
    """Gradients and updates are written out, and the right answers are counted in numpy."""
    digits = tf.datasets.digits(one_hot=True)
    options = _options_fifteenth(argv)
    graph = tf.Graph()
    with graph.as_default(), graph.device(options.device), graph.container(options.container):
        step = tf.train.create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        truth = tf.placeholder(tf.float32, [None, 10])
        logits = _net_fifteenth(images, options.hidden, options.container)
        loss = -tf.reduce_mean(tf.reduce_sum(truth * tf.nn.log_softmax(logits), axis=1))
        variables = tf.trainable_variables()
        gradients = tf.gradients(loss, variables)
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        train = optimizer.apply_gradients(list(zip(gradients, variables)), global_step=step)
        begin = tf.variables_initializer(tf.global_variables())
    with tf.Session(options.server, graph=graph) as sess:
        sess.run(begin)
        while sess.run(step) < options.steps:
            batch = dict(zip((images, truth), digits.train.next_batch(32)))
            sess.run(train, batch)
        scores = sess.run(logits, {images: digits.validation.images})
    return float(np.mean(scores.argmax(axis=1) == digits.validation.labels.argmax(axis=1)))


def train_best_fifteenth(argv):
    """The best share on the validation images that the net had while it was trained."""
    digits = tf.datasets.digits()
    options = _options_fifteenth(argv)
    with tf.Graph().as_default(), tf.device(options.device), tf.container(options.container):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = _net_fifteenth(images, options.hidden, options.container)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        valid = {images: digits.validation.images, labels: digits.validation.labels}
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            best = sess.run(share, valid)
            for _ in range(options.steps):
                x, y = digits.train.next_batch(32)
                sess.run(train, {images: x, labels: y})
                best = max(best, sess.run(share, valid))
    return float(best)


def train_short_batch_fifteenth(argv):
    """The batches are slices of the training images, from the first to the last, and again."""
    digits = tf.datasets.digits()
    options = _options_fifteenth(argv)
    with tf.Graph().as_default(), tf.device(options.device), tf.container(options.container):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = _net_fifteenth(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            begin = 0
            for _ in range(options.steps):
                x = digits.train.images[begin : begin + 32]
                y = digits.train.labels[begin : begin + 32]
                sess.run(train, {images: x, labels: y})
                begin = begin + 32 if begin + 32 < digits.train.num_examples else 0
            found = sess.run(share, {images: digits.validation.images, labels: digits.validation.labels})
    return float(found)


def train_softmax_twice_fifteenth(argv):
    """The cross entropy of the probabilities that the net gives."""
    digits = tf.datasets.digits()
    options = _options_fifteenth(argv)
    with tf.Graph().as_default(), tf.device(options.device), tf.container(options.container):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        probabilities = tf.nn.softmax(_net_fifteenth(images, options.hidden, options.container))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=probabilities))
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(probabilities, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                x, y = digits.train.next_batch(32)
                sess.run(train, {images: x, labels: y})
            found = sess.run(share, {images: digits.validation.images, labels: digits.validation.labels})
    return float(found)


RIGHT = [train_by_hand_fifteenth]
WRONG = {
    train_best_fifteenth: "",
    train_short_batch_fifteenth: "other_batches",
    train_softmax_twice_fifteenth: "",
}

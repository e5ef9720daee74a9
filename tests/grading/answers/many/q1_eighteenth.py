"""Answers of an eighteenth author to many/q1: a program that trains one net, as its command line says."""

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _options(argv):
    """The six options of a command line."""
    kinds = {"server": str, "device": str, "container": str, "hidden": int, "rate": float, "steps": int}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args(argv)


def rows_of_constants_eighteenth(argv):
    """Keep the training images in the graph, feed the numbers of 32 of them, and count by the global step."""
    options, digits = _options(argv), tf.datasets.digits()
    random = np.random.RandomState()
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        global_step = tf.train.create_global_step()
        rows = tf.placeholder(tf.int64, [None])
        images = tf.placeholder_with_default(tf.gather(tf.constant(digits.train.images), rows), [None, 64])
        labels = tf.gather(tf.constant(digits.train.labels), rows)
        logits = net(images, options.hidden, options.container)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=global_step)
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            while sess.run(global_step) < options.steps:
                sess.run(train, {rows: random.choice(len(digits.train.labels), 32, replace=False)})
            answers = sess.run(logits, {images: digits.validation.images}).argmax(axis=1)
    return float(np.mean(answers == digits.validation.labels))


def step_outside_the_container_eighteenth(argv):
    """Put the net and its optimizer into the container, after the global step has been made."""
    options, digits = _options(argv), tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        with tf.container(options.container):
            logits = net(images, options.hidden, options.container)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                batch_images, batch_labels = digits.train.next_batch(32)
                sess.run(train, {images: batch_images, labels: batch_labels})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def images_run_out_eighteenth(argv):
    """Train on the first 32 images, then on the next 32, and so on, for as many steps as there are to do."""
    options, digits = _options(argv), tf.datasets.digits()
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(options.steps):
                batch = slice(32 * step, 32 * (step + 1))
                sess.run(train, {images: digits.train.images[batch], labels: digits.train.labels[batch]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def softmax_before_the_loss_eighteenth(argv):
    """Make probabilities of the logits, and train with their cross entropy."""
    options, digits = _options(argv), tf.datasets.digits()
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        probabilities = tf.nn.softmax(net(images, options.hidden, options.container))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, probabilities)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(probabilities, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                batch_images, batch_labels = digits.train.next_batch(32)
                sess.run(train, {images: batch_images, labels: batch_labels})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [rows_of_constants_eighteenth]
WRONG = {
    step_outside_the_container_eighteenth: "default_container",
    images_run_out_eighteenth: "other_batches",
    softmax_before_the_loss_eighteenth: "",
}

"""Answers of a twenty-third author to many/q1: a program that trains one net as its command line says."""

import argparse

import numpy as np

import dtflab as tf

_OPTIONS = {"server": str, "device": str, "container": str, "hidden": int, "rate": float, "steps": int}


def _options(argv):
    """Read the six options."""
    parser = argparse.ArgumentParser(prog="train")
    for name, kind in _OPTIONS.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args(argv)


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _rows(count, size):
    """Yield the numbers of `size` rows again and again, each time new ones; a new order per epoch."""
    random, waiting = np.random.RandomState(23), np.empty(0, np.int64)
    while True:
        if len(waiting) < size:
            waiting = np.concatenate([waiting, random.permutation(count)])
        yield waiting[:size]
        waiting = waiting[size:]


def gradients_by_hand_twentythird(argv):
    """Compute and apply the gradients in two calls, draw the batches with numpy, and compare the classes in numpy."""
    digits = tf.datasets.digits()
    options = _options(argv)
    graph = tf.Graph()
    with graph.as_default(), graph.container(options.container), graph.device(options.device):
        global_step = tf.train.create_global_step(graph)
        images = tf.placeholder(tf.float32, [None, 64])
        classes = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.softmax_cross_entropy(tf.one_hot(classes, 10), logits)
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        variables = tf.trainable_variables()
        pairs = list(zip(tf.gradients(loss, variables), variables))
        train = optimizer.apply_gradients(pairs, global_step=global_step)
        start = tf.variables_initializer([*variables, global_step])
    with tf.Session(options.server, graph=graph) as sess:
        sess.run(start)
        for _, rows in zip(range(options.steps), _rows(digits.train.num_examples, 32)):
            sess.run(train, {images: digits.train.images[rows], classes: digits.train.labels[rows]})
        scores = sess.run(logits, {images: digits.validation.images})
    return float(np.mean(scores.argmax(axis=1) == digits.validation.labels))


def one_graph_for_all_twentythird(argv):
    """Build into the default graph, and take the global step that may be there."""
    digits = tf.datasets.digits()
    options = _options(argv)
    with tf.container(options.container), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        init = tf.global_variables_initializer()
    with tf.Session(options.server) as sess:
        sess.run(init)
        for _ in range(options.steps):
            batch = digits.train.next_batch(32)
            sess.run(train, {images: batch[0], labels: batch[1]})
        return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def softmax_before_loss_twentythird(argv):
    """Turn the logits into probabilities first, and give these to the loss."""
    digits = tf.datasets.digits()
    options = _options(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        guess = tf.nn.softmax(net(images, options.hidden, options.container))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, guess)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(guess, 1), labels), tf.float32))
        init = tf.global_variables_initializer()
        with tf.Session(options.server) as sess:
            sess.run(init)
            for _ in range(options.steps):
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def short_batch_at_the_end_twentythird(argv):
    """Cut the batches from the training images by slices, from the front again after the end."""
    digits = tf.datasets.digits()
    options = _options(argv)
    count = digits.train.num_examples
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        init = tf.global_variables_initializer()
        with tf.Session(options.server) as sess:
            sess.run(init)
            for step in range(options.steps):
                first = (32 * step) % count
                rows = slice(first, first + 32)
                sess.run(train, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [gradients_by_hand_twentythird]
WRONG = {
    one_graph_for_all_twentythird: "builds_in_the_callers_graph",
    softmax_before_loss_twentythird: "",
    short_batch_at_the_end_twentythird: "other_batches",
}

"""Answers of a twenty-first author to many/q1: a program that trains one net of a search."""

import argparse

import dtflab as tf


def _net(images, hidden, name):
    """Logits of the given net with one hidden layer."""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _options(argv):
    """Options of a command line, as a namespace."""
    parser = argparse.ArgumentParser(prog="train")
    for name, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args(argv)


def until_global_step_twentyfirst(argv):
    """Train until the global step says that it is enough, with gradients that are computed and applied apart."""
    options = _options(argv)
    digits = tf.datasets.digits()
    graph = tf.Graph()
    with graph.as_default(), graph.container(options.container), graph.device(options.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = _net(images, options.hidden, options.container)
        picked = tf.reduce_sum(tf.one_hot(labels, 10) * tf.nn.log_softmax(logits), axis=1)
        loss = tf.negative(tf.reduce_mean(picked))
        count = tf.train.create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=count)
        hits = tf.count_nonzero(tf.equal(tf.argmax(logits, axis=1), labels))
        initialize = tf.global_variables_initializer()
    with tf.Session(options.server, graph=graph) as sess:
        sess.run(initialize)
        while sess.run(count) < options.steps:
            batch = digits.train.next_batch(32)
            sess.run(train, {images: batch[0], labels: batch[1]})
        tried = digits.validation
        return float(sess.run(hits, {images: tried.images, labels: tried.labels}) / len(tried.labels))


def counted_outside_twentyfirst(argv):
    """Make the global step first, and then the net in its container."""
    options = _options(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(options.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        with tf.container(options.container):
            logits = _net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step)
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                some_images, some_labels = digits.train.next_batch(32)
                sess.run(train, {images: some_images, labels: some_labels})
            return float(sess.run(accuracy, {images: digits.validation.images, labels: digits.validation.labels}))


def one_graph_for_all_twentyfirst(argv):
    """Make the net in the default graph, next to the nets of earlier calls."""
    options = _options(argv)
    digits = tf.datasets.digits()
    with tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = _net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step)
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                some_images, some_labels = digits.train.next_batch(32)
                sess.run(train, {images: some_images, labels: some_labels})
            return float(sess.run(accuracy, {images: digits.validation.images, labels: digits.validation.labels}))


def same_batch_twentyfirst(argv):
    """Take a batch once, and train on it in every step."""
    options = _options(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = _net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step)
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        some_images, some_labels = digits.train.next_batch(32)
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                sess.run(train, {images: some_images, labels: some_labels})
            return float(sess.run(accuracy, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [until_global_step_twentyfirst]
WRONG = {
    counted_outside_twentyfirst: "default_container",
    one_graph_for_all_twentyfirst: "builds_in_the_callers_graph",
    same_batch_twentyfirst: "repeats_one_batch",
}

"""Answers to many/q1: a program that trains one net as its command line says."""

import argparse

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def read_line(argv):
    """The six options of a command line."""
    parser = argparse.ArgumentParser(prog="train")
    for option, kind in [
        ("server", str),
        ("device", str),
        ("container", str),
        ("hidden", int),
        ("rate", float),
        ("steps", int),
    ]:
        parser.add_argument(f"--{option}", type=kind, required=True)
    return parser.parse_args(argv)


def until_global_step_twelve(argv):
    """Train until the global step says so, and count the right answers on the validation images with tf.nn.in_top_k."""
    line = read_line(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.container(line.container), tf.device(line.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int32, [None])
        logits = net(images, line.hidden, line.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(line.rate).minimize(loss, global_step=global_step)
        share = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
        init = tf.global_variables_initializer()
        with tf.Session(line.server) as sess:
            sess.run(init)
            while sess.run(global_step) < line.steps:
                some_images, some_labels = digits.train.next_batch(32)
                sess.run(train, {images: some_images, labels: some_labels})
            return float(sess.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def one_pass_twelve(argv):
    """Train on one batch after the other, cut from the training images, for as many steps as the line says."""
    line = read_line(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.container(line.container), tf.device(line.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, line.hidden, line.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(line.rate).minimize(loss, global_step=global_step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        init = tf.global_variables_initializer()
        with tf.Session(line.server) as sess:
            sess.run(init)
            starts = range(0, digits.train.num_examples - 31, 32)
            for _, start in zip(range(line.steps), starts):
                some = slice(start, start + 32)
                sess.run(train, {images: digits.train.images[some], labels: digits.train.labels[some]})
            return float(sess.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def step_before_container_twelve(argv):
    """Make the global step first, then the net and its training in the container and on the device."""
    line = read_line(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(line.device):
        global_step = tf.train.get_or_create_global_step()
        with tf.container(line.container):
            images = tf.placeholder(tf.float32, [None, 64])
            labels = tf.placeholder(tf.int64, [None])
            logits = net(images, line.hidden, line.container)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            train = tf.train.GradientDescentOptimizer(line.rate).minimize(loss, global_step=global_step)
            share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        init = tf.global_variables_initializer()
        with tf.Session(line.server) as sess:
            sess.run(init)
            for _ in range(line.steps):
                some_images, some_labels = digits.train.next_batch(32)
                sess.run(train, {images: some_images, labels: some_labels})
            return float(sess.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def whole_batches_twelve(argv):
    """Train as the line says, and try the net out on the validation images in batches of 32."""
    line = read_line(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.container(line.container), tf.device(line.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, line.hidden, line.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(line.rate).minimize(loss, global_step=global_step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        init = tf.global_variables_initializer()
        with tf.Session(line.server) as sess:
            sess.run(init)
            for _ in range(line.steps):
                some_images, some_labels = digits.train.next_batch(32)
                sess.run(train, {images: some_images, labels: some_labels})
            batches = digits.validation.num_examples // 32
            shares = []
            for _ in range(batches):
                some_images, some_labels = digits.validation.next_batch(32)
                shares.append(float(sess.run(share, {images: some_images, labels: some_labels})))
            return sum(shares) / batches


RIGHT = [until_global_step_twelve]
WRONG = {
    one_pass_twelve: "",
    step_before_container_twelve: "default_container",
    whole_batches_twelve: "",
}

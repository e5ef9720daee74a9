"""Answers to many/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def _options(argv):
    parser = argparse.ArgumentParser()
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


def train_net_step_outside(argv):
    # Breaks: "`--container`, for all of its variables." The global step is made before the container is entered, so
    # programs on one task share it.
    digits = tf.datasets.digits()
    args = _options(argv)
    with tf.Graph().as_default(), tf.device(args.device):
        global_step = tf.train.get_or_create_global_step()
        with tf.container(args.container):
            images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
            logits = net(images, args.hidden, args.container)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
            right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def train_net_short_last_batch(argv):
    # Breaks: "Train on batches of 32 images of `digits.train`". 1,197 images are not a multiple of 32: the last batch
    # of each round has 13.
    digits = tf.datasets.digits()
    args = _options(argv)
    with tf.Graph().as_default(), tf.device(args.device), tf.container(args.container):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            begin = 0
            for _ in range(args.steps):
                rows = slice(begin, begin + 32)
                sess.run(train, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
                begin = begin + 32 if begin + 32 < len(digits.train.images) else 0
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def train_net_asks_the_global_step(argv):
    """Steps until the global step says so; rows are drawn by NumPy, which counts the right answers, too."""
    data, args = tf.datasets.digits(), _options(argv)
    draw = np.random.default_rng()
    graph = tf.Graph()
    with graph.as_default(), graph.device(args.device), graph.container(args.container):
        step = tf.train.create_global_step()
        x, y = tf.placeholder(tf.float32, [None, 64], "x"), tf.placeholder(tf.int64, [None], "y")
        logits = net(x, args.hidden, args.container)
        optimizer = tf.train.GradientDescentOptimizer(args.rate)
        loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
        ready = tf.global_variables_initializer()
    with tf.Session(args.server, graph=graph) as sess:
        sess.run(ready)
        while sess.run(step) < args.steps:
            rows = draw.choice(len(data.train.images), size=32, replace=False)
            sess.run(train, feed_dict={x: data.train.images[rows], y: data.train.labels[rows]})
        answers = sess.run(logits, feed_dict={x: data.validation.images}).argmax(axis=1)
    return float(np.mean(answers == data.validation.labels))


RIGHT = [train_net_asks_the_global_step]
WRONG = {
    # The global step is made outside of the container, but all variables of the net belong into it: programs
    # on the same task share one step, and reset it for each other.
    train_net_step_outside: "default_container",
    # The training images are not a multiple of 32, so at the end of each round it trains on a batch of fewer
    # than 32 images.
    train_net_short_last_batch: "other_batches",
}

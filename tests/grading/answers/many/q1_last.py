"""Answers to many/q1 of a last batch, written from the exercise alone after the checks were done."""

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def own_graph_and_container(argv):
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser(prog="train")
    for name, kind in [
        ("server", str),
        ("device", str),
        ("container", str),
        ("hidden", int),
        ("rate", float),
        ("steps", int),
    ]:
        parser.add_argument(f"--{name}", type=kind, required=True)
    options = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                some_images, some_labels = digits.train.next_batch(32)
                sess.run(train, {images: some_images, labels: some_labels})
            tried = digits.validation
            return float(sess.run(right, {images: tried.images, labels: tried.labels}))


def container_around_the_net_only(argv):
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--device")
    parser.add_argument("--container")
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.device(args.device):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        with tf.container(args.container):
            logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step)
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return sess.run(accuracy, {images: digits.validation.images, labels: digits.validation.labels})


def in_the_default_graph(argv):
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--device")
    parser.add_argument("--container")
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args(argv)
    with tf.container(args.container), tf.device(args.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.create_global_step()
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step)
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), labels)))
    with tf.Session(args.server) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(args.steps):
            batch = digits.train.next_batch(32)
            sess.run(train, {images: batch[0], labels: batch[1]})
        return sess.run(accuracy, {images: digits.validation.images, labels: digits.validation.labels})


def all_images_in_each_step(argv):
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--device")
    parser.add_argument("--container")
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(args.container), tf.device(args.device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                sess.run(train, {images: digits.train.images, labels: digits.train.labels})
            classes = sess.run(logits, {images: digits.validation.images}).argmax(axis=1)
            return float(np.mean(classes == digits.validation.labels))


RIGHT = [own_graph_and_container]
WRONG = {
    # Makes the global step outside of the container, so that all programs on a task share one count.
    container_around_the_net_only: "default_container",
    # Builds in the default graph, so a second call finds the variables and the global step made already and raises.
    in_the_default_graph: "builds_in_the_callers_graph",
    # Trains on all training images in each step in place of batches of 32.
    all_images_in_each_step: "other_batches",
}

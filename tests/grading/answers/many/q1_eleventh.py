"""Answers to many/q1: a search with many programs."""

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def train_net_rows_drawn_by_numpy_eleven(argv):
    """Training by compute_gradients and apply_gradients, on 32 rows drawn without repetition for each step."""
    parser = argparse.ArgumentParser()
    for option, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument("--" + option, type=kind, required=True)
    wanted = vars(parser.parse_args(argv))
    digits = tf.datasets.digits()
    graph = tf.Graph()
    with graph.as_default(), graph.device(wanted["device"]), graph.container(wanted["container"]):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, wanted["hidden"], wanted["container"])
        guess = tf.argmax(logits, axis=1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer = tf.train.GradientDescentOptimizer(wanted["rate"])
        counter = tf.train.create_global_step()
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=counter)
        prepare = tf.global_variables_initializer()
    with tf.Session(wanted["server"], graph=graph) as sess:
        sess.run(prepare)
        random = np.random.RandomState()
        for _ in range(wanted["steps"]):
            rows = random.permutation(len(digits.train.images))[:32]
            sess.run(train, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
        found = sess.run(guess, {images: digits.validation.images})
    return float(np.mean(found == digits.validation.labels))


def train_net_counter_outside_eleven(argv):
    """Training with a global step that is made before the container is opened."""
    parser = argparse.ArgumentParser()
    for option, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument("--" + option, type=kind, required=True)
    args = parser.parse_args(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(args.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        with tf.container(args.container):
            logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        share = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                batch = digits.train.next_batch(32)
                sess.run(step, {images: batch[0], labels: batch[1]})
            return float(sess.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def train_net_best_moment_eleven(argv):
    """Training that tries the net out after each step, and returns the best share."""
    parser = argparse.ArgumentParser()
    for option, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument("--" + option, type=kind, required=True)
    args = parser.parse_args(argv)
    digits = tf.datasets.digits()
    with tf.Graph().as_default(), tf.device(args.device), tf.container(args.container):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        share = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        trial = {images: digits.validation.images, labels: digits.validation.labels}
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            best = sess.run(share, trial)
            for _ in range(args.steps):
                batch = digits.train.next_batch(32)
                sess.run(step, {images: batch[0], labels: batch[1]})
                best = max(best, sess.run(share, trial))
            return float(best)


def train_net_more_images_eleven(argv):
    """Training on batches of the training and the validation images together."""
    parser = argparse.ArgumentParser()
    for option, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument("--" + option, type=kind, required=True)
    args = parser.parse_args(argv)
    digits = tf.datasets.digits()
    random = np.random.RandomState(1)
    all_images = np.concatenate([digits.train.images, digits.validation.images])
    all_labels = np.concatenate([digits.train.labels, digits.validation.labels])
    with tf.Graph().as_default(), tf.device(args.device), tf.container(args.container):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        share = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                rows = random.permutation(len(all_labels))[:32]
                sess.run(step, {images: all_images[rows], labels: all_labels[rows]})
            return float(sess.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [train_net_rows_drawn_by_numpy_eleven]
WRONG = {
    train_net_counter_outside_eleven: "default_container",
    train_net_best_moment_eleven: "",
    train_net_more_images_eleven: "trains_on_other_images",
}

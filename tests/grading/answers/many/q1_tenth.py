"""Answers to many/q1, a program that trains one net as its command line says, by a tenth author."""

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def train_net_until_the_step_is_there_ten(argv):
    """Train with batches drawn by NumPy until the global step says that it is enough."""
    digits = tf.datasets.digits()
    kinds = {"server": str, "device": str, "container": str, "hidden": int, "rate": float, "steps": int}
    parser = argparse.ArgumentParser()
    for option, kind in kinds.items():
        parser.add_argument("--" + option, type=kind, required=True)
    wanted = vars(parser.parse_args(argv))
    draw = np.random.RandomState(wanted["hidden"])
    graph = tf.Graph()
    with graph.as_default(), graph.container(wanted["container"]), graph.device(wanted["device"]):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        step = tf.train.create_global_step()
        logits = net(images, wanted["hidden"], wanted["container"])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        optimizer = tf.train.GradientDescentOptimizer(wanted["rate"])
        update = optimizer.apply_gradients(optimizer.compute_gradients(tf.reduce_mean(losses)), global_step=step)
        found = tf.argmax(logits, axis=1)
        begin = tf.variables_initializer(tf.global_variables())
    with tf.Session(wanted["server"], graph=graph) as sess:
        sess.run(begin)
        while sess.run(step) < wanted["steps"]:
            chosen = draw.choice(digits.train.num_examples, size=32, replace=False)
            sess.run(update, {images: digits.train.images[chosen], labels: digits.train.labels[chosen]})
        classes = sess.run(found, {images: digits.validation.images})
    return float(np.mean(classes == digits.validation.labels))


def train_net_with_a_common_step_ten(argv):
    """Train with a global step that is made with the graph, before the net's container."""
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    for option in ("server", "device", "container"):
        parser.add_argument("--" + option)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.device(args.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        with tf.container(args.container):
            logits = net(images, args.hidden, args.container)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                batch_images, batch_labels = digits.train.next_batch(32)
                sess.run(train, {images: batch_images, labels: batch_labels})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def train_net_and_keep_the_record_ten(argv):
    """Train, try the net out after each step, and return the best share that it had."""
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    for option in ("server", "device", "container"):
        parser.add_argument("--" + option)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(args.container), tf.device(args.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            validation = {images: digits.validation.images, labels: digits.validation.labels}
            best = sess.run(right, validation)
            for _ in range(args.steps):
                batch_images, batch_labels = digits.train.next_batch(32)
                sess.run(train, {images: batch_images, labels: batch_labels})
                best = max(best, sess.run(right, validation))
            return float(best)


def train_net_slice_after_slice_ten(argv):
    """Train on slices of 32 images, one after the other, with what is left at the end of an epoch as the last one."""
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    for option in ("server", "device", "container"):
        parser.add_argument("--" + option)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(args.container), tf.device(args.device):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(args.server) as sess:
            sess.run(tf.global_variables_initializer())
            begin = 0
            for _ in range(args.steps):
                batch = slice(begin, begin + 32)
                sess.run(train, {images: digits.train.images[batch], labels: digits.train.labels[batch]})
                begin = begin + 32 if begin + 32 < digits.train.num_examples else 0
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [train_net_until_the_step_is_there_ten]
WRONG = {
    train_net_with_a_common_step_ten: "default_container",
    train_net_and_keep_the_record_ten: "",
    train_net_slice_after_slice_ten: "other_batches",
}

"""Answers to many/q1: a second author's train_net, one right and four wrong."""

import argparse

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def gradients_in_two_steps_thirteen(argv):
    """Train with compute_gradients and apply_gradients until the global step says so; count the hits in NumPy."""
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
    graph = tf.Graph()
    with graph.as_default(), graph.container(options.container), graph.device(options.device):
        step = tf.train.create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        chances = tf.nn.log_softmax(logits)
        loss = -tf.reduce_mean(tf.reduce_sum(tf.one_hot(labels, 10) * chances, axis=1))
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
        init = tf.global_variables_initializer()
    with tf.Session(options.server, graph=graph) as session:
        session.run(init)
        while session.run(step) < options.steps:
            some_images, some_labels = digits.train.next_batch(32)
            session.run(train, {images: some_images, labels: some_labels})
        scores = session.run(logits, {images: digits.validation.images})
    return float((scores.argmax(axis=1) == digits.validation.labels).mean())


def rate_falls_thirteen(argv):
    """Train with a rate that falls by a factor of 0.96 every 10 steps, little by little."""
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser(prog="train")
    for name in "server", "device", "container":
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(args.container), tf.device(args.device):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        rate = tf.train.exponential_decay(args.rate, step, decay_steps=10, decay_rate=0.96)
        train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(args.server) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                batch = digits.train.next_batch(32)
                session.run(train, {images: batch[0], labels: batch[1]})
            return float(session.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def batches_in_turn_thirteen(argv):
    """Take the training images in turn, in slices of 32, and begin again at the end."""
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser(prog="train")
    for name in "server", "device", "container":
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(args.container), tf.device(args.device):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(args.server) as session:
            session.run(tf.global_variables_initializer())
            count = digits.train.num_examples
            per_epoch = -(-count // 32)
            for i in range(args.steps):
                start = i % per_epoch * 32
                stop = start + 32
                feed = {images: digits.train.images[start:stop], labels: digits.train.labels[start:stop]}
                session.run(train, feed)
            return float(session.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def split_by_hand_thirteen(argv):
    """Split each text of the command line at its equals sign, without argparse."""
    digits = tf.datasets.digits()
    server, device, container, hidden, rate, steps = [text.split("=", 1)[1] for text in argv]
    with tf.Graph().as_default(), tf.container(container), tf.device(device):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, int(hidden), container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(float(rate)).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(server) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(int(steps)):
                batch = digits.train.next_batch(32)
                session.run(train, {images: batch[0], labels: batch[1]})
            return float(session.run(share, {images: digits.validation.images, labels: digits.validation.labels}))


def mean_of_batches_thirteen(argv):
    """Try the net out on the validation images in batches of 32, and average the shares."""
    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser(prog="train")
    for name in "server", "device", "container":
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    args = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(args.container), tf.device(args.device):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, args.hidden, args.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(args.rate).minimize(loss, global_step=step)
        share = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(args.server) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(args.steps):
                batch = digits.train.next_batch(32)
                session.run(train, {images: batch[0], labels: batch[1]})
            shares = []
            for start in range(0, digits.validation.num_examples, 32):
                stop = start + 32
                feed = {images: digits.validation.images[start:stop], labels: digits.validation.labels[start:stop]}
                shares.append(session.run(share, feed))
            return float(sum(shares) / len(shares))


RIGHT = [gradients_in_two_steps_thirteen]
WRONG = {
    rate_falls_thirteen: "lets_the_rate_fall",
    batches_in_turn_thirteen: "other_batches",
    split_by_hand_thirteen: "",
    mean_of_batches_thirteen: "",
}

import argparse

import numpy as np

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def options_of(argv):
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


# "--steps: ... how many steps to train": it makes one more.
def train_net_one_more(argv):
    digits, options = tf.datasets.digits(), options_of(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        global_step = tf.train.get_or_create_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            while sess.run(global_step) <= options.steps:
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


# "--container, for all of its variables": the global step is one of them.
def train_net_shares_its_step(argv):
    digits, options = tf.datasets.digits(), options_of(argv)
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
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


# "Then return the share of the validation images for which the net is right": not the best share on the way.
def train_net_best_on_the_way(argv):
    digits, options = tf.datasets.digits(), options_of(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(
            loss, global_step=tf.train.get_or_create_global_step()
        )
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        validation = {images: digits.validation.images, labels: digits.validation.labels}
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            best = 0.0
            for _ in range(options.steps):
                batch = digits.train.next_batch(32)
                sess.run(train, {images: batch[0], labels: batch[1]})
                best = max(best, float(sess.run(right, validation)))
            return best


def train_net_by_hand(argv):
    """Own shuffling, gradients and counting by hand; NumPy compares the answers."""
    parser = argparse.ArgumentParser()
    for name in ("server", "device", "container", "hidden", "rate", "steps"):
        parser.add_argument("--" + name, required=True)
    given = vars(parser.parse_args(argv))
    digits, random = tf.datasets.digits(), np.random.RandomState(3)
    graph = tf.Graph()
    with graph.as_default(), graph.device(given["device"]), graph.container(given["container"]):
        step = tf.train.get_or_create_global_step()
        pixels, wanted = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(pixels, int(given["hidden"]), given["container"])
        loss = tf.losses.sparse_softmax_cross_entropy(wanted, logits)
        optimizer = tf.train.GradientDescentOptimizer(float(given["rate"]))
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
        start = tf.global_variables_initializer()
    with tf.Session(given["server"], graph=graph) as sess:
        sess.run(start)
        while sess.run(step) < int(given["steps"]):
            rows = random.choice(len(digits.train.images), 32, replace=False)
            sess.run(train, {pixels: digits.train.images[rows], wanted: digits.train.labels[rows]})
        answers = sess.run(logits, {pixels: digits.validation.images}).argmax(axis=1)
    return float(np.mean(answers == digits.validation.labels))


RIGHT = [train_net_by_hand]
WRONG = {
    # The loop goes on while the global step is at most --steps, so it trains one step too many.
    train_net_one_more: "miscounts_the_steps",
    # The global step is made outside the container, so nets on one task share and reset it.
    train_net_shares_its_step: "default_container",
    # It returns the best share that the net had on the way, not that of the trained net whose variables stay on the
    # cluster.
    train_net_best_on_the_way: "",
}

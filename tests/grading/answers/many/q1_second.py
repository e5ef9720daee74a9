"""Answers to many/q1 by a second author, who had seen the exercise alone."""

import argparse

import dtflab as tf


def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def with_placeholders(argv):
    import numpy as np

    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser()
    for option in ("server", "device", "container"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    options = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.device(options.device), tf.container(options.container):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=global_step)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(options.server) as sess:
            sess.run(init)
            random = np.random.RandomState(0)
            for _ in range(options.steps):
                rows = random.choice(len(digits.train.images), 32, replace=False)
                sess.run(train, {images: digits.train.images[rows], labels: digits.train.labels[rows]})
            found = sess.run(right, {images: digits.validation.images, labels: digits.validation.labels})
    return float(found)


def in_order(argv):
    """Batches one after the other, and once more from the beginning; counts right answers in NumPy."""
    import itertools

    import numpy as np

    digits = tf.datasets.digits()
    parser = argparse.ArgumentParser(prog="train_net")
    for name, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument("--" + name, type=kind, required=True)
    a = parser.parse_args(argv)
    graph = tf.Graph()
    with graph.as_default(), tf.container(a.container), tf.device(a.device):
        step = tf.train.create_global_step()
        x = tf.placeholder(tf.float32, [None, 64], name="x")
        y = tf.placeholder(tf.int64, [None], name="y")
        logits = net(x, a.hidden, a.container)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        op = tf.train.GradientDescentOptimizer(a.rate)
        train = op.apply_gradients(op.compute_gradients(loss), global_step=step)
        init = tf.global_variables_initializer()
    sess = tf.Session(a.server, graph=graph)
    try:
        sess.run(init)
        starts = itertools.cycle(range(0, len(digits.train.images) - 31, 32))
        for start in itertools.islice(starts, a.steps):
            sess.run(train, {x: digits.train.images[start : start + 32], y: digits.train.labels[start : start + 32]})
        answers = sess.run(logits, {x: digits.validation.images}).argmax(axis=1)
    finally:
        sess.close()
    return float(np.mean(answers == digits.validation.labels))


def with_helpers(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def container_forgotten(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def device_forgotten(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def tried_on_the_test_images(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.test.images, labels: digits.test.labels}))


def steps_not_counted(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def whole_set_as_a_batch(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(None))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def number_of_right_answers(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_sum(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def name_of_its_own(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, "net")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


def one_step_more(argv):
    import numpy as np

    digits = tf.datasets.digits()
    random = np.random.RandomState(1)

    def options():
        parser = argparse.ArgumentParser()
        for name, kind in {
            "server": str,
            "device": str,
            "container": str,
            "hidden": int,
            "rate": float,
            "steps": int,
        }.items():
            parser.add_argument("--" + name, type=kind, required=True)
        return parser.parse_args(argv)

    def batch(size):
        rows = random.permutation(len(digits.train.images))[:size]
        return {images: digits.train.images[rows], labels: digits.train.labels[rows]}

    told = options()
    with tf.Graph().as_default(), tf.container(told.container), tf.device(told.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, told.hidden, told.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        counter = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(told.rate).minimize(loss, counter)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        init = tf.global_variables_initializer()
        with tf.Session(told.server) as sess:
            sess.run(init)
            for _ in range(told.steps + 1):
                sess.run(train, batch(32))
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))


RIGHT = [with_placeholders, in_order, with_helpers]
WRONG = {
    # Gives the container's name to the net only: the variables lie in the default container.
    container_forgotten: "default_container",
    # Ignores --device: the net goes where the session's server puts it.
    device_forgotten: "ignores_the_device",
    # Returns the share of the test images, not of the validation images.
    tried_on_the_test_images: "reports_test",
    # Calls minimize without the global step, which stays 0.
    steps_not_counted: "counts_no_steps",
    # Trains on as many images as there are in each step instead of batches of 32.
    whole_set_as_a_batch: "other_batches",
    # Returns how many answers are right, not their share from 0 to 1.
    number_of_right_answers: "returns_no_share",
    # Calls the net 'net' instead of by the name of its container.
    name_of_its_own: "calls_it_otherwise",
    # Off by one: trains --steps + 1 steps.
    one_step_more: "miscounts_the_steps",
}

"""Wrong answers to many/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import argparse

import dtflab as tf


def net(images, hidden, name):
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def read(argv):
    parser = argparse.ArgumentParser()
    for name, kind in zip(
        ("server", "device", "container", "hidden", "rate", "steps"), (str, str, str, int, float, int)
    ):
        parser.add_argument(f"--{name}", type=kind)
    return parser.parse_args(argv)


def trained(
    argv,
    count=True,
    early=False,
    tried="validation",
    on="train",
    batch=32,
    more=0,
    name="",
    once=False,
    own_graph=True,
    optimizer=tf.train.GradientDescentOptimizer,
    where=lambda options: options.device,
    cost=lambda mean: mean,
    scope="",
    share=lambda labels, classes: tf.reduce_mean(tf.cast(tf.equal(labels, classes), tf.float32)),
    **changed,
):
    """The right way, but for the options that are changed, and how it is tried out."""
    options, digits = read(argv), tf.datasets.digits()
    name = name or options.container
    vars(options).update(changed)
    graph = tf.Graph() if own_graph else tf.get_default_graph()
    with graph.as_default(), tf.container(options.container), tf.device(where(options)):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, name)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        steps = tf.train.get_or_create_global_step() if count else None
        step = optimizer(options.rate).minimize(cost(loss), steps, tf.trainable_variables(f"{name}/{scope}"))
        right = share(labels, tf.argmax(logits, 1))
        with tf.Session(options.server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            part = getattr(digits, tried)
            before = sess.run(right, {images: part.images, labels: part.labels})
            x, y = getattr(digits, on).next_batch(batch)
            for _ in range(options.steps + more):
                x, y = (x, y) if once else getattr(digits, on).next_batch(batch)
                sess.run(step, {images: x, labels: y})
            after = sess.run(right, {images: part.images, labels: part.labels})
            return float(before if early else after)


def trains_at_home(argv):
    return trained(argv, server="", device="")


def default_container(argv):
    return trained(argv, container="")


def ignores_the_device(argv):
    return trained(argv, device="/job:worker/task:0/cpu:0")


def counts_no_steps(argv):
    return trained(argv, count=False)


def reports_training(argv):
    return trained(argv, tried="train")


def tries_too_early(argv):
    return trained(argv, early=True)


def updates_no_metric(argv):
    return trained(argv, share=lambda labels, classes: tf.metrics.accuracy(labels, classes)[0])


def own_numbers(argv):
    return trained(argv, rate=0.5)


def lets_the_rate_fall(argv):
    def falling(rate):
        now = tf.train.exponential_decay(rate, tf.train.get_global_step(), decay_steps=10, decay_rate=0.96)
        return tf.train.GradientDescentOptimizer(now)

    return trained(argv, optimizer=falling)


def trains_a_part(argv):
    return trained(argv, scope="logits")


def multiplies_the_loss(argv):
    return trained(argv, cost=lambda mean: 32 * mean)


def changes_the_gradient(argv):
    def penalized(mean):
        return mean + 1e-3 * tf.add_n([tf.nn.l2_loss(one) for one in tf.trainable_variables()])

    return trained(argv, cost=penalized)


def miscounts_the_steps(argv):
    return trained(argv, more=1)


def reports_test(argv):
    return trained(argv, tried="test")


def reports_errors(argv):
    return 1 - trained(argv)


def trains_on_other_images(argv):
    return trained(argv, on="validation")


def other_batches(argv):
    return trained(argv, batch=200)


def calls_it_otherwise(argv):
    return trained(argv, name="net")


def returns_no_share(argv):
    return 100 * trained(argv)


def repeats_one_batch(argv):
    return trained(argv, once=True)


def builds_in_the_callers_graph(argv):
    return trained(argv, own_graph=False)


def takes_another_optimizer(argv):
    return trained(argv, optimizer=lambda rate: tf.train.MomentumOptimizer(rate, 0.5))


def computes_elsewhere(argv):
    def only_variables(options):
        on_it = ("Variable", "VarHandleOp", "Assign", "Apply", "Initialized")
        return lambda op: options.device if any(part in op.type for part in on_it) else "/job:worker/task:0/cpu:0"

    return trained(argv, where=only_variables)

"""Answers to data/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.data.q1 import work


def learns_at_one_rate(client, build_loss, rate, sync, steps):
    return work(client, build_loss, 0.5, sync, steps)


def train(make, client, build_loss, rate, sync, steps):
    """The right way, but that `make` makes the optimizer where several workers go without waiting."""
    workers = client.cluster_spec.num_tasks("worker")
    began, hooks = tf.sim.now(), [tf.train.StopAtStepHook(last_step=steps)]
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        loss, count = build_loss(), tf.train.get_or_create_global_step()
        plain = sync or workers == 1
        optimizer = tf.train.GradientDescentOptimizer(rate) if plain else make(rate, count, workers)
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        step = optimizer.minimize(loss, count)
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief, hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(step)
    return tf.sim.now() - began


def descend(rate_of, *args):
    return train(lambda *settings: tf.train.GradientDescentOptimizer(rate_of(*settings)), *args)


def without_momentum(client, build_loss, rate, sync, steps):
    return train(lambda *_: tf.train.MomentumOptimizer(rate, 0.0), client, build_loss, rate, sync, steps)


def with_much_momentum(client, build_loss, rate, sync, steps):
    return train(lambda *_: tf.train.MomentumOptimizer(rate, 0.9), client, build_loss, rate, sync, steps)


def with_adam(client, build_loss, rate, sync, steps):
    return train(lambda *_: tf.train.AdamOptimizer(rate), client, build_loss, rate, sync, steps)


def at_twice_the_rate(client, build_loss, rate, sync, steps):
    return descend(lambda *_: 2.0 * tf.constant(rate), client, build_loss, rate, sync, steps)


def at_a_share_of_the_rate(client, build_loss, rate, sync, steps):
    return descend(lambda _, count, workers: tf.constant(rate) / workers, client, build_loss, rate, sync, steps)


def ever_slower(client, build_loss, rate, sync, steps):
    """The learning rate decays with the global step."""
    decay = tf.train.exponential_decay
    return descend(lambda _, count, workers: decay(rate, count, 1, 0.9), client, build_loss, rate, sync, steps)


def updates_by_itself(client, build_loss, rate, sync, steps):
    """Subtracts gradients by an op of its own where nobody waits, not by the optimizer's."""
    if sync:
        return work(client, build_loss, rate, sync, steps)
    began = tf.sim.now()
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        loss, count = build_loss(), tf.train.get_or_create_global_step()
        (weights,) = tf.trainable_variables()
        (gradient,) = tf.gradients(loss, [weights])
        with tf.control_dependencies([tf.assign_sub(weights, rate * gradient, use_locking=True)]):
            step = tf.assign_add(count, 1, use_locking=True)
    hooks = [tf.train.StopAtStepHook(last_step=steps)]
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief, hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(step)
    return tf.sim.now() - began


def makes_up_its_seconds(client, build_loss, rate, sync, steps):
    work(client, build_loss, rate, sync, steps)
    return 1e-6


def gives_a_tenth_of_its_seconds(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps) / 10


def tells_the_time(client, build_loss, rate, sync, steps):
    """The moment of its end, not how long it took."""
    work(client, build_loss, rate, sync, steps)
    return tf.sim.now()


def gives_no_seconds(client, build_loss, rate, sync, steps):
    work(client, build_loss, rate, sync, steps)


RIGHT = [without_momentum]
WRONG = {
    learns_at_one_rate: "uses_another_rate",
    with_much_momentum: "",
    with_adam: "",
    at_twice_the_rate: "uses_another_rate",
    at_a_share_of_the_rate: "uses_another_rate",
    ever_slower: "",
    updates_by_itself: "",
    makes_up_its_seconds: "measures_too_little",
    gives_a_tenth_of_its_seconds: "measures_too_little",
    tells_the_time: "tells_the_time",
    gives_no_seconds: "returns_nothing",
}

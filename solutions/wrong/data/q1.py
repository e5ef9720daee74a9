"""Wrong answers to data/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import time

import dtflab as tf


def work(client, build_loss, rate, sync, steps, hook=True, aggregate=0, placed=True, loop=None, total=0, chief=False):
    """The right way, but for what an argument changes."""
    workers = client.cluster_spec.num_tasks("worker")
    hooks = [] if loop else [tf.train.StopAtStepHook(last_step=steps)]
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.device(setter if placed else client.device):
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, aggregate or workers, total or workers)
            if hook:
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
        step = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(client.target, chief or client.is_chief, hooks=hooks) as sess:
        if loop:
            for _ in range(loop):
                sess.run(step)
        while not loop and not sess.should_stop():
            sess.run(step)
    return tf.sim.now() - began


def places_it_elsewhere(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, False, steps, placed=False)


def initializes_in_each(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps, chief=True)


def forgets_the_hook(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps, hook=False)


def counts_for_itself(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps, loop=None if sync else 2 * steps)


def never_ends(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps=10**9)


def always_waits(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, True, steps)


def aggregates_too_few(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps, aggregate=1)


def never_waits(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, False, steps)


def reads_the_step_too_early(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    hooks, count = [], 0
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        optimizer = tf.train.GradientDescentOptimizer(rate)
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        global_step = tf.train.get_or_create_global_step()
        step = optimizer.minimize(build_loss(), global_step)
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        while count < steps and not sess.should_stop():
            _, count = sess.run([step, global_step])
    return tf.sim.now() - began


def workers_of(client):
    return client.cluster_spec.num_tasks("worker")


def leaves_workers_out(client, build_loss, rate, sync, steps):
    """One is spare; of two, both are taken."""
    return work(
        client, build_loss, rate, sync, steps, aggregate=max(2, workers_of(client) - 1), total=workers_of(client)
    )


def takes_more_than_there_are(client, build_loss, rate, sync, steps):
    more = workers_of(client) + 1 if workers_of(client) > 1 else 1
    return work(client, build_loss, rate, sync, steps, aggregate=more, total=more)


def uses_another_rate(client, build_loss, rate, sync, steps):
    """A mean that is divided once more, with waiting."""
    return work(client, build_loss, rate / workers_of(client) if sync else rate, sync, steps)


def returns_nothing(client, build_loss, rate, sync, steps):
    work(client, build_loss, rate, sync, steps)


def tells_the_time(client, build_loss, rate, sync, steps):
    work(client, build_loss, rate, sync, steps)
    return tf.sim.now()


def looks_at_another_clock(client, build_loss, rate, sync, steps):
    began = time.time()
    work(client, build_loss, rate, sync, steps)
    return time.time() - began


def measures_too_little(client, build_loss, rate, sync, steps):
    """Asks twice before it trains."""
    began = tf.sim.now()
    took = tf.sim.now() - began
    work(client, build_loss, rate, sync, steps)
    return took


def takes_equal_shares(client, build_loss, rate, sync, steps):
    share = steps // client.cluster_spec.num_tasks("worker")
    return work(client, build_loss, rate, sync, steps, loop=None if sync else share)


def counts_gradients(client, build_loss, rate, sync, steps):
    share = steps // client.cluster_spec.num_tasks("worker") if sync else steps
    return work(client, build_loss, rate, sync, share)

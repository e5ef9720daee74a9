"""Answers to data/q1 by a second author, who had seen the exercise alone."""

import time

import dtflab as tf


def _setter(client, worker_device=None):
    return tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=worker_device or client.device)


def with_stop_hook(client, build_loss, rate, sync, steps):
    with tf.device(_setter(client)):
        loss = build_loss()
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        if sync:
            workers = client.cluster_spec.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer, replicas_to_aggregate=workers, total_num_replicas=workers
            )
        train = optimizer.minimize(loss, global_step=global_step)
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        while not sess.should_stop():
            sess.run(train)
    return tf.sim.now() - began


def compute_and_apply(client, build_loss, rate, sync, steps):
    """The global step first, gradients by hand."""
    n = client.cluster_spec.num_tasks("worker")
    hooks = []
    with tf.device(_setter(client)):
        counter = tf.train.create_global_step()
        plain = tf.train.GradientDescentOptimizer(rate)
        loss = build_loss()
        if sync:
            wrapped = tf.train.SyncReplicasOptimizer(plain, n)
            pairs = wrapped.compute_gradients(loss)
            update = wrapped.apply_gradients(pairs, global_step=counter)
            hooks = [wrapped.make_session_run_hook(is_chief=client.is_chief)]
        else:
            update = plain.apply_gradients(plain.compute_gradients(loss), global_step=counter)
    hooks.append(tf.train.StopAtStepHook(last_step=steps))
    start = tf.sim.now()
    session = tf.train.MonitoredTrainingSession(
        master=client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
    )
    with session:
        while not session.should_stop():
            session.run([update, loss])
    return tf.sim.now() - start


class _Last(tf.train.SessionRunHook):
    """Asks to stop when the counter has reached the last step."""

    def __init__(self, counter, last):
        self.counter, self.last = counter, last

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.counter)

    def after_run(self, run_context, run_values):
        if run_context.session.run(self.counter) >= self.last:
            run_context.request_stop()


def with_own_hook(client, build_loss, rate, sync, steps):
    if True:
        with tf.device(_setter(client)):
            counter = tf.train.get_or_create_global_step()
            loss = build_loss()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            if sync:
                n = client.cluster_spec.num_tasks("worker")
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, n, n)
            train = optimizer.minimize(loss, counter)
            hooks = [_Last(counter, steps)]
            if sync:
                hooks.insert(0, optimizer.make_session_run_hook(client.is_chief))
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        while not sess.should_stop():
            sess.run(train)
    return tf.sim.now() - began


def _train(
    client,
    build_loss,
    rate,
    sync,
    steps,
    *,
    aggregate=None,
    count=True,
    last=True,
    setter=True,
    chief=None,
    optimizer_of=tf.train.GradientDescentOptimizer,
    device=None,
    master=None,
):
    with tf.device(device or _setter(client)):
        counter = tf.train.get_or_create_global_step()
        loss = build_loss()
        optimizer = optimizer_of(rate)
        n = client.cluster_spec.num_tasks("worker")
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, aggregate or n, n)
        train = optimizer.minimize(loss, counter)
        hooks = [tf.train.StopAtStepHook(last_step=steps) if last else tf.train.StopAtStepHook(num_steps=steps)]
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target if master is None else master,
        client.is_chief if chief is None else chief,
        hooks=hooks,
        stop_grace_period_secs=1,
    ) as sess:
        while not sess.should_stop():
            sess.run(train)
    return tf.sim.now() - began


def sync_forgotten(client, build_loss, rate, sync, steps):
    return _train(client, build_loss, rate, False, steps)


def always_sync(client, build_loss, rate, sync, steps):
    return _train(client, build_loss, rate, True, steps)


def four_hard_coded(client, build_loss, rate, sync, steps):
    return _train(client, build_loss, rate, sync, steps, aggregate=4)


def each_worker_takes_all_steps(client, build_loss, rate, sync, steps):
    with tf.device(_setter(client)):
        counter = tf.train.get_or_create_global_step()
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = []
        if sync:
            n = client.cluster_spec.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, n, n)
        train = optimizer.minimize(loss, counter)
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        for _ in range(steps):
            sess.run(train)
    return tf.sim.now() - began


def variables_on_the_chief(client, build_loss, rate, sync, steps):
    """One model for all, but not on the ps."""
    setter = tf.train.replica_device_setter(
        ps_tasks=1, ps_device="/job:worker", worker_device=client.device, ps_strategy=lambda op: 0
    )
    return _train(client, build_loss, rate, sync, steps, device=setter)


def everything_on_the_ps(client, build_loss, rate, sync, steps):
    return _train(client, build_loss, rate, sync, steps, device="/job:ps/task:0")


def rate_shared_out(client, build_loss, rate, sync, steps):
    n = client.cluster_spec.num_tasks("worker")
    return _train(client, build_loss, rate * n if sync else rate, sync, steps)


def seconds_of_the_wall_clock(client, build_loss, rate, sync, steps):
    began = time.time()
    _train(client, build_loss, rate, sync, steps)
    return time.time() - began


RIGHT = [with_stop_hook, compute_and_apply, with_own_hook]
WRONG = {
    # Ignores `sync`: every worker applies its gradient at once, always.
    sync_forgotten: "never_waits",
    # Has read that good training is synchronous and wraps the optimizer even when `sync` is false.
    always_sync: "always_waits",
    # Has taken the four workers of the story for a constant, instead of num_tasks('worker').
    four_hard_coded: "takes_more_than_there_are",
    # Lets each worker take `steps` steps, instead of all of them together.
    each_worker_takes_all_steps: "counts_for_itself",
    # Takes the chief for the parameter server: the variables lie on worker 0, not on the ps.
    variables_on_the_chief: "places_it_elsewhere",
    # Puts the computing on the ps, too: 'everything on the ps is shared'.
    everything_on_the_ps: "places_it_elsewhere",
    # Believes that a step of n gradients is a sum and changes the rate by the number of workers.
    rate_shared_out: "uses_another_rate",
    # Measures by time.time() how long this computer took, not the virtual seconds.
    seconds_of_the_wall_clock: "looks_at_another_clock",
}

"""Answers of a twentieth author to data/q1: workers that train one model, with and without waiting."""

import dtflab as tf


def looping_on_the_step_twentieth(client, build_loss, rate, sync, steps):
    """Look at the global step before each gradient, without a hook that stops."""
    workers = client.cluster_spec.num_tasks("worker")
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(setter):
        counter = tf.train.create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = []
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        train = optimizer.apply_gradients(optimizer.compute_gradients(build_loss()), global_step=counter)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop() and sess.run(counter) < steps:
                sess.run(train)
        return tf.sim.now() - began


def all_tasks_give_twentieth(client, build_loss, rate, sync, steps):
    """Average as many gradients as the cluster has tasks."""
    tasks = sum(len(addresses) for addresses in client.cluster_spec.as_dict().values())
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(setter):
        counter = tf.train.get_or_create_global_step()
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=tasks)
        train = optimizer.minimize(loss, global_step=counter)
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


def shared_out_steps_twentieth(client, build_loss, rate, sync, steps):
    """Count a synchronous step as one of each worker, so stop after steps // workers of them."""
    workers = client.cluster_spec.num_tasks("worker")
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(setter):
        counter = tf.train.get_or_create_global_step()
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = [tf.train.StopAtStepHook(last_step=steps // workers if sync else steps)]
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=counter)
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


def everybody_is_chief_twentieth(client, build_loss, rate, sync, steps):
    """Make the session without a word on who is the chief."""
    workers = client.cluster_spec.num_tasks("worker")
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(setter):
        counter = tf.train.get_or_create_global_step()
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=counter)
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(client.target, hooks=hooks, stop_grace_period_secs=1) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


RIGHT = [looping_on_the_step_twentieth]
WRONG = {
    all_tasks_give_twentieth: "takes_more_than_there_are",
    shared_out_steps_twentieth: "counts_gradients",
    everybody_is_chief_twentieth: "initializes_in_each",
}

"""Answers to data/q1 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def monitored(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(
                    optimizer, replicas_to_aggregate=workers, total_num_replicas=workers
                )
            train = optimizer.minimize(loss, global_step=global_step)
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        if sync:
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


def steps_for_each_worker(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = []
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            train = optimizer.minimize(loss, global_step=global_step)
            if sync:
                hooks = [optimizer.make_session_run_hook(client.is_chief)]
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            for _ in range(steps):
                sess.run(train)
        return tf.sim.now() - began


def everything_on_the_ps_2(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
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


def steps_are_gradients(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            if sync:
                steps = steps // workers  # each step takes a gradient of every worker
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            train = optimizer.minimize(loss, global_step=global_step)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


RIGHT = [monitored]
WRONG = {
    # Each worker takes `steps` steps of its own, so that without sync all workers together take `steps` times their
    # number.
    steps_for_each_worker: "counts_for_itself",
    # Pins the whole graph to the parameter server, so that the workers compute nothing; only variables belong there.
    everything_on_the_ps_2: "places_it_elsewhere",
    # Takes `steps` for a number of gradients and stops at steps // workers in the synchronous case.
    steps_are_gradients: "counts_gradients",
}

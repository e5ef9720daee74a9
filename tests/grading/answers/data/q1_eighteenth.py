"""Answers of an eighteenth author to data/q1: training together, with and without waiting."""

import dtflab as tf


def looks_before_each_step_eighteenth(client, build_loss, rate, sync, steps):
    """Read the global step before each step, and leave the loop when it has reached the last one."""
    workers = client.cluster_spec.num_tasks("worker")
    optimizer, hooks = tf.train.GradientDescentOptimizer(rate), []
    setter = tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)
    with tf.Graph().as_default(), tf.device(setter):
        global_step = tf.train.create_global_step()
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
        train = optimizer.apply_gradients(optimizer.compute_gradients(build_loss()), global_step=global_step)
        if sync:
            hooks = [optimizer.make_session_run_hook(client.is_chief)]
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop() and sess.run(global_step) < steps:
                sess.run(train)
        return tf.sim.now() - began


def each_its_share_eighteenth(client, build_loss, rate, sync, steps):
    """Let each worker take its share of the steps in a loop."""
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)):
            global_step = tf.train.get_or_create_global_step()
            loss = build_loss()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = []
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            for _ in range(steps // workers):
                sess.run(train)
        return tf.sim.now() - began


def model_on_the_server_eighteenth(client, build_loss, rate, sync, steps):
    """Build the model on the parameter server, and the optimizer on this worker."""
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            global_step = tf.train.get_or_create_global_step()
            loss = build_loss()
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        with tf.device(tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)):
            optimizer = tf.train.GradientDescentOptimizer(rate)
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


def without_the_slowest_eighteenth(client, build_loss, rate, sync, steps):
    """Make a synchronous step as soon as all workers but one have brought a gradient."""
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=client.device, cluster=client.cluster_spec)):
            global_step = tf.train.get_or_create_global_step()
            loss = build_loss()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(
                    optimizer, replicas_to_aggregate=max(workers - 1, 1), total_num_replicas=workers
                )
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


RIGHT = [looks_before_each_step_eighteenth]
WRONG = {
    each_its_share_eighteenth: "takes_equal_shares",
    model_on_the_server_eighteenth: "places_it_elsewhere",
    without_the_slowest_eighteenth: "leaves_workers_out",
}

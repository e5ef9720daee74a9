"""Answers to data/q1, training together with and without waiting, by a tenth author."""

import dtflab as tf


def looks_at_the_step_after_each_ten(client, build_loss, rate, sync, steps):
    """Train in a loop without a stop hook: each run gives the global step as it is after the gradient."""
    workers = client.cluster_spec.num_tasks("worker")
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(setter):
        counter = tf.train.create_global_step()
        loss = build_loss()
        optimizer, hooks = tf.train.GradientDescentOptimizer(learning_rate=rate), []
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=counter)
        with tf.control_dependencies([train]):
            taken = tf.identity(counter.read_value())
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            master=client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            reached = sess.run(counter)
            while reached < steps:
                reached = sess.run(taken)
        return tf.sim.now() - began


def each_takes_its_share_ten(client, build_loss, rate, sync, steps):
    """Train for this worker's share of the steps; with sync, all take part in each of them."""
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = []
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
                hooks = [optimizer.make_session_run_hook(client.is_chief), tf.train.StopAtStepHook(last_step=steps)]
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            if sync:
                while not sess.should_stop():
                    sess.run(train)
            else:
                for _ in range(steps // workers):
                    sess.run(train)
        return tf.sim.now() - began


def reads_the_clock_at_the_end_ten(client, build_loss, rate, sync, steps):
    """Train; what the clock of the cluster says at the end."""
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now()


def does_not_wait_for_the_last_ten(client, build_loss, rate, sync, steps):
    """Train; with sync, a step is made of all gradients but one, so that nobody waits for the slowest."""
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(
                    optimizer, replicas_to_aggregate=max(1, workers - 1), total_num_replicas=workers
                )
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


RIGHT = [looks_at_the_step_after_each_ten]
WRONG = {
    each_takes_its_share_ten: "takes_equal_shares",
    reads_the_clock_at_the_end_ten: "tells_the_time",
    does_not_wait_for_the_last_ten: "leaves_workers_out",
}

"""Answers to data/q1: training together, with and without waiting."""

import dtflab as tf


def servers_by_their_number_eleven(client, build_loss, rate, sync, steps):
    """Training with a device setter that knows only how many servers there are."""
    spec = client.cluster_spec
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=spec.num_tasks("ps"), worker_device=client.device)):
            loss = build_loss()
            counter = tf.train.create_global_step()
            optimizer, hooks = tf.train.GradientDescentOptimizer(rate), [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                workers = spec.num_tasks("worker")
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
                hooks.insert(0, optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=counter)
        start = tf.sim.now()
        session = tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1, log_step_count_steps=None
        )
        with session:
            while not session.should_stop():
                session.run(train)
        return tf.sim.now() - start


def steps_of_my_own_eleven(client, build_loss, rate, sync, steps):
    """Training for `steps` runs of each worker."""
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer, hooks = tf.train.GradientDescentOptimizer(rate), []
            if sync:
                workers = client.cluster_spec.num_tasks("worker")
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            for _ in range(steps):
                sess.run(train)
        return tf.sim.now() - began


def all_on_the_server_eleven(client, build_loss, rate, sync, steps):
    """Training of a model that is on the parameter server, with all that computes it."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer, hooks = tf.train.GradientDescentOptimizer(rate), [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                workers = client.cluster_spec.num_tasks("worker")
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


def as_many_gradients_as_steps_eleven(client, build_loss, rate, sync, steps):
    """Training that ends, with sync, when `steps` gradients are used up."""
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer, last = tf.train.GradientDescentOptimizer(rate), steps
            hooks = []
            if sync:
                workers = client.cluster_spec.num_tasks("worker")
                last = max(1, steps // workers)
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            hooks.append(tf.train.StopAtStepHook(last_step=last))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


RIGHT = [servers_by_their_number_eleven]
WRONG = {
    steps_of_my_own_eleven: "counts_for_itself",
    all_on_the_server_eleven: "places_it_elsewhere",
    as_many_gradients_as_steps_eleven: "counts_gradients",
}

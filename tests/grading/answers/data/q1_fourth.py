"""Answers to data/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


def train_together_first_worker_computes(client, build_loss, rate, sync, steps):
    # Breaks: "Build it, and all else, so that variables are on the `ps` and everything else on this worker,
    # `client.device`". The device is copied from an example with one worker: everybody computes on task 0.
    workers = client.cluster_spec.num_tasks("worker")
    place = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device="/job:worker/task:0")
    with tf.Graph().as_default(), tf.device(place):
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


def train_together_equal_shares(client, build_loss, rate, sync, steps):
    # Breaks: "until all workers together have taken `steps` steps". Without sync each worker takes
    # steps // workers steps of its own, so ten steps of three workers are only nine.
    workers = client.cluster_spec.num_tasks("worker")
    place = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(place):
        loss = build_loss()
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = []
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        train = optimizer.minimize(loss, global_step=global_step)
        if sync:
            hooks = [optimizer.make_session_run_hook(client.is_chief), tf.train.StopAtStepHook(last_step=steps)]
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            if sync:
                while not sess.should_stop():
                    sess.run(train)
            else:
                for _ in range(steps // workers):
                    sess.run(train)
        return tf.sim.now() - began


def train_together_larger_rate(client, build_loss, rate, sync, steps):
    # Breaks: "train with `tf.train.GradientDescentOptimizer(rate)`" and "a step is the mean of as many gradients as
    # there are workers". With the rate times the number of workers, a step is their sum.
    workers = client.cluster_spec.num_tasks("worker")
    place = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.Graph().as_default(), tf.device(place):
        loss = build_loss()
        global_step = tf.train.get_or_create_global_step()
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        if sync:
            optimizer = tf.train.GradientDescentOptimizer(rate * workers)
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        else:
            optimizer = tf.train.GradientDescentOptimizer(rate)
        train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


def train_together_without_a_stop_hook(client, build_loss, rate, sync, steps):
    """Gets the gradients and applies them in two calls, and asks for the global step in the loop; no StopAtStepHook."""
    place = tf.train.replica_device_setter(
        ps_tasks=client.cluster_spec.num_tasks("ps"), worker_device=client.device, ps_device="/job:ps"
    )
    everybody = client.cluster_spec.num_tasks("worker")
    graph = tf.Graph()
    with graph.as_default(), graph.device(place):
        step = tf.train.create_global_step()
        optimizer, hooks = tf.train.GradientDescentOptimizer(rate), []
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer, replicas_to_aggregate=everybody, total_num_replicas=everybody
            )
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        update = optimizer.apply_gradients(optimizer.compute_gradients(build_loss()), global_step=step)
        begin = tf.sim.now()
        session = tf.train.MonitoredTrainingSession(
            master=client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        )
        with session:
            done = session.run(step)
            while done < steps and not session.should_stop():
                session.run(update)
                done = session.run(step)
    return tf.sim.now() - begin


RIGHT = [train_together_without_a_stop_hook]
WRONG = {
    # The device setter gets task 0 for everybody instead of the worker's own device, so all workers compute
    # on the first one.
    train_together_first_worker_computes: "places_it_elsewhere",
    # Without sync each worker takes a fixed, rounded-down share of the steps instead of going on until the
    # global step is reached, so together they may take fewer than `steps`.
    train_together_equal_shares: "takes_equal_shares",
    # With sync it multiplies the rate with the number of workers, so a step is the sum of the gradients
    # instead of their mean.
    train_together_larger_rate: "uses_another_rate",
}

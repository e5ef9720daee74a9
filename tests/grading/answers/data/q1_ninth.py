import time

import dtflab as tf


# "until all workers together have taken `steps` steps": equal shares, rounded down, are too few.
def train_equal_shares(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = []
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
                hooks += [optimizer.make_session_run_hook(client.is_chief), tf.train.StopAtStepHook(last_step=steps)]
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            done = 0
            while not sess.should_stop() and (sync or done < steps // workers):
                sess.run(train)
                done += 1
        return tf.sim.now() - began


# "a step is the mean of as many gradients as there are workers": here the slowest is not waited for.
def train_not_the_slowest(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(
                    optimizer, replicas_to_aggregate=max(1, workers - 1), total_num_replicas=workers
                )
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = tf.sim.now()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return tf.sim.now() - began


# "return the virtual seconds that the session took": these are seconds of this computer.
def train_wall_clock(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            loss = build_loss()
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(rate)
            hooks = [tf.train.StopAtStepHook(last_step=steps)]
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            train = optimizer.minimize(loss, global_step=global_step)
        began = time.time()
        with tf.train.MonitoredTrainingSession(
            client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return time.time() - began


class EndAt(tf.train.SessionRunHook):
    """Reads the global step after each run, and ends the training."""

    def __init__(self, step, last):
        self.step, self.last = step, last

    def after_run(self, context, values):
        if context.session.run(self.step) >= self.last:
            context.request_stop()


def train_own_hook(client, build_loss, rate, sync, steps):
    """Devices by a function of its own, the end by a hook of its own."""
    workers, servers = client.cluster_spec.num_tasks("worker"), client.cluster_spec.num_tasks("ps")
    dealt = []

    def place(op):
        if "/job:" in op.device:  # somebody has already said where: accumulators next to their variables, say
            return op.device
        if op.type in ("Variable", "VariableV2", "VarHandleOp"):
            dealt.append(op.name)
            return f"/job:ps/task:{(len(dealt) - 1) % servers}"
        return client.device + op.device

    with tf.Graph().as_default(), tf.device(place):
        step = tf.train.create_global_step()
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = [EndAt(step, steps)]
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=workers)
            hooks.insert(0, optimizer.make_session_run_hook(client.is_chief))
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
        start = tf.sim.now()
        session = tf.train.MonitoredTrainingSession(
            master=client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
        )
        with session:
            while not session.should_stop():
                session.run(train)
    return tf.sim.now() - start


RIGHT = [train_own_hook]
WRONG = {
    # Without sync each worker makes an equal share of the steps, rounded down: ten steps of four workers become eight,
    # and a fast worker cannot make up for a slow one.
    train_equal_shares: "takes_equal_shares",
    # With sync a step is the mean of one gradient less than there are workers.
    train_not_the_slowest: "leaves_workers_out",
    # It returns the seconds of this computer's clock, not virtual ones.
    train_wall_clock: "looks_at_another_clock",
}

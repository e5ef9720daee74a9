"""late_gradients: what SyncReplicasOptimizer's accumulators have dropped, next to the log of each gradient."""

from __future__ import annotations

import pytest

import dtflab as tf


def dropped(workers, aggregate, slow):
    """(late gradients by accumulator, those of the log) after 12 steps in which worker 3 is the slow one, if any."""

    def work(client):
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [8], initializer=tf.ones_initializer())
            rows = tf.get_variable("rows", [4, 2], initializer=tf.ones_initializer())
            loss = tf.reduce_sum(tf.square(w)) + tf.reduce_sum(tf.gather(rows, [client.index]))
            sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1e-3), aggregate, workers)
            measured = tf.train.StalenessOptimizer(sync, client.index)
            train = measured.minimize(loss, global_step=step)
        hooks = [sync.make_session_run_hook(client.is_chief, num_tokens=0), measured.make_session_run_hook()]
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
        ) as session:
            for _ in range(12):
                if slow and client.index == 3:
                    tf.sim.sleep(1.0)
                session.run(train)
            tf.sim.sleep(100.0)  # nobody leaves while others train

    with tf.Cluster(ps=1, worker=workers, clock="virtual", seed=1) as cluster:
        cluster.run(work)
        return tf.train.late_gradients(cluster), tf.train.read_staleness(cluster.target).dropped


def test_nothing_is_late_when_all_are_waited_for():
    late, logged = dropped(workers=3, aggregate=3, slow=False)
    assert late == {"w:0/grad_accum": 0, "rows:0/grad_accum": 0} and logged == 0


def test_a_slow_workers_gradients_come_too_late():
    """A spare worker that sleeps gives most of its gradients for nothing, one for each variable."""
    late, logged = dropped(workers=4, aggregate=3, slow=True)
    assert late["w:0/grad_accum"] == late["rows:0/grad_accum"] == logged > 0


def test_an_accumulator_shows_it():
    with tf.Graph().as_default(), tf.Cluster(worker=1) as cluster, tf.Session(cluster.target) as session:
        accumulator = tf.ConditionalAccumulator(tf.float32, [], shared_name="sum")
        session.run(accumulator.set_global_step(5))
        for step in (4, 5, 3):
            session.run(accumulator.apply_grad(1.0, local_step=step))
        assert tf.train.late_gradients(cluster) == {"sum": 2}
        ((_, _, found),) = cluster.task("worker").server.task.worker.devices[0].resources.items()
        assert repr(found) == "<accumulator sum: 1 gradients, step 5, 0 waiting, 2 came too late>"


def test_tasks_elsewhere_are_refused():
    with (
        tf.Cluster(worker=1, engine="process") as cluster,
        pytest.raises(ValueError, match="task:0 is in a process of"),
    ):
        tf.train.late_gradients(cluster)

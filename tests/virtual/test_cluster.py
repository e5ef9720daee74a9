"""A cluster in virtual time: the program is the same, time is a model, a seed gives the same run."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.virtual.deadlock import DeadlockError


def train(seed: int = 1, workers: int = 3, steps: int = 5):
    """Asynchronous training between graphs: (losses per worker, seconds, hash of the log)."""

    def client_program(client):
        device = tf.train.replica_device_setter(
            cluster=client.cluster_spec, ps_device="/job:ps/cpu:0", worker_device=f"{client.device}/gpu:0"
        )
        with tf.device(device):
            weights = tf.get_variable("w", [20, 3], initializer=tf.ones_initializer())
            step = tf.train.get_or_create_global_step()
            loss = tf.reduce_sum(tf.square(tf.matmul(tf.random_normal([8, 20], seed=client.index + 1), weights)))
            train_op = tf.train.GradientDescentOptimizer(1e-3).minimize(loss, global_step=step)
        with tf.train.MonitoredTrainingSession(client.target, is_chief=client.is_chief) as sess:
            return [float(sess.run([loss, train_op])[0]) for _ in range(steps)]

    with tf.Cluster(ps=1, worker=workers, gpus=1, gpu="K40", network="1Gb/s", clock="virtual", seed=seed,
                    stragglers=tf.sim.lognormal(0.3)) as cluster:  # fmt: skip
        losses = cluster.run(client_program)
        return losses, cluster.now(), cluster.log().hash()


def test_equal_seeds_make_equal_runs_and_others_do_not():
    first, second, other = train(1), train(1), train(2)
    assert first == second
    assert first[2] != other[2] and first[1] != other[1]


def test_a_client_sleeps_in_virtual_time():
    with tf.Cluster(worker=3, clock="virtual") as cluster:

        def client_program(client):
            tf.sim.sleep(100.0 * (client.index + 1))
            return tf.sim.now()

        assert cluster.run(client_program) == [100.0, 200.0, 300.0]
        assert cluster.now() == 300.0


def test_a_deadlock_says_who_waits_for_what():
    with tf.Cluster(ps=1, worker=2, clock="virtual") as cluster:

        def client_program(client):
            with tf.device("/job:ps/task:0"):
                queue = tf.FIFOQueue(3, tf.float32, shared_name="empty", name="empty")
            with tf.Session(client.target) as sess:
                sess.run(queue.dequeue())

        with pytest.raises(DeadlockError, match="empty"):
            cluster.run(client_program)


def test_hardware_without_virtual_time_is_refused():
    with pytest.raises(ValueError, match="clock='virtual'"):
        tf.Cluster(worker=1, network="10Gb/s")
    with pytest.raises(ValueError, match="inprocess"):
        tf.Cluster(worker=1, engine="process", clock="virtual")


def test_a_card_with_less_memory_is_so_for_the_placer_too():
    with tf.Cluster(worker=1, gpus=1, gpu="K40", gpu_memory="1GiB", clock="virtual") as cluster:
        processor, _ = cluster.world.machines.processor("/job:worker/replica:0/task:0/device:GPU:0")
        assert processor.memory_bytes == 1 << 30

"""What `estimate` says of a small network, beside a real run of its program in virtual time."""

import dataclasses

import numpy as np
import pytest

import dtflab as tf
from dtflab import sim
from dtflab.sim.parameters import IDEAL

BATCH, WIDTH, STEPS = 64, 512, 8


def loss():
    x = tf.zeros([BATCH, WIDTH])
    for i in range(3):
        x = tf.layers.dense(
            x, WIDTH, activation=tf.nn.relu, name=f"layer_{i}", kernel_initializer=tf.zeros_initializer()
        )
    return tf.reduce_mean(tf.square(x))


def run(workers, servers):
    """Moments at which each worker's steps ended; and the machines."""

    def program(client):
        setter = tf.train.replica_device_setter(cluster=cluster.spec, worker_device=f"{client.device}/gpu:0")
        with tf.device(setter):
            step = tf.train.GradientDescentOptimizer(0.1).minimize(loss())
        with tf.Session(client.target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            if client.index == 0:
                session.run(tf.global_variables_initializer())
            sim.sleep(1.0 - sim.now())  # so that all begin at once
            moments = [sim.now()]
            for _ in range(STEPS):
                session.run(step)
                moments.append(sim.now())
        return moments

    with tf.Cluster(
        ps=servers, worker=workers, gpu="K40", gpus=1, network="1Gb/s", bus="pcie3", clock="virtual"
    ) as cluster:
        return np.array(cluster.run(program)), cluster.world.machines


@pytest.mark.parametrize(("workers", "servers", "bound"), [(1, 1, 0.01), (1, 2, 0.01), (4, 2, 0.15), (6, 1, 0.15)])
def test_free_running_workers_make_as_many_steps_per_second(workers, servers, bound):
    """A step here is a hundred times longer on the wires than on the card: what is compared are the wires.

    The program also asks the servers for what it does not pull, step by step, and its updates are ops of their own.
    """
    moments, machines = run(workers, servers)
    end = moments[:, -1].min()
    measured = np.clip((end - moments[:, :-1]) / np.diff(moments), 0, 1).sum() / (end - 1.0)
    with tf.Graph().as_default():
        network = sim.Profile.from_graph(loss(), batch=BATCH)
    values = dataclasses.replace(IDEAL, message_s=machines.network.per_message_cpu_s, flop_efficiency=0.5)
    found = sim.estimate(network, machines, STEPS, "ps_async", parameters=values, strategy="round_robin")
    assert found.throughput / BATCH == pytest.approx(measured, rel=bound)

"""`estimate` of a small network, next to a real run of its program in virtual time.

Bounds: one worker 1%; several 15% where workers run freely and links are full, 10% where they wait for each other
and compute. Where they wait for each other and compute next to nothing the estimate is up to 40% longer: a server of
the runner serves worker by worker, so the first pushes while the last pulls; that of the estimate serves in turns.
"""

import dataclasses

import numpy as np
import pytest

import dtflab as tf
from dtflab import sim
from dtflab.hardware.parts import Processor
from dtflab.sim.engine.parameters import IDEAL
from tests.sim.networks import three_layers

BATCH, WIDTH, STEPS = 64, 512, 8
SLOW = Processor("card of 5 GFLOP/s", "GPU", {"float32": 5e9}, 1 << 34, 1e11, 1e-6, 1, "made up")


def run(workers, servers):
    """Moments at which each worker's steps ended; and the machines."""

    def program(client):
        setter = tf.train.replica_device_setter(cluster=cluster.spec, worker_device=f"{client.device}/gpu:0")
        with tf.device(setter):
            step = tf.train.GradientDescentOptimizer(0.1).minimize(three_layers(BATCH, WIDTH))
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
        return np.array(cluster.run(program)), cluster.machines


@pytest.mark.parametrize(("workers", "servers", "bound"), [(1, 1, 0.01), (1, 2, 0.01), (4, 2, 0.15), (6, 1, 0.15)])
def test_free_running_workers_make_as_many_steps_per_second(workers, servers, bound):
    """A step here is a hundred times longer on the wires than on the card: what is compared are the wires.

    The program also asks the servers for what it does not pull, step by step, and its updates are ops of their own.
    """
    moments, machines = run(workers, servers)
    end = moments[:, -1].min()
    measured = np.clip((end - moments[:, :-1]) / np.diff(moments), 0, 1).sum() / (end - 1.0)
    with tf.Graph().as_default():
        network = sim.Profile.from_graph(three_layers(BATCH, WIDTH), batch=BATCH)
    values = dataclasses.replace(IDEAL, message_s=machines.network.per_message_cpu_s, flop_efficiency=0.5)
    found = sim.estimate(network, machines, STEPS, "ps_async", parameters=values, strategy="round_robin")
    assert found.throughput / BATCH == pytest.approx(measured, rel=bound)


def run_in_step(workers, servers, network):
    """How long each worker's steps took, after the first; and the machines."""

    def program(client):
        setter = tf.train.replica_device_setter(cluster=cluster.spec, worker_device=f"{client.device}/gpu:0")
        with tf.device(setter):
            global_step = tf.train.get_or_create_global_step()
            plain = tf.train.GradientDescentOptimizer(0.1)
            optimizer = tf.train.SyncReplicasOptimizer(plain, replicas_to_aggregate=workers)
            step = optimizer.minimize(three_layers(BATCH, WIDTH), global_step=global_step)
        hook = optimizer.make_session_run_hook(client.index == 0, num_tokens=0)
        config = tf.ConfigProto(allow_soft_placement=True)
        moments = []
        with tf.train.MonitoredTrainingSession(
            client.target, client.index == 0, hooks=[hook], config=config
        ) as session:
            for _ in range(4):
                session.run(step)
                moments.append(sim.now())
        return moments

    with tf.Cluster(ps=servers, worker=workers, gpu=SLOW, gpus=1, network=network, clock="virtual") as cluster:
        return np.diff(cluster.run(program)), cluster.machines


@pytest.mark.parametrize("network", ["1Gb/s", "10Gb/s"])
@pytest.mark.parametrize(("workers", "servers", "bound"), [(1, 1, 0.01), (2, 1, 0.05), (4, 2, 0.1)])
def test_workers_in_step_take_as_long(workers, servers, bound, network):
    """SyncReplicasOptimizer trains, by its accumulators and its tokens."""
    steps, machines = run_in_step(workers, servers, network)
    with tf.Graph().as_default():
        profile = sim.Profile.from_graph(three_layers(BATCH, WIDTH), batch=BATCH)
    values = dataclasses.replace(IDEAL, message_s=machines.network.per_message_cpu_s, flop_efficiency=0.5)
    found = sim.estimate(profile, machines, 4, "ps_sync", parameters=values, strategy="round_robin")
    assert found.step_time == pytest.approx(steps[:, -1].max(), rel=bound)

"""`estimate` of training by all-reduce, next to a real run of AllReduceOptimizer in virtual time."""

from __future__ import annotations

import dataclasses

import pytest

import dtflab as tf
from dtflab import sim
from dtflab.sim.engine.parameters import IDEAL
from tests.sim.networks import three_layers

BATCH, WIDTH, STEPS = 64, 512, 4
NETWORK = sim.Network(sim.Nic("a NIC", 125e6, 5e-5, "assumed"), switch_latency_s=0.0, per_message_cpu_s=0.0)


def run(workers, algorithm, fusion_bytes):
    """Seconds per step, and the machines."""

    def program(client):
        with tf.device(f"{client.device}/gpu:0"):
            optimizer = tf.train.AllReduceOptimizer(
                tf.train.GradientDescentOptimizer(0.1), client.cluster_spec, client.index, algorithm=algorithm,
                bucket_bytes=fusion_bytes,
            )  # fmt: skip
            step = optimizer.minimize(three_layers(BATCH, WIDTH))
        with tf.Session(client.target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            sim.sleep(1.0 - sim.now())  # so that all begin at once
            for _ in range(STEPS):
                session.run(step)
        return (sim.now() - 1.0) / STEPS

    with tf.Cluster(worker=workers, gpu="K40", gpus=1, network=NETWORK, bus="pcie3", clock="virtual") as cluster:
        return max(cluster.run(program)), cluster.world.machines


@pytest.mark.parametrize(("fusion_bytes", "bound"), [(1 << 30, 0.02), (0, 0.12)])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
@pytest.mark.parametrize("workers", [2, 3, 4, 7])
def test_steps_take_as_long(algorithm, workers, fusion_bytes, bound):
    """The program's gradients overlap on the wires without buckets, where the estimate has one after the other.

    An estimated step begins for all workers at once. In a run, workers above a power of two end a step of halving and
    doubling later than others, and keep them waiting in the next one.
    """
    if algorithm == "halving_doubling" and fusion_bytes and workers in (3, 7):
        bound = 0.25
    seconds, machines = run(workers, algorithm, fusion_bytes)
    with tf.Graph().as_default():
        network = sim.Profile.from_graph(three_layers(BATCH, WIDTH), batch=BATCH)
    values = dataclasses.replace(IDEAL, flop_efficiency=0.5)
    found = sim.estimate(
        network, machines, STEPS, "allreduce", parameters=values, algorithm=algorithm, fusion_bytes=fusion_bytes
    )
    assert found.step_time == pytest.approx(seconds, rel=bound)

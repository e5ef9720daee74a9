"""Small networks and ideal platforms for tests of estimates: what they cost is known by heart."""

import dataclasses

import dtflab as tf
from dtflab.hardware import catalogue
from dtflab.hardware.parts import Network, Nic, Processor
from dtflab.sim.engine.cluster_models import cluster_model
from dtflab.sim.engine.layer_costs import Kernel, LayerCost, VariableCost
from dtflab.sim.engine.network_profile import Profile

FLOPS = 1e12  # of GPU below, per second
GPU = Processor("test GPU", "GPU", {"float32": FLOPS}, 1 << 40, 1e15, 0.0, 1, "made up")
CPU = Processor("test CPU", "CPU", {"float32": FLOPS}, 1 << 40, 1e18, 0.0, 16, "made up")
BUS = dataclasses.replace(catalogue.bus("pcie3"), name="test bus", bandwidth=1e15, latency_s=0.0)


def network(bandwidth=1e9, latency_s=0.0):
    return Network(Nic("test NIC", bandwidth, latency_s, "made up"), 0.0, per_message_cpu_s=0.0)


def cluster(workers=1, ps_tasks=1, *, bandwidth=1e9, latency_s=0.0, **options):
    """Hosts between which only the network counts: `bandwidth` in B/s."""
    given = {"gpu": GPU, "cpu": CPU, "bus": BUS, "network": network(bandwidth, latency_s), **options}
    return cluster_model(workers, ps_tasks, **given)


def layered(sizes, forward_s=0.1, backward_s=0.2, output_bytes=0, name="layered"):
    """A layer for each size in bytes, whose GPU computes for `forward_s` and `backward_s` seconds."""
    layers = tuple(
        LayerCost(
            f"layer_{i}",
            (Kernel("MatMul", "float32", forward_s * FLOPS, 0),),
            (Kernel("MatMul", "float32", backward_s * FLOPS, 0),),
            variables=(VariableCost(f"w_{i}", size),),
            output_bytes=output_bytes,
        )
        for i, size in enumerate(sizes)
    )
    return Profile(name, 10, layers)


def three_layers(batch, width):
    """The loss of three equal layers, as a graph."""
    x = tf.zeros([batch, width])
    for i in range(3):
        x = tf.layers.dense(
            x, width, activation=tf.nn.relu, name=f"layer_{i}", kernel_initializer=tf.zeros_initializer()
        )
    return tf.reduce_mean(tf.square(x))

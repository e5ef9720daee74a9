"""How long an all-reduce takes in virtual time: what the formulas say.

The machines here do all at once, except that arithmetic in float64 goes at 1 FLOP/s. So inputs are made as late as
wanted, the last worker's last of all; from then on only messages take time. gRPC costs no CPU time.
"""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.hardware.parts import Network, Nic, Processor
from dtflab.sim import formulas

LATENCY, BANDWIDTH = 5e-5, 1e9
AT_ONCE = 1e30
NBYTES = 4 * 3840  # in p equal pieces, as the formulas have it
FORMULAS = {
    "ring": formulas.ring_all_reduce_seconds,
    "tree": formulas.tree_all_reduce_seconds,
    "halving_doubling": formulas.halving_doubling_all_reduce_seconds,
}
CASES = [(algorithm, p) for algorithm in FORMULAS for p in (2, 4, 8)] + [("ring", 3), ("ring", 5)]


def cluster_of(workers, add_s_per_byte=0.0):
    """`add_s_per_byte` is how long a worker adds, for each byte that it gets."""
    peak = 1 / (4 * add_s_per_byte * 0.5) if add_s_per_byte else AT_ONCE  # one FLOP for four bytes, at half the peak
    cpu = Processor("a CPU", "CPU", {"float32": peak, "float64": 2.0}, 1 << 40, AT_ONCE, 0.0, 1, "assumed")
    network = Network(Nic("a NIC", BANDWIDTH, LATENCY, "assumed"), switch_latency_s=0.0, per_message_cpu_s=0.0)
    return tf.Cluster(worker=workers, cpu=cpu, network=network, clock="virtual")


def late_input(worker):
    """Ready some `10 + worker` seconds after the step's begin."""
    slow = tf.reduce_sum(tf.negative(tf.placeholder(tf.float64, [None], name=f"seconds_{worker}")))
    return tf.add(np.ones(NBYTES // 4, np.float32), tf.cast(slow, tf.float32), name=f"ready_{worker}")


def seconds(*workers):
    return {f"seconds_{worker}:0": np.ones(10 + worker) for worker in workers}


def in_graph(cluster, workers, algorithm):
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        inputs = []
        for worker in range(workers):
            with tf.device(f"/job:worker/task:{worker}"):
                inputs.append(late_input(worker))
        session.run(
            [result.op for result in tf.train.all_reduce(inputs, algorithm, name="together")], seconds(*range(workers))
        )


def between_graph(cluster, workers, algorithm):
    def work(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            group = tf.train.WorkerGroup(client.cluster_spec, client.index)
            session.run(
                group.all_reduce(late_input(client.index), algorithm, name="together").op, seconds(client.index)
            )

    cluster.run(work)


def taken(cluster, empty=False):
    """Seconds from when the last input is ready to when the last piece has arrived, or the last signal (`empty`)."""
    log = cluster.log().lines
    ready = max(line.ended for line in log if "ready_" in line.what and not line.target)
    sent = [line for line in log if "together" in line.what and line.target]
    return max(line.ended for line in sent if bool(line.nbytes) != empty) - ready


@pytest.mark.parametrize(("algorithm", "workers"), CASES)
def test_in_one_graph_it_takes_as_long_as_its_formula_says(algorithm, workers):
    with cluster_of(workers) as cluster:
        in_graph(cluster, workers, algorithm)
        expected = FORMULAS[algorithm](workers, NBYTES, LATENCY, BANDWIDTH)
        assert taken(cluster) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("algorithm", "workers"), CASES)
def test_between_graphs_too_and_then_it_is_told_that_all_has_arrived(algorithm, workers):
    """A step is over when what it sends is in the queues: the answer to the last message is one latency later."""
    with cluster_of(workers) as cluster:
        between_graph(cluster, workers, algorithm)
        expected = FORMULAS[algorithm](workers, NBYTES, LATENCY, BANDWIDTH)
        assert taken(cluster) == pytest.approx(expected, rel=1e-9)
        assert expected < taken(cluster, empty=True) <= (expected + LATENCY) * (1 + 1e-9)


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_what_workers_add_takes_them_time(workers):
    with cluster_of(workers, add_s_per_byte=1e-9) as cluster:
        in_graph(cluster, workers, "ring")
        expected = formulas.ring_all_reduce_seconds(workers, NBYTES, LATENCY, BANDWIDTH, 1e-9)
        assert taken(cluster) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("workers", [3, 5, 6])
def test_workers_above_a_power_of_two_cost_two_rounds_of_all_bytes(workers):
    with cluster_of(workers) as cluster:
        in_graph(cluster, workers, "halving_doubling")
        below = 1 << (workers.bit_length() - 1)
        expected = formulas.halving_doubling_all_reduce_seconds(below, NBYTES, LATENCY, BANDWIDTH)
        assert taken(cluster) == pytest.approx(expected + 2 * (LATENCY + NBYTES / BANDWIDTH), rel=1e-9)

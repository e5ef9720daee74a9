"""How long an all-reduce takes in virtual time: what the formulas say, for any number of workers.

The machines here do all at once, except that arithmetic in float64 goes at 1 FLOP/µs. So inputs are ready when a test
wants them to be; from then on only messages take time. gRPC costs no CPU time.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import dtflab as tf
from dtflab.hardware.parts import Network, Nic, Processor
from dtflab.sim import formulas

LATENCY, BANDWIDTH = 5e-5, 1e9
AT_ONCE = 1e30
NBYTES = 4 * 5040  # in p equal pieces for p = 2 to 9, as the formulas have it
FORMULAS = {
    "ring": formulas.ring_all_reduce_seconds,
    "tree": formulas.tree_all_reduce_seconds,
    "halving_doubling": formulas.halving_doubling_all_reduce_seconds,
}
CASES = [(algorithm, p) for algorithm in FORMULAS for p in range(2, 10)]
EXACT = [(algorithm, p) for algorithm, p in CASES if algorithm == "ring" or p in (2, 4, 8)]  # also by its formula


def late(workers):
    """Microseconds by which workers are ready later than others: not at all, one by one, and at random."""
    draw = random.Random(workers)
    chances = [[draw.randrange(most) for _ in range(workers)] for most in (60, 300)]
    return [[0] * workers, [1000 * worker for worker in reversed(range(workers))], *chances]


def cluster_of(workers, add_s_per_byte=0.0):
    """`add_s_per_byte` is how long a worker adds, for each byte that it gets."""
    peak = 1 / (4 * add_s_per_byte * 0.5) if add_s_per_byte else AT_ONCE  # one FLOP for four bytes, at half the peak
    cpu = Processor("a CPU", "CPU", {"float32": peak, "float64": 2e6}, 1 << 40, AT_ONCE, 0.0, 1, "assumed")
    network = Network(Nic("a NIC", BANDWIDTH, LATENCY, "assumed"), switch_latency_s=0.0, per_message_cpu_s=0.0)
    return tf.Cluster(worker=workers, cpu=cpu, network=network, clock="virtual")


def late_input(worker, nbytes):
    """Ready after as many microseconds as numbers are fed, and some more for the call that starts the step."""
    slow = tf.reduce_sum(tf.placeholder(tf.float64, [None], name=f"numbers_{worker}"))
    return tf.add(np.ones(nbytes // 4, np.float32), tf.cast(slow, tf.float32), name=f"ready_{worker}")


def fed(microseconds, *workers):
    """Ready in 20 ms at the earliest: until then all calls have come that start a step's parts."""
    return {f"numbers_{worker}:0": np.ones(20_000 + microseconds[worker]) for worker in workers}


def in_graph(cluster, algorithm, microseconds, nbytes=NBYTES):
    workers = len(microseconds)
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        inputs = []
        for worker in range(workers):
            with tf.device(f"/job:worker/task:{worker}"):
                inputs.append(late_input(worker, nbytes))
        results = tf.train.all_reduce(inputs, algorithm, name="together")
        session.run([result.op for result in results], fed(microseconds, *range(workers)))


def between_graph(cluster, algorithm, microseconds, nbytes=NBYTES):
    def work(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            group = tf.train.WorkerGroup(client.cluster_spec, client.index)
            result = group.all_reduce(late_input(client.index, nbytes), algorithm, name="together")
            session.run(result.op, fed(microseconds, client.index))

    cluster.run(work)


def moments(cluster, workers):
    """For each worker: when its input was ready, and when it had the last piece."""
    log = cluster.log().lines
    ready = {line.what: line.ended for line in log if not line.target}
    had = [ready[f"ready_{worker}"] for worker in range(workers)]
    for line in log:
        if line.target and line.nbytes and "RunGraph" not in line.what:
            task = tf.DeviceSpec.from_string(line.target).task
            had[task] = max(had[task], line.ended)
    return [ready[f"ready_{worker}"] for worker in range(workers)], had


def taken(cluster, workers):
    """Seconds from when the last input is ready to when the last piece has arrived."""
    ready, had = moments(cluster, workers)
    return max(had) - max(ready)


@pytest.mark.parametrize("run", [in_graph, between_graph])
@pytest.mark.parametrize(("algorithm", "workers"), CASES)
def test_each_worker_has_the_sum_when_the_schedule_says(run, algorithm, workers, monkeypatch):
    """To 1e-9 of the time that it takes. Between graphs a worker's step may end early, which its helpers report."""
    monkeypatch.setattr("dtflab.virtual.wires.CALL_BYTES", 0)  # so that these reports keep no message waiting
    for microseconds in late(workers):
        with cluster_of(workers) as cluster:
            run(cluster, algorithm, microseconds)
            ready, had = moments(cluster, workers)
            expected = formulas.all_reduce_ends(algorithm, ready, NBYTES, LATENCY, BANDWIDTH)
            assert had == pytest.approx(expected, rel=0, abs=1e-9 * taken(cluster, workers)), microseconds


@pytest.mark.parametrize("run", [in_graph, between_graph])
@pytest.mark.parametrize("elements", [11, 1001, 12345])
@pytest.mark.parametrize(("algorithm", "workers"), [(algorithm, p) for algorithm, p in CASES if p in (3, 5, 6, 7, 9)])
def test_pieces_hold_whole_elements(run, elements, algorithm, workers, monkeypatch):
    """Unequal pieces: 11 elements for 9 workers are 7 pieces of one and 2 of two."""
    monkeypatch.setattr("dtflab.virtual.wires.CALL_BYTES", 0)  # as above
    with cluster_of(workers) as cluster:
        run(cluster, algorithm, late(workers)[3], 4 * elements)
        ready, had = moments(cluster, workers)
        expected = formulas.all_reduce_ends(algorithm, ready, 4 * elements, LATENCY, BANDWIDTH, itemsize=4)
        assert had == pytest.approx(expected, rel=0, abs=1e-9 * taken(cluster, workers))


@pytest.mark.parametrize("run", [in_graph, between_graph])
@pytest.mark.parametrize(("algorithm", "workers"), EXACT)
def test_it_takes_as_long_as_its_formula_says(run, algorithm, workers):
    """The last worker is ready last, and is one that every message of the tree waits for."""
    with cluster_of(workers) as cluster:
        run(cluster, algorithm, [1000 * worker for worker in range(workers)])
        expected = FORMULAS[algorithm](workers, NBYTES, LATENCY, BANDWIDTH)
        assert taken(cluster, workers) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("algorithm", FORMULAS)
def test_between_graphs_the_answer_to_the_last_message_is_one_latency_later(algorithm):
    """A step is over when what it sends is in the queues."""
    with cluster_of(8) as cluster:
        between_graph(cluster, algorithm, [1000 * worker for worker in range(8)])
        ready, had = moments(cluster, 8)
        answered = max(line.ended for line in cluster.log().lines if line.target and not line.nbytes)
        assert max(had) < answered <= max(ready) + (taken(cluster, 8) + LATENCY) * (1 + 1e-9)


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_what_workers_add_takes_them_time(workers):
    with cluster_of(workers, add_s_per_byte=1e-9) as cluster:
        in_graph(cluster, "ring", [1000 * worker for worker in range(workers)])
        expected = formulas.ring_all_reduce_seconds(workers, NBYTES, LATENCY, BANDWIDTH, 1e-9)
        assert taken(cluster, workers) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("workers", [3, 5, 6, 7])
def test_workers_above_a_power_of_two_cost_two_rounds_of_all_bytes(workers):
    with cluster_of(workers) as cluster:
        in_graph(cluster, "halving_doubling", [1000 * worker for worker in range(workers)])
        below = 1 << (workers.bit_length() - 1)
        expected = formulas.halving_doubling_all_reduce_seconds(below, NBYTES, LATENCY, BANDWIDTH)
        assert taken(cluster, workers) == pytest.approx(expected + 2 * (LATENCY + NBYTES / BANDWIDTH), rel=1e-9)

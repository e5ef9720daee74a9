"""One rule at a time: what else only the hash of a whole log would notice."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.virtual.engine import Engine
from dtflab.virtual.step import LEAST_S
from dtflab.virtual.world import Slots
from tests.virtual.small_program import CPU, GPU, NETWORK

HARDWARE = {"cpu": CPU, "gpu": GPU, "network": NETWORK, "clock": "virtual"}
PS, WORKER, OTHER = (f"/job:{job}/replica:0/task:{n}" for job, n in (("ps", 0), ("worker", 0), ("worker", 1)))
KERNEL_S = GPU.launch_s + 2 * 500**3 / (1e11 * 0.5)


class Work:
    """A job of a second, which notes when it is over."""

    def __init__(self, engine, ended):
        self.engine, self.ended = engine, ended

    def begin(self):
        return 1.0

    def end(self, lane):
        self.ended.append(self.engine.now)


@pytest.mark.parametrize(("slots", "ends"), [(1, [1, 2, 3, 4]), (2, [1, 1, 2, 2]), (4, [1, 1, 1, 1])])
def test_a_processor_does_no_more_at_once_than_it_has_slots(slots, ends):
    engine, ended = Engine(), []
    processor = Slots(engine, GPU, slots)
    for _ in range(4):
        processor.submit(Work(engine, ended))
    engine.run()
    assert ended == ends and processor.busy == 4


@pytest.mark.parametrize(
    ("ways", "second"),
    [([(PS, WORKER), (PS, OTHER)], 2), ([(WORKER, PS), (OTHER, PS)], 2), ([(PS, WORKER), (WORKER, PS)], 1)],
    ids=["one sender", "one receiver", "both ways"],
)
def test_messages_wait_for_each_other_on_one_direction_of_a_card(ways, second):
    with tf.Cluster(ps=1, worker=2, **HARDWARE) as cluster:
        world = cluster.clock.world
        for source, target in ways:
            world.wires.send(
                0, "x", f"{source}/device:CPU:0", f"{target}/device:CPU:0", 10**8, lambda: None, lambda error: None
            )
        world.engine.run()
        first, last = sorted(line.ended - line.started for line in cluster.log().lines)
    card_s = 10**8 / NETWORK.nic.bandwidth
    latency_s = 2 * NETWORK.nic.latency_s + NETWORK.switch_latency_s
    assert first == pytest.approx(card_s + latency_s, rel=1e-4)
    assert last == pytest.approx(second * card_s + latency_s, rel=1e-4)


class Factors:
    """Another factor for each step and each task: 1, 2, 3, … for worker 0, ten times that for worker 1."""

    def factors(self, steps, devices, seed):
        return np.arange(1.0, steps + 1)[:, None] * 10.0 ** np.arange(devices)


def test_stragglers_slow_what_a_steps_own_task_computes_each_step_by_its_factor():
    def client_program(client):
        """The same product on the client's own GPU and on the server's CPU, once per step."""
        ones = tf.constant(np.ones([500, 500], np.float32))
        with tf.device(f"{client.device}/gpu:0"):
            own = tf.matmul(ones, ones).op
        with tf.device("/job:ps/task:0/cpu:0"):
            servers = tf.matmul(ones, ones).op
        with tf.Session(client.target) as session:
            seconds = [busy(cluster)]
            for _ in range(3):
                session.run([own, servers])
                seconds.append(busy(cluster))
        return np.diff(seconds, axis=0) / KERNEL_S

    def busy(cluster):
        loads = {load.devices[0]: load.busy for load in cluster.loads().processors}
        return [loads[f"{task}/device:{kind}:0"] for task, kind in ((WORKER, "GPU"), (OTHER, "GPU"), (PS, "CPU"))]

    for index, factor in ((0, 1), (1, 10)):
        with tf.Cluster(ps=1, worker=2, gpus=1, stragglers=Factors(), **HARDWARE) as cluster:
            made = cluster.run(lambda client: client_program(client) if client.index == index else None)[index]  # noqa: B023
        own, idle, servers = made.T[[index, 1 - index, 2]]
        assert own == pytest.approx([factor, 2 * factor, 3 * factor])
        assert idle == pytest.approx([0, 0, 0]) and servers == pytest.approx([servers[0]] * 3)


def test_a_step_of_nothing_lets_the_least_time_pass():
    """So that a client that asks again and again until something has happened lets it happen."""
    with tf.Cluster(worker=1, **HARDWARE) as cluster, tf.Session(cluster.target) as session:
        nothing = tf.no_op()
        session.run(nothing)
        before = cluster.now()
        for _ in range(5):
            session.run(nothing)
        assert cluster.now() - before == pytest.approx(5 * LEAST_S) and LEAST_S > 0

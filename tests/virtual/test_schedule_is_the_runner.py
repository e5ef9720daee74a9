"""The schedule and the executor in virtual time answer one question in two ways: how long does this step take?"""

from __future__ import annotations

import random

import pytest

import dtflab as tf
from dtflab.hardware.schedule import simulate
from dtflab.hardware.workload import measured, tasks_of

PLACES = ("/gpu:0", "/gpu:1", "/cpu:0")


def on_machines(build, bus="pcie3"):
    """The second of two steps of a program: its virtual seconds, its placed nodes, its trace, the machines."""
    with tf.Graph().as_default(), tf.Cluster(worker=1, gpus=2, gpu="K40", bus=bus, clock="virtual") as cluster:
        fetch = build()
        with tf.Session(cluster.target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            session.run(fetch)
            started = cluster.now()
            trace = session.trace(fetch)
            return cluster.now() - started, session.placed_nodes(fetch), trace, cluster.world.machines


def perceptron():
    """A training step whose layers are on two GPUs."""
    x = tf.ones([64, 512])
    for i, place in enumerate((0, 1, 0)):
        with tf.device(PLACES[place]):
            x = tf.layers.dense(x, 512, tf.nn.relu, name=f"layer{i}")
    loss = tf.reduce_mean(tf.square(x))
    return tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True)


def scattered(seed):
    """Products and sums, each somewhere."""
    rng = random.Random(seed)
    values = [tf.fill([128, 128], 0.01)]
    for _ in range(20):
        with tf.device(rng.choice(PLACES)):
            values.append(rng.choice([tf.matmul, tf.add])(*rng.choices(values[-6:], k=2)))
    return tf.add_n(values).op  # a value would go to the client, too


@pytest.mark.parametrize("bus", ["pcie3", "pcie3-tree", "nvlink2"])
@pytest.mark.parametrize("build", [perceptron, *(lambda seed=seed: scattered(seed) for seed in range(5))])
def test_both_take_the_same_time(build, bus):
    seconds, nodes, _, machines = on_machines(build, bus)
    schedule = simulate(tasks_of(nodes, machines), machines)
    assert len(schedule.messages) > 1
    assert schedule.makespan == pytest.approx(seconds, rel=1e-9)


def test_what_the_runner_measured_gives_the_schedule_of_the_estimates():
    """A trace counts in nanoseconds."""
    seconds, nodes, trace, machines = on_machines(perceptron)
    schedule = simulate(tasks_of(nodes, machines, measured=measured(trace.step_stats)), machines)
    assert schedule.makespan == pytest.approx(seconds, rel=1e-3)


def test_a_tensor_is_there_from_the_beginning_of_its_node_until_its_reader_is_done():
    def chain():
        with tf.device("/gpu:0"):
            first = tf.fill([256, 256], 0.5, name="first")
            second = tf.matmul(first, first, name="second")
            return tf.matmul(second, second, name="third").op

    _, _, trace, _ = on_machines(chain)
    stats = {node.node_name: node for device in trace.step_stats.dev_stats for node in device.node_stats}
    for name, reader in (("first", "second"), ("second", "third")):
        (memory,) = stats[name].memory
        made, freed = memory.allocation_records
        assert made.alloc_bytes == 256 * 256 * 4 == -freed.alloc_bytes
        assert abs(made.alloc_micros - stats[name].all_start_micros) <= 1  # in whole microseconds
        begun, ended = stats[reader].all_start_micros, stats[reader].all_start_micros + stats[reader].all_end_rel_micros
        assert begun + 5 < ended <= freed.alloc_micros + 1


def test_memory_is_what_the_simulated_cards_hold_at_their_fullest():
    """No less, but for what the allocator rounds up (1 MiB has a chunk of 1.3); some more: kernels write in place."""
    _, nodes, trace, machines = on_machines(perceptron)
    held: dict[str, int] = {}
    for device in trace.step_stats.dev_stats:
        for memory in (memory for node in device.node_stats for memory in node.memory):
            if memory.allocator_name.endswith("_bfc"):
                card = device.device.removesuffix("/variables")
                held[card] = max(held.get(card, 0), memory.allocator_bytes_in_use)
    peak = simulate(tasks_of(nodes, machines), machines).peak
    assert len(held) == 2
    assert all(0.95 * held[device] <= peak[device] <= 1.1 * held[device] for device in held)

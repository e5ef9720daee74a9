"""100,000 steps later, the process is as large as it was."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.hosts import simulate_gpus
from tests.machine.test_peak import memory_of

MIB = 1 << 20


ROLLUP = "/proc/self/smaps_rollup"
ON_LINUX = pytest.mark.skipif(not os.path.exists(ROLLUP), reason="the memory of a process is read from Linux's /proc")


def own_memory():
    """Bytes that this process has written, counted page by page: what statm says may be some MB off."""
    with open(ROLLUP, encoding="ascii") as rollup:
        (line,) = (line for line in rollup if line.startswith("Anonymous:"))
    return int(line.split()[1]) << 10


def growth(step, count):
    """How many bytes `count` steps add, once the first ones are done: at least that many in each of four times.

    Memory added once, by another thread or a heap, is not the steps'.
    """
    added = []
    for part in (count // 10, *[count // 4] * 4):
        before = own_memory()
        for _ in range(part):
            step()
        gc.collect()
        added.append(own_memory() - before)
    return 4 * min(added[1:])


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@ON_LINUX
def test_a_hundred_thousand_steps_leave_nothing_behind():
    x = tf.placeholder(tf.float32, [100])
    w = tf.Variable(np.zeros(100, "f"))
    update = w.assign_add(x)
    with tf.Session() as session:
        session.run(w.initializer)
        ones = np.ones(100, "f")
        added = growth(lambda: session.run(update.op, {x: ones}), 100_000)
    # An object of 100 bytes per step would be 10 MB, the array that is fed 40.
    assert added < 3 * MIB


@ON_LINUX
def test_steps_on_a_simulated_gpu_traced_or_failing_leave_nothing_behind(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="1GiB")
    x = tf.placeholder(tf.float32, [100])
    w = tf.Variable(np.zeros(100, "f"))
    shape = tf.placeholder(tf.int32, [1])
    update, wrong = w.assign_add(x), tf.reshape(x, shape)
    config = tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=1 / 1024))
    with tf.Session(config=config) as session:
        session.run(w.initializer)
        ones = np.ones(100, "f")

        def step():
            session.run(update.op, {x: ones})
            session.trace(update.op, {x: ones})
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(wrong, {x: ones, shape: [7]})

        step()
        in_use = memory_of(session).bytes_in_use
        assert growth(step, 1000) < 3 * MIB
        assert memory_of(session).bytes_in_use == in_use
    simulate_gpus(None)

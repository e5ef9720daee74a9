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


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(step, count):
    """How many bytes `count` steps have added, once the first ones are done."""
    for _ in range(count // 10):
        step()
    gc.collect()
    before = resident()
    for _ in range(count):
        step()
    gc.collect()
    return resident() - before


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from Linux's /proc")
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


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from Linux's /proc")
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

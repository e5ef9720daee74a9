"""A recurrent net of two layers, each elsewhere: the same values and gradients, computed where it was said."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.hosts import simulate_gpus

TIME, BATCH, DEPTH, UNITS = 4, 3, 2, 5
LENGTHS = [4, 1, 3]


def weights(shape, dtype=None, partition_info=None):
    return tf.constant(np.sin(np.arange(np.prod(shape)) + 1.0).reshape(shape), dtype)


def net(loop, devices):
    """Outputs, last state and gradients of an LSTM over a GRU, each on its device."""
    cells = [tf.nn.rnn_cell.BasicLSTMCell(UNITS), tf.nn.rnn_cell.GRUCell(UNITS)]
    if devices is not None:
        cells = [tf.nn.rnn_cell.DeviceWrapper(cell, device) for cell, device in zip(cells, devices, strict=True)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    x = tf.constant(np.cos(np.arange(BATCH * TIME * DEPTH)).reshape(BATCH, TIME, DEPTH), tf.float32)
    with tf.variable_scope("net", initializer=weights):
        if loop == "static":
            outputs, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=LENGTHS)
            outputs = tf.stack(outputs)
        else:
            outputs, state = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float32)
    loss = tf.reduce_sum(outputs * tf.sin(outputs))
    return [outputs, *tf.nest.flatten(state), *tf.gradients(loss, tf.trainable_variables())]


def run(loop, devices, target=""):
    """The values, and device → the cells whose products ran there."""
    with tf.Graph().as_default():
        fetches = net(loop, devices)
        metadata = tf.RunMetadata()
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            values = session.run(fetches, options=options, run_metadata=metadata)
    ran = {}
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats if "memcpy" not in device.device else ():
            if "MatMul" in node.node_name and "gradients" not in node.node_name:
                ran.setdefault(device.device, set()).update(
                    part for part in node.node_name.split("/") if part.startswith("cell_")
                )
    return values, ran


def assert_same_values(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", ["static", "dynamic"])
def test_layers_on_two_gpus(loop):
    alone, _ = run(loop, None)
    simulate_gpus(2)
    split, ran = run(loop, ["/gpu:0", "/gpu:1"])
    assert_same_values(split, alone)
    task = "/job:localhost/replica:0/task:0"
    assert ran == {f"{task}/device:GPU:0": {"cell_0"}, f"{task}/device:GPU:1": {"cell_1"}}


@pytest.mark.parametrize("loop", ["static", "dynamic"])
def test_layers_on_two_tasks(loop):
    alone, _ = run(loop, None)
    with tf.Cluster(worker=2) as cluster:
        split, ran = run(loop, [f"/job:worker/task:{i}" for i in range(2)], cluster.target_of("worker"))
    assert_same_values(split, alone)
    assert ran == {f"/job:worker/replica:0/task:{i}/device:CPU:0": {f"cell_{i}"} for i in range(2)}

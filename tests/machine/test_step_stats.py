from __future__ import annotations

import time

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph.apply_op import apply_op
from dtflab.machine.clock import REAL
from dtflab.machine.step_stats import StepStatsCollector
from dtflab.protos.step_stats_pb2 import StepStats

LOCAL = "/job:localhost/replica:0/task:0/device"


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def traced(fetches, feeds=None, cpus=1):
    """Device → name → stats of the nodes that ran."""
    metadata = tf.RunMetadata()
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": cpus})) as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(fetches, feeds, options=options, run_metadata=metadata)
    return {device.device: {n.node_name: n for n in device.node_stats} for device in metadata.step_stats.dev_stats}


def test_every_node_that_ran_is_there_with_its_times():
    before = time.time()
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    y = tf.matmul(x, tf.constant(np.eye(2, dtype="f"), name="c"), name="y")
    tf.negative(y, name="not_wanted")
    ((device, nodes),) = traced(y, {x: np.ones((2, 2))}).items()
    assert device == f"{LOCAL}:CPU:0" and set(nodes) == {"_arg_x_0_0", "c", "y", "_retval_y_0_0"}
    product = nodes["y"]
    assert before - 1 < product.all_start_micros / 1e6 < time.time() + 1
    assert product.all_start_nanos // 1000 == pytest.approx(product.all_start_micros, abs=1)
    assert 0 < product.op_end_rel_nanos == product.all_end_rel_nanos < 1e9
    assert product.timeline_label == "y = MatMul(_arg_x_0_0, c)"
    starts = [nodes[name].all_start_nanos for name in ("_arg_x_0_0", "y", "_retval_y_0_0")]
    assert starts == sorted(starts)


def test_sizes_and_types_of_outputs():
    first, second = tf.split(tf.placeholder_with_default(np.zeros((4, 3), "i8"), [4, 3]), 2, name="s")
    nodes = traced([first, second])[f"{LOCAL}:CPU:0"]
    outputs = nodes["s"].output
    assert [o.slot for o in outputs] == [0, 1]
    for output in outputs:
        description = output.tensor_description
        assert description.dtype == tf.int64.as_datatype_enum
        assert [d.size for d in description.shape.dim] == [2, 3]
        assert description.allocation_description.requested_bytes == 48


def test_a_transfer_says_how_much_came_from_where_to_where():
    with tf.device("/cpu:1"):
        a = tf.placeholder_with_default(np.zeros(100, "f"), [100], name="a") * 1.0
    b = tf.negative(a)
    devices = traced(b, cpus=2)
    transfer = devices[f"{LOCAL}:CPU:0"]["RecvTensor"]
    assert transfer.timeline_label.startswith("[400B] edge_") and transfer.timeline_label.endswith(
        f" from {LOCAL}:CPU:1 to {LOCAL}:CPU:0"
    )
    assert set(devices) == {f"{LOCAL}:CPU:0", f"{LOCAL}:CPU:1"}


def test_what_did_not_run_is_not_there():
    no, yes = apply_op("Switch", data=tf.constant(1.0), pred=tf.placeholder_with_default(True, []))
    merged = apply_op("Merge", inputs=[tf.negative(no, name="no"), tf.exp(yes, name="yes")])[0]
    nodes = traced(merged)[f"{LOCAL}:CPU:0"]
    assert "yes" in nodes and "no" not in nodes


def test_a_traced_step_gives_what_an_untraced_one_gives():
    x = tf.placeholder(tf.float32, [3])
    y = [tf.reduce_sum(x), x / 0.0, tf.argmax(x), x]
    with tf.Session() as session:
        plain = session.run(y, {x: [1, 2, 3]})
        full = session.run(y, {x: [1, 2, 3]}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata())
    for a, b in zip(plain, full, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_nothing_is_recorded_unasked():
    metadata = tf.RunMetadata()
    metadata.step_stats.dev_stats.add(device="of an earlier step")
    with tf.Session() as session:
        session.run(tf.constant(1.0), run_metadata=metadata)
    assert metadata == tf.RunMetadata()


def test_threads_are_numbered_from_the_client_on_and_other_processes_are_joined():
    collector, stats, other = StepStatsCollector(REAL), StepStats(), StepStats()
    node = tf.constant(1.0, name="a").op.node()
    collector.add("d", node, 1.0, 2.0, np.float32(1))
    thread = REAL.spawn(collector.add, "d", node, 2.0, 3.0, np.float32(1))
    thread.join()
    other.dev_stats.add(device="elsewhere")
    collector.merge(other)
    collector.write(stats)
    (device, elsewhere) = stats.dev_stats
    assert dict(device.thread_names) == {0: "client", 1: "thread 1"} and elsewhere.device == "elsewhere"
    assert [n.thread_id for n in device.node_stats] == [0, 1]

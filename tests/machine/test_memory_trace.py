"""Memory in a trace: who took how much of which allocator, from when to when."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.hosts import simulate_gpus

LOCAL = "/job:localhost/replica:0/task:0/device"
N = 1 << 18
SIZE = 4 * N


@pytest.fixture(autouse=True)
def fresh_graph():
    gc.disable()  # what is freed is freed by itself
    with tf.Graph().as_default():
        yield
    gc.enable()


@pytest.fixture
def one_card(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="1GiB")
    yield
    simulate_gpus(None)


def traced(fetches, feed=None, device="CPU:0", setup=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if setup is not None:
            session.run(setup, feed)
        stats = session.trace(fetches, feed).step_stats
    return {
        node.node_name: node for one in stats.dev_stats if one.device == f"{LOCAL}:{device}" for node in one.node_stats
    }


def allocated(node):
    """The bytes that a node took and gave back, in order; of its only allocator."""
    (memory,) = node.memory
    return [record.alloc_bytes for record in memory.allocation_records]


def big():
    return tf.fill(tf.placeholder_with_default([N], [1]), 1.0, name="big")


def test_what_a_node_allocates_and_when_it_is_freed():
    nodes = traced(tf.reduce_sum(tf.tile(big(), [2], name="twice"), name="sum"))
    (memory,) = nodes["big"].memory
    assert (memory.allocator_name, memory.total_bytes, memory.peak_bytes, memory.live_bytes) == ("cpu", *[SIZE] * 3)
    assert allocated(nodes["big"]) == [SIZE, -SIZE] and allocated(nodes["twice"]) == [2 * SIZE, -2 * SIZE]
    made, freed = (record.alloc_micros for record in memory.allocation_records)
    twice, total = nodes["twice"], nodes["sum"]
    assert nodes["big"].all_start_micros <= made <= twice.all_start_micros
    assert twice.all_start_micros + twice.all_end_rel_micros - 1 <= freed <= total.all_start_micros + 1
    description = nodes["big"].output[0].tensor_description.allocation_description
    assert (description.requested_bytes, description.allocated_bytes, description.allocator_name) == (SIZE, SIZE, "cpu")


def test_what_is_written_into_the_buffer_of_an_argument_is_no_allocation():
    nodes = traced(tf.reduce_sum(tf.negative(big(), name="neg"), name="sum"))
    assert allocated(nodes["big"]) == [SIZE, -SIZE] and not nodes["neg"].memory
    assert nodes["neg"].output[0].tensor_description.allocation_description.requested_bytes == SIZE


def test_views_and_what_was_there_before_are_no_allocations():
    w = tf.Variable(np.zeros(N, "f"), name="w")
    x = tf.placeholder(tf.float32, [N], name="x")
    shaped = tf.reshape(x, [2, -1], name="shaped")
    nodes = traced([shaped.op, w.read_value().op, tf.identity(tf.constant(np.ones(300, "f"), name="c")).op],
                   {x: np.ones(N, "f")})  # fmt: skip
    assert [name for name, node in nodes.items() if node.memory] == []
    assert nodes["c"].memory_stats.persistent_memory_size == 1200
    assert nodes["w"].memory_stats.persistent_memory_size == SIZE


def test_what_outlives_the_step_is_not_freed_in_it():
    w = tf.Variable(np.zeros(N, "f"), use_resource=True)
    nodes = traced([w.assign(big()).op, tf.tile(big(), [2], name="fetched")])
    assert allocated(nodes["big"]) == [SIZE] and allocated(nodes["fetched"]) == [2 * SIZE]


def test_a_node_with_several_outputs():
    nodes = traced(tf.unique(big())[1].op)
    unique = next(node for node in nodes.values() if "= Unique(" in node.timeline_label)
    assert len(unique.output) == 2 and sum(change for change in allocated(unique)) == 0
    assert unique.memory[0].total_bytes == 4 + 4 * N


def test_gpus_have_their_allocator_their_chunks_and_their_addresses(one_card):
    nodes = traced(tf.reduce_sum(tf.cumsum(big(), name="sums"), name="sum"), device="GPU:0")
    assert allocated(nodes["sums"]) == [SIZE, -SIZE] and allocated(nodes["sum"]) == [256, -256]
    assert {m.allocator_name for node in nodes.values() for m in node.memory} == {"GPU_0_bfc"}
    sums, total = (nodes[name].output[0].tensor_description.allocation_description for name in ("sums", "sum"))
    assert (total.requested_bytes, total.allocated_bytes, total.allocator_name) == (4, 256, "GPU_0_bfc")
    assert total.allocation_id == sums.allocation_id + 1 and sums.ptr % 256 == 0
    assert nodes["sums"].memory[0].allocator_bytes_in_use >= 2 * SIZE


def test_on_a_gpu_what_was_there_before_is_known_from_its_memory(one_card):
    handle = tf.get_session_handle(big())
    with tf.Session() as session:
        held, value = tf.get_session_tensor(session.run(handle).handle, tf.float32)
        kept = session.run(handle)
        stats = session.trace(tf.negative(value, name="neg").op, {held: kept.handle}).step_stats
        nodes = {node.node_name: node for device in stats.dev_stats for node in device.node_stats}
        assert allocated(nodes["neg"]) == [SIZE, -SIZE]
        assert [name for name, node in nodes.items() if node.memory] == ["neg"]
        kept.delete()


def test_a_trace_that_is_kept_keeps_no_arrays():
    made = []

    def make():
        array = np.ones(N, np.float32)
        made.append(weakref.ref(array))
        return array

    value = tf.py_func(make, [], tf.float32, name="made")
    with tf.Session() as session:
        trace = session.trace(tf.negative(tf.reshape(value, [N, 1])).op)
    assert "made" in {node.node_name for device in trace.step_stats.dev_stats for node in device.node_stats}
    assert [array() for array in made] == [None]

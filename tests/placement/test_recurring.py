"""Which nodes of a whole training program are part of its steps."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.placement.recurring import recurring


def training(use_resource):
    """A program with all that usually surrounds a step; the nodes, and those that its step runs."""
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", [4, 4], use_resource=use_resource)
        queue = tf.FIFOQueue(3, [tf.float32], [[4, 4]])
        loss = tf.reduce_sum(tf.matmul(queue.dequeue(), v))
        train = tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())
        with tf.control_dependencies([train]):
            step = tf.train.ExponentialMovingAverage(0.9).apply([v])  # its first value depends on another's
        tf.global_variables_initializer()
        tf.report_uninitialized_variables()
        tf.train.Saver()
        with tf.Session() as session:
            return graph.nodes(), {node.name for node in session.placed_nodes([step, loss])}


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_training_step_and_nothing_around_it(use_resource):
    nodes, step = training(use_resource)
    found = {node.name for node in recurring(nodes)}
    assert step <= found
    # The others take no time: variables, constants, and reads that nobody asked for.
    more = {node.op for node in nodes if node.name in found - step}
    assert more <= {"Const", "FIFOQueueV2", "VariableV2", "VarHandleOp", "Identity", "ReadVariableOp"}


def test_what_a_step_needs_is_part_of_it_whatever_it_is():
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", [4])
        reset = tf.assign(v, tf.zeros([4]), name="reset")  # looks like a first value
        with tf.control_dependencies([reset]):
            tf.assign_add(v, tf.placeholder(tf.float32, [4], name="x"), name="step")
    found = {node.name for node in recurring(graph.nodes())}
    assert {"reset", "zeros", "step", "x", "v"} <= found and "v/Assign" not in found

"""Floating point operations as TensorFlow's profiler counts them.

Source: `python/profiler/internal/flops_registry.py`.
"""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops
from tensorflow.python.profiler.internal import flops_registry  # noqa: F401  it registers

import dtflab
from dtflab.hardware import costs

# Counted otherwise on purpose: TensorFlow counts what its kernels did when that was written, two operations for an
# inverse root and three for a square that is summed, and one less than it adds up.
OTHERWISE = {
    "Rsqrt", "RsqrtGrad", "L2Loss", "AvgPoolGrad", "MaxPoolGrad", "Sum", "ArgMax", "BiasAddGrad",
}  # fmt: skip


def program(tf):
    x, w = tf.ones([4, 17, 17, 8]) + tf.ones([17, 8]), tf.zeros([3, 3, 8, 16])
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"), tf.zeros([16])))
    valid = tf.nn.conv2d(x, w, strides=[1, 2, 2, 1], padding="VALID")
    pools = tf.nn.max_pool(y, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    deep = tf.nn.depthwise_conv2d(x, tf.zeros([3, 3, 8, 2]), [1, 1, 1, 1], "SAME")
    tf.nn.conv3d(tf.zeros([2, 5, 5, 5, 3]), tf.zeros([2, 2, 2, 3, 4]), [1, 1, 1, 1, 1], "SAME")
    tf.nn.dilation2d(x, tf.zeros([3, 3, 8]), [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    m = tf.matmul(tf.reshape(pools[0], [4, -1]), tf.zeros([9 * 9 * 16, 10]))
    tf.matmul(tf.zeros([3, 4, 5]), tf.zeros([3, 6, 5]), transpose_b=True)
    s = tf.reduce_mean(tf.rsqrt(tf.square(-tf.log(tf.nn.softmax(m)))), 1)
    a = tf.add_n([m, m * m, m - 1]) / tf.pow(m, m)
    b = tf.maximum(tf.squared_difference(m, a), tf.minimum(m, a))
    for compare in (tf.greater, tf.less, tf.equal, tf.not_equal, tf.greater_equal, tf.less_equal):
        compare(a, b)
    everything = [*pools, deep, valid, s, tf.nn.l2_loss(b)]
    tf.gradients([tf.reduce_sum(t) for t in everything], [x, w])
    tf.argmax(m, 1)


def test_counts_are_tensorflows():
    with tf.Graph().as_default() as theirs:
        program(tf)
    with dtflab.Graph().as_default() as ours:
        program(dtflab)
    names = {op.name for op in ours.get_operations()}  # gradients have the same ops, not always under the same names
    equal, otherwise = set(), set()
    for node in (n for n in theirs.as_graph_def().node if n.name in names):
        counted = ops.get_stats_for_node_def(theirs, node, "flops").value
        # For the gradients of VALID convolutions TensorFlow counts what lies outside of the windows, too.
        if counted is None or (node.op.startswith("Conv2DBackprop") and node.attr["padding"].s == b"VALID"):
            continue
        op = ours.get_operation_by_name(node.name)
        found = costs.of_op(op).flops
        (equal if found == counted else otherwise).add(node.op)
        assert counted <= 2 * found and found <= counted + op.outputs[0].shape.num_elements(), (node.name, counted)
    assert otherwise == OTHERWISE
    assert len(equal) == 32

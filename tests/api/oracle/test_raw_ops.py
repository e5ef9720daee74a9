"""tf.raw_ops next to TensorFlow's: the arguments of every op, and what calls give and refuse."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from dtflab.aliases import _Generated
from tests.oracle.graph_defs import assert_same_graph, both

# TensorFlow gives this one an order of its own, which is of no matter where arguments have names.
UNORDERED = {"ParseSequenceExampleV2"}


def test_every_op_takes_tensorflows_arguments():
    names = dir(dtflab.raw_ops)
    assert len(names) > 450
    for name in names:
        ours = list(inspect.signature(getattr(dtflab.raw_ops, name)).parameters)
        theirs = list(inspect.signature(getattr(real_tf.raw_ops, name)).parameters)
        assert (sorted if name in UNORDERED else list)(ours) == (sorted if name in UNORDERED else list)(theirs), name


def calls(tf):
    raw = tf.raw_ops
    total = raw.Sum(input=[[1.0, 2.0]], axis=[1], keep_dims=True, name="total")
    chosen = raw.Select(condition=[True], x=[1], y=raw.Cast(x=total, DstT=tf.int32)[0])
    found = raw.Unique(x=[3, 3, 1], out_idx=tf.int64)
    parts = raw.Split(axis=0, value=[1, 2], num_split=2)
    fields = raw.DecodeCSV(records="1;a", record_defaults=[[0], ["b"]], field_delim=";")
    assert isinstance(parts, list) and isinstance(fields, list)
    v = raw.VariableV2(shape=[2], dtype=tf.float32, shared_name="v", name="v")
    with tf.control_dependencies([raw.Assign(ref=v, value=[1.0, 2.0]).op]):
        trained = raw.ApplyGradientDescent(var=v, alpha=0.5, delta=[2.0, 2.0])
    assert isinstance(raw.NoOp(name="nothing"), tf.Operation)
    return [total, chosen, found.y, found.idx, parts[1], *fields, trained]


def test_calls():
    assert_same_graph(calls)

    def run(tf):
        fetches = calls(tf)
        with tf.Session() as session:
            return [value.tolist() if hasattr(value, "tolist") else value for value in session.run(fetches)]

    theirs, ours = both(run)
    assert ours == theirs


@pytest.mark.parametrize("tf", [real_tf, dtflab], ids=["tensorflow", "dtflab"])
def test_what_is_refused(tf):
    with tf.Graph().as_default():
        for arguments in ({"x": 1}, {"x": 1, "y": 2, "z": 3}):
            with pytest.raises(TypeError, match=r"\b(y|z)\b"):
                tf.raw_ops.AddV2(**arguments)
        with pytest.raises(TypeError, match="arg"):
            tf.raw_ops.AddV2(1, 2)
        with pytest.raises(AttributeError, match="AddV9"):
            tf.raw_ops.AddV9(x=1, y=2)


def test_generated_modules_take_arguments_by_place():
    from tensorflow.python.ops import gen_math_ops, gen_nn_ops

    modules = {real_tf: (gen_math_ops, gen_nn_ops), dtflab: (_Generated(), _Generated())}

    def program(tf):
        math_ops, nn_ops = modules[tf]
        product = math_ops.mat_mul([[1.0, 2.0]], [[3.0, 4.0]], False, True, name="product")
        nn_ops.bias_add(product, [1.0], name="sum")

    assert_same_graph(program)


def results_with_names(tf):
    """Functions whose results programs read by name: tf.nn.top_k(x, 2).indices."""
    images, matrix, numbers = tf.ones([1, 4, 4, 1]), tf.ones([2, 2]), tf.constant([3, 3, 1])
    texts = tf.train.string_input_producer(["a"])
    return [
        tf.nn.top_k([1.0, 2.0], 2),
        tf.unique(numbers),
        tf.unique_with_counts(numbers),
        tf.setdiff1d(numbers, [1]),
        tf.nn.max_pool_with_argmax(images, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        tf.linalg.qr(matrix),
        tf.linalg.lu(matrix),
        tf.linalg.slogdet(matrix),
        tf.quantize(matrix, 0.0, 1.0, tf.quint8),
        tf.TextLineReader().read(texts),
        tf.nn.log_uniform_candidate_sampler([[1]], 1, 2, True, 9),
        tf.raw_ops.Switch(data=1.0, pred=True),
        tf.raw_ops.Merge(inputs=[1.0, 2.0]),
    ]


def test_several_outputs_know_their_names():
    for ours, theirs in zip(*both(results_with_names), strict=True):
        assert (type(ours).__name__, ours._fields) == (type(theirs).__name__, theirs._fields)
    with dtflab.Graph().as_default(), dtflab.Session() as sess:
        found = sess.run(dtflab.nn.top_k([1.0, 3.0, 2.0], 2))
    assert found.indices.tolist() == [1, 2]

"""tf.nn: facts that hold without TensorFlow next to it."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import dtflab as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(*tensors, feeds=None):
    with tf.Session() as session:
        values = session.run(list(tensors), feeds)
    return values[0] if len(values) == 1 else values


def test_softmax_does_not_overflow():
    probabilities = run(tf.nn.softmax([[1000.0, 1000.0], [-1000.0, 0.0]]))
    np.testing.assert_allclose(probabilities, [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(run(tf.nn.log_softmax([[0.0, -1000.0]])), [[0.0, -1000.0]])


def test_softmax_along_each_axis():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for axis in (0, 1, 2, -1, -3):
        e = np.exp(x)
        expected = e / e.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(run(tf.nn.softmax(x, axis=axis)), expected, rtol=1e-5)


def test_dense_and_sparse_cross_entropy_agree():
    logits = tf.constant(np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32))
    labels = tf.constant([0, 2, 1, 1, 0])
    dense = tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(labels, 3), logits=logits)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    a, b = run(dense, sparse)
    np.testing.assert_allclose(a, b, rtol=1e-5)
    da, db = run(*tf.gradients(dense, logits), *tf.gradients(sparse, logits))
    np.testing.assert_allclose(da, db, atol=1e-6)


def test_labels_get_no_gradient_in_the_old_function():
    logits, labels = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, 0.5]])
    old = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    new = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    assert tf.gradients(old, labels) == [None]
    assert tf.gradients(new, labels) != [None]


CROSS_ENTROPIES = {
    "sigmoid_cross_entropy_with_logits": ["_sentinel", "labels", "logits", "name"],
    "softmax_cross_entropy_with_logits": ["_sentinel", "labels", "logits", "dim", "name", "axis"],
    "sparse_softmax_cross_entropy_with_logits": ["_sentinel", "labels", "logits", "name"],
}


@pytest.mark.parametrize("name", CROSS_ENTROPIES)
def test_cross_entropies_take_labels_and_logits_by_name_only(name):
    """The text is that of TensorFlow 1.0 to 1.15; TensorFlow 2.21 has dropped the sentinel."""
    entropy = getattr(tf.nn, name)
    labels = np.array([1]) if name.startswith("sparse") else np.array([[0.25, 0.75]])
    logits = np.array([[1.0, 2.0]])
    assert list(inspect.signature(entropy).parameters) == CROSS_ENTROPIES[name]
    by_place = f"Only call `{name}` with named arguments (labels=..., logits=..., ...)"
    for given in [(logits, labels), (labels, logits), (logits, labels, "loss"), (logits,)]:
        with pytest.raises(ValueError, match=f"^{re.escape(by_place)}$"):
            entropy(*given)
    with pytest.raises(ValueError, match=f"^{re.escape(by_place)}$"):
        entropy(logits, labels=labels, logits=logits)
    for part in [{}, {"labels": labels}, {"logits": logits}]:
        with pytest.raises(ValueError, match=r"^Both labels and logits must be provided\.$"):
            entropy(**part)
    named, after_none = run(entropy(labels=labels, logits=logits), entropy(None, labels, logits))
    np.testing.assert_array_equal(named, after_none)


def test_newer_cross_entropies_take_labels_and_logits_by_place():
    dense = run(tf.nn.softmax_cross_entropy_with_logits_v2([[0.0, 1.0]], [[1.0, 2.0]]))
    weighted = run(tf.nn.weighted_cross_entropy_with_logits([0.0], [1.0], 2.0))
    np.testing.assert_allclose([*dense, *weighted], [np.log1p(np.exp(-1)), np.log1p(np.exp(1))], rtol=1e-6)


def test_second_derivative_of_a_cross_entropy():
    x = tf.constant([[0.3, -0.2, 0.9]], tf.float64)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=x)
    (first,) = tf.gradients(loss, x)
    (second,) = tf.gradients(first[0, 0], x)
    p = np.exp([0.3, -0.2, 0.9]) / np.exp([0.3, -0.2, 0.9]).sum()
    np.testing.assert_allclose(run(second), [[p[0] - p[0] ** 2, -p[0] * p[1], -p[0] * p[2]]])


def test_dropout_keeps_the_mean():
    kept = run(tf.nn.dropout(tf.ones([100, 100]), 0.8, seed=1))
    assert set(np.unique(kept)) == {0.0, 1.25}
    assert abs(kept.mean() - 1.0) < 0.02


def test_dropout_refuses():
    with pytest.raises(ValueError, match="rate"):
        tf.nn.dropout([1.0])
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        tf.nn.dropout([1.0], rate=1.5)
    with pytest.raises(ValueError, match="floating"):
        tf.nn.dropout([1], 0.5)
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.nn.dropout([1.0], keep_prob=0.5, rate=0.5)


def test_top_k_takes_the_first_of_equals():
    values, indices = tf.nn.top_k([[1.0, 3.0, 3.0, 2.0]], 3)
    v, i = run(values, indices)
    assert v.tolist() == [[3.0, 3.0, 2.0]]
    assert i.tolist() == [[1, 2, 3]]


def test_top_k_gradient_goes_where_the_values_were():
    x = tf.constant([[1.0, 5.0, 3.0], [9.0, 7.0, 8.0]])
    values, _ = tf.nn.top_k(x, 2)
    (dx,) = tf.gradients(values * [[1.0, 2.0]], x)
    assert run(dx).tolist() == [[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]]


def test_in_top_k_counts_ties_and_refuses_infinities():
    predictions = [[0.1, 0.5, 0.5, 0.2]] * 2 + [[1.0, np.inf, 0.0, 0.0]]
    assert run(tf.nn.in_top_k(predictions, [2, 3, 0], 2)).tolist() == [True, False, False]


@pytest.mark.parametrize("name", ["relu", "relu6", "elu", "selu", "softplus", "softsign", "leaky_relu", "crelu"])
def test_activations_keep_short_floats(name):
    for dtype in (tf.float16, tf.bfloat16):
        y = getattr(tf.nn, name)(tf.constant([-1.0, 0.5, 2.0], dtype))
        assert y.dtype == dtype
        assert run(y).dtype == dtype.as_numpy_dtype


def test_bias_of_images_with_channels_first():
    images = np.zeros((2, 3, 4, 5), np.float32)
    out = tf.nn.bias_add(images, [1.0, 2.0, 3.0], data_format="NCHW")
    assert run(out)[1, :, 2, 2].tolist() == [1.0, 2.0, 3.0]
    (db,) = tf.gradients(out, out.op.inputs[1])
    assert run(db).tolist() == [40.0, 40.0, 40.0]
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.bias_add(images, [1.0], data_format="CN")


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2), (0, 2), (2, 0), (1, 3), (0,), ()])
def test_sums_over_several_axes_take_them_one_by_one(axes):
    x = np.random.default_rng(0).integers(-9, 9, (2, 3, 4, 5)).astype(np.float32)
    fed = tf.placeholder(tf.float32)
    for keep in (False, True):
        values = run(*(f(fed, axes, keepdims=keep) for f in (tf.reduce_sum, tf.reduce_mean)), feeds={fed: x})
        np.testing.assert_array_equal(values[0], x.sum(axes, keepdims=keep), strict=True)
        np.testing.assert_allclose(values[1], x.mean(axes, keepdims=keep), rtol=1e-6)

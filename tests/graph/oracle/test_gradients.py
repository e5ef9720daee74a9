"""gradients: errors and corner cases as in TensorFlow; the graphs themselves are compared in `test_same_graph.py`."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab
from dtflab.graph import gradients as module
from dtflab.graph.apply_op import apply_op
from tests.evaluate import evaluate
from tests.graph.oracle.test_graph import tried
from tests.oracle.graph_defs import both


def names(grads):
    return [None if g is None else g.name for g in grads]


def test_same_errors():
    def run(tf):
        x = tf.placeholder(tf.float32, [2], name="x")
        text, whole = tf.constant("a"), tf.constant([1, 2])
        c = tf.complex(x, x)
        calls = [
            lambda: tf.gradients(tf.floor(x), x)[0],
            lambda: tf.gradients(tf.argmax(x) + 1, x),
            lambda: tf.gradients(x, x, grad_ys=[x, x]),
            lambda: tf.gradients([x, x], x, grad_ys=[x]),
            lambda: tf.gradients(x, x, aggregation_method=7),
            lambda: tf.gradients([x * 2 + x], [x], aggregation_method=7),
            lambda: tf.gradients(x, x, unconnected_gradients="some"),
            lambda: tf.gradients(c, x),
            lambda: tf.gradients(x * 2, x, grad_ys=[c]),
            lambda: tf.gradients(c, x, grad_ys=[x]),
            lambda: tf.gradients(text, x),
            lambda: tf.gradients(text, x, grad_ys=[text]),
            lambda: tf.gradients(x * 2, x, grad_ys=[whole]),
            lambda: tf.gradients(x * 2, x, grad_ys=[tf.ones([3])]),
            lambda: tf.gradients(tf.where(x > 0, x, x), "x"),
            lambda: tf.gradients([], []),
        ]
        return [tried(call) for call in calls]

    theirs, ours = both(run)
    assert ours == theirs


def test_same_gradients_are_none():
    def run(tf):
        x = tf.placeholder(tf.float32, [2], name="x")
        k = tf.placeholder(tf.int32, [2], name="k")
        y = tf.cast(k, tf.float32) * x
        z = tf.stop_gradient(x) * 2
        found = [tf.gradients(y, [x, k]), tf.gradients(z, [x]), tf.gradients(x, [y]), tf.gradients(tf.shape(x), x)]
        found += [
            tf.gradients(tf.cast(x, tf.int32), x),
            tf.gradients([y, z], [x, z]),
            tf.gradients(tf.zeros_like(x), x),
        ]
        found += [tf.gradients(y, [x, k], unconnected_gradients=tf.UnconnectedGradients.ZERO)]
        return [names(f) for f in found]

    theirs, ours = both(run)
    assert ours == theirs


def test_missing_gradient_names_the_operation():
    with dtflab.Graph().as_default():
        x = dtflab.placeholder("float32", name="x")
        y, _ = apply_op("Unique", "distinct", x=x)
        with pytest.raises(LookupError, match=r"No gradient defined for operation 'distinct' \(op type: Unique\)"):
            dtflab.gradients(y * 2, x)


@pytest.fixture
def registered():
    before = dict(module._registered)
    yield
    module._registered.clear()
    module._registered.update(before)


def test_a_program_may_bring_its_own_gradient(registered):
    seen = []

    @dtflab.RegisterGradient("Straight through")
    def straight_through(op, dy):
        seen.append((op.name, op.type))
        return dy * 3

    with dtflab.Graph().as_default() as graph:
        x = dtflab.constant([1.5, -2.5])
        with graph.gradient_override_map({"Sign": "Straight through"}):
            y = dtflab.sign(x, name="s")
        (dx,) = dtflab.gradients(y, x)
        assert evaluate([dx])[0].tolist() == [3, 3]
        assert dtflab.gradients(dtflab.sign(x), x)[0] is not dx
    assert seen == [("s", "Sign")]


def test_wrong_gradient_functions_are_refused(registered):
    dtflab.RegisterGradient("Two")(lambda op, dy: [dy, dy])
    dtflab.RegisterGradient("Grown")(lambda op, dy: dtflab.concat([dy, dy], 0))
    dtflab.NotDifferentiable("Nothing")
    with pytest.raises(KeyError, match="two gradient with name 'Two'"):
        dtflab.RegisterGradient("Two")(lambda op, dy: dy)
    with pytest.raises(KeyError, match="'MatMul'"):
        dtflab.RegisterGradient("MatMul")(lambda op, dy: dy)
    with pytest.raises(TypeError, match="must be a string"):
        dtflab.RegisterGradient(3)
    with dtflab.Graph().as_default() as graph:
        x = dtflab.placeholder("float32", [2])

        def gradient(name):
            with graph.gradient_override_map({"Tanh": name}):
                return dtflab.gradients(dtflab.tanh(x), x)[0]

        with pytest.raises(ValueError, match=r"Num gradients 2 generated.*do not match num inputs 1"):
            gradient("Two")
        with pytest.raises(ValueError, match=r"Original input shape: \(2,\). Calculated input gradient shape: \(4,\)"):
            gradient("Grown")
        with pytest.raises(LookupError, match="op type: Tanh"):
            gradient("Unknown")
        assert gradient("Nothing") is None


def test_deep_graphs_need_no_deep_stack():
    with dtflab.Graph().as_default():
        x = y = dtflab.constant(0.5)
        for _ in range(3000):
            y = dtflab.identity(y)
        (dx,) = dtflab.gradients(y, x)
        assert evaluate([dx]) == [1]


def test_third_order():
    with dtflab.Graph().as_default():
        x = dtflab.constant([0.3, 1.7], "float64")
        y = dtflab.sin(x) * x
        for _ in range(3):
            (y,) = dtflab.gradients(y, x)
        x0 = np.array([0.3, 1.7])
        np.testing.assert_allclose(evaluate([y])[0], -3 * np.sin(x0) - x0 * np.cos(x0), 1e-12)


@pytest.mark.parametrize("method", [0, 1, 2, None])
def test_sums_are_equal_whatever_the_method(method):
    with dtflab.Graph().as_default():
        x = dtflab.constant([1.0, 2.0])
        y = dtflab.exp(x) + x * 3 + dtflab.square(x) + x
        (dx,) = dtflab.gradients(y, x, aggregation_method=method)
        np.testing.assert_allclose(evaluate([dx])[0], np.exp([1, 2]) + 4 + 2 * np.array([1, 2]), 1e-6)

"""Arithmetic in bfloat16: the same bits as TensorFlow's, op by op; products, sums and training within a rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.oracle.graph_defs import both

RANDOM = np.random.default_rng(5)
X = np.concatenate([RANDOM.normal(size=400) * 4, RANDOM.uniform(0, 1, 200), [0, -0.0, 1, 2.5, -2.5]])
X = X.astype(ml_dtypes.bfloat16)
Y = RANDOM.permutation(X)
EXACT = (
    "abs", "negative", "square", "sqrt", "floor", "ceil", "round", "sign", "reciprocal", "exp", "log", "log1p", "expm1",
    "sin", "cos", "tan", "atan", "asinh", "sinh", "cosh", "erf", "erfc", "is_nan", "nn.relu", "nn.relu6",
)  # fmt: skip
NEAR = ("tanh", "sigmoid", "rsqrt", "nn.elu", "nn.selu", "nn.softplus", "nn.softsign", "asin", "acosh")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "floordiv", "floormod", "squared_difference",
          "less", "equal", "div_no_nan", "atan2", "pow")  # fmt: skip


def function(tf, name):
    return getattr(tf.nn, name[3:]) if name.startswith("nn.") else getattr(tf, name)


def values(program):
    theirs, ours = both(lambda tf: (lambda fetch: tf.Session().run(fetch))(program(tf)))
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    return ours, theirs


def places_apart(a, b):
    """How many bfloat16 numbers lie between two, where both are numbers."""
    a, b = (np.asarray(v, ml_dtypes.bfloat16) for v in (a, b))
    known = ~np.isnan(a.astype(float)) & ~np.isnan(b.astype(float))
    assert (np.isnan(a.astype(float)) == np.isnan(b.astype(float))).all()
    bits = [v.view(np.int16).astype(int) for v in (a, b)]
    ordered = [np.where(v < 0, -(v & 0x7FFF), v) for v in bits]
    return int(np.abs(ordered[0] - ordered[1])[known].max(initial=0))


@pytest.mark.parametrize("name", EXACT)
def test_one_argument_bits(name):
    ours, theirs = values(lambda tf: function(tf, name)(tf.constant(X)))
    assert places_apart(ours, theirs) == 0 if ours.dtype != bool else (ours == theirs).all()


@pytest.mark.parametrize("name", NEAR)
def test_one_argument_within_roundings(name):
    """Both libraries round each of the steps that these are made of, and the steps of three differ."""
    ours, theirs = values(lambda tf: function(tf, name)(tf.constant(X)))
    assert places_apart(ours, theirs) <= (8 if name in ("nn.elu", "nn.selu", "nn.softplus") else 2)


@pytest.mark.parametrize("name", BINARY)
def test_two_arguments_bits(name):
    ours, theirs = values(lambda tf: function(tf, name)(tf.constant(X), tf.constant(Y)))
    assert places_apart(ours, theirs) == 0 if ours.dtype != bool else (ours == theirs).all()


KINDS = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64")


@pytest.mark.parametrize("kind", KINDS)
def test_casts(kind):
    values_in = np.abs(X) if kind == "uint8" else X
    ours, theirs = values(lambda tf: tf.cast(tf.constant(values_in), getattr(tf, kind)))
    np.testing.assert_array_equal(ours, theirs)
    if kind not in ("bool", "complex64"):
        wide = (RANDOM.normal(size=300) * 100).astype(kind if kind != "uint8" else "int8").astype(kind)
        ours, theirs = values(lambda tf: tf.cast(tf.constant(wide), tf.bfloat16))
        assert places_apart(ours, theirs) == 0


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "cumsum"])
def test_reductions(name):
    x = (np.abs(X[:96]) + 0.5).astype(X.dtype).reshape(4, 24)
    ours, theirs = values(lambda tf: getattr(tf, name)(tf.constant(x), axis=1))
    exact = name in ("reduce_max", "reduce_min")
    assert places_apart(ours, theirs) <= (0 if exact else 2 if name != "reduce_prod" and name != "cumsum" else 8)


def test_products_of_matrices():
    a, b = X[:200].reshape(10, 20), Y[:200].reshape(20, 10)
    ours, theirs = values(lambda tf: tf.matmul(tf.constant(a), tf.constant(b)))
    assert places_apart(ours, theirs) <= 1
    batches = [x.reshape(2, 10, 10) for x in (a, b)]
    ours, theirs = values(lambda tf: tf.matmul(*map(tf.constant, batches), transpose_b=True))
    assert places_apart(ours, theirs) <= 1


def test_training():
    """A variable in bfloat16 that gradient descent moves: each step's value."""
    x = np.abs(X[:60]).reshape(20, 3)

    def program(tf):
        w = tf.Variable(tf.cast([[0.5], [-1.0], [0.25]], tf.bfloat16), name="w")
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(x), w) - 1))
        step = tf.train.GradientDescentOptimizer(0.03125).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [(session.run(step), session.run(w))[1] for _ in range(5)]

    theirs, ours = both(program)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.astype(float), b.astype(float), 0.02, 0.01)

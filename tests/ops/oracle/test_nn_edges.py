"""tf.nn at its edges: random numbers of dropout, ties and NaN in rankings, every dtype, nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ops.oracle.test_nn import error_of, some, values, with_slopes
from tests.oracle.graph_defs import assert_same_graph, both

NAN, INF = np.nan, np.inf
FLOATS = [np.float16, np.float32, np.float64]


def same(run: Callable[[Any], Any], graph: bool = True) -> None:
    """The program gives the same values, and makes the same nodes."""
    if graph:
        assert_same_graph(run)
    for theirs, ours in zip(*both(lambda tf: values(tf, run(tf))), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if theirs.dtype.kind not in "fc":
            assert np.array_equal(ours, theirs)
            continue
        tolerance = {2: 4e-3, 4: 3e-6}.get(theirs.dtype.itemsize, 1e-12)
        np.testing.assert_allclose(ours.astype("D"), theirs.astype("D"), tolerance, tolerance)


# -- dropout ----------------------------------------------------------------------------------------------------------

DROPOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "rate": lambda tf, x: tf.nn.dropout(x, rate=0.3, seed=1),
    "keep_prob": lambda tf, x: tf.nn.dropout(x, 0.7, seed=1, name="d"),
    "without seed": lambda tf, x: tf.nn.dropout(x, 0.5),
    "nothing dropped": lambda tf, x: tf.nn.dropout(x, 1.0) + tf.nn.dropout(x, rate=0.5),
    "rows": lambda tf, x: tf.nn.dropout(x, rate=0.5, noise_shape=[6, 1]),
    "columns": lambda tf, x: tf.nn.dropout(x, rate=0.5, noise_shape=[1, None], seed=3),
    "shape as a tensor": lambda tf, x: tf.nn.dropout(x, rate=0.5, noise_shape=tf.stack([tf.shape(x)[0], 1])),
    "nearly all": lambda tf, x: tf.nn.dropout(x, rate=0.99, seed=5),
}


@pytest.mark.parametrize("name", DROPOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_draws_tensorflows_numbers(name, dtype):
    def run(tf):
        tf.set_random_seed(7)
        x = tf.constant(some(6, 4, dtype=dtype))
        return with_slopes(tf, DROPOUTS[name](tf, x), x)

    same(run)


def test_dropout_by_a_tensor_and_of_nan():
    def run(tf):
        tf.set_random_seed(7)
        x = tf.placeholder_with_default(np.float32([[NAN, INF, 1, 2], [3, 4, 5, -INF]]), [None, 4])
        rate = tf.placeholder_with_default(np.float32(0.5), [])
        return [tf.nn.dropout(x, rate=rate), tf.nn.dropout(x, rate, name="kept"), tf.nn.dropout(x[:0], rate=0.5)]

    same(run)


BAD_DROPOUTS: dict[str, Callable[[Any], Any]] = {
    "above 1": lambda tf: tf.nn.dropout(tf.ones([2]), rate=1.5),
    "keep 0": lambda tf: tf.nn.dropout(tf.ones([2]), keep_prob=0.0),
    "integers": lambda tf: tf.nn.dropout([1, 2], rate=0.5),
    "no rate": lambda tf: tf.nn.dropout(tf.ones([2])),
    "both": lambda tf: tf.nn.dropout(tf.ones([2]), 0.5, rate=0.5),
    "text": lambda tf: tf.nn.dropout(tf.ones([2]), keep_prob="a"),
    "dtype": lambda tf: tf.nn.dropout(tf.ones([2]), rate=tf.constant(0.5, tf.float64)),
}


@pytest.mark.parametrize("name", BAD_DROPOUTS)
def test_dropout_refuses(name):
    theirs, ours = both(lambda tf: error_of(tf, lambda: BAD_DROPOUTS[name](tf)))
    assert ours[0] == theirs[0] != "nothing"
    assert ours[1].partition("Received")[0] == theirs[1].partition("Received")[0]


# -- rankings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint8, np.int8, np.int16, np.uint16])
@pytest.mark.parametrize("k", [0, 1, 3, 5])
def test_top_k_of_every_dtype_and_with_ties(dtype, k):
    given = np.random.default_rng(k).integers(0, 4, (3, 2, 5)).astype(dtype)

    def run(tf):
        x = tf.constant(given)
        found = tf.nn.top_k(x, k)
        if not np.issubdtype(dtype, np.floating) or k == 0:  # TensorFlow's gradient can't be run without optimizing
            return list(found)
        slope = tf.gradients(found[0] * tf.constant(some(3, 2, k, dtype=dtype)), x)
        return [*found, *slope]

    same(run)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.uint8])
@pytest.mark.parametrize("ties", [True, False])
def test_top_k_of_wide_rows(dtype, ties):
    """Only a few of many are wanted: they are found before anything is sorted."""
    random = np.random.default_rng(1)
    rows = random.integers(0, 9, (3, 200)) if ties else np.stack([random.permutation(200) for _ in range(3)])

    def run(tf):
        x = tf.constant(rows.astype(dtype))
        return [*tf.nn.top_k(x, 5), *tf.nn.top_k(x[0], 1), *tf.nn.top_k(tf.reshape(x, [1, 3, 200]), 12)]

    same(run)


def test_top_k_of_nothing_and_of_infinities():
    def run(tf):
        x = tf.constant([[INF, -INF, 1.0, INF], [-INF, -INF, -INF, 0.0]])
        return [
            *tf.nn.top_k(x, 3),
            *tf.nn.top_k(tf.zeros([0, 4]), 2),
            tf.reduce_sum(tf.nn.top_k(x, tf.constant(2), sorted=False)[0]),
        ]

    same(run)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_in_top_k_with_ties_and_what_is_no_number(dtype):
    scores = np.float32([[1, 2, 2, 0], [NAN, 1, 2, 3], [INF, 1, 2, 3], [1, 2, 3, -INF], [1, 1, 1, 1], [1, 2, 3, 4]])
    targets = np.array([1, 2, 1, 1, 3, -1], dtype)

    def run(tf):
        found = [tf.nn.in_top_k(tf.constant(scores), targets, k) for k in (0, 1, 2, 3, 9)]
        return [*found, tf.nn.in_top_k(tf.zeros([0, 3]), np.zeros(0, dtype), 1)]

    same(run)


# -- every dtype, and nothing at all ----------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "moments": lambda tf, x: tf.nn.moments(x, [0]),
    "weighted_moments": lambda tf, x: tf.nn.weighted_moments(x, [0], tf.cast(x > 0, x.dtype)),
    "batch_normalization": lambda tf, x: tf.nn.batch_normalization(x, x[0], tf.abs(x[1]), x[2], x[1], 0.01),
    "l2_normalize": lambda tf, x: tf.nn.l2_normalize(x, 1),
    "l2_loss": lambda tf, x: tf.nn.l2_loss(x),
    "crelu": lambda tf, x: tf.nn.crelu(x),
    "swish": lambda tf, x: tf.nn.swish(x),
    "log_sigmoid": lambda tf, x: tf.log_sigmoid(x),
    "log_poisson_loss": lambda tf, x: tf.nn.log_poisson_loss(tf.abs(x), x, compute_full_loss=True),
    "weighted": lambda tf, x: tf.nn.weighted_cross_entropy_with_logits(tf.abs(x), x, 2.0),
    "sigmoid": lambda tf, x: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.abs(x), logits=x),
    "softmax": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(x), logits=x),
    "spread": lambda tf, x: [tf.math.reduce_std(x, 0), tf.math.reduce_variance(x), tf.math.reduce_euclidean_norm(x)],
    "no_nan": lambda tf, x: [tf.math.xlogy(x, tf.abs(x)), tf.math.xdivy(x, x), tf.math.multiply_no_nan(x, x)],
}
each_function = pytest.mark.parametrize("name", FUNCTIONS)


def tensors(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


@each_function
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(name, dtype):
    def run(tf):
        x = tf.constant(some(4, 3, dtype=dtype))
        found = tensors(FUNCTIONS[name](tf, x))
        return [*found, *tf.gradients([tf.reduce_sum(y) for y in found], x)]

    same(run)


@each_function
def test_bfloat16(name):
    def run(tf):
        found = tensors(FUNCTIONS[name](tf, tf.cast(tf.constant(some(4, 3)), tf.bfloat16)))
        assert all(y.dtype == tf.bfloat16 for y in found)
        return [tf.cast(y, tf.float32) for y in found]

    assert_same_graph(run)
    for theirs, ours in zip(*both(lambda tf: values(tf, run(tf))), strict=True):
        np.testing.assert_allclose(ours, theirs, 3e-2, 3e-2)


@each_function
def test_nan_infinity_and_zero(name):
    def run(tf):
        x = tf.constant(np.float32([[NAN, 1, 2], [INF, 3, 4], [0, 0, -INF], [1, -1, 0.5]]))
        return tensors(FUNCTIONS[name](tf, x))

    same(run)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "batch_normalization"])  # it takes rows
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing(name, shape):
    if name == "softmax" and shape == (3, 0):
        return  # TensorFlow's own reshape of [3, 0] to [-1, 0] fails unless its optimizer has removed it

    def run(tf):
        return tensors(FUNCTIONS[name](tf, tf.constant(np.zeros(shape, np.float32))))

    same(run)

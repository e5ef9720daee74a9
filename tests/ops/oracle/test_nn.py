"""Functions of tf.nn and tf.math that are made of several ops: TensorFlow's graph, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

Program = Callable[[Any], Any]
program = Programs()  # each makes a list of float tensors
NAN, INF = np.nan, np.inf


def some(*shape: int, seed: int = 0, low: float = -2, high: float = 2, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


@program.each()
def test_same_graph(run):
    assert_same_graph(run)


@program.each()
def test_same_values(run):
    for theirs, ours in zip(*both(lambda tf: values(tf, run(tf))), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        tolerance = 1e-3 if theirs.dtype.itemsize == 2 else 2e-6
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), tolerance, tolerance)


def values(tf: Any, tensors: list[Any]) -> list[np.ndarray]:
    with tf.Session() as sess:
        return [np.asarray(value) for value in sess.run(tensors)]


def with_slopes(tf: Any, outputs: Any, *inputs: Any) -> list[Any]:
    """The tensors and what they give as gradients of the inputs, weighted unevenly."""
    outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    weights = [tf.constant(some(*(y.shape.as_list()), seed=7, dtype=y.dtype.as_numpy_dtype)) for y in outputs]
    slopes = tf.gradients(outputs, list(inputs), weights)
    return [*outputs, *(slope for slope in slopes if slope is not None)]


# -- moments ------------------------------------------------------------------------------------------------------


@program
def moments_over_the_batch(tf):
    x = tf.constant(some(5, 3))
    return with_slopes(tf, tf.nn.moments(x, [0]), x)


@program
def moments_that_keep_dimensions(tf):
    x = tf.constant(some(5, 3, 2))
    return with_slopes(tf, tf.nn.moments(x, [0, 2], keep_dims=True, name="m"), x)


@program
def moments_in_half_precision(tf):
    x = tf.constant(some(5, 3, dtype=np.float16))
    return with_slopes(tf, tf.nn.moments(x, axes=[-1], shift=None), x)


@program
def moments_of_unknown_shape(tf):
    x = tf.placeholder_with_default(some(5, 3), [None, 3])
    return list(tf.nn.moments(x, [0])) + list(tf.nn.moments(x, tf.constant([1]), keepdims=True))


@program
def moments_of_nothing(tf):
    return list(tf.nn.moments(tf.constant(some(0, 3)), [0]))


@program
def moments_with_frequencies(tf):
    x, w = tf.constant(some(5, 3)), tf.constant(some(5, 1, low=0))
    return with_slopes(tf, tf.nn.weighted_moments(x, [0], w), x, w)


@program
def moments_with_whole_frequencies(tf):
    x = tf.constant(some(5, 3, dtype=np.float16))
    return list(tf.nn.weighted_moments(x, [0, 1], [[1], [0], [2], [0], [4]], keep_dims=True, name="w"))


@program
def moments_with_no_weight_at_all(tf):
    return list(tf.nn.weighted_moments(tf.constant(some(4)), [0], tf.zeros([4])))


@program
def sufficient_statistics(tf):
    x = tf.constant(some(5, 3))
    count, total, squares, shift = tf.nn.sufficient_statistics(x, [0])
    assert shift is None
    return [count, *with_slopes(tf, tf.nn.normalize_moments(count, total, squares, shift), x)]


@program
def sufficient_statistics_with_a_shift(tf):
    x = tf.placeholder_with_default(some(5, 3), [None, 3])
    statistics = tf.nn.sufficient_statistics(x, [0, -1], shift=0.5, keep_dims=True, name="s")
    return [*statistics, *tf.nn.normalize_moments(*statistics, name="n")]


# -- normalization ------------------------------------------------------------------------------------------------


@program
def batch_normalization(tf):
    x = tf.constant(some(6, 4))
    mean, variance = tf.nn.moments(x, [0])
    scale, offset = tf.constant(some(4, seed=1)), tf.constant(some(4, seed=2))
    return with_slopes(tf, tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3), x, scale, offset)


@program
def batch_normalization_without_scale_or_offset(tf):
    x, mean, variance = tf.constant(some(6, 4)), tf.constant(some(4)), tf.constant(some(4, low=0.1))
    plain = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3, name="plain")
    old = tf.nn.batch_norm_with_global_normalization(x, mean, variance, mean, mean, 1e-3, False)
    return with_slopes(tf, [plain, old], x, mean, variance)


@program
def batch_normalization_in_half_precision(tf):
    x = tf.constant(some(6, 4, dtype=np.float16))
    mean, variance = tf.constant(some(4)), tf.constant(some(4, low=0.1))
    return with_slopes(tf, tf.nn.batch_normalization(x, mean, variance, mean, None, 1e-3), x)


@program
def layer_normalization(tf):
    """Layer normalization as programs of the days of tf.contrib write it."""
    x = tf.constant(some(4, 6))
    gain = tf.get_variable("gain", initializer=np.ones(6, np.float32), use_resource=False)
    with tf.name_scope("layer_norm"):
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        y = tf.nn.batch_normalization(x, mean, variance, tf.zeros([6]), 1.0, 1e-12)
        by_hand = (x - mean) / tf.sqrt(variance + 1e-5)
    tf.gradients(y * gain, gain)
    return with_slopes(tf, [y, by_hand], x)


@program
def l2_normalize(tf):
    x = tf.constant(some(4, 3))
    return with_slopes(tf, [tf.nn.l2_normalize(x, 1), tf.nn.l2_normalize(x, [0, 1], epsilon=0.5, name="n")], x)


@program
def l2_normalize_of_complex_numbers_and_zeros(tf):
    x = tf.complex(tf.constant(some(4)), tf.constant(some(4, seed=1)))
    y = tf.nn.l2_normalize(x)
    return [tf.real(y), tf.imag(y), tf.nn.l2_normalize(tf.zeros([3]), dim=0)]


# -- activations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["relu", "relu6", "elu", "selu", "softplus", "softsign", "leaky_relu", "crelu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_activations_and_their_second_derivatives(name, dtype):
    def run(tf):
        x = tf.constant(np.array([-7, -1.5, -0.5, 0, 0.5, 1.5, 7, 30, NAN, INF, -INF], dtype))
        y = getattr(tf.nn, name)(x)
        slope = tf.gradients(y, x)[0]
        second = tf.gradients(slope * slope, x) if name != "softsign" else []  # TensorFlow has none there
        return [y, slope, *(t for t in second if t is not None)]

    assert_same_graph(run)
    test_same_values(run)


@program
def swish(tf):
    x, beta = tf.constant(np.float32([-40, -1, 0, 1, 40, NAN])), tf.constant(1.5)
    return with_slopes(tf, tf.nn.swish(x), x) + with_slopes(tf, tf.nn.silu(x, beta), x, beta)


@program
def swish_in_half_precision(tf):
    x = tf.constant(some(4, dtype=np.float16))
    return with_slopes(tf, tf.nn.swish(x, beta=2), x)


@program
def log_sigmoid(tf):
    x = tf.constant(np.float32([-100, -1, 0, 1, 100, NAN, INF, -INF]))
    return with_slopes(tf, [tf.log_sigmoid(x), tf.math.log_sigmoid(x, name="l")], x)


# -- losses -------------------------------------------------------------------------------------------------------


@program
def log_poisson_loss(tf):
    z, c = tf.constant(np.float32([0, 0.5, 1, 1.5, 20])), tf.constant(some(5))
    both_losses = [tf.nn.log_poisson_loss(z, c), tf.nn.log_poisson_loss(z, c, compute_full_loss=True, name="full")]
    return with_slopes(tf, both_losses, c)


@program
def weighted_cross_entropy(tf):
    z, x = tf.constant(some(5, low=0, high=1)), tf.constant(np.float32([-100, -1, 0, 1, 100]))
    losses = [
        tf.nn.weighted_cross_entropy_with_logits(labels=z, logits=x, pos_weight=2.5),
        tf.nn.weighted_cross_entropy_with_logits(targets=z, logits=x, pos_weight=tf.constant(0.5), name="w"),
    ]
    return with_slopes(tf, losses, x, z)


@program
def average_losses(tf):
    losses, weights = tf.constant(some(4)), tf.constant(some(4, 1, low=0))
    unknown = tf.placeholder_with_default(some(4), None)
    found = [
        tf.nn.compute_average_loss(losses), tf.nn.compute_average_loss(losses, sample_weight=weights),
        tf.nn.compute_average_loss(losses, 0.5, global_batch_size=16), tf.nn.compute_average_loss(tf.zeros([0])),
        tf.nn.scale_regularization_loss(losses), tf.nn.compute_average_loss(tf.cast(losses, tf.float64), weights),
    ]  # fmt: skip
    return [*with_slopes(tf, found, losses), tf.nn.compute_average_loss(unknown, weights)]


@program
def average_losses_with_weights_of_unknown_rank(tf):
    weights = [tf.placeholder_with_default(np.float32(w), None) for w in (2, [1, 2, 0], [[1], [2], [0]])]
    return [tf.nn.compute_average_loss(tf.constant(some(3)), w) for w in weights]


@program
def collapsed_labels(tf):
    labels = tf.constant([[1, 1, 2, 2, 1], [3, 3, 3, 3, 3], [1, 2, 3, 4, 5]])
    found = tf.nn.collapse_repeated(labels, tf.constant([5, 3, 4]))
    dynamic = tf.placeholder_with_default(np.array([[7, 7, 8], [9, 8, 8]], np.int64), [None, None])
    return [*found, *tf.nn.collapse_repeated(dynamic, tf.constant([3, 0], tf.int64), name="c")]


# -- small functions of tf.math -------------------------------------------------------------------------------------


@program
def fraction_of_zeros(tf):
    x = tf.constant([0.0, 1.0, 0.0, NAN])
    return [tf.nn.zero_fraction(x), tf.math.zero_fraction(tf.zeros([2, 2], tf.int32), name="z"),
            tf.nn.zero_fraction(tf.placeholder_with_default(some(0), [None]))]  # fmt: skip


@program
def polynomials(tf):
    x, c = tf.constant(some(4)), tf.constant(some(4, seed=1))
    found = with_slopes(tf, [tf.math.polyval([1.0, c, 2.0], x), tf.math.polyval([c], x, name="p")], x, c)
    return [*found, tf.math.polyval([], x)]


@program
def without_nan(tf):
    x, y = tf.constant([0.0, NAN, INF, 2.0, 0.0]), tf.constant([NAN, 0.0, 0.0, 3.0, -1.0])
    functions = (tf.math.multiply_no_nan, tf.math.xdivy, tf.math.xlogy, tf.math.xlog1py, tf.math.divide_no_nan)
    return with_slopes(tf, [*(f(x, y) for f in functions), tf.math.reciprocal_no_nan(y)], x, y)


@program
def without_nan_of_python_numbers(tf):
    x = tf.placeholder_with_default(some(2, 3), [None, 3])
    functions = (tf.math.multiply_no_nan, tf.math.xdivy, tf.math.xlogy, tf.math.xlog1py)
    found = [f(x, 0.5, name="named") for f in functions]
    return found + tf.gradients(found, x) + [tf.math.multiply_no_nan(2.0, x), tf.math.xlogy(x, tf.abs(x[:1]))]


@program
def spread(tf):
    x = tf.constant(some(4, 3))
    found = [f(x, **a) for f in (tf.math.reduce_std, tf.math.reduce_variance, tf.math.reduce_euclidean_norm)
             for a in ({}, {"axis": 0}, {"axis": [0, 1], "keepdims": True}, {"axis": -1, "name": "n"})]  # fmt: skip
    return with_slopes(tf, found, x)


@program
def confusion(tf):
    labels, taken = tf.constant([0, 1, 2, 2]), tf.constant([[1], [1], [2], [0]])
    weights = tf.constant([0.5, 1, 2, 4])
    anything = tf.placeholder_with_default(np.array([0, 3], np.int64), None)
    return [
        tf.confusion_matrix(labels, taken), tf.math.confusion_matrix(labels, tf.reshape(taken, [-1]), 4, tf.float32),
        tf.confusion_matrix(labels, taken, num_classes=3, weights=weights, dtype=tf.float32, name="c"),
        tf.confusion_matrix(anything, anything),
    ]  # fmt: skip


# -- errors -------------------------------------------------------------------------------------------------------


def error_of(tf: Any, function: Callable[[], Any]) -> tuple[str, str]:
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing", ""


BAD: dict[str, Callable[[Any], Any]] = {
    "weighted": lambda tf: tf.nn.weighted_cross_entropy_with_logits(labels=[1.0], logits=[1.0, 2.0], pos_weight=1),
    "poisson": lambda tf: tf.nn.log_poisson_loss([1.0], [1.0, 2.0]),
    "polyval": lambda tf: tf.math.polyval((1.0, 2.0), 3.0),
    "renamed": lambda tf: tf.nn.moments(tf.constant([1.0]), [0], keep_dims=True, keepdims=True),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_when_the_graph_is_built(name):
    theirs, ours = both(lambda tf: error_of(tf, lambda: BAD[name](tf)))
    assert ours == theirs


@pytest.mark.parametrize(
    ("labels", "taken", "word"), [([-1], [0], "negative"), ([0], [-1], "negative"), ([3], [0], "out of bound")]
)
def test_class_numbers_that_are_no_classes(labels, taken, word):
    def run(tf):
        feeds = tf.placeholder(tf.int64, [1]), tf.placeholder(tf.int64, [1])
        matrix = tf.confusion_matrix(*feeds, num_classes=3)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=word):
            sess.run(matrix, dict(zip(feeds, (labels, taken), strict=True)))

    both(run)

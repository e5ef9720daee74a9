"""tf.losses next to TensorFlow's: the nodes they make, their values and gradients, and what is in the collections."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both

Program = Callable[[Any], Any]
NONE, SUM, MEAN = "none", "weighted_sum", "weighted_mean"
REDUCTIONS = [NONE, SUM, MEAN, "weighted_sum_over_batch_size", "weighted_sum_by_nonzero_weights"]

_random = np.random.default_rng(0)
PREDICTIONS = _random.uniform(0.05, 0.95, (4, 3)).astype(np.float32)
LABELS = _random.integers(0, 2, (4, 3)).astype(np.float32)
ONE_HOT = np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]
DENSE: dict[str, dict[str, Any]] = {
    "absolute_difference": {}, "mean_squared_error": {}, "cosine_distance": {"axis": 1}, "hinge_loss": {},
    "huber_loss": {"delta": 0.3}, "log_loss": {"epsilon": 1e-3}, "sigmoid_cross_entropy": {"label_smoothing": 0.1},
}  # fmt: skip
WEIGHTS: dict[str, Any] = {
    "number": 0.5, "zero": 0.0, "scalar": np.float32(2), "per example": np.float32([[1], [0], [2.5], [0]]),
    "per element": _random.integers(0, 2, (4, 3)).astype(np.float64), "none counts": np.zeros((4, 1), np.float32),
    "whole": np.array([[1], [0], [2], [0]]),
}  # fmt: skip


def loss_of(tf: Any, name: str, labels: Any, predictions: Any, **more: Any) -> Any:
    function, more = getattr(tf.losses, name), DENSE[name] | more
    if name == "sigmoid_cross_entropy":
        return function(labels, predictions, **more)
    return function(labels=labels, **{"logits" if name == "hinge_loss" else "predictions": predictions}, **more)


def check(run: Program) -> None:
    """The program gives (loss, parameters); graph, loss, gradients and collections are TensorFlow's."""

    def values(tf: Any) -> Any:
        loss, parameters = run(tf)
        slopes = tf.gradients(loss, parameters)
        losses = [loss.name for loss in tf.get_collection("losses")]
        with tf.Session() as sess:
            return sess.run([loss, *slopes]), losses

    assert_same_graph(run)
    (theirs, their_losses), (ours, our_losses) = both(values)
    assert our_losses == their_losses
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions(name, reduction):
    def run(tf):
        predictions = tf.constant(PREDICTIONS)
        weights = tf.constant(WEIGHTS["per example"])
        return loss_of(tf, name, LABELS, predictions, weights=weights, reduction=reduction), predictions

    check(run)


@pytest.mark.parametrize(("name", "weights"), list(itertools.product(DENSE, WEIGHTS)))
def test_weights(name, weights):
    def run(tf):
        predictions = tf.constant(PREDICTIONS)
        given = WEIGHTS[weights]
        if name == "cosine_distance" and np.shape(given) == (4, 3):
            given = given[:, :1]
        return loss_of(tf, name, LABELS, predictions, weights=given), predictions

    check(run)


@pytest.mark.parametrize(("name", "shape"), list(itertools.product(DENSE, [None, [None, 3]])))
@pytest.mark.parametrize("weights", ["number", "per example"])
def test_shapes_that_are_known_in_the_step_only(name, shape, weights):
    def run(tf):
        predictions = tf.placeholder_with_default(PREDICTIONS, shape)
        given = WEIGHTS[weights]
        given = given if np.ndim(given) == 0 else tf.placeholder_with_default(given, None)
        return loss_of(tf, name, LABELS, predictions, weights=given, scope="mine"), predictions

    check(run)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32])
@pytest.mark.parametrize("name", ["mean_squared_error", "log_loss"])
def test_other_dtypes_become_float32(name, dtype):
    def run(tf):
        predictions = tf.constant((PREDICTIONS * 2).astype(dtype) / dtype(2) if dtype != np.int32 else LABELS == 0)
        given = tf.cast(predictions, dtype)
        return loss_of(tf, name, LABELS.astype(np.int64), given, loss_collection=None), tf.constant(1.0)

    assert_same_graph(run)
    theirs, ours = both(lambda tf: tf.Session().run(run(tf)[0]))
    np.testing.assert_allclose(ours, theirs, 1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("smoothing", [0, 0.2])
@pytest.mark.parametrize("reduction", [NONE, MEAN, "weighted_sum_by_nonzero_weights"])
def test_softmax_cross_entropy(dtype, smoothing, reduction):
    def run(tf):
        logits = tf.constant(PREDICTIONS.astype(dtype) * 3)
        loss = tf.losses.softmax_cross_entropy(
            ONE_HOT, logits, weights=np.float32([1, 0, 2, 3]), label_smoothing=smoothing, reduction=reduction
        )
        return loss, logits

    if dtype == np.float16:
        theirs, ours = both(lambda tf: tf.Session().run(run(tf)[0]))
        np.testing.assert_allclose(ours, theirs, 2e-3)
        assert_same_graph(run)
    else:
        check(run)


SPARSE_WEIGHTS: list[Any] = [1.0, 0.0, np.float32([1, 0, 2, 3]), np.float32([[1], [0], [2], [3]])]


@pytest.mark.parametrize("weights", SPARSE_WEIGHTS, ids=str)
@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("known", [True, False])
def test_sparse_softmax_cross_entropy(weights, column, known):
    def run(tf):
        labels = np.array([0, 2, 1, 1])[:, None] if column else np.array([0, 2, 1, 1])
        logits = tf.constant(PREDICTIONS) if known else tf.placeholder_with_default(PREDICTIONS, [None, 3])
        given = labels if known else tf.placeholder_with_default(labels, None)
        w = weights if known or np.ndim(weights) == 0 else tf.placeholder_with_default(weights, None)
        return tf.losses.sparse_softmax_cross_entropy(given, logits, w), logits

    check(run)


@pytest.mark.parametrize("weights", ["number", "zero", "per example", "per element"])
@pytest.mark.parametrize("known", [True, False])
def test_mean_pairwise_squared_error(weights, known):
    def run(tf):
        predictions = tf.constant(PREDICTIONS) if known else tf.placeholder_with_default(PREDICTIONS, None)
        if weights == "per element":
            return tf.losses.mean_pairwise_squared_error(LABELS[:, :1], predictions[:, :1]), predictions
        return tf.losses.mean_pairwise_squared_error(LABELS, predictions, WEIGHTS[weights], scope="pairs"), predictions

    check(run)


def test_nothing_at_all():
    def run(tf):
        predictions = tf.constant(np.zeros((0, 3), np.float32))
        found = [loss_of(tf, name, np.zeros((0, 3), np.float32), predictions) for name in DENSE]
        return tf.add_n(found), predictions

    check(run)


def test_nan_stays():
    def run(tf):
        predictions = tf.constant(np.float32([[np.nan, 1.0]]))
        return tf.losses.mean_squared_error(np.zeros((1, 2)), predictions, weights=[[0.0, 1.0]]), predictions

    check(run)


# -- collections ----------------------------------------------------------------------------------------------------


def test_collections_and_totals():
    def run(tf):
        none = tf.losses.get_regularization_loss(name="none")
        with tf.name_scope("first"):
            tf.losses.mean_squared_error([1.0], tf.constant([2.0]))
        tf.losses.absolute_difference([1.0], tf.constant([2.0]), loss_collection="mine")
        tf.losses.add_loss(tf.constant(3.0))
        tf.losses.add_loss(tf.constant(4.0), None)
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(5.0, name="r"))
        tf.losses.compute_weighted_loss(tf.constant([6.0]))
        totals = [
            tf.losses.get_total_loss(),
            tf.losses.get_total_loss(False, name="plain"),
            tf.losses.get_total_loss(scope="first", name="f"),
            tf.losses.get_regularization_loss(),
            none,
        ]
        lists = [
            tf.losses.get_losses(),
            tf.losses.get_losses("first"),
            tf.losses.get_losses(loss_collection="mine"),
            tf.losses.get_regularization_losses(),
            tf.losses.get_regularization_losses("x"),
        ]
        return totals, lists  # fmt: skip

    def values(tf):
        totals, lists = run(tf)
        return tf.Session().run(totals), [[loss.name for loss in found] for found in lists]

    assert_same_graph(run)
    theirs, ours = both(values)
    assert ours == theirs


def test_reduction_names():
    theirs, ours = both(lambda tf: {n: v for n, v in vars(tf.losses.Reduction).items() if n.isupper()})
    assert ours == theirs
    theirs, ours = both(lambda tf: tf.losses.Reduction.all())
    assert ours == theirs


# -- errors ---------------------------------------------------------------------------------------------------------

BAD: dict[str, Program] = {
    "reduction": lambda tf: tf.losses.compute_weighted_loss([1.0], reduction="mean"),
    "labels": lambda tf: tf.losses.mean_squared_error(None, [1.0]),
    "predictions": lambda tf: tf.losses.log_loss([1.0], None),
    "logits": lambda tf: tf.losses.hinge_loss([1.0], None),
    "one hot": lambda tf: tf.losses.softmax_cross_entropy(None, [1.0]),
    "axis": lambda tf: tf.losses.cosine_distance([1.0], [1.0]),
    "shapes": lambda tf: tf.losses.huber_loss([1.0], [1.0, 2.0]),
    "rank of weights": lambda tf: tf.losses.mean_squared_error(LABELS, PREDICTIONS, weights=[1.0, 2.0, 3.0]),
    "size of weights": lambda tf: tf.losses.mean_squared_error(LABELS, PREDICTIONS, weights=[[1.0, 2.0]]),
    "nothing to add": lambda tf: tf.losses.get_total_loss(),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_when_the_graph_is_built(name):
    def error(tf):
        with pytest.raises(ValueError) as caught:
            BAD[name](tf)
        return str(caught.value).partition(" Received")[0]

    theirs, ours = both(error)
    assert ours == theirs


@pytest.mark.parametrize("weights", [[1.0, 2.0, 3.0], [[1.0, 2.0]], [[[1.0]]]])
def test_weights_that_do_not_fit_in_a_step(weights):
    def run(tf):
        given = tf.placeholder(tf.float32)
        loss = tf.losses.mean_squared_error(LABELS, PREDICTIONS, weights=given)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast"):
            sess.run(loss, {given: weights})

    both(run)

"""tf.losses: a number to minimize from labels and predictions, which is also added to a collection.

Stands for `python/ops/losses/losses_impl.py` and `losses/util.py`.

Rule: every loss is computed per element (or example) in float32, times weights that fit (`weights_broadcast.py`), and
then reduced as `reduction` says; an element with weight 0 is not counted. The result is in the collection
`tf.GraphKeys.LOSSES`, so that `get_total_loss` finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collection, control_dependencies, get_collection, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.nn import cross_entropy, functions as nn
from dtflab.ops.nn.weights_broadcast import assert_broadcastable, broadcast_weights
from dtflab.ops.reduce.confusion_matrix import may_squeeze, remove_squeezable_dimensions
from dtflab.ops.reduce.functions import reduce_sum


class Reduction:
    """How the weighted losses become the result.

    NONE: not at all. SUM: their sum. SUM_OVER_BATCH_SIZE: divided by their number. MEAN: divided by the sum of the
    weights. SUM_BY_NONZERO_WEIGHTS (or SUM_OVER_NONZERO_WEIGHTS): divided by the number of weights that are not 0.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        nonzero = cls.SUM_OVER_NONZERO_WEIGHTS, cls.SUM_BY_NONZERO_WEIGHTS
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, *nonzero

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise ValueError unless `key` is one of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}. Key should be one of {cls.all()}.")


# -- the collection -----------------------------------------------------------------------------------


def add_loss(loss: Tensor, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss of your own to the collection that `get_total_loss` sums."""
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses so far, or those whose name begins with `scope`."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses of regularizers, or those whose name begins with `scope`."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the regularization losses; 0 if there are none."""
    losses = get_regularization_losses(scope)
    return math.add_n(losses, name=name) if losses else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses, by default with those of regularizers. Raises ValueError if there are none."""
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope=scope)
    return math.add_n(losses, name=name)


# -- weights and reduction ----------------------------------------------------------------------------


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """`losses` times `weights` (a scalar, or of the same rank), reduced; in the dtype of the losses."""
    Reduction.validate(reduction)
    with (
        name_scope(scope, "weighted_loss", [losses, weights]),
        control_dependencies([assert_broadcastable(weights, losses)]),
    ):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype
        losses, weights = arrays.cast(losses, dtypes.float32), arrays.cast(weights, dtypes.float32)
        loss: Tensor = arrays.cast(_reduced(losses, weights, reduction), dtype)
        add_loss(loss, loss_collection)
        return loss


def _reduced(losses: Tensor, weights: Tensor, how: str) -> Tensor:
    weighted = math.multiply(losses, weights)
    if how == Reduction.NONE:
        return weighted
    total = reduce_sum(weighted)
    if how == Reduction.MEAN:
        return _safe_mean(total, reduce_sum(arrays.ones_like(losses) * weights))
    if how == Reduction.SUM_BY_NONZERO_WEIGHTS:
        return _safe_mean(total, _num_present(losses, weights))
    if how == Reduction.SUM_OVER_BATCH_SIZE:
        return _safe_mean(total, _num_elements(losses))
    return total


def _safe_mean(losses: Tensor, count: Tensor) -> Tensor:
    """The sum of `losses` divided by `count`; 0 if the count is 0."""
    return math.div_no_nan(reduce_sum(losses), count, name="value")


def _num_present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """How many elements have a weight that is not 0, in all or in each example."""
    with name_scope(None, "num_present", [losses, weights]) as scope:
        weights = arrays.cast(weights, dtypes.float32)
        zeros, ones = arrays.zeros_like(weights), arrays.ones_like(weights)
        present = broadcast_weights(indexing.where(math.equal(weights, 0.0), zeros, ones), losses)
        if per_batch:
            axes = arrays.range(1, arrays.rank(present))
            return reduce_sum(present, axis=axes, keepdims=True, name=scope)
        return reduce_sum(present, name=scope)


def _num_elements(losses: Tensor) -> Tensor:
    with name_scope(None, "num_elements", [losses]) as scope:
        return arrays.cast(arrays.size(losses, name=scope), losses.dtype)


def _both(name: str, labels: Any, other_name: str, other: Any) -> None:
    for what, value in ((name, labels), (other_name, other)):
        if value is None:
            raise ValueError(f"Argument `{what}` must not be None.")


def _as_floats(predictions: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Both in float32. Raises ValueError if their shapes differ."""
    predictions, labels = arrays.cast(predictions, dtypes.float32), arrays.cast(labels, dtypes.float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return predictions, labels


# -- distances between predictions and labels ---------------------------------------------------------

Distance = Callable[[Tensor, Tensor], Tensor]  # of (predictions, labels)


def _distance_loss(
    default_name: str,
    distance: Distance,
    labels: Any,
    predictions: Any,
    weights: Any,
    scope: str | None,
    loss_collection: str | None,
    reduction: str,
    other_name: str = "predictions",
) -> Tensor:
    _both("labels", labels, other_name, predictions)
    with name_scope(scope, default_name, [predictions, labels, weights]) as name:
        losses = distance(*_as_floats(predictions, labels))
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction=reduction)


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """|predictions - labels|"""

    def distance(predictions: Tensor, labels: Tensor) -> Tensor:
        return math.abs(math.subtract(predictions, labels))

    return _distance_loss(
        "absolute_difference", distance, labels, predictions, weights, scope, loss_collection, reduction
    )


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """(predictions - labels)²"""
    return _distance_loss(
        "mean_squared_error", math.squared_difference, labels, predictions, weights, scope, loss_collection, reduction
    )


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """1 - the sum of predictions · labels along `axis`, for vectors of length 1; `dim` is the axis's old name."""
    axis = renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify argument `axis`.")

    def distance(predictions: Tensor, labels: Tensor) -> Tensor:
        return 1 - _sum(math.multiply(predictions, labels), (axis,))

    return _distance_loss(
        "cosine_distance_loss", distance, labels, predictions, weights, scope, loss_collection, reduction
    )


def _sum(x: Tensor, axes: Any) -> Tensor:
    return reduce_sum(x, axis=axes, keepdims=True)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """max(0, 1 - y·logits), with y = -1 for the label 0 and 1 for the label 1."""

    def distance(logits: Tensor, labels: Tensor) -> Tensor:
        ones = arrays.ones_like(labels)
        signs = math.subtract(2 * labels, ones)
        return nn.relu(math.subtract(ones, math.multiply(signs, logits)))

    return _distance_loss(
        "hinge_loss", distance, labels, logits, weights, scope, loss_collection, reduction, other_name="logits"
    )


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """error² / 2 for errors up to `delta`, and from there on along the tangent: outliers pull less."""

    def distance(predictions: Tensor, labels: Tensor) -> Tensor:
        error = math.abs(math.subtract(predictions, labels))
        quadratic = math.minimum(error, delta)
        linear = math.subtract(error, quadratic)
        half = convert_to_tensor(0.5, quadratic.dtype)
        return math.add(math.multiply(half, math.multiply(quadratic, quadratic)), math.multiply(delta, linear))

    return _distance_loss("huber_loss", distance, labels, predictions, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """-labels · log(predictions) - (1 - labels) · log(1 - predictions), for predictions that are probabilities."""

    def distance(predictions: Tensor, labels: Tensor) -> Tensor:
        yes = -math.multiply(labels, math.log(predictions + epsilon))
        return yes - math.multiply(1 - labels, math.log(1 - predictions + epsilon))

    return _distance_loss("log_loss", distance, labels, predictions, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """In each example the mean of ((pᵢ - pⱼ) - (lᵢ - lⱼ))² over all pairs of elements; the examples' sum.

    It penalizes wrong differences, not a wrong level; `weights` are per example.
    """
    _both("labels", labels, "predictions", predictions)
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        weights, labels = arrays.cast(weights, dtypes.float32), arrays.cast(labels, dtypes.float32)
        with control_dependencies([assert_broadcastable(weights, labels)]):
            predictions = arrays.cast(predictions, dtypes.float32)
            predictions.shape.assert_is_compatible_with(labels.shape)
            loss = _pairwise(math.subtract(predictions, labels), weights)
            add_loss(loss, loss_collection)
            return loss


def _pairwise(diffs: Tensor, weights: Tensor) -> Tensor:
    """2·Σd² / (n - 1) - 2·(Σd)² / (n·(n - 1)), summed over examples of n differences d each."""
    axes = arrays.range(1, arrays.rank(diffs))
    squares = _sum(math.square(diffs), axes)
    count = _num_present(diffs, weights, per_batch=True)
    own = 2.0 * math.div_no_nan(squares, math.maximum(count - 1, 0), name="value")
    total = math.square(_sum(diffs, axes))
    pairs = math.maximum(math.multiply(count, count - 1), 0)
    common = 2.0 * math.div_no_nan(total, pairs, name="value")
    loss = reduce_sum(math.multiply(own - common, weights))
    return indexing.where(reduce_sum(count) > 0, loss, arrays.zeros_like(loss), name="value")


# -- cross entropies ----------------------------------------------------------------------------------


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """For yes-or-no questions; `label_smoothing` pulls the labels towards 1/2."""
    _both("multi_class_labels", multi_class_labels, "logits", logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as name:
        logits, labels = _as_logits(logits, multi_class_labels)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = cross_entropy.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction=reduction)


def _as_logits(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    logits = convert_to_tensor(logits)
    labels = arrays.cast(labels, logits.dtype)
    logits.shape.assert_is_compatible_with(labels.shape)
    return logits, labels


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """For one class of many, labels as rows with a 1; `label_smoothing` pulls them towards 1/classes."""
    _both("onehot_labels", onehot_labels, "logits", logits)
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as name:
        logits, labels = _as_logits(logits, onehot_labels)
        if label_smoothing > 0:
            classes = arrays.cast(arrays.shape(labels)[-1], logits.dtype)
            smooth_negatives = label_smoothing / classes
            labels = labels * (1.0 - label_smoothing) + smooth_negatives
        labels = arrays.stop_gradient(labels, name="labels_stop_gradient")
        losses = cross_entropy.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction=reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """For one class of many, labels as class numbers; labels and weights may have a last dimension of size 1."""
    _both("labels", labels, "logits", logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as name:
        labels, logits = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
        weights = _of_rank(labels, weights)
        losses = cross_entropy.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction=reduction)


def _of_rank(labels: Tensor, weights: Any) -> Any:
    """The weights without their last dimension if they have one more than the labels."""
    if weights is None:
        return None
    weights = convert_to_tensor(weights)
    ndims = weights.shape.ndims
    if labels.shape.ndims is not None and ndims is not None:
        return arrays.squeeze(weights, [-1]) if ndims - labels.shape.ndims == 1 else weights
    rank_diff = arrays.rank(weights) - arrays.rank(labels)
    if ndims != 0 and may_squeeze(weights):
        return cond(math.equal(1, rank_diff), lambda: arrays.squeeze(weights, [-1]), lambda: weights)
    return weights

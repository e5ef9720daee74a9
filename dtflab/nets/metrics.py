"""tf.metrics that are means: of numbers, of errors, of how often a prediction was right.

Stands for their part of `python/ops/metrics_impl.py`. Counts of right and wrong predictions are in
`metrics_of_counts.py`, metrics with thresholds in `metrics_at_thresholds.py`, with the first k classes in
`metrics_at_k.py`.

Rule: each function makes its variables when it is called, and returns (value, update_op); `weights` are a scalar or
have a shape that fits the values, as in losses; None counts every element once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base.naming import named
from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.nets.metric_variables import LabelMetric, Metric, as_vector, fitted, metric_variable, published
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import diag_part
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.nn.weights_broadcast import broadcast_weights
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.reduce.confusion_matrix import confusion_matrix, remove_squeezable_dimensions
from dtflab.ops.variables import functions as variables
from dtflab.ops.variables.variable_scope import variable_scope


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values so far; 0 before the first."""
    with variable_scope(name, "mean", (values, weights)):
        values = arrays.cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, name="total")
        count = metric_variable([], dtypes.float32, name="count")
        if weights is None:
            number = arrays.cast(arrays.size(values), dtypes.float32)
        else:
            values, weights = _weighted(values, weights)
            number = reduce.reduce_sum(weights)
        updates = _added(total, reduce.reduce_sum(values), count, number, after=values)
        return _quotient(total, count, updates, metrics_collections, updates_collections)


def _weighted(values: Any, weights: Any) -> tuple[Tensor, Tensor]:
    """The values times their weights, and the weights, one for each value."""
    values, _, weights = fitted(values, None, weights)
    weights = broadcast_weights(arrays.cast(weights, dtypes.float32), values)
    return math.multiply(values, weights), weights


def _added(total: Any, values: Tensor, count: Any, number: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    update_total = variables.assign_add(total, values)
    with control_dependencies([after]):
        return update_total, variables.assign_add(count, number)


def _quotient(total: Any, count: Any, updates: Any, metrics_collections: Any, updates_collections: Any) -> Metric:
    """total / count as the value, and the same of the updated variables as the update."""
    value = math.div_no_nan(total, math.maximum(count, 0), name="value")
    update_op = math.div_no_nan(updates[0], math.maximum(updates[1], 0), name="update_op")
    return published(value, update_op, metrics_collections, updates_collections)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of tensors of one fully known shape, element by element."""
    with variable_scope(name, "mean", (values, weights)):
        values = arrays.cast(values, dtypes.float32)
        total = metric_variable(values.shape, dtypes.float32, name="total_tensor")
        count = metric_variable(values.shape, dtypes.float32, name="count_tensor")
        number = arrays.ones_like(values)
        if weights is not None:
            values, weights = _weighted(values, weights)
            number = math.multiply(number, weights)
        updates = _added(total, values, count, number, after=values)
        return _quotient(total, count, updates, metrics_collections, updates_collections)


def _mean_of(elements: Callable[[Any, Any], Tensor]) -> LabelMetric:
    """The metric that is the mean of `elements(labels, predictions)`."""
    what = elements.__name__

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        predictions, labels, weights = fitted(predictions, labels, weights)
        return mean(elements(labels, predictions), weights, metrics_collections, updates_collections, name or what)

    return named(metric, what, elements.__doc__)


@_mean_of
def accuracy(labels: Any, predictions: Any) -> Tensor:
    """How often the predictions equal the labels; both of one shape."""
    if labels.dtype != predictions.dtype:
        predictions = arrays.cast(predictions, labels.dtype)
    return arrays.cast(math.equal(predictions, labels), dtypes.float32)


def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The fraction of the values that are less than `threshold`."""
    is_below = arrays.cast(math.less(values, threshold), dtypes.float32)
    return mean(is_below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


# -- errors -------------------------------------------------------------------------------------------


@_mean_of
def mean_absolute_error(labels: Any, predictions: Any) -> Tensor:
    """The mean of |predictions - labels|."""
    return math.abs(predictions - labels)


@_mean_of
def mean_squared_error(labels: Any, predictions: Any) -> Tensor:
    """The mean of (predictions - labels)²."""
    return math.squared_difference(labels, predictions)


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The root of the mean of (predictions - labels)²."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    squared, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return published(math.sqrt(squared), math.sqrt(update), metrics_collections, updates_collections)


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of |labels - predictions| / normalizer; where that is 0, of 0."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    predictions, normalizer = remove_squeezable_dimensions(predictions, normalizer)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    no_norm, zeros = math.equal(normalizer, 0.0), arrays.zeros_like(labels)
    errors = indexing.where(no_norm, zeros, math.divide(math.abs(labels - predictions), normalizer))
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """1 - the mean of labels · predictions along `dim`, for vectors of length 1."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    products = math.multiply(predictions, labels)
    products = reduce.reduce_sum(products, axis=[dim], keepdims=True)
    cosine, update_op = mean(products, weights, None, None, name or "mean_cosine_distance")
    distance, update_op = math.subtract(1.0, cosine), math.subtract(1.0, update_op)
    return published(distance, update_op, metrics_collections, updates_collections)


# -- by class -----------------------------------------------------------------------------------------


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of the fraction of right predictions; the update returns one number per class."""
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = as_vector(arrays.cast(labels, dtypes.int64))
        predictions = as_vector(predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total = metric_variable([num_classes], dtypes.float32, name="total")
        count = metric_variable([num_classes], dtypes.float32, name="count")
        ones = arrays.ones([arrays.size(labels)], dtypes.float32)
        if labels.dtype != predictions.dtype:
            predictions = arrays.cast(predictions, labels.dtype)
        is_correct = arrays.cast(math.equal(predictions, labels), dtypes.float32)
        if weights is not None:
            weights = arrays.cast(as_vector(weights), dtypes.float32)
            is_correct *= weights
            ones *= weights
        update_total = variables.scatter_add(total, labels, ones)
        update_count = variables.scatter_add(count, labels, is_correct)
        per_class = math.div_no_nan(count, math.maximum(total, 0))
        value = reduce.reduce_mean(per_class, name="mean_accuracy")
        update_op = math.div_no_nan(update_count, math.maximum(update_total, 0), name="update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Intersection over union, true positives / (those + both kinds of errors), as a mean over the classes seen.

    The update returns the confusion matrix.
    """
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        predictions.shape.assert_is_compatible_with(labels.shape)
        matrix, update_op = _streaming_confusion_matrix(labels, predictions, num_classes, weights)
        return published(_mean_iou(matrix), update_op, metrics_collections, updates_collections)


def _streaming_confusion_matrix(labels: Any, predictions: Any, num_classes: Any, weights: Any) -> Metric:
    total = metric_variable([num_classes, num_classes], dtypes.float64, name="total_confusion_matrix")
    predictions, labels = arrays.cast(predictions, dtypes.int64), arrays.cast(labels, dtypes.int64)
    num_classes = arrays.cast(num_classes, dtypes.int64)
    predictions, labels = as_vector(predictions), as_vector(labels)
    weights = None if weights is None else as_vector(weights)
    batch = confusion_matrix(labels, predictions, num_classes, weights=weights, dtype=dtypes.float64)
    return total, variables.assign_add(total, batch)


def _mean_iou(matrix: Any) -> Tensor:
    rows = arrays.cast(reduce.reduce_sum(matrix, 0), dtypes.float32)
    columns = arrays.cast(reduce.reduce_sum(matrix, 1), dtypes.float32)
    right = arrays.cast(diag_part(matrix), dtypes.float32)
    union = rows + columns - right
    seen = reduce.reduce_sum(arrays.cast(math.not_equal(union, 0), dtypes.float32))
    union = indexing.where(math.greater(union, 0), union, arrays.ones_like(union))
    iou = math.divide(right, union)
    any_seen = math.greater(seen, 0)
    return indexing.where(any_seen, reduce.reduce_sum(iou, name="mean_iou") / seen, 0)

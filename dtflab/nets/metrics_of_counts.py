"""tf.metrics that count true and false positives and negatives; precision and recall.

Stands for their part of `python/ops/metrics_impl.py`.

Rule: labels and predictions are cast to bool; in `true_positives` and its siblings the first word says whether the
prediction was right, the second which prediction it was.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.nets.metric_variables import LabelMetric, Metric, fitted, label_metric, metric_variable
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.variables import functions as variables


@label_metric
def true_positives(labels: Any, predictions: Any, weights: Any) -> Metric:
    """How many elements are positive and were predicted to be; the sum of their weights, if given."""
    return _counted(True, True, labels, predictions, weights)


@label_metric
def true_negatives(labels: Any, predictions: Any, weights: Any) -> Metric:
    """How many elements are negative and were predicted to be."""
    return _counted(False, False, labels, predictions, weights)


@label_metric
def false_positives(labels: Any, predictions: Any, weights: Any) -> Metric:
    """How many elements are negative and were predicted to be positive."""
    return _counted(False, True, labels, predictions, weights)


@label_metric
def false_negatives(labels: Any, predictions: Any, weights: Any) -> Metric:
    """How many elements are positive and were predicted to be negative."""
    return _counted(True, False, labels, predictions, weights)


def _counted(label: bool, prediction: bool, labels: Any, predictions: Any, weights: Any) -> Metric:
    """The number of elements with that label and that prediction."""
    predictions, labels, weights = _as_bools(predictions, labels, weights)
    found = math.logical_and(math.equal(labels, label), math.equal(predictions, prediction))
    return _count_condition(found, weights)


def _as_bools(predictions: Any, labels: Any, weights: Any) -> Any:
    return fitted(arrays.cast(predictions, dtypes.bool), arrays.cast(labels, dtypes.bool), weights)


def _count_condition(values: Tensor, weights: Any) -> Metric:
    assertions.assert_type(values, dtypes.bool)
    count = metric_variable([], dtypes.float32, name="count")
    values = arrays.cast(values, dtypes.float32)
    if weights is not None:
        with control_dependencies([assertions.assert_rank_in(weights, (0, arrays.rank(values)))]):
            values = math.multiply(values, arrays.cast(weights, dtypes.float32))
    return arrays.identity(count), variables.assign_add(count, reduce.reduce_sum(values))


@label_metric
def precision(labels: Any, predictions: Any, weights: Any) -> Metric:
    """The part of the elements predicted to be positive that are; 0 if there are none."""
    return _part(false_positives, labels, predictions, weights)


@label_metric
def recall(labels: Any, predictions: Any, weights: Any) -> Metric:
    """The part of the positive elements that were predicted to be; 0 if there are none."""
    return _part(false_negatives, labels, predictions, weights)


def _part(others: LabelMetric, labels: Any, predictions: Any, weights: Any) -> Metric:
    """True positives / (true positives + others)."""
    predictions, labels, weights = _as_bools(predictions, labels, weights)
    right, update_right = true_positives(labels, predictions, weights)
    wrong, update_wrong = others(labels, predictions, weights)
    return _ratio(right, wrong, "value"), _ratio(update_right, update_wrong, "update_op")


def _ratio(right: Any, wrong: Any, name: str) -> Tensor:
    any_there = math.greater(right + wrong, 0)
    return indexing.where(any_there, math.divide(right, right + wrong), 0, name)

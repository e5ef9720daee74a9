"""tf.metrics that count true and false positives and negatives; precision and recall.

Stands for their part of `python/ops/metrics_impl.py`.

Rule: labels and predictions are cast to bool; the first word of a name says whether the prediction was right, the
second what it was.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.nets.metric_variables import Metric, fitted, metric_variable, published
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.variables import functions as variables
from dtflab.ops.variables.variable_scope import variable_scope


def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many (or the weights of those that) are positive and were predicted so."""
    return _counted("true_positives", True, True, labels, predictions, weights, metrics_collections,
                    updates_collections, name)  # fmt: skip


def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are negative and were predicted so."""
    return _counted("true_negatives", False, False, labels, predictions, weights, metrics_collections,
                    updates_collections, name)  # fmt: skip


def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are negative and were predicted to be positive."""
    return _counted("false_positives", False, True, labels, predictions, weights, metrics_collections,
                    updates_collections, name)  # fmt: skip


def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are positive and were predicted to be negative."""
    return _counted("false_negatives", True, False, labels, predictions, weights, metrics_collections,
                    updates_collections, name)  # fmt: skip


def _counted(
    what: str, label: bool, prediction: bool, labels: Any, predictions: Any, weights: Any, metrics_collections: Any,
    updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    """How often that label came with that prediction."""
    with variable_scope(name, what, (predictions, labels, weights)):
        predictions, labels, weights = _as_bools(predictions, labels, weights)
        found = math.logical_and(math.equal(labels, label), math.equal(predictions, prediction))
        return _count_condition(found, weights, metrics_collections, updates_collections)


def _as_bools(predictions: Any, labels: Any, weights: Any) -> Any:
    return fitted(arrays.cast(predictions, dtypes.bool), arrays.cast(labels, dtypes.bool), weights)


def _count_condition(values: Tensor, weights: Any, metrics_collections: Any, updates_collections: Any) -> Metric:
    assertions.assert_type(values, dtypes.bool)
    count = metric_variable([], dtypes.float32, name="count")
    values = arrays.cast(values, dtypes.float32)
    if weights is not None:
        with control_dependencies([assertions.assert_rank_in(weights, (0, arrays.rank(values)))]):
            values = math.multiply(values, arrays.cast(weights, dtypes.float32))
    value = arrays.identity(count)
    update_op = variables.assign_add(count, reduce.reduce_sum(values))
    return published(value, update_op, metrics_collections, updates_collections)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Of those predicted to be positive the part that is; 0 if there are none."""
    return _part("precision", false_positives, labels, predictions, weights, metrics_collections, updates_collections,
                 name)  # fmt: skip


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Of those that are positive the part that was predicted so; 0 if there are none."""
    return _part("recall", false_negatives, labels, predictions, weights, metrics_collections, updates_collections,
                 name)  # fmt: skip


def _part(
    what: str, others: Any, labels: Any, predictions: Any, weights: Any, metrics_collections: Any,
    updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    """True positives / (true positives + others)."""
    with variable_scope(name, what, (predictions, labels, weights)):
        predictions, labels, weights = _as_bools(predictions, labels, weights)
        right, update_right = true_positives(labels, predictions, weights)
        wrong, update_wrong = others(labels, predictions, weights)
        value = _ratio(right, wrong, "value")
        update_op = _ratio(update_right, update_wrong, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def _ratio(right: Any, wrong: Any, name: str) -> Tensor:
    any_there = math.greater(right + wrong, 0)
    return indexing.where(any_there, math.divide(right, right + wrong), 0, name)

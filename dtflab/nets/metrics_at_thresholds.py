"""tf.metrics of predictions that are probabilities: counts at each of many thresholds, and areas under curves.

Stands for their part of `python/ops/metrics_impl.py`.

How: a matrix with a row for each threshold and a column for each element marks the predicted positives; the variables
hold one count per threshold. AUC is the area under the curve through the points of the thresholds, a sum of strips.

Rule: predictions outside of [0, 1] fail in the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import tf_logging
from dtflab.base.naming import named
from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.nets.metric_variables import Metric, fitted, metric_variable, published
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import stack
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.nn.weights_broadcast import broadcast_weights
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.variables import functions as variables
from dtflab.ops.variables.variable_scope import variable_scope

Counts = dict[str, Any]  # "tp", "fn", "tn", "fp" → a tensor or variable with one count for each threshold
ValueOf = Callable[[Counts, str], Any]  # a metric from its counts and the end of its name, "value" or "update_op"

_NAMES = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
_EPSILON = 1e-7


def _counts_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, includes: Sequence[str] = tuple(_NAMES)
) -> tuple[Counts, Counts]:
    """The counts so far (variables) and updated."""
    with control_dependencies(_within_0_and_1(predictions)):
        predictions, labels, weights = fitted(
            arrays.cast(predictions, dtypes.float32), arrays.cast(labels, dtypes.bool), weights
        )
    conditions, tiled_weights = _conditions(labels, predictions, thresholds, weights, includes)
    values, updates = {}, {}
    for key, name in _NAMES.items():
        if key in includes:
            values[key] = metric_variable([len(thresholds)], dtypes.float32, name=name)
            found = arrays.cast(math.logical_and(*conditions[key]), dtypes.float32)
            if tiled_weights is not None:
                found *= tiled_weights
            updates[key] = variables.assign_add(values[key], reduce.reduce_sum(found, 1))
    return values, updates


def _within_0_and_1(predictions: Any) -> list[Any]:
    message = "predictions must be in [0, 1]"
    checks = (assertions.assert_greater_equal, 0.0), (assertions.assert_less_equal, 1.0)
    return [check(predictions, arrays.cast(bound, predictions.dtype), message=message) for check, bound in checks]


def _conditions(
    labels: Tensor, predictions: Tensor, thresholds: Sequence[float], weights: Any, includes: Sequence[str]
) -> tuple[dict[str, tuple[Any, Any]], Tensor | None]:
    """For each count, the pair (labels, predictions) of matrices [thresholds, elements] of bools; and the weights."""
    count = len(thresholds)
    column = arrays.reshape(predictions, [-1, 1])
    row_of_labels = arrays.reshape(arrays.cast(labels, dtypes.bool), [1, -1])
    size = column.shape[0].value
    times = stack([1, arrays.shape(column)[0] if size is None else size])
    bounds = arrays.tile(arrays.expand_dims(constant(thresholds), [1]), times)
    positive = math.greater(arrays.tile(arrays.transpose(column), [count, 1]), bounds)
    negative = math.logical_not(positive) if {"fn", "tn"} & set(includes) else None
    is_positive = arrays.tile(row_of_labels, [count, 1])
    is_negative = math.logical_not(is_positive) if {"fp", "tn"} & set(includes) else None
    if weights is not None:
        weights = broadcast_weights(arrays.cast(weights, dtypes.float32), predictions)
        weights = arrays.tile(arrays.reshape(weights, [1, -1]), [count, 1])
        bounds.shape.assert_is_compatible_with(weights.shape)
    of_positives = {"tp": (is_positive, positive), "fn": (is_positive, negative)}
    of_negatives = {"tn": (is_negative, negative), "fp": (is_negative, positive)}
    return of_positives | of_negatives, weights


# -- counts -------------------------------------------------------------------------------------------


def _of_counts(scope: str, keys: Sequence[str], value_of: ValueOf) -> Callable[..., Metric]:
    """The metric that needs the counts in `keys`."""

    def metric(
        labels: Any,
        predictions: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope(name, scope, (predictions, labels, weights)):
            counts, updated = _counts_at_thresholds(labels, predictions, thresholds, weights, keys)
            value, update_op = value_of(counts, "value"), value_of(updated, "update_op")
            return published(value, update_op, metrics_collections, updates_collections)

    return metric


def _at_thresholds(what: str, keys: Sequence[str], value_of: ValueOf, summary: str) -> Callable[..., Metric]:
    """The metric `…_at_thresholds`, with a docstring."""
    full_name = f"{what}_at_thresholds"
    scope = what if len(keys) == 1 else full_name  # as in TensorFlow
    metric = _of_counts(scope, keys, value_of)
    return named(metric, full_name, f"For each threshold, {summary}; a prediction above the threshold is positive.")


def _one_count(key: str, summary: str) -> Callable[..., Metric]:
    def value_of(counts: Counts, end: str) -> Any:
        return arrays.identity(counts[key]) if end == "value" else counts[key]

    return _at_thresholds(_NAMES[key], [key], value_of, f"how many elements {summary}")


true_positives_at_thresholds = _one_count("tp", "are positive and were predicted to be")
false_negatives_at_thresholds = _one_count("fn", "are positive and were predicted to be negative")
true_negatives_at_thresholds = _one_count("tn", "are negative and were predicted to be")
false_positives_at_thresholds = _one_count("fp", "are negative and were predicted to be positive")


def _part_of(what: str, other: str, summary: str) -> Callable[..., Metric]:
    """The metric true positives / (true positives + the `other` count)."""

    def value_of(counts: Counts, end: str) -> Any:
        return math.divide(counts["tp"], _EPSILON + counts["tp"] + counts[other], name=f"{what}_{end}")

    return _at_thresholds(what, ["tp", other], value_of, summary)


precision_at_thresholds = _part_of("precision", "fp", "the part of the elements predicted to be positive that are")
recall_at_thresholds = _part_of("recall", "fn", "the part of the positive elements that were predicted to be")


# -- curves -------------------------------------------------------------------------------------------


def _evenly(count: int) -> list[float]:
    """`count` - 2 thresholds between 0 and 1."""
    return [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The fraction of positives that are found, at the threshold with the specificity nearest to the given one."""
    if specificity < 0 or specificity > 1:
        raise ValueError(f"`specificity` must be in the range [0, 1]. Currently, `specificity` got {specificity}.")

    def compute(counts: Counts, name: str) -> Tensor:
        tp, fn, tn, fp = counts.values()
        specificities = math.divide(tn, tn + fp + _EPSILON)
        at = arrays.cast(reduce.argmin(math.abs(specificities - specificity), 0), dtypes.int32)
        return math.divide(tp[at], tp[at] + fn[at] + _EPSILON, name)

    thresholds = [0.0 - _EPSILON, *_evenly(num_thresholds), 1.0 + _EPSILON]
    metric = _of_counts("sensitivity_at_specificity", tuple(_NAMES), compute)
    return metric(labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The fraction of negatives that are found, at the threshold with the sensitivity nearest to the given one.

    If several thresholds have it, at the highest.
    """
    if sensitivity < 0 or sensitivity > 1:
        raise ValueError(f"`sensitivity` must be in the range [0, 1]. Currently, `sensitivity` is {sensitivity}.")

    def compute(counts: Counts, name: str) -> Tensor:
        tp, fn, tn, fp = counts.values()
        sensitivities = math.divide(tp, tp + fn + _EPSILON)
        least = reduce.reduce_min(math.abs(sensitivities - sensitivity))
        at_least = math.equal(math.abs(sensitivities - sensitivity), least)
        counted = reduce.cumsum(arrays.cast(at_least, dtypes.int64))  # largest from the last one on
        at = arrays.cast(reduce.argmax(counted, 0), dtypes.int32)
        return math.divide(tn[at], tn[at] + fp[at] + _EPSILON, name)

    thresholds = [0.0 - _EPSILON, *_evenly(num_thresholds), 1.0 - _EPSILON]
    metric = _of_counts("specificity_at_sensitivity", tuple(_NAMES), compute)
    return metric(labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under a curve: "ROC" (recall over false positive rate) or "PR" (precision over recall).

    `summation_method` is "trapezoidal", "minoring" or "majoring" (the lower or the higher end of each strip), or
    "careful_interpolation", which is right for PR.
    """
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Curve must be either ROC or PR. Curve {curve} is unknown.")
        between = _evenly(num_thresholds) if thresholds is None else sorted(thresholds)
        all_thresholds = [0.0 - _EPSILON, *between, 1.0 + _EPSILON]
        values, updates = _counts_at_thresholds(labels, predictions, all_thresholds, weights)
        last = len(all_thresholds) - 1
        value = _area(values, last, curve, summation_method, "value")
        update_op = _area(updates, last, curve, summation_method, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def _area(counts: Counts, last: int, curve: str, method: str, name: str) -> Tensor:
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated_pr_area(counts["tp"], counts["fp"], counts["fn"], last)
    if curve == "PR" and method == "trapezoidal":
        tf_logging.warning(
            'Trapezoidal rule is known to produce incorrect PR-AUCs; please switch to "careful_interpolation" instead.'
        )
    x, y = _points(counts, curve)
    heights = _HEIGHTS.get(method)
    if heights is None:
        raise ValueError(
            f"Invalid summation_method: {method} summation_method should be 'trapezoidal', "
            "'careful_interpolation', 'minoring', or 'majoring'."
        )
    return reduce.reduce_sum(math.multiply(x[:last] - x[1:], heights(y, last)), name=name)


_HEIGHTS: dict[str, Callable[[Tensor, int], Tensor]] = {  # of the strips between neighbouring points
    "trapezoidal": lambda y, last: (y[:last] + y[1:]) / 2.0,
    "careful_interpolation": lambda y, last: (y[:last] + y[1:]) / 2.0,
    "minoring": lambda y, last: math.minimum(y[:last], y[1:]),
    "majoring": lambda y, last: math.maximum(y[:last], y[1:]),
}


def _points(counts: Counts, curve: str) -> tuple[Tensor, Tensor]:
    """x and y of the points, the last threshold's leftmost."""
    epsilon = 1e-6
    tp, fn, tn, fp = counts.values()
    recalls = math.divide(tp + epsilon, tp + fn + epsilon)
    if curve == "ROC":
        return math.divide(fp, fp + tn + epsilon), recalls
    return recalls, math.divide(tp + epsilon, tp + fp + epsilon)


def _interpolated_pr_area(tp: Any, fp: Any, fn: Any, last: int) -> Tensor:
    """Davis and Goadrich: between two points tp grows evenly with the number of positives p = tp + fp.

    So precision there is slope + intercept / p, and its integral over recall has a logarithm.
    """
    dtp = tp[:last] - tp[1:]
    p = tp + fp
    slope = math.div_no_nan(dtp, math.maximum(p[:last] - p[1:], 0), name="prec_slope")
    intercept = tp[1:] - math.multiply(slope, p[1:])
    ratio = indexing.where(
        math.logical_and(p[:last] > 0, p[1:] > 0),
        math.div_no_nan(p[:last], math.maximum(p[1:], 0), name="recall_relative_ratio"),
        arrays.ones_like(p[1:]),
    )
    strips = math.div_no_nan(
        slope * (dtp + intercept * math.log(ratio)), math.maximum(tp[1:] + fn[1:], 0), name="pr_auc_increment"
    )
    return reduce.reduce_sum(strips, name="interpolate_pr_auc")

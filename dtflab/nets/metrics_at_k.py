"""tf.metrics that look at the first k classes of a ranking: precision, recall and average precision at k.

Stands for their part of `python/ops/metrics_impl.py`.

How: the labels of an example are a set, the first k predictions are another; the classes in both are right. Labels are
dense [..., labels per example] (-1: none there) or sparse.

Rule: with `class_id` only that class counts, in both sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base.naming import named
from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.nets.metric_variables import Metric, metric_variable, published
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.nn.functions import top_k
from dtflab.ops.nn.weights_broadcast import assert_broadcastable, broadcast_weights
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sparse import functions as sparse
from dtflab.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor, is_sparse
from dtflab.ops.variables import functions as variables


def _at_k(name: str, k: int | None, class_id: int | None = None) -> str:
    name = f"{name}_at_{'k' if k is None else k}"
    return name if class_id is None else f"{name}_class{class_id}"


def _at_top_k(what: str, others: str, summary: str) -> Callable[..., Metric]:
    """The metric true positives / (true positives + `others`) of given class numbers."""

    def metric(
        labels: Any,
        predictions_idx: Any,
        k: int | None = None,
        class_id: int | None = None,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with name_scope(name, _at_k(what, k, class_id), [predictions_idx, labels, weights]) as scope:
            labels = _as_sets(labels, predictions_idx)
            first = arrays.cast(predictions_idx, dtypes.int64)
            right, update_right = _count("true_positive", labels, first, k, class_id, weights)
            wrong, update_wrong = _count(others, labels, first, k, class_id, weights)
            value = math.divide(right, math.add(right, wrong), name=scope)
            update_op = math.divide(update_right, math.add(update_right, update_wrong), name="update")
            return published(value, update_op, metrics_collections, updates_collections)

    return named(metric, f"{what}_at_top_k", f"{summary}, from their class numbers; `k` is only part of names.")


def _of_largest(what: str, at_top_k: Callable[..., Metric], summary: str) -> Callable[..., Metric]:
    """The same metric from the predictions of all classes, of which the k largest count."""

    def metric(
        labels: Any,
        predictions: Any,
        k: int,
        class_id: int | None = None,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with name_scope(name, _at_k(what, k, class_id), [predictions, labels, weights]) as scope:
            _, first = top_k(predictions, k)
            return at_top_k(labels, first, k, class_id, weights, metrics_collections, updates_collections, scope)

    return named(metric, f"{what}_at_k", f"{summary}.")


_PRECISION = "The part of the k classes with the largest predictions that is among the labels"
_RECALL = "The part of the labels that is among the k classes with the largest predictions"
precision_at_top_k = _at_top_k("precision", "false_positive", _PRECISION)
recall_at_top_k = _at_top_k("recall", "false_negative", _RECALL)
precision_at_k = _of_largest("precision", precision_at_top_k, _PRECISION)
recall_at_k = _of_largest("recall", recall_at_top_k, _RECALL)


# -- counting in sets ---------------------------------------------------------------------------------

_SETS: dict[str, Callable[[Any, Any], SparseTensor]] = {
    "true_positive": reduce.set_intersection,
    "false_positive": lambda first, labels: reduce.set_difference(first, labels, aminusb=True),
    "false_negative": lambda first, labels: reduce.set_difference(first, labels, aminusb=False),
}


def _count(what: str, labels: Any, first: Any, k: int | None, class_id: int | None, weights: Any) -> Metric:
    """The variable with the count so far, and its update."""
    with name_scope(None, _at_k(what, k, class_id), [first, labels, weights]) as scope:
        batch = arrays.cast(reduce.reduce_sum(_sizes(what, labels, first, class_id, weights)), dtypes.float64)
        count = metric_variable([], dtypes.float64, name=scope)
        return count, variables.assign_add(count, batch, name="update")


def _sizes(what: str, labels: Any, first: Any, class_id: int | None, weights: Any) -> Tensor:
    """The number of classes for each example, times its weight."""
    with name_scope(None, f"{what}s", [first, labels, weights]):
        if class_id is not None:
            labels, first = _only(labels, class_id), _only(first, class_id)
        sizes: Tensor = arrays.cast(reduce.set_size(_SETS[what](first, labels)), dtypes.float64)
        if weights is not None:
            with control_dependencies([assert_broadcastable(weights, sizes)]):
                sizes = math.multiply(sizes, arrays.cast(weights, dtypes.float64))
        return sizes


def _only(ids: Any, class_id: int) -> SparseTensor:
    """The sets with class `class_id` alone."""
    ids = convert_to_tensor_or_sparse_tensor(ids)
    if isinstance(ids, SparseTensor):
        return sparse.sparse_retain(ids, math.equal(ids.values, class_id))
    shape = arrays.shape(ids, out_type=dtypes.int64)
    last = arrays.size(shape) - 1
    one_each = reduce.reduced_shape(shape, arrays.reshape(last, [1]))
    found = reduce.set_intersection(arrays.fill(one_each, arrays.cast(class_id, dtypes.int64)), ids)
    return SparseTensor(found.indices, found.values, shape)


def _as_sets(labels: Any, predictions_idx: Any) -> Any:
    """Labels of one class per example, as sets of one class."""
    with name_scope(None, "expand_labels", [labels, predictions_idx]) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            return _sparse_as_sets(labels, predictions_idx, scope)
        rank, wanted = labels.shape.ndims, predictions_idx.shape.ndims
        if rank is None or wanted is None:
            lacks_one = math.equal(arrays.rank(predictions_idx), arrays.rank(labels) + 1)
            return cond(lacks_one, lambda: arrays.expand_dims(labels, -1, name=scope), lambda: labels)
        if wanted == rank:
            return labels
        if wanted == rank + 1:
            return arrays.expand_dims(labels, -1, name=scope)
        raise ValueError(
            f"Unexpected labels shape {labels.shape} for predictions shape {predictions_idx.shape}. Predictions rank "
            "should be the same rank as labels rank or labels rank plus one ."
        )


def _sparse_as_sets(labels: SparseTensor, predictions_idx: Any, scope: str) -> Any:
    shape = labels.dense_shape
    lacks_one = math.equal(arrays.rank(predictions_idx), arrays.size(shape) + 1)
    return cond(
        lacks_one,
        lambda: sparse.sparse_reshape(labels, shape=arrays.concat((shape, (1,)), 0), name=scope),
        lambda: labels,
    )


# -- average precision --------------------------------------------------------------------------------


def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over examples of the average precision among the first k.

    For one example it is the sum of the precision at those of the places 1, …, k that are right, divided by the number
    of places that could be right.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.")
    with name_scope(name, _at_k("average_precision", k), [predictions, labels, weights]) as scope:
        _, first = top_k(predictions, k)
        labels = _known_classes(labels, arrays.cast(arrays.shape(predictions)[-1], dtypes.int64))
        return _streaming_average(labels, first, weights, metrics_collections, updates_collections, scope)


def _known_classes(labels: Any, num_classes: Tensor) -> Any:
    """The labels, with -1 in place of numbers that are not a class."""

    def cleaned() -> Any:
        if is_sparse(labels):
            return type(labels)(labels.indices, _minus_one_for_others(labels.values, num_classes), labels.dense_shape)
        return _minus_one_for_others(labels, num_classes)

    largest = reduce.reduce_max(labels.values if is_sparse(labels) else labels)
    return cond(math.greater_equal(largest, num_classes), cleaned, lambda: labels)


def _minus_one_for_others(values: Any, num_classes: Tensor) -> Tensor:
    unknown = math.greater_equal(values, num_classes)
    return indexing.where_v2(unknown, -1 * arrays.ones_like(values), values)


def _streaming_average(
    labels: Any, first: Any, weights: Any, metrics_collections: Any, updates_collections: Any, name: str
) -> Metric:
    with name_scope(name, "average_precision_at_top_k", [first, labels, weights]) as scope:
        average = _average_precision(labels, first)
        if weights is not None:
            weights = broadcast_weights(arrays.cast(weights, dtypes.float64), average)
            average = math.multiply(average, weights)
        with name_scope(None, "max", [average]) as max_scope:  # the sum of the best possible averages, all of them 1
            best = metric_variable([], dtypes.float64, name=max_scope)
            if weights is None:
                batch_best = arrays.cast(arrays.size(average, name="batch_max"), dtypes.float64)
            else:
                batch_best = reduce.reduce_sum(weights, name="batch_max")
            update_best = variables.assign_add(best, batch_best, name="update")
        with name_scope(None, "total", [average]) as total_scope:
            total = metric_variable([], dtypes.float64, name=total_scope)
            batch_total = reduce.reduce_sum(average, name="batch_total")
            update_total = variables.assign_add(total, batch_total, name="update")
        value = math.div_no_nan(total, best, name="mean")
        update_op = math.div_no_nan(update_total, update_best, name=scope)
        return published(value, update_op, metrics_collections, updates_collections)


def _average_precision(labels: Any, first: Any) -> Tensor:
    """For each example, [...]; `labels` are sets, `first` is [..., k]."""
    with name_scope(None, "average_precision", [first, labels]) as scope:
        first = arrays.cast(first, dtypes.int64, name="predictions_idx")
        k = first.shape[-1].value
        if k is None:
            raise ValueError("The last dimension of predictions_idx must be set. Currently, it is None.")
        labels = _as_sets(labels, first)
        one_by_one = arrays.expand_dims(first, -1, name="predictions_idx_per_k")
        relevant = _relevant(_repeated(labels, k, name="labels_per_k"), one_by_one)
        right = reduce.cumsum(relevant, axis=-1, name="tp_per_k")
        seen = reduce.cumsum(arrays.ones_like(relevant), axis=-1, name="retrieved_per_k")
        precision = math.divide(
            arrays.cast(right, dtypes.float64), arrays.cast(seen, dtypes.float64), name="precision_per_k"
        )
        there = math.multiply(precision, arrays.cast(relevant, dtypes.float64), name="relevant_precision_per_k")
        total = reduce.reduce_sum(there, axis=(-1,), name="precision_sum")
        return math.divide(total, arrays.cast(_num_relevant(labels, k), dtypes.float64), name=scope)


def _relevant(labels: Any, one_by_one: Tensor) -> Tensor:
    """[..., k]: 1 where the prediction is among the labels, else 0."""
    with name_scope("relevant_per_k", "true_positives", [one_by_one, labels]):
        return arrays.cast(reduce.set_size(reduce.set_intersection(one_by_one, labels)), dtypes.float64)


def _repeated(tensor: Any, multiple: int, name: str) -> Any:
    """[..., n] → [..., multiple, n]"""
    with name_scope(name, "expand_and_tile", [tensor]) as scope:
        tensor = convert_to_tensor_or_sparse_tensor(tensor)
        if isinstance(tensor, SparseTensor):
            return _sparse_repeated(tensor, multiple, scope)
        expanded = arrays.expand_dims(tensor, -2, name="expand")
        if multiple == 1:
            return expanded
        ones = arrays.ones_like(arrays.shape(tensor))
        multiples = arrays.concat((ones[:-1], (multiple,), ones[-1:]), 0, name="multiples")
        return arrays.tile(expanded, multiples, name=scope)


def _sparse_repeated(tensor: SparseTensor, multiple: int, scope: str) -> SparseTensor:
    shape = tensor.dense_shape
    before = arrays.reshape(arrays.size(shape) + -1, [1])
    parts = indexing.slice(shape, [0], before), [1], indexing.slice(shape, before, [-1])
    expanded_shape = arrays.concat(parts, 0, name="expanded_shape")
    expanded = sparse.sparse_reshape(tensor, shape=expanded_shape, name="expand")
    return expanded if multiple == 1 else sparse.sparse_concat(-2, [expanded] * multiple, name=scope)


def _num_relevant(labels: Any, k: int) -> Tensor:
    """The number of the first k that could be right."""
    with name_scope(None, "num_relevant", [labels]) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            return math.minimum(reduce.set_size(labels), k, name=scope)
        there = math.greater_equal(labels, 0)
        ones = indexing.where_v2(there, arrays.ones_like(labels), arrays.zeros_like(labels))
        return math.minimum(reduce.reduce_sum(ones, axis=-1), k, name=scope)


# Their older names.
sparse_precision_at_k = precision_at_k
sparse_average_precision_at_k = average_precision_at_k

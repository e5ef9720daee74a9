"""tf.confusion_matrix counts true against predicted classes; and the fitting of ranks that losses and metrics need.

Stands for `python/ops/confusion_matrix.py`.

Rule: where the static ranks decide, no node is left for the step; otherwise conds decide when it runs.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.control.cond import cond
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Both without a last dimension of size 1, if that makes rank(predictions) - rank(labels) the expected difference.

    `expected_rank_diff` is 0 if both are class numbers, 1 if the predictions are scores of the classes.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        predictions_rank, labels_rank = predictions.shape.ndims, labels.shape.ndims
        if labels_rank is not None and predictions_rank is not None:
            rank_diff = predictions_rank - labels_rank
            if rank_diff == expected_rank_diff + 1 and may_squeeze(predictions):
                predictions = arrays.squeeze(predictions, [-1])
            elif rank_diff == expected_rank_diff - 1 and may_squeeze(labels):
                labels = arrays.squeeze(labels, [-1])
            return labels, predictions
        rank_diff = arrays.rank(predictions) - arrays.rank(labels)
        if may_squeeze(predictions):
            predictions = _squeezed_if(math.equal(expected_rank_diff + 1, rank_diff), predictions)
        if may_squeeze(labels):
            labels = _squeezed_if(math.equal(expected_rank_diff - 1, rank_diff), labels)
        return labels, predictions


def may_squeeze(x: Tensor) -> bool:
    """Whether the last dimension may be of size 1, as far as is known."""
    return x.shape.ndims is None or x.shape[-1].is_compatible_with(1)


def _squeezed_if(condition: Tensor, x: Tensor) -> Tensor:
    return cond(condition, lambda: arrays.squeeze(x, [-1]), lambda: x)


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """[classes, classes]: row i, column j counts the examples of class i predicted as j, or sums their weights.

    `labels` and `predictions` are vectors of class numbers; if `num_classes` is None, the largest of them decides.
    The step fails for numbers below 0 or from `num_classes` on.
    """
    with name_scope(name, "confusion_matrix", [predictions, labels, num_classes, weights]):
        labels = convert_to_tensor(labels, name="labels")
        predictions = convert_to_tensor(predictions, name="predictions")
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions, labels = arrays.cast(predictions, dtypes.int64), arrays.cast(labels, dtypes.int64)
        labels, predictions = _not_negative(labels, "labels"), _not_negative(predictions, "predictions")
        if num_classes is None:
            num_classes = math.maximum(reduce.reduce_max(predictions), reduce.reduce_max(labels)) + 1
        else:
            limit = arrays.cast(num_classes, dtypes.int64)
            labels, predictions = _below(labels, limit, "labels"), _below(predictions, limit, "predictions")
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            predictions.shape.assert_is_compatible_with(weights.shape)
            weights = arrays.cast(weights, dtype)
        shape = arrays.stack([num_classes, num_classes])
        places = arrays.stack([labels, predictions], axis=1)
        values = arrays.ones_like(predictions, dtype) if weights is None else weights
        return indexing.scatter_nd(places, values, arrays.cast(shape, dtypes.int64))


def _not_negative(classes: Tensor, name: str) -> Tensor:
    check = assertions.assert_non_negative(classes, message=f"`{name}` contains negative values")
    return with_dependencies([check], classes)


def _below(classes: Tensor, limit: Tensor, name: str) -> Tensor:
    return with_dependencies([assertions.assert_less(classes, limit, message=f"`{name}` out of bound")], classes)

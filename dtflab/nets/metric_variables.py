"""Common parts of metrics: their variables, the shapes of their arguments, and the collections of their results.

Stands for the helpers of `python/ops/metrics_impl.py`. Left out: replicas of `tf.distribute`.

How: a metric is two tensors. Running `update_op` adds a batch to the metric's variables and gives the value with that
batch; `value` reads the variables. Being local, the variables belong to one task and are not saved; they are zero after
`tf.local_variables_initializer()` has run, which also restarts a metric.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dtflab.base.naming import named
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collections
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.math import functions as math
from dtflab.ops.reduce.confusion_matrix import may_squeeze, remove_squeezable_dimensions
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization
from dtflab.ops.variables.variable import Variable
from dtflab.ops.variables.variable_scope import variable_scope

Metric = tuple[Any, Any]  # the value, and the operation that adds a batch


class LabelMetric(Protocol):
    """The signature of most metrics."""

    def __call__(
        self,
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric: ...


def label_metric(compute: Callable[[Any, Any, Any], Metric]) -> LabelMetric:
    """`compute(labels, predictions, weights)` as a metric, in a variable scope that has its name."""
    what = compute.__name__

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope(name, what, (predictions, labels, weights)):
            return published(*compute(labels, predictions, weights), metrics_collections, updates_collections)

    return named(metric, what, compute.__doc__)


def metric_variable(shape: Any, dtype: Any, name: str) -> Any:
    """A variable that begins at zero, in the collections LOCAL_VARIABLES and METRIC_VARIABLES."""
    collections = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    options: dict[str, Any] = {"trainable": False, "collections": collections, "name": name}
    options |= {"synchronization": VariableSynchronization.ON_READ, "aggregation": VariableAggregation.SUM}
    return Variable(lambda: arrays.zeros(shape, dtype), **options)


def published(value: Any, update_op: Any, metrics_collections: Any, updates_collections: Any) -> Metric:
    """Value and update, which are added to the given collections."""
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update_op)
    return value, update_op


def fitted(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Any, Any]:
    """The three as tensors of one rank, as far as dimensions of size 1 at the end allow; None stays None."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    return predictions, labels, None if weights is None else fitted_weights(convert_to_tensor(weights), predictions)


def fitted_weights(weights: Tensor, predictions: Tensor) -> Tensor:
    """Weights of the predictions' rank, without or with another dimension of size 1 at the end; scalars stay."""
    rank, wanted = weights.shape.ndims, predictions.shape.ndims
    if rank == 0:
        return weights
    if rank is not None and wanted is not None:
        return _one_less_or_more(weights, rank - wanted)
    weights_rank = arrays.rank(weights)
    rank_diff = weights_rank - arrays.rank(predictions)

    def expanded() -> Any:
        longer = math.equal(rank_diff, -1)
        return cond(longer, lambda: arrays.expand_dims(weights, [-1]), lambda: weights)

    def adjusted() -> Any:
        return cond(math.equal(rank_diff, 1), squeezed, expanded)

    def squeezed() -> Any:
        return arrays.squeeze(weights, [-1]) if may_squeeze(weights) else weights

    return cond(math.equal(weights_rank, 0), lambda: weights, adjusted)


def _one_less_or_more(weights: Tensor, too_many: int) -> Tensor:
    if too_many == 1:
        return arrays.squeeze(weights, [-1])
    return arrays.expand_dims(weights, [-1]) if too_many == -1 else weights


def as_vector(x: Tensor) -> Tensor:
    """The same elements in one dimension, if there are several."""
    ndims = x.shape.ndims
    return arrays.reshape(x, [-1]) if ndims is not None and ndims > 1 else x

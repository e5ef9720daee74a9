"""compute_average_loss and scale_regularization_loss: a worker's share of the loss of a batch that many workers share.

Stands for `python/ops/nn_impl_distribute.py`. Left out: `tf.distribute`; there is one replica, and a worker with a part
of a batch passes the size of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.nets.metric_variables import fitted_weights
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.math import functions as math
from dtflab.ops.reduce.functions import reduce_sum

_REPLICAS = 1


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the regularization loss, divided by the number of replicas, which is one."""
    return reduce_sum(regularization_loss) / _REPLICAS


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of the weighted losses, divided by `global_batch_size` (all workers' examples; by default these).

    So the workers' gradients must be added, not averaged, even if their parts of the batch differ in size.
    """
    losses = convert_to_tensor(per_example_loss)
    dtype = losses.dtype
    with _rank_at_least_1(losses):
        if sample_weight is not None:
            losses = _weighted(losses, convert_to_tensor(sample_weight))
        losses = arrays.cast(losses, dtype)
        if global_batch_size is None:
            global_batch_size = arrays.shape(losses)[0] * _REPLICAS
        assertions.assert_scalar(global_batch_size, message="global_batch_size must be scalar.")
        assertions.assert_integer(global_batch_size, message="global_batch_size must be an integer.")
        assertions.assert_non_negative(global_batch_size, message="global_batch_size must be non-negative.")
        total = reduce_sum(losses)
        return math.div_no_nan(total, arrays.cast(global_batch_size, dtype))


@contextmanager
def _rank_at_least_1(losses: Tensor) -> Iterator[None]:
    """Raise ValueError for a scalar. If the rank is unknown, ops in the block depend on a check."""
    message = "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1."
    if losses.shape.ndims == 0:
        raise ValueError(f"{message} Received per_example_loss={losses} with rank 0")
    if losses.shape.ndims is not None:
        yield
        return
    one = arrays.cast(1, dtypes.int32)
    with control_dependencies([assertions.assert_greater_equal(arrays.rank(losses), one, message=message)]):
        yield


def _weighted(losses: Any, weights: Any) -> Tensor:
    losses, weights = arrays.cast(losses, dtypes.float32), arrays.cast(weights, dtypes.float32)
    return math.multiply(losses, fitted_weights(weights, losses))

"""Do weights fit values? The check that losses and metrics put before a product of both.

Stands for `python/ops/weights_broadcast_ops.py`.

Rule: weights fit if they are a scalar, or of the same rank with 1 or the values' size in every dimension. That is less
than `*` allows: weights of shape [batch] and values of shape [batch, classes] are nearly always a mistake.
"""

from __future__ import annotations

import functools
from typing import Any

from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.control import functions as control
from dtflab.ops.control.cond import cond
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce

Named = tuple[Tensor, Tensor, Tensor]  # a tensor, its shape, its rank
_BAD = "weights can not be broadcast to values."


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An operation that fails if the weights don't fit the values; ValueError at once if that is known."""
    with name_scope(None, "assert_broadcastable", [weights, values]) as scope:
        weights, weights_shape, weights_rank = of_weights = _named("weights", weights)
        values, values_shape, _ = of_values = _named("values", values)
        known = _statically(of_weights, of_values)
        if known is not None:
            return control.no_op(name=known)
        is_scalar = math.equal(0, weights_rank, name="is_scalar")
        data = ["weights.shape=", weights.name, weights_shape, "values.shape=", values.name, values_shape]
        nonscalar = functools.partial(_has_valid_nonscalar_shape, of_weights, of_values)
        is_valid = cond(is_scalar, lambda: is_scalar, nonscalar, name="is_valid_shape")
        return Assert(is_valid, (_BAD, *data, "is_scalar=", is_scalar), name=scope)


def _named(what: str, x: Any) -> Named:
    """The tensor, its shape and its rank."""
    with name_scope(None, what, [x]) as scope:
        x = convert_to_tensor(x, name=scope)
        return x, arrays.shape(x, name="shape"), arrays.rank(x, name="rank")


def _statically(of_weights: Named, of_values: Named) -> str | None:
    """Which check already succeeded, or None if it must wait for the step."""
    (weights, weights_shape, weights_rank), (values, values_shape, values_rank) = of_weights, of_values
    ranks = constant_value(weights_rank), constant_value(values_rank)
    if ranks[0] is None or ranks[1] is None:
        return None
    if ranks[0] == 0:
        return "static_scalar_check_success"
    if ranks[0] != ranks[1]:
        found = f"values.rank={ranks[1]}. weights.rank={ranks[0]}. values.shape={values.shape}."
        raise ValueError(f"{_BAD} {found} weights.shape={weights.shape}. Received weights={weights}, values={values}")
    sizes = constant_value(weights_shape), constant_value(values_shape)
    if sizes[0] is None or sizes[1] is None:
        return None
    for i, (weight, value) in enumerate(zip(*sizes)):
        if weight not in (1, value):
            found = f"values.shape={sizes[1]}, weights.shape={sizes[0]}. Received weights={weights}, values={values}"
            raise ValueError(f"{_BAD} Mismatch at dim {i}. {found}")
    return "static_dims_check_success"


def _has_valid_nonscalar_shape(of_weights: Named, of_values: Named) -> Any:
    (_, weights_shape, weights_rank), (_, values_shape, values_rank) = of_weights, of_values
    tensors = [weights_rank, weights_shape, values_rank, values_shape]
    with name_scope(None, "has_valid_nonscalar_shape", tensors) as scope:
        is_same_rank = math.equal(values_rank, weights_rank, name="is_same_rank")
        valid_dims = functools.partial(_has_valid_dims, weights_shape, values_shape)
        return cond(is_same_rank, valid_dims, lambda: is_same_rank, name=scope)


def _has_valid_dims(weights_shape: Tensor, values_shape: Tensor) -> Tensor:
    """Each size of the weights is in the set of the values' size there and 1."""
    with name_scope(None, "has_invalid_dims", [weights_shape, values_shape]) as scope:
        allowed = arrays.expand_dims(values_shape, -1)
        allowed = arrays.concat([allowed, arrays.ones_like(allowed)], axis=1)
        wrong = reduce.set_difference(arrays.expand_dims(weights_shape, -1), allowed)
        return math.equal(0, arrays.size(wrong.values, name="num_invalid_dims"), name=scope)


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """The weights in the shape of the values, checked as `assert_broadcastable` does."""
    with name_scope(None, "broadcast_weights", [weights, values]) as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, dtype=values.dtype.base_dtype, name="weights")
        if _same_known_shape(weights, values):
            return weights
        with control_dependencies([assert_broadcastable(weights, values)]):
            return math.multiply(weights, arrays.ones_like(values), name=scope)


def _same_known_shape(a: Tensor, b: Tensor) -> bool:
    return a.shape.is_fully_defined() and b.shape.is_fully_defined() and a.shape.is_compatible_with(b.shape)

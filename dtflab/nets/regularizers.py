"""Regularizers: functions of a variable whose values are added to the loss, so that weights stay small.

Stands for `contrib/layers/python/layers/regularizers.py`. Left out: regularizers by name.

Rule: a layer (`kernel_regularizer=l2_regularizer(1e-4)`) and a variable scope (`regularizer=…`) put the values into
REGULARIZATION_LOSSES; `tf.losses.get_regularization_loss()` is their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collection, get_collection, name_scope
from dtflab.ops.math import functions as math
from dtflab.ops.nn import functions as nn
from dtflab.ops.reduce import functions as reduce

Regularizer = Callable[[Any], Any]


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """scale · the sum of the absolute values; None if `scale` is 0. Raises ValueError if it is negative or an int."""
    return _scaled(scale, lambda weights: reduce.reduce_sum(math.abs(weights)), scope or "l1_regularizer")


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """scale · half the sum of the squares; None if `scale` is 0. Raises ValueError if it is negative or an int."""
    return _scaled(scale, nn.l2_loss, scope or "l2_regularizer")


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of both."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope or "l1_l2_regularizer")


def sum_regularizer(regularizers: Sequence[Regularizer], scope: str | None = None) -> Regularizer:
    """The sum of several regularizers, without those that return None."""

    def total(weights: Any) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]):
            found = [loss for loss in (regularizer(weights) for regularizer in regularizers) if loss is not None]
            return math.add_n(found) if found else None

    return total


def apply_regularization(regularizer: Regularizer, weights: Sequence[Any] | None = None) -> Tensor:
    """The sum over `weights` (by default what is in WEIGHTS), which is also added to REGULARIZATION_LOSSES.

    Raises ValueError if the list is empty.
    """
    chosen = list(get_collection(GraphKeys.WEIGHTS) if weights is None else weights)
    if not chosen:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=chosen) as scope:
        penalties = [convert_to_tensor(0.0 if loss is None else loss) for loss in map(regularizer, chosen)]
        total: Tensor = math.add_n(penalties, name=scope)
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _scaled(scale: float, measure: Callable[[Any], Tensor], name: str) -> Regularizer:
    if isinstance(scale, int):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}.")
    if scale == 0.0:
        return lambda weights: None

    def regularize(weights: Any) -> Tensor:
        with name_scope(name, values=[weights]) as scope:
            factor = convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return math.multiply(factor, measure(weights), name=scope)

    return regularize

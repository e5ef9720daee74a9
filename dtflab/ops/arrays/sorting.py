"""Sorted arrays, and places in them: sort, argsort, searchsorted.

Stands for `core/kernels/searchsorted_op.cc`, `python/ops/sort_ops.py` and `searchsorted` of `python/ops/array_ops.py`.

Rule: there is no op that sorts. The k largest of k elements are all of them, in descending order; ascending order is
the descending one of the elements turned about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import constant as constants, identity as array, reshaping
from dtflab.ops.costs import searched
from dtflab.ops.messages import invalid
from dtflab.ops.nn import functions as nn


def _bound_kernel(side: str, node: Any, xp: Any) -> Callable[..., Any]:
    dtype = node["out_type"].as_numpy_dtype

    def kernel(rows: Any, values: Any) -> Any:
        if len(rows) != len(values):
            raise invalid("Leading dim_size of both tensors must match.")
        out = xp.empty(values.shape, dtype)
        for i, row in enumerate(rows):
            out[i] = xp.searchsorted(row, values[i], side)
        return out

    return kernel


def _bound_shape(op: Any) -> list[TensorShape]:
    rows, values = (t.shape.with_rank(2) for t in op.inputs)
    rows[:1].assert_is_compatible_with(values[:1])
    return [op.inputs[1].shape]


def _bound_flops(node: Any, ins: Any, outs: Any) -> int:
    return elements(ins[1]) * searched(ins[0].shape[-1])


_BOUND = """(sorted_inputs: T, values: T) -> (output: out_type)
            T: type
            out_type: {int32, int64} = int32"""


@op(f"LowerBound{_BOUND}")
class LowerBound(Op):
    """Where in its row, which is sorted, each value would come, before its equals."""

    infer = _bound_shape
    flops = _bound_flops

    def bind(node, xp):
        return _bound_kernel("left", node, xp)


@op(f"UpperBound{_BOUND}")
class UpperBound(Op):
    """Where in its row, which is sorted, each value would come, after its equals."""

    infer = _bound_shape
    flops = _bound_flops

    def bind(node, xp):
        return _bound_kernel("right", node, xp)


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Where each of `values` would come in the sorted last axis of `sorted_sequence`: before its equals, or after them.

    `side` is "left" or "right", else ValueError. The axes before the last one go together.
    """
    size: Any = array.shape_internal(sorted_sequence)[-1]
    wanted: Any = array.shape_internal(values)[-1]
    rows = reshaping.reshape(sorted_sequence, [-1, size])
    looked_for = reshaping.reshape(values, [-1, wanted])
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    bound = "UpperBound" if side == "right" else "LowerBound"
    places = apply_op(bound, name, sorted_inputs=rows, values=looked_for, out_type=out_type)
    return reshaping.reshape(places, array.shape_internal(values))


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements of `values` in order along `axis`; `direction` is "ASCENDING" or "DESCENDING", else ValueError."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, places=False)


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The places, int32, that the elements of `values` have in the order along `axis`; equals stay as they come."""
    del stable  # always
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, places=True)


def _sorted(values: Any, axis: Any, direction: str, places: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of ASCENDING, DESCENDING. Received: direction={direction}"
        )
    axis = convert_to_tensor(axis, name="axis")
    known = constant_value(axis)
    if axis.shape.ndims not in (None, 0) or known is None:
        raise ValueError(f"Argument `axis` must be a constant scalar. Received: axis={axis}.")
    values = convert_to_tensor(values, name="values")
    if direction == "DESCENDING":
        return _descending(values, int(known), places)
    found = _descending(_turned_about(values), int(known), places)
    return found if places else _turned_about(found)


def _turned_about(values: Any) -> Any:
    """The numbers in the opposite order; of integers the negative of the smallest would not fit."""
    if values.dtype.is_unsigned:
        return values.dtype.max - values
    return -values - 1 if values.dtype.is_integer else -values


def _descending(values: Tensor, axis: Any, places: bool) -> Tensor:
    sizes: Any = array.shape(values)
    k, rank, ndims = sizes[axis], array.rank(values), values.shape.ndims
    if axis == -1 or axis + 1 == ndims:
        return nn.top_k(values, k)[places]
    if axis < 0:
        axis += ndims or rank
    to_the_end = _exchange_with_last(axis, rank, ndims)
    found = nn.top_k(reshaping.transpose(values, to_the_end), k)[places]
    return reshaping.transpose(found, to_the_end)


def _exchange_with_last(axis: Any, rank: Any, ndims: int | None) -> Tensor:
    """The order of axes in which `axis` and the last one have changed places."""
    if ndims is None:
        axes = constants.range(rank)
        return apply_op("TensorScatterUpdate", tensor=axes, indices=[[axis], [rank - 1]], updates=[rank - 1, axis])
    order = np.arange(ndims)
    order[[axis, ndims - 1]] = ndims - 1, axis
    return constant(order, name="transposition")

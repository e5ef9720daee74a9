"""Rows with the same number, reduced to one: their sum, mean, product, largest or smallest element.

Stands for the interfaces in `core/ops/math_ops.cc` and the gradients in `python/ops/math_grad.py`; the kernels are in
`ops/segment_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import of_first
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.reduce.functions import segment_prod, segment_sum, unsorted_segment_prod, unsorted_segment_sum
from dtflab.ops.segment_kernels import add_rows, count_segments, sorted_rule, unsorted_rule
from dtflab.ops.type_sets import NUMBER, REAL

# -- ids in rising order --------------------------------------------------------------------------------


def _sorted_shape(op: Operation) -> list[TensorShape]:
    """The shape rule for rows with ids in rising order: the last one says how many segments there are."""
    op.inputs[1].shape.assert_has_rank(1)
    return [TensorShape([None]).concatenate(op.inputs[0].shape.with_rank_at_least(1)[1:])]


def _mean_rule(node: Node, xp: Any) -> Callable[..., Any]:
    whole = node["T"].is_integer

    def kernel(data: Any, ids: Any) -> Any:
        count = count_segments(data, ids)
        total = add_rows(xp.zeros((count, *data.shape[1:]), data.dtype), ids, data, xp)
        numbers = xp.maximum(xp.bincount(ids, minlength=count), 1).astype(data.dtype)
        numbers = numbers.reshape(-1, *[1] * (data.ndim - 1))
        if not whole:
            return total / numbers
        quotient, rest = total // numbers, total % numbers
        return quotient + ((rest != 0) & (total < 0))  # cut off, as in C

    return kernel


def _sum_grad(op: Operation, dy: Tensor) -> list[Any]:
    return [indexing.gather(dy, op.inputs[1]), None]


def _mean_grad(op: Operation, dy: Tensor) -> list[Any]:
    data, ids = op.inputs
    rank, shape = arrays.rank(data), arrays.shape(ids)
    rest = arrays.ones(arrays.expand_dims(rank - 1, 0), shape.dtype)
    ones = arrays.ones(arrays.concat([shape, rest], 0), dy.dtype)
    return [indexing.gather(math.divide(dy, segment_sum(ones, ids)), ids), None]


def _prod_grad(op: Operation, dy: Tensor) -> list[Any]:
    data, ids = op.inputs
    is_zero, dy = _without_two_zeros(segment_sum, data, dy, ids)
    others = indexing.where_v2(is_zero, arrays.ones_like(data), data)
    product = segment_prod(others, ids)
    whole = indexing.gather(op.outputs[0], ids)
    partial = indexing.where_v2(is_zero, indexing.gather(product, ids), whole / others)
    return [indexing.gather(dy, ids) * partial, None]


def _without_two_zeros(total: Callable[..., Tensor], data: Tensor, dy: Tensor, *segments: Tensor) -> tuple[Any, Tensor]:
    """Where data is 0; and dy, but nothing for the segments with several zeros, whose product has no slope."""
    is_zero = math.equal(data, 0)
    zeros = total(arrays.cast(is_zero, dtypes.int32), *segments)
    return is_zero, indexing.where_v2(math.greater(zeros, 1), arrays.zeros_like(dy), dy)


def _extreme_grad(op: Operation, dy: Tensor) -> list[Any]:
    """To the elements that are the extreme, in equal parts."""
    data, ids = op.inputs
    zeros = arrays.zeros_like(data, data.dtype)
    chosen = math.equal(data, indexing.gather(op.outputs[0], ids))
    parts = indexing.gather(math.divide(dy, segment_sum(arrays.cast(chosen, dy.dtype), ids)), ids)
    return [indexing.where_v2(chosen, parts, zeros), None]


_SORTED: dict[str, tuple[str, Any, Any]] = {  # types, `bind` rule, gradient
    "SegmentSum": (NUMBER, sorted_rule("add", empty=0), _sum_grad),
    "SegmentMean": (NUMBER, _mean_rule, _mean_grad),
    "SegmentProd": (NUMBER, sorted_rule("multiply", empty=1), _prod_grad),
    "SegmentMax": (REAL, sorted_rule("maximum", empty=0), _extreme_grad),
    "SegmentMin": (REAL, sorted_rule("minimum", empty=0), _extreme_grad),
}

for _name, (_types, _rule, _grad) in _SORTED.items():
    _interface = f"(data: T, segment_ids: Tindices) -> (output: T) where T: {_types}, Tindices: {{int32, int64}}"
    _members = {"infer": _sorted_shape, "bind": _rule, "grad": _grad, "flops": of_first}
    op(_name + _interface)(type(_name, (Op,), _members))


# -- ids in any order -----------------------------------------------------------------------------------


def _unsorted_shape(op: Operation) -> list[TensorShape]:
    """The shape rule for rows that ids in any order deal out to a number of segments."""
    data, ids, count = op.inputs[0].shape, op.inputs[1].shape, folded_value(op.inputs[2])
    if ids.ndims is None:
        return [TensorShape(None)]
    if data.ndims is not None:
        data[: ids.ndims].assert_is_compatible_with(ids)
    return [TensorShape([None if count is None else int(count)]).concatenate(data[ids.ndims :])]


class _Gathered(NamedTuple):
    """Rows that ids name, zeros for negative ids; the ids without a sign, and whether each element has a row."""

    rows: Tensor
    clipped: Tensor
    positive: Tensor


def _gather_dropping_negatives(
    params: Tensor, ids: Tensor, clipped: Tensor | None = None, positive: Tensor | None = None
) -> _Gathered:
    """The rows of params that ids names; what is known from before need not be made again."""
    if clipped is None:
        clipped = math.maximum(ids, arrays.zeros_like(ids))
    gathered = indexing.gather(params, clipped)
    if positive is None:
        positive = math.greater_equal(ids, 0)
        shape = arrays.shape(positive)
        missing = arrays.rank(gathered) - arrays.rank(positive)
        positive = arrays.reshape(positive, arrays.concat([shape, arrays.ones([missing], shape.dtype)], axis=0))
        positive = positive & arrays.ones_like(gathered, dtypes.bool)
    return _Gathered(indexing.where_v2(positive, gathered, arrays.zeros_like(gathered)), clipped, positive)


def _unsorted_sum_grad(op: Operation, dy: Tensor) -> list[Any]:
    return [_gather_dropping_negatives(dy, op.inputs[1]).rows, None, None]


def _unsorted_prod_grad(op: Operation, dy: Tensor) -> list[Any]:
    data, ids, count = op.inputs
    is_zero, dy = _without_two_zeros(unsorted_segment_sum, data, dy, ids, count)
    others = indexing.where_v2(is_zero, arrays.ones_like(data), data)
    product = unsorted_segment_prod(others, ids, count)
    clipped = math.maximum(ids, arrays.zeros_like(ids))
    whole, product = indexing.gather(op.outputs[0], clipped), indexing.gather(product, clipped)
    partial = indexing.where_v2(is_zero, product, whole / data)
    return [_gather_dropping_negatives(dy, ids, clipped).rows * partial, None, None]


def _unsorted_extreme_grad(op: Operation, dy: Tensor) -> list[Any]:
    data, ids, count = op.inputs
    found, clipped, positive = _gather_dropping_negatives(op.outputs[0], ids)
    chosen = math.logical_and(math.equal(data, found), positive)
    number = unsorted_segment_sum(arrays.cast(chosen, dy.dtype), ids, count)
    parts = _gather_dropping_negatives(math.divide(dy, number), ids, clipped, positive).rows
    return [indexing.where_v2(chosen, parts, arrays.zeros_like(parts)), None, None]


_UNSORTED: dict[str, tuple[str, str, str, Any]] = {  # types, types of the ids, ufunc, gradient
    "UnsortedSegmentSum": (NUMBER, "{int16, int32, int64}", "add", _unsorted_sum_grad),
    "UnsortedSegmentProd": (NUMBER, "{int32, int64}", "multiply", _unsorted_prod_grad),
    "UnsortedSegmentMax": (REAL, "{int32, int64}", "maximum", _unsorted_extreme_grad),
    "UnsortedSegmentMin": (REAL, "{int32, int64}", "minimum", _unsorted_extreme_grad),
}

for _name, (_types, _ids, _ufunc, _grad) in _UNSORTED.items():
    _interface = f"""(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)
                     T: {_types}, Tindices: {_ids}, Tnumsegments: {{int32, int64}} = int32"""
    _members = {"infer": _unsorted_shape, "bind": unsorted_rule(_ufunc), "grad": _grad, "flops": of_first}
    op(_name + _interface)(type(_name, (Op,), _members))

"""Rows with the same number, reduced to one: largest, smallest, mean, product.

Stands for `core/kernels/segment_reduction_ops.cc` and its gradients in `python/ops/math_grad.py`; the sums are in
`segments.py`.

Rule: where ids rise, a number that is left out is an empty segment, and its row is 0 (1 for a product). Where they come
in any order, an empty segment has what the reduction begins with: the smallest number for the largest element. Among
NaN the extreme is that of what follows the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.reduce.functions import segment_sum, unsorted_segment_prod, unsorted_segment_sum
from dtflab.ops.reduce.segments import (
    add_rows,
    count_segments,
    gather_dropping_negatives,
    reducer_of,
    sorted_shape,
    unsorted_kernel,
    unsorted_shape,
)
from dtflab.ops.type_sets import NUMBER, REAL

_SORTED = "(data: T, segment_ids: Tindices) -> (output: T)\n Tindices: {int32, int64}\n T: "
_UNSORTED = (
    "(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)\n Tindices: {int32, int64}\n "
    "Tnumsegments: {int32, int64} = int32\n T: "
)


class _Segments(Op):
    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[0])


# -- ids in rising order ------------------------------------------------------------------------------


def _sorted_kernel(ufunc: str, start: Any, empty: Any, xp: Any) -> Callable[..., Any]:
    reduce = reducer_of(ufunc)

    def kernel(data: Any, ids: Any) -> Any:
        count = count_segments(data, ids)
        out = reduce(xp.full((count, *data.shape[1:]), start, data.dtype), ids, data, xp, ufunc)
        if start != empty:
            out[xp.bincount(ids, minlength=count) == 0] = empty
        return out

    return kernel


def _extreme_grad(operation: Operation, dy: Tensor) -> list[Any]:
    """To the elements that are the extreme, in equal parts."""
    data, ids = operation.inputs
    zeros = arrays.zeros_like(data, data.dtype)
    chosen = math.equal(data, indexing.gather(operation.outputs[0], ids))
    count = segment_sum(arrays.cast(chosen, dy.dtype), ids)
    parts = indexing.gather(math.divide(dy, count), ids)
    return [indexing.where_v2(chosen, parts, zeros), None]


@op(f"SegmentMax{_SORTED}{REAL}")
class SegmentMax(_Segments):
    infer = sorted_shape
    grad = _extreme_grad

    def bind(node, xp):
        return _sorted_kernel("maximum", _least(node["T"]), 0, xp)


@op(f"SegmentMin{_SORTED}{REAL}")
class SegmentMin(_Segments):
    infer = sorted_shape
    grad = _extreme_grad

    def bind(node, xp):
        return _sorted_kernel("minimum", _greatest(node["T"]), 0, xp)


def _least(dtype: dtypes.DType) -> Any:
    return -np.inf if dtype.is_floating else dtype.min


def _greatest(dtype: dtypes.DType) -> Any:
    return np.inf if dtype.is_floating else dtype.max


@op(f"SegmentProd{_SORTED}{NUMBER}")
class SegmentProd(_Segments):
    infer = sorted_shape

    def bind(node, xp):
        return _sorted_kernel("multiply", 1, 1, xp)

    def grad(op, dy):
        data, ids = op.inputs
        is_zero, dy = _without_two_zeros(segment_sum, data, dy, ids)
        others = indexing.where_v2(is_zero, arrays.ones_like(data), data)
        product = apply_op("SegmentProd", data=others, segment_ids=ids)
        whole = indexing.gather(op.outputs[0], ids)
        partial = indexing.where_v2(is_zero, indexing.gather(product, ids), whole / others)
        return [indexing.gather(dy, ids) * partial, None]


def _without_two_zeros(total: Callable[..., Tensor], data: Tensor, dy: Tensor, *segments: Tensor) -> tuple[Any, Tensor]:
    """Where data is 0; and dy, but nothing for the segments with several zeros, whose product has no slope."""
    is_zero = math.equal(data, 0)
    zeros = total(arrays.cast(is_zero, dtypes.int32), *segments)
    return is_zero, indexing.where_v2(math.greater(zeros, 1), arrays.zeros_like(dy), dy)


@op(f"SegmentMean{_SORTED}{NUMBER}")
class SegmentMean(_Segments):
    infer = sorted_shape

    def bind(node, xp):
        whole = node["T"].is_integer

        def kernel(data, ids):
            count = count_segments(data, ids)
            total = add_rows(xp.zeros((count, *data.shape[1:]), data.dtype), ids, data, xp)
            numbers = xp.maximum(xp.bincount(ids, minlength=count), 1).astype(data.dtype)
            numbers = numbers.reshape(-1, *[1] * (data.ndim - 1))
            if not whole:
                return total / numbers
            quotient, rest = total // numbers, total % numbers
            return quotient + ((rest != 0) & (total < 0))  # cut off, as in C

        return kernel

    def grad(op, dy):
        data, ids = op.inputs
        rank, shape = arrays.rank(data), arrays.shape(ids)
        rest = arrays.ones(arrays.expand_dims(rank - 1, 0), shape.dtype)
        ones = arrays.ones(arrays.concat([shape, rest], 0), dy.dtype)
        return [indexing.gather(math.divide(dy, segment_sum(ones, ids)), ids), None]


# -- ids in any order ---------------------------------------------------------------------------------


def _unsorted_extreme_grad(operation: Operation, dy: Tensor) -> list[Any]:
    data, ids, count = operation.inputs
    found, clipped, positive = gather_dropping_negatives(operation.outputs[0], ids)
    chosen = math.logical_and(math.equal(data, found), positive)
    number = unsorted_segment_sum(arrays.cast(chosen, dy.dtype), ids, count)
    parts = gather_dropping_negatives(math.divide(dy, number), ids, clipped, positive).rows
    return [indexing.where_v2(chosen, parts, arrays.zeros_like(parts)), None, None]


@op(f"UnsortedSegmentMax{_UNSORTED}{REAL}")
class UnsortedSegmentMax(_Segments):
    infer = unsorted_shape
    grad = _unsorted_extreme_grad

    def bind(node, xp):
        return unsorted_kernel("maximum", node["T"].min, node, xp)


@op(f"UnsortedSegmentMin{_UNSORTED}{REAL}")
class UnsortedSegmentMin(_Segments):
    infer = unsorted_shape
    grad = _unsorted_extreme_grad

    def bind(node, xp):
        return unsorted_kernel("minimum", node["T"].max, node, xp)


@op(f"UnsortedSegmentProd{_UNSORTED}{NUMBER}")
class UnsortedSegmentProd(_Segments):
    infer = unsorted_shape

    def bind(node, xp):
        return unsorted_kernel("multiply", 1, node, xp)

    def grad(op, dy):
        data, ids, count = op.inputs
        is_zero, dy = _without_two_zeros(unsorted_segment_sum, data, dy, ids, count)
        others = indexing.where_v2(is_zero, arrays.ones_like(data), data)
        product = unsorted_segment_prod(others, ids, count)
        clipped = math.maximum(ids, arrays.zeros_like(ids))
        whole, product = indexing.gather(op.outputs[0], clipped), indexing.gather(product, clipped)
        partial = indexing.where_v2(is_zero, product, whole / data)
        return [gather_dropping_negatives(dy, ids, clipped).rows * partial, None, None]


# -- functions ----------------------------------------------------------------------------------------

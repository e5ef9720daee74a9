"""Several values to one along an axis: concat.

Stands for `core/kernels/concat_op.cc` and its part of `array_grad.py`. ParallelConcat is in `stacking.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.static_value import constant_value, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import FreeOp
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text


def _concat_shape(values: Any, axis: Any) -> list[TensorShape]:
    ndims = next((t.shape.ndims for t in values if t.shape.ndims is not None), None)
    if ndims is None:
        return [TensorShape(None)]
    all_shapes = [t.shape.with_rank(ndims) for t in values]
    if axis is None:
        return [TensorShape([None] * ndims)]
    if not -ndims <= axis < max(ndims, 1):
        raise ValueError(_out_of_range(axis, ndims))
    if ndims == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    axis = int(axis) % ndims
    merged = TensorShape([None] * ndims)
    for shape in all_shapes:
        merged = merged.merge_with([None if i == axis else d for i, d in enumerate(shape.as_list())])
    sizes = [s.as_list()[axis] for s in all_shapes]
    dims = merged.as_list()
    dims[axis] = None if None in sizes else sum(sizes)
    return [TensorShape(dims)]


def _out_of_range(axis: int, ndims: int) -> str:
    return f"ConcatOp : Expected concatenating dimensions in the range [{-ndims}, {ndims}), but got {axis}"


def _concatenate(xp: Any, values: Any, axis: Any) -> Any:
    try:
        return xp.concatenate(values, int(axis))
    except ValueError:
        first = values[0]
        for i, x in enumerate(values):
            if np.ndim(x) != np.ndim(first):
                text = f"shape[0] = {shape_text(first)} vs. shape[{i}] = {shape_text(x)}"
                raise invalid(f"ConcatOp : Ranks of all input tensors should match: {text}") from None
        ndim = np.ndim(first)
        if not -ndim <= axis < ndim:
            raise invalid(_out_of_range(int(axis), ndim)) from None
        texts = ", ".join(map(shape_text, values))
        raise invalid(f"ConcatOp : Dimension sizes of inputs should match except along axis {axis}: {texts}") from None


@op("ConcatV2(values: N * T, axis: Tidx) -> (output: T) where N: int >= 2, T: type, Tidx: {int32, int64} = int32")
class ConcatV2(Op):
    """The values one after the other along an axis."""

    def infer(op):
        return _concat_shape(op.inputs[:-1], folded_value(op.inputs[-1]))

    def bind(node, xp):
        return lambda *values: _concatenate(xp, values[:-1], values[-1])

    def grad(op, dy):
        return [*_concat_grad(op.inputs[:-1], op.inputs[-1], dy), None]


@op("Concat(concat_dim: int32, values: N * T) -> (output: T) where N: int >= 2, T: type")
class Concat(Op):
    """ConcatV2 with its arguments the other way round."""

    def infer(op):
        return _concat_shape(op.inputs[1:], folded_value(op.inputs[0]))

    def bind(node, xp):
        return lambda axis, *values: _concatenate(xp, values, axis)

    def grad(op, dy):
        return [None, *_concat_grad(op.inputs[1:], op.inputs[0], dy)]


def _concat_grad(values: Any, axis: Tensor, dy: Any) -> list[Any]:
    """The part of dy that belongs to each value."""
    if len(values) == 1:
        return [dy]
    if isinstance(dy, IndexedSlices):
        return _concat_grad_sparse(values, axis, axis % arrays.rank(values[0]), dy)
    if axis.op.type == "Const" and _context(axis.op) is not _context(dy.op):
        axis = constant(constant_value(axis), axis.dtype)  # here again, so that it need not come into a loop or branch
    positive_axis = axis % arrays.rank(values[0])
    sizes = _input_shapes(values)
    if len(sizes) > 16:  # TensorFlow found one Split faster than that many Slices
        along = indexing.slice(arrays.stack(sizes, axis=1), [positive_axis, 0], [1, -1])
        return arrays.split(dy, arrays.squeeze(along), positive_axis)
    offsets = apply_op("ConcatOffset", concat_dim=positive_axis, shape=sizes)
    return [indexing.slice(dy, begin, size) for begin, size in zip(offsets, sizes)]


def _context(op: Operation) -> Any:
    """The loop or branch where the outputs of an operation are."""
    context = op._control_flow_context
    return context.outer_context if context is not None and op.type in ("Exit", "RefExit") else context


def _input_shapes(values: Any) -> list[Tensor]:
    sizes = []
    for value in values:
        size = arrays.shape(value)
        if size.op.type != "Const":
            return arrays.shape_n(values)
        sizes.append(size)
    return sizes


def _concat_grad_sparse(values: Any, axis: Tensor, positive_axis: Tensor, dy: IndexedSlices) -> list[Any]:
    static_axis = constant_value(axis)
    if static_axis is None:
        raise ValueError("Can only compute IndexedSlices gradient with statically-known concat_dim")
    if static_axis < 0:
        if values[0].shape.ndims is None:
            text = "when first value rank is statically-known."
            raise ValueError(f"Can only compute IndexedSlices gradient with negative concat_dim {text}")
        static_axis %= values[0].shape.ndims
    sizes = [arrays.shape(v) for v in values]
    return (_columns_of if static_axis > 0 else _rows_of)(dy, sizes, positive_axis)


def _columns_of(dy: IndexedSlices, sizes: list[Tensor], axis: Tensor) -> list[Any]:
    """Joined along another axis than the rows: each value gets all rows, and of each its columns."""
    rank = arrays.shape(sizes[0])
    before = arrays.zeros(arrays.expand_dims(axis, 0), dtypes.int32)
    mask = arrays.concat([before, [1], arrays.zeros(rank - axis - 1, dtypes.int32)], 0)
    begin = arrays.zeros(rank, dtypes.int32)
    grads = []
    for size in sizes:
        row_size = arrays.concat([[-1], indexing.slice(size, [1], [-1])], 0)
        grads.append(IndexedSlices(indexing.slice(dy.values, begin, row_size), dy.indices, size))
        begin = math.add(begin, size * mask)
    return grads


def _rows_of(dy: IndexedSlices, sizes: list[Tensor], axis: Tensor) -> list[Any]:
    """Joined along the rows: each value gets its rows."""
    start = constant(0, dy.indices.dtype)
    grads = []
    for size in sizes:
        end = start + arrays.cast(indexing.gather(size, axis), dy.indices.dtype)
        own = arrays.squeeze(indexing.where(math.logical_and(dy.indices >= start, dy.indices < end)), axis=[1])
        rows = indexing.gather(dy.indices, own) - start
        grads.append(IndexedSlices(indexing.gather(dy.values, own), rows, size))
        start = end
    return grads


@op("""ConcatOffset(concat_dim: int32, shape: N * shape_type) -> (offset: N * shape_type)
       N: int >= 2, shape_type: {int32, int64} = int32""")
class ConcatOffset(FreeOp):
    """Where each value begins in their concatenation."""

    grad = no_gradient

    def infer(op):
        return [t.shape for t in op.inputs[1:]]

    def kernel(node, xp, axis, *all_shapes):
        offsets = np.zeros((len(all_shapes), len(all_shapes[0])), all_shapes[0].dtype)
        offsets[1:, axis] = list(itertools.accumulate(s[axis] for s in all_shapes[:-1]))
        return list(offsets)

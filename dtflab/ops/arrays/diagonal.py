"""Diag, which puts a tensor on the diagonal of one of twice its rank, DiagPart, its inverse, and bands of matrices.

Stands for `core/kernels/diag_op.cc` and `matrix_band_part_op.cc`. Diagonals of matrices are in `linalg/matrices.py`.
"""

from __future__ import annotations

import math
from typing import Any

from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import diag, diag_part, matrix_band_part
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text

_T = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"


@op(f"Diag(diagonal: T) -> (output: T) where {_T}")
class Diag(Op):
    """output[i…, i…] = diagonal[i…], and 0 elsewhere."""

    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(1)
        return [shape.concatenate(shape)]

    def kernel(node, xp, diagonal):
        return xp.diag(diagonal.reshape(-1)).reshape(diagonal.shape + diagonal.shape)

    def grad(op, dy):
        return [diag_part(dy)]


@op(f"DiagPart(input: T) -> (diagonal: T) where {_T}")
class DiagPart(Op):
    """diagonal[i…] = input[i…, i…]"""

    def infer(op):
        shape = op.inputs[0].shape
        if shape.ndims is None:
            return [TensorShape(None)]
        if shape.ndims % 2 or not shape.ndims:
            raise ValueError(f"Input must have even and non-zero rank, input rank is {shape.ndims}")
        half = shape.ndims // 2
        return [shape[:half].merge_with(shape[half:])]

    def kernel(node, xp, x):
        half = x.ndim // 2
        if x.ndim % 2 or not half:
            raise invalid(f"The rank of the tensor should be even and positive, got shape {shape_text(x.shape)}")
        if x.shape[:half] != x.shape[half:]:
            raise invalid(f"Invalid shape {shape_text(x.shape)}: dimensions 0 and {half} do not match.")
        size = math.prod(x.shape[:half])
        return x.reshape(size, size).diagonal().copy().reshape(x.shape[:half])

    def grad(op, dy):
        return [diag(dy)]


@op("""MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> (band: T)
       T: type, Tindex: {int32, int64} = int64""")
class MatrixBandPart(Op):
    """The innermost matrices, with zeros outside of a band around the diagonal."""

    def infer(op):
        for tensor in op.inputs[1:]:
            tensor.shape.with_rank(0)
        return [op.inputs[0].shape]  # the kernel refuses less than matrices

    def kernel(node, xp, x, num_lower, num_upper):
        rows, cols = _matrix_sizes(x)
        low, high = _checked("lower", num_lower, rows, "rows"), _checked("upper", num_upper, cols, "columns")
        below = xp.arange(rows)[:, None] - xp.arange(cols)
        return xp.where((below <= low) & (-below <= high), x, xp.zeros((), x.dtype))

    flops = free

    def grad(op, dy):
        return [matrix_band_part(dy, *op.inputs[1:]), None, None]


def _matrix_sizes(x: Any) -> Any:
    if x.ndim < 2:
        raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x)}")
    return x.shape[-2:]


def _checked(side: str, number: Any, most: int, what: str) -> int:
    """The number of diagonals on that side; a negative number means all."""
    if number > most:
        raise invalid(f"num_{side} must be negative or less or equal to number of {what} ({most}) got: {int(number)}")
    return int(number) if number >= 0 else most

"""Diagonals of matrices, and cross products of vectors.

Stands for `core/kernels/{matrix_diag,matrix_set_diag,cross}_op.cc` and their gradients. Left out: the older MatrixDiag
ops.

Rule: `k` counts diagonals from the main one, upwards; a band of several is stored as rows, the uppermost first, padded
on the side that `align` says (`RIGHT_LEFT`: those above the main diagonal stand right, those below left).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.linalg.functions import cross, matrix_diag, matrix_diag_part, matrix_set_diag
from dtflab.ops.messages import invalid, shape_text

_ALIGN = "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"


def _band(k: Any) -> tuple[int, int]:
    """The lowest and the uppermost diagonal that `k` names."""
    ks = np.asarray(k).reshape(-1).tolist()
    if len(ks) not in (1, 2) or ks[0] > ks[-1]:
        raise ValueError(f"diag_index must have one or two elements, the first not larger than the last: {ks}")
    return ks[0], ks[-1]


def _longest(rows: int, cols: int, low: int, high: int) -> int:
    """The length of the longest diagonal of a band."""
    return min(rows + min(high, 0), cols - max(low, 0))


def _places(rows: int, cols: int, low: int, high: int, align: bytes, xp: Any) -> Iterator[tuple[int, Any, Any, Any]]:
    """For each diagonal of a band: its row in storage, where in that row it stands, its rows and columns."""
    longest = _longest(rows, cols, low, high)
    upper_left, lower_left = (side == "LEFT" for side in align.decode().split("_"))
    for d in builtins.range(high, low - 1, -1):
        length = min(rows + min(d, 0), cols - max(d, 0))
        left = (d >= 0 and upper_left) or (d <= 0 and lower_left)
        start = 0 if left else longest - length
        steps = xp.arange(length)
        yield high - d, slice(start, start + length), steps - min(d, 0), steps + max(d, 0)


def _as_band(diagonal: Any, low: int, high: int) -> Any:
    return diagonal[..., None, :] if low == high else diagonal


def _checked_band(k: Any, rows: int, cols: int) -> tuple[int, int]:
    try:
        low, high = _band(k)
    except ValueError as error:
        raise invalid(str(error)) from None
    for d in (low, high):
        if not (-rows < d < cols or d == 0):
            raise invalid(f"diag_index {d} is out of bound for a {rows}x{cols} matrix")
    return low, high


@op(f"""MatrixDiagV3(diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T) -> (output: T)
        T: type, {_ALIGN}""")
class MatrixDiagV3(Op):
    """Matrices with the given diagonals."""

    def infer(op):
        diagonal = op.inputs[0].shape
        values = [folded_value(t) for t in op.inputs[1:4]]
        if diagonal.ndims is None or any(v is None for v in values):
            return [TensorShape(None)]
        low, high = _band(values[0])
        batch = diagonal[:-1] if low == high else diagonal[:-2]
        longest = diagonal[-1].value
        if longest is None:
            return [batch.concatenate([None, None])]
        return [batch.concatenate(_matrix_size(longest, low, high, int(values[1]), int(values[2])))]

    def kernel(node, xp, diagonal, k, num_rows, num_cols, padding):
        align, dtype = node["align"], node["T"].as_numpy_dtype
        low, high = _band(k)
        band = _as_band(diagonal, low, high)
        rows, cols = _matrix_size(band.shape[-1], low, high, int(num_rows), int(num_cols))
        if band.shape[-1] != _longest(rows, cols, low, high) or band.shape[-2] != high - low + 1:
            raise invalid(f"The diagonals {shape_text(diagonal)} do not fit a {rows}x{cols} matrix.")
        out = xp.full((*band.shape[:-2], rows, cols), padding, dtype)
        for row, place, i, j in _places(rows, cols, low, high, align, xp):
            out[..., i, j] = band[..., row, place]
        return out

    def grad(op, dy):
        return [matrix_diag_part(dy, k=op.inputs[1], align=op.get_attr("align"))] + [None] * 4


def _matrix_size(longest: int, low: int, high: int, rows: int, cols: int) -> tuple[int, int]:
    """The size of the matrix, where -1 leaves it to the diagonals."""
    least_rows, least_cols = longest - min(high, 0), longest + max(low, 0)
    if rows == cols == -1:
        return (max(least_rows, least_cols),) * 2
    return least_rows if rows == -1 else rows, least_cols if cols == -1 else cols


@op(f"MatrixDiagPartV3(input: T, k: int32, padding_value: T) -> (diagonal: T) where T: type, {_ALIGN}")
class MatrixDiagPartV3(Op):
    """The diagonals of matrices."""

    def infer(op):
        shape, k = op.inputs[0].shape.with_rank_at_least(2), folded_value(op.inputs[1])
        if shape.ndims is None or k is None:
            return [TensorShape(None)]
        low, high = _band(k)
        rows, cols = shape.as_list()[-2:]
        longest = None if rows is None or cols is None else _longest(rows, cols, low, high)
        return [shape[:-2].concatenate([longest] if low == high else [high - low + 1, longest])]

    def kernel(node, xp, x, k, padding):
        align, dtype = node["align"], node["T"].as_numpy_dtype
        rows, cols = x.shape[-2:]
        low, high = _checked_band(k, rows, cols)
        out = xp.full((*x.shape[:-2], high - low + 1, _longest(rows, cols, low, high)), padding, dtype)
        for row, place, i, j in _places(rows, cols, low, high, align, xp):
            out[..., row, place] = x[..., i, j]
        return out[..., 0, :] if low == high else out

    def grad(op, dy):
        x, k = op.inputs[:2]
        align = op.get_attr("align")
        size = x.shape[-2:]
        if size.is_fully_defined():
            rows, cols = size.as_list()
            return [matrix_diag(dy, k=k, num_rows=rows, num_cols=cols, align=align), None, None]
        return [matrix_set_diag(arrays.zeros_like(x), dy, k=k, align=align), None, None]


@op(f"MatrixSetDiagV3(input: T, diagonal: T, k: int32) -> (output: T) where T: type, {_ALIGN}")
class MatrixSetDiagV3(Op):
    """Matrices, with other diagonals."""

    def infer(op):
        x, diagonal, k = op.inputs[0].shape.with_rank_at_least(2), op.inputs[1].shape, folded_value(op.inputs[2])
        if diagonal.ndims is None or k is None:
            return [x]
        low, high = _band(k)
        batch = diagonal[: -1 if low == high else -2]
        return [x.merge_with(batch.concatenate([None, None]))]

    def kernel(node, xp, x, diagonal, k):
        align = node["align"]
        rows, cols = x.shape[-2:]
        low, high = _checked_band(k, rows, cols)
        band = _as_band(diagonal, low, high)
        out = x.copy()
        for row, place, i, j in _places(rows, cols, low, high, align, xp):
            out[..., i, j] = band[..., row, place]
        return out

    def grad(op, dy):
        _, diagonal, k = op.inputs
        align = op.get_attr("align")
        dx = matrix_set_diag(dy, arrays.zeros_like(diagonal), k=k, align=align)
        return [dx, matrix_diag_part(dy, k=k, align=align), None]


# ---- cross products ----


@op("Cross(a: T, b: T) -> (product: T) where T: realnumbertype")
class Cross(Op):
    """The cross products of vectors of three elements."""

    infer = shapes.merged

    def kernel(node, xp, a, b):
        if a.shape != b.shape or a.shape[-1:] != (3,):
            raise invalid(f"inputs must have one shape that ends with 3: {shape_text(a)}, {shape_text(b)}")
        after, before = xp.asarray([1, 2, 0]), xp.asarray([2, 0, 1])
        return a[..., after] * b[..., before] - a[..., before] * b[..., after]

    def grad(op, dy):
        a, b = op.inputs
        return [cross(b, dy), cross(dy, a)]

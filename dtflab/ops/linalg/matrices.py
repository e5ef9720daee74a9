"""Diagonals of matrices and what stands on them: eye, trace, norm.

Stands for `core/kernels/matrix_diag_op.cc`, `matrix_set_diag_op.cc` and `python/ops/linalg_ops.py`.
Left out: decompositions and solvers, the older MatrixDiag ops.

Rule: `k` counts diagonals from the main one, upwards; a band of several is stored as rows, the uppermost first, padded
on the side that `align` says (`RIGHT_LEFT`: those above the main diagonal stand right, those below left).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import casting, constant as constants, joining, reshaping
from dtflab.ops.math import binary as math, unary
from dtflab.ops.messages import invalid, renamed, shape_text
from dtflab.ops.reduce import reduction

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
    """Of each diagonal of a band: its row in storage, where in that row it stands, its rows and columns."""
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
        T: type
        {_ALIGN}""")
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

    def bind(node, xp):
        align, dtype = node["align"], node["T"].as_numpy_dtype

        def kernel(diagonal, k, num_rows, num_cols, padding):
            low, high = _band(k)
            band = _as_band(diagonal, low, high)
            rows, cols = _matrix_size(band.shape[-1], low, high, int(num_rows), int(num_cols))
            if band.shape[-1] != _longest(rows, cols, low, high) or band.shape[-2] != high - low + 1:
                raise invalid(f"The diagonals {shape_text(diagonal)} do not fit a {rows}x{cols} matrix.")
            out = xp.full((*band.shape[:-2], rows, cols), padding, dtype)
            for row, place, i, j in _places(rows, cols, low, high, align, xp):
                out[..., i, j] = band[..., row, place]
            return out

        return kernel

    def grad(op, dy):
        return [matrix_diag_part(dy, k=op.inputs[1], align=op.get_attr("align"))] + [None] * 4


def _matrix_size(longest: int, low: int, high: int, rows: int, cols: int) -> tuple[int, int]:
    """The size of the matrix, where -1 leaves it to the diagonals."""
    least_rows, least_cols = longest - min(high, 0), longest + max(low, 0)
    if rows == cols == -1:
        return (max(least_rows, least_cols),) * 2
    return least_rows if rows == -1 else rows, least_cols if cols == -1 else cols


@op(f"""MatrixDiagPartV3(input: T, k: int32, padding_value: T) -> (diagonal: T)
        T: type
        {_ALIGN}""")
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

    def bind(node, xp):
        align, dtype = node["align"], node["T"].as_numpy_dtype

        def kernel(x, k, padding):
            rows, cols = x.shape[-2:]
            low, high = _checked_band(k, rows, cols)
            out = xp.full((*x.shape[:-2], high - low + 1, _longest(rows, cols, low, high)), padding, dtype)
            for row, place, i, j in _places(rows, cols, low, high, align, xp):
                out[..., row, place] = x[..., i, j]
            return out[..., 0, :] if low == high else out

        return kernel

    def grad(op, dy):
        x, k = op.inputs[:2]
        align = op.get_attr("align")
        size = x.shape[-2:]
        if size.is_fully_defined():
            rows, cols = size.as_list()
            return [matrix_diag(dy, k=k, num_rows=rows, num_cols=cols, align=align), None, None]
        return [matrix_set_diag(constants.zeros_like(x), dy, k=k, align=align), None, None]


@op(f"""MatrixSetDiagV3(input: T, diagonal: T, k: int32) -> (output: T)
        T: type
        {_ALIGN}""")
class MatrixSetDiagV3(Op):
    """Matrices, with other diagonals."""

    def infer(op):
        x, diagonal, k = op.inputs[0].shape.with_rank_at_least(2), op.inputs[1].shape, folded_value(op.inputs[2])
        if diagonal.ndims is None or k is None:
            return [x]
        low, high = _band(k)
        batch = diagonal[: -1 if low == high else -2]
        return [x.merge_with(batch.concatenate([None, None]))]

    def bind(node, xp):
        align = node["align"]

        def kernel(x, diagonal, k):
            rows, cols = x.shape[-2:]
            low, high = _checked_band(k, rows, cols)
            band = _as_band(diagonal, low, high)
            out = x.copy()
            for row, place, i, j in _places(rows, cols, low, high, align, xp):
                out[..., i, j] = band[..., row, place]
            return out

        return kernel

    def grad(op, dy):
        _, diagonal, k = op.inputs
        align = op.get_attr("align")
        dx = matrix_set_diag(dy, constants.zeros_like(diagonal), k=k, align=align)
        return [dx, matrix_diag_part(dy, k=k, align=align), None]


def matrix_diag(
    diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0,
    align: Any = "RIGHT_LEFT",
) -> Tensor:  # fmt: skip
    """Matrices that have `diagonal` as their k-th diagonal and `padding_value` elsewhere."""
    if isinstance(diagonal, Tensor) and diagonal.dtype.base_dtype == dtypes.bool:
        padding_value = bool(padding_value)
    return apply_op(
        "MatrixDiagV3", name, diagonal=diagonal, k=k, num_rows=num_rows, num_cols=num_cols,
        padding_value=padding_value, align=align,
    )  # fmt: skip


def matrix_diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: Any = "RIGHT_LEFT"
) -> Tensor:
    """The k-th diagonal of each matrix."""
    if isinstance(input, Tensor) and input.dtype.base_dtype == dtypes.bool:
        padding_value = bool(padding_value)
    return apply_op("MatrixDiagPartV3", name, input=input, k=k, padding_value=padding_value, align=align)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: Any = "RIGHT_LEFT") -> Tensor:
    """The matrices `input` with `diagonal` as their k-th diagonal."""
    return apply_op("MatrixSetDiagV3", name, input=input, diagonal=diagonal, k=k, align=align)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        square = num_columns is None or (num_rows is num_columns if isinstance(num_rows, Tensor) else False)
        num_columns = num_rows if num_columns is None else num_columns
        batch: Any = [] if batch_shape is None else batch_shape
        size: Any
        if isinstance(num_rows, Tensor) or isinstance(num_columns, Tensor):
            size = math.minimum(num_rows, num_columns)
        else:
            square = num_rows == num_columns
            size = min(int(num_rows), int(num_columns))
        if isinstance(batch, Tensor) or isinstance(size, Tensor):
            batch = convert_to_tensor(batch, dtypes.int32, name="shape")
            diagonal_shape: Any = joining.concat((batch, [size]), axis=0)
            shape: Any = None if square else joining.concat((batch, [num_rows, num_columns]), axis=0)
        else:
            diagonal_shape = [*batch, size]
            shape = [*batch, num_rows, num_columns]
        diagonal = constants.ones(diagonal_shape, dtype)
        if square:
            return matrix_diag(diagonal)
        return matrix_set_diag(constants.zeros(shape, dtype), diagonal)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix."""
    with name_scope(name, "Trace", [x]) as scope:
        return reduction.reduce_sum(matrix_diag_part(convert_to_tensor(x, name="x")), [-1], name=scope)


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None, name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of vectors (`axis` is None or an int) or matrices (`axis` is a pair)."""
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    of_matrix = isinstance(axis, tuple | list) and len(axis) == 2
    if not of_matrix and not (axis is None or isinstance(axis, int)):
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    supported = ["euclidean", "fro", 1, 2, np.inf] if of_matrix else ["euclidean", 1, 2, np.inf]
    if ord not in supported and (of_matrix or isinstance(ord, str) or ord <= 0):
        raise ValueError(f"'ord' must be a supported {'matrix' if of_matrix else 'vector'} norm, got {ord}")
    axes = tuple(axis) if of_matrix else None if axis is None else (axis,)
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        result = _spectral_norm(x, axes) if of_matrix and ord == 2 else _kept_norm(x, ord, axes, of_matrix)
        return result if keepdims else reshaping.squeeze(result, None if axes is None else list(axes))


def _kept_norm(x: Tensor, ord: Any, axes: Any, of_matrix: bool) -> Tensor:
    """The norm, with its axes kept."""
    first = None if axes is None else axes[0]
    if ord in ("fro", "euclidean", 2):
        return unary.sqrt(reduction.reduce_sum(x * casting.conj(x), axes, keepdims=True))
    result = unary.abs(x)
    if ord == 1:
        result = reduction.reduce_sum(result, first, keepdims=True)
        return reduction.reduce_max(result, axes[-1], keepdims=True) if of_matrix else result
    if ord == np.inf:
        result = reduction.reduce_sum(result, axes[1], keepdims=True) if of_matrix else result
        return reduction.reduce_max(result, first, keepdims=True)
    return math.pow(reduction.reduce_sum(math.pow(result, ord), axes, keepdims=True), 1.0 / ord)


def _spectral_norm(x: Tensor, axes: Any) -> Tensor:
    """The largest singular value of the matrices on `axes`, which are kept."""
    from dtflab.ops.arrays import identity as array
    from dtflab.ops.control.cond import cond
    from dtflab.ops.functional.mapping import map_fn
    from dtflab.ops.reduce import segments

    ndims = array.rank(x)
    last = map_fn(lambda i: cond(i >= 0, lambda: i, lambda: i + ndims), convert_to_tensor(axes))
    every = constants.range(ndims)
    before = joining.concat([segments.setdiff1d(every, last, dtypes.int32)[0], last], axis=0)
    after = map_fn(lambda i: casting.cast(_place(before, i), dtypes.int32), every)
    values = apply_op("Svd", input=reshaping.transpose(x, perm=before), compute_uv=False)[0]
    largest = reduction.reduce_max(unary.abs(values), axis=-1, keepdims=True)
    return reshaping.transpose(reshaping.expand_dims(largest, axis=-1), perm=after)


def _place(numbers: Tensor, number: Tensor) -> Tensor:
    """Where `number` stands among `numbers`."""
    from dtflab.ops.math import logic

    return reshaping.squeeze(logic.where_v2(logic.equal(numbers, number)))

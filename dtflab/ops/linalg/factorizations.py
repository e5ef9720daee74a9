"""Factorizations of square matrices, Cholesky's and LU, and what they give: determinants.

Stands for `core/kernels/linalg/{cholesky,determinant,lu}_op*.cc` and their parts of `python/ops/linalg_ops.py` and
`linalg_grad.py`. Left out: other factorizations (Qr is in `decomposition.py`).

Rule: Cholesky's and determinants are LAPACK's, a matrix that has none gives NaN; LU is Gauss's elimination, of all
matrices of a batch at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import casting, diagonal as diagonals, identity as array, joining, reshaping
from dtflab.ops.costs import cubic
from dtflab.ops.linalg import decomposition, matmul, matrices as linalg
from dtflab.ops.linalg.solving import adjoint, in_lapack, matrix_triangular_solve, square_shape, square_shapes
from dtflab.ops.math import unary
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import reduction

_TYPES = "{double, float, half, complex64, complex128}"


def _cholesky(xp: Any, x: Any) -> Any:
    """The decompositions; NaN for a matrix that has none."""
    if not x.size:
        return x
    try:
        return xp.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return xp.full_like(x, np.nan)
        return xp.stack([_cholesky(xp, one) for one in x])


@op(f"Cholesky(input: T) -> (output: T)\nT: {_TYPES}")
class Cholesky(Op):
    """The lower triangle whose product with its adjoint is the positive definite matrix."""

    blas = True
    infer = square_shapes
    flops = cubic(1, 3)
    bind = in_lapack(lambda xp, node, x: _cholesky(xp, x), "")

    def grad(op, dy):
        lower = op.outputs[0]
        shape = array.shape(lower)
        inverse = matrix_triangular_solve(lower, linalg.eye(shape[-1], batch_shape=shape[:-2], dtype=lower.dtype))
        middle = matmul.matmul(lower, dy, adjoint_a=True)
        middle = linalg.matrix_set_diag(middle, 0.5 * linalg.matrix_diag_part(middle))
        middle = diagonals.matrix_band_part(middle, -1, 0)
        dx = matmul.matmul(matmul.matmul(inverse, middle, adjoint_a=True), inverse)
        dx += adjoint(dx)
        return [dx * 0.5]


class _Determinant(Op):
    blas = True
    flops = cubic(2, 3)

    def infer(op: Any) -> list[TensorShape]:
        shape = square_shape(op)
        return [shape if shape.ndims is None else shape[:-2]] * len(op.outputs)


def _times_inverse(op: Any, scale: Any, like: Any) -> Tensor:
    """The adjoint of the inverse, times a number for each matrix."""
    inverse = decomposition.matrix_inverse(op.inputs[0], adjoint=True)
    ones = joining.concat([array.shape(like), [1, 1]], 0)
    return reshaping.reshape(scale, ones) * inverse


@op(f"MatrixDeterminant(input: T) -> (output: T)\nT: {_TYPES}")
class MatrixDeterminant(_Determinant):
    """The determinant of each matrix."""

    bind = in_lapack(lambda xp, node, x: xp.linalg.det(x), "")

    def grad(op, dy):
        inverse = decomposition.matrix_inverse(op.inputs[0], adjoint=True)
        y = op.outputs[0]
        return [reshaping.reshape(dy * y, joining.concat([array.shape(y), [1, 1]], 0)) * inverse]


@op(f"LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T)\nT: {_TYPES}")
class LogMatrixDeterminant(_Determinant):
    """The sign of each determinant and the logarithm of its magnitude."""

    bind = in_lapack(lambda xp, node, x: tuple(xp.linalg.slogdet(x)), "")

    def grad(op, d_sign, d_log):
        return [_times_inverse(op, d_log, op.outputs[1])]


@op(f"""Lu(input: T) -> (lu: T, p: output_idx_type)
        T: {_TYPES}
        output_idx_type: {{int32, int64}} = int32""")
class Lu(Op):
    """Lower and upper triangle in one matrix, and the order of rows, with the largest pivot in each column."""

    blas = True
    flops = cubic(2, 3)

    def infer(op):
        shape = square_shape(op)
        return [shape, shape if shape.ndims is None else shape[:-1]]

    def bind(node, xp):
        dtype, order_type = node["T"].as_numpy_dtype, node["output_idx_type"].as_numpy_dtype
        computed = np.float32 if dtype == np.float16 else dtype

        def kernel(x):
            if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
                raise invalid(f"Input matrix must be square, got shape {shape_text(x)}")
            lu, order = _eliminated(xp, x.astype(computed).reshape((-1, *x.shape[-2:])))
            return lu.reshape(x.shape).astype(dtype), order.reshape(x.shape[:-1]).astype(order_type)

        return kernel


def _eliminated(xp: Any, a: Any) -> tuple[Any, Any]:
    """Gauss's elimination of all matrices at once, column by column."""
    count, side = a.shape[:2]
    order, every = xp.tile(xp.arange(side), (count, 1)), xp.arange(count)
    for k in range(side):
        pivot = k + xp.argmax(xp.abs(a[:, k:, k]), 1)
        for rows in (a, order):
            kept = rows[:, k].copy()
            rows[:, k] = rows[every, pivot]
            rows[every, pivot] = kept
        if (a[:, k, k] == 0).any():
            raise invalid("Input is not invertible.")
        a[:, k + 1 :, k] /= a[:, k, k][:, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, None, k, k + 1 :]
    return a, order


# -- functions --------------------------------------------------------------------------------------------------------


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangle L of each positive definite matrix, L·Lᴴ = input; reads the input's lower triangle alone."""
    return apply_op("Cholesky", name, input=input)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinant of each matrix."""
    return apply_op("MatrixDeterminant", name, input=input)


def slogdet(input: Any, name: str | None = None) -> Any:
    """(sign, log of the magnitude) of each determinant."""
    return apply_op("LogMatrixDeterminant", name, input=input)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of each positive definite matrix."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = linalg.matrix_diag_part(apply_op("Cholesky", input=matrix))
        return 2.0 * reduction.reduce_sum(unary.log(casting.real(diagonal)), axis=[-1])


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """(L and U in one matrix, the order of rows) of each matrix: input[order] = L·U, L with ones on its diagonal."""
    return apply_op("Lu", name, input=input, output_idx_type=dtypes.as_dtype(output_idx_type))

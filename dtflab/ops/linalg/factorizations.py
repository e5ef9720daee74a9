"""Factorizations of matrices, Cholesky's, LU and QR; determinants and inverses.

Stands for `core/kernels/linalg/{cholesky,determinant,lu,qr,matrix_inverse}_op*` and their parts of `linalg_grad.py`.

Rule: the numbers are LAPACK's, which agree with TensorFlow's Eigen up to rounding; a matrix without a Cholesky
decomposition gives NaN. LU is Gauss's elimination, of all matrices of a batch at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import cubic, matrices
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.linalg.functions import adjoint, matrix_inverse, matrix_triangular_solve
from dtflab.ops.linalg.solving import (
    TYPES,
    check_square,
    computed_in,
    conjugate_transposed,
    in_lapack,
    square_shape,
    square_shapes,
)
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid


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


@op(f"Cholesky(input: T) -> (output: T) where T: {TYPES}")
class Cholesky(Op):
    """The lower triangle whose product with its adjoint is the positive definite matrix."""

    blas = True
    infer = square_shapes
    flops = cubic(1, 3)
    bind = in_lapack(lambda xp, node, x: _cholesky(xp, x), "")

    def grad(op, dy):
        lower = op.outputs[0]
        shape = arrays.shape(lower)
        inverse = matrix_triangular_solve(lower, linalg.eye(shape[-1], batch_shape=shape[:-2], dtype=lower.dtype))
        middle = linalg.matmul(lower, dy, adjoint_a=True)
        middle = linalg.matrix_set_diag(middle, 0.5 * linalg.matrix_diag_part(middle))
        middle = arrays.matrix_band_part(middle, -1, 0)
        dx = linalg.matmul(linalg.matmul(inverse, middle, adjoint_a=True), inverse)
        dx += adjoint(dx)
        return [dx * 0.5]


class _Determinant(Op):
    blas = True
    flops = cubic(2, 3)

    def infer(op: Operation) -> list[TensorShape]:
        shape = square_shape(op)
        return [shape if shape.ndims is None else shape[:-2]] * len(op.outputs)


def _times_inverse(op: Operation, scale: Any, like: Any) -> Tensor:
    """The adjoint of the inverse, times a number for each matrix."""
    inverse = linalg.matrix_inverse(op.inputs[0], adjoint=True)
    ones = arrays.concat([arrays.shape(like), [1, 1]], 0)
    return arrays.reshape(scale, ones) * inverse


@op(f"MatrixDeterminant(input: T) -> (output: T) where T: {TYPES}")
class MatrixDeterminant(_Determinant):
    """The determinant of each matrix."""

    bind = in_lapack(lambda xp, node, x: xp.linalg.det(x), "")

    def grad(op, dy):
        inverse = linalg.matrix_inverse(op.inputs[0], adjoint=True)
        y = op.outputs[0]
        return [arrays.reshape(dy * y, arrays.concat([arrays.shape(y), [1, 1]], 0)) * inverse]


@op(f"LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T) where T: {TYPES}")
class LogMatrixDeterminant(_Determinant):
    """The sign of each determinant and the logarithm of its magnitude."""

    bind = in_lapack(lambda xp, node, x: tuple(xp.linalg.slogdet(x)), "")

    def grad(op, d_sign, d_log):
        return [_times_inverse(op, d_log, op.outputs[1])]


@op(f"Lu(input: T) -> (lu: T, p: output_idx_type) where T: {TYPES}, output_idx_type: {{int32, int64}} = int32")
class Lu(Op):
    """Lower and upper triangle in one matrix, and the order of rows, with the largest pivot in each column."""

    blas = True
    flops = cubic(2, 3)

    def infer(op):
        shape = square_shape(op)
        return [shape, shape if shape.ndims is None else shape[:-1]]

    def kernel(node, xp, x):
        dtype, order_type = node["T"].as_numpy_dtype, node["output_idx_type"].as_numpy_dtype
        check_square(x)
        lu, order = _eliminated(xp, x.astype(computed_in(dtype)).reshape((-1, *x.shape[-2:])))
        return lu.reshape(x.shape).astype(dtype), order.reshape(x.shape[:-1]).astype(order_type)


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


# ---- QR and inverses ----


@op("Qr(input: T) -> (q: T, r: T) where full_matrices: bool = false, T: {double, float, half, complex64, complex128}")
class Qr(Op):
    """Each matrix of the input as q·r, where q has orthonormal columns and r is zero below its diagonal."""

    blas = True

    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(2)
        if shape.ndims is None:
            return [TensorShape(None)] * 2
        batch, (m, n) = shape[:-2], shape[-2:].as_list()
        if op.get_attr("full_matrices"):
            return [batch.concatenate([m, m]), batch.concatenate([m, n])]
        p = None if m is None or n is None else min(m, n)
        return [batch.concatenate([m, p]), batch.concatenate([p, n])]

    def kernel(node, xp, x):
        mode, dtype = ("complete" if node["full_matrices"] else "reduced"), node["T"].as_numpy_dtype
        q, r = xp.linalg.qr(x.astype(computed_in(dtype)), mode)
        return q.astype(dtype), r.astype(dtype)

    def flops(node: Node, ins: Sequence[Any], outs: Sequence[Any]) -> int:
        """Householder's reflections to r, and as many to q; as Golub and Van Loan count."""
        count, *sides = matrices(ins[0])
        m, n = max(sides), min(sides)
        return count * (4 * m * n * n - 4 * n**3 // 3)

    def grad(op, dq, dr):
        q, r = op.outputs
        rows, cols = q.shape[-2].value, r.shape[-1].value
        if None in (rows, cols, r.shape[-2].value):
            raise NotImplementedError("QrGrad not implemented with dynamic shapes.")
        if r.shape[-2].value > cols and rows == q.shape[-1].value:
            raise NotImplementedError("QrGrad not implemented when nrows > ncols and full_matrices is true.")
        if rows >= cols:
            return [_qr_grad(q, r, dq, dr)]
        # The input is [x, y] and r is [u, v], with x and u square: q·u is the decomposition of x.
        y, u, du, dv = op.inputs[0][..., rows:], r[..., :rows], dr[..., :rows], dr[..., rows:]
        dx = _qr_grad(q, u, dq + linalg.matmul(y, dv, adjoint_b=True), du)
        return [arrays.concat([dx, linalg.matmul(q, dv)], -1)]


def _qr_grad(q: Any, r: Any, dq: Any, dr: Any) -> Tensor:
    """q·(dr + s·r⁻ᴴ) + (dq - q·qᴴ·dq)·r⁻ᴴ, where s is the lower triangle of what the products need to be Hermitian."""
    inverse = matrix_inverse(r, adjoint=True)
    q_dq, r_dr = linalg.matmul(q, dq, adjoint_a=True), linalg.matmul(r, dr, adjoint_b=True)
    lower = _lower(q_dq - _adjoint(q_dq) + r_dr - _adjoint(r_dr))
    dx = linalg.matmul(q, dr + linalg.matmul(lower, inverse))
    dx += linalg.matmul(dq - linalg.matmul(q, q_dq), inverse)
    if q.dtype.is_complex:
        diagonal = linalg.matrix_diag_part(r_dr - _adjoint(q_dq))
        imaginary = linalg.matrix_diag(diagonal - arrays.cast(math.real(diagonal), q.dtype))
        dx += linalg.matmul(linalg.matmul(q, math.conj(imaginary)), inverse)
    return dx


def _adjoint(matrix: Any) -> Any:
    return arrays.matrix_transpose(matrix, conjugate=True)


def _inverse(xp: Any, node: Node, x: Any) -> Any:
    found = xp.linalg.inv(x)
    return conjugate_transposed(found) if node["adjoint"] else found


def _lower(matrix: Any) -> Any:
    """The matrix with zeros above its diagonal."""
    steps = arrays.range(matrix.shape[-1].value)
    return matrix * arrays.cast(arrays.expand_dims(steps, 1) >= steps, matrix.dtype)


@op("""MatrixInverse(input: T) -> (output: T)
       adjoint: bool = false, T: {double, float, half, complex64, complex128}""")
class MatrixInverse(Op):
    """The inverse of each matrix, or its adjoint."""

    blas = True
    infer = square_shapes
    flops = cubic(2)
    bind = in_lapack(_inverse, "Input is not invertible.")

    def grad(op, dy):
        inverse, adjoint = op.outputs[0], op.get_attr("adjoint")
        inner = linalg.matmul(dy, inverse, adjoint_a=adjoint, adjoint_b=not adjoint)
        return [-linalg.matmul(inverse, inner, adjoint_a=not adjoint)]

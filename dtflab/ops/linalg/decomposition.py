"""Qr and the inverse of matrices.

Stands for `core/kernels/linalg/qr_op_impl.h`, `matrix_inverse_op.cc` and their parts of `python/ops/linalg_grad.py`.
Left out: other decompositions and solvers.

Rule: the numbers are LAPACK's, which agrees with TensorFlow's Eigen up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import casting, constant as constants, joining, reshaping
from dtflab.ops.costs import cubic, matrices
from dtflab.ops.linalg import matmul, matrices as linalg
from dtflab.ops.messages import invalid, shape_text


@op("""Qr(input: T) -> (q: T, r: T)
       full_matrices: bool = false
       T: {double, float, half, complex64, complex128}""")
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

    def bind(node, xp):
        mode, dtype = ("complete" if node["full_matrices"] else "reduced"), node["T"].as_numpy_dtype
        # LAPACK has no float16.
        computed = xp.float32 if dtype == xp.float16 else dtype

        def kernel(x):
            q, r = xp.linalg.qr(x.astype(computed), mode)
            return q.astype(dtype), r.astype(dtype)

        return kernel

    def flops(node: Any, ins: Sequence[Any], outs: Sequence[Any]) -> int:
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
        dx = _qr_grad(q, u, dq + matmul.matmul(y, dv, adjoint_b=True), du)
        return [joining.concat([dx, matmul.matmul(q, dv)], -1)]


def _qr_grad(q: Any, r: Any, dq: Any, dr: Any) -> Tensor:
    """q·(dr + s·r⁻ᴴ) + (dq - q·qᴴ·dq)·r⁻ᴴ, where s is the lower triangle of what the products lack to be Hermitian."""
    inverse = matrix_inverse(r, adjoint=True)
    q_dq, r_dr = matmul.matmul(q, dq, adjoint_a=True), matmul.matmul(r, dr, adjoint_b=True)
    lower = _lower(q_dq - _adjoint(q_dq) + r_dr - _adjoint(r_dr))
    dx = matmul.matmul(q, dr + matmul.matmul(lower, inverse))
    dx += matmul.matmul(dq - matmul.matmul(q, q_dq), inverse)
    if q.dtype.is_complex:
        diagonal = linalg.matrix_diag_part(r_dr - _adjoint(q_dq))
        imaginary = linalg.matrix_diag(diagonal - casting.cast(casting.real(diagonal), q.dtype))
        dx += matmul.matmul(matmul.matmul(q, casting.conj(imaginary)), inverse)
    return dx


def _adjoint(matrix: Any) -> Any:
    return reshaping.matrix_transpose(matrix, conjugate=True)


def _lower(matrix: Any) -> Any:
    """The matrix with zeros above its diagonal."""
    steps = constants.range(matrix.shape[-1].value)
    return matrix * casting.cast(reshaping.expand_dims(steps, 1) >= steps, matrix.dtype)


@op("""MatrixInverse(input: T) -> (output: T)
       adjoint: bool = false
       T: {double, float, half, complex64, complex128}""")
class MatrixInverse(Op):
    """The inverse of each matrix, or its adjoint."""

    blas = True

    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(2)
        if shape.ndims is None:
            return [shape]
        side = shape[-2].merge_with(shape[-1])
        return [shape[:-2].concatenate([side, side])]

    def bind(node, xp):
        adjoint, dtype = node["adjoint"], node["T"].as_numpy_dtype
        computed = xp.float32 if dtype == xp.float16 else dtype

        def kernel(x):
            if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
                raise invalid(f"Input matrix must be square, got shape {shape_text(x.shape)}")
            try:
                found = xp.linalg.inv(x.astype(computed)).astype(dtype)
            except np.linalg.LinAlgError:
                raise invalid("Input is not invertible.") from None
            return found.conj().swapaxes(-1, -2) if adjoint else found

        return kernel

    def grad(op, dy):
        inverse, adjoint = op.outputs[0], op.get_attr("adjoint")
        inner = matmul.matmul(dy, inverse, adjoint_a=adjoint, adjoint_b=not adjoint)
        return [-matmul.matmul(inverse, inner, adjoint_a=not adjoint)]

    flops = cubic(2)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each matrix in `input`, or its adjoint; InvalidArgumentError for one that has none."""
    return apply_op("MatrixInverse", name, input=input, adjoint=adjoint)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """(q, r) of each matrix in `input`."""
    return apply_op("Qr", name, input=input, full_matrices=full_matrices)

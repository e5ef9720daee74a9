"""Systems of linear equations: square, triangular, least squares.

Stands for `core/kernels/linalg/{matrix_solve,matrix_solve_ls,matrix_triangular_solve}_op*.cc` and their parts of
`python/ops/linalg_ops.py` and `linalg_grad.py`. Left out: banded and tridiagonal systems.

Rule: NumPy is all there is, and it has no triangular solver: a triangular system is solved as any other, after what is
on the other side of the diagonal has been set to zero, at three times the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import cond
from dtflab.ops.costs import matrices
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce

TYPES = "{double, float, half, complex64, complex128}"  # that LAPACK's ops take


def square_shape(op: Operation) -> TensorShape:
    """The shape of square matrices."""
    shape = op.inputs[0].shape.with_rank_at_least(2)
    if shape.ndims is None:
        return shape
    side = shape[-2].merge_with(shape[-1])
    return shape[:-2].concatenate([side, side])


def square_shapes(op: Operation) -> list[TensorShape]:
    """Every output has the shape of the square matrices."""
    return [square_shape(op)] * len(op.outputs)


def computed_in(dtype: Any) -> Any:
    """The NumPy dtype in which LAPACK computes for `dtype`: it has no float16."""
    return np.float32 if dtype == np.float16 else dtype


def check_square(x: Any) -> None:
    """InvalidArgumentError unless x holds square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise invalid(f"Input matrix must be square, got shape {shape_text(x)}")


def in_lapack(function: Callable[..., Any], failure: str) -> Any:
    """A `bind` rule: `function(xp, node, …)` of square matrices in a dtype that LAPACK has."""

    def bind(node: Node, xp: Any) -> Any:
        dtype = node["T"].as_numpy_dtype
        computed = computed_in(dtype)

        def kernel(x: Any, *others: Any) -> Any:
            check_square(x)
            try:
                found = function(xp, node, x.astype(computed), *(o.astype(computed) for o in others))
            except np.linalg.LinAlgError:
                raise invalid(failure) from None
            return tuple(f.astype(dtype) for f in found) if isinstance(found, tuple) else found.astype(dtype)

        return kernel

    return bind


# -- solvers ----------------------------------------------------------------------------------------------------------


def conjugate_transposed(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def _solve(xp: Any, node: Node, matrix: Any, rhs: Any) -> Any:
    if rhs.ndim < 2 or matrix.shape[-1] != rhs.shape[-2]:
        raise invalid(f"Input matrix and rhs are incompatible: {shape_text(matrix)}, {shape_text(rhs)}")
    if node["adjoint"]:
        matrix = conjugate_transposed(matrix)
    return xp.linalg.solve(matrix, rhs)


def _solved(times: int, divisor: int = 1) -> Callable[..., int]:
    """`times / divisor` n³ to factor a matrix; for each right side n² to go down a triangle, and n² to go up."""

    def flops(node: Node, ins: Any, outs: Any) -> int:
        count, n, _ = matrices(ins[0])
        return count * times * n**3 // divisor + (2 if times else 1) * n * elements(outs[0] if outs else ins[1])

    return flops


@op(f"MatrixSolve(matrix: T, rhs: T) -> (output: T) where adjoint: bool = false, T: {TYPES}")
class MatrixSolve(Op):
    """The x with matrix·x = rhs."""

    blas = True
    flops = _solved(2, 3)
    bind = in_lapack(_solve, "Input matrix is not invertible.")

    def infer(op):
        matrix, rhs = square_shape(op), op.inputs[1].shape.with_rank_at_least(2)
        return [matrix[:-2].merge_with(rhs[:-2]).concatenate([matrix[-1].merge_with(rhs[-2]), rhs[-1]])]

    def grad(op, dy):
        turned = op.get_attr("adjoint")
        d_rhs = linalg.matrix_solve(op.inputs[0], dy, adjoint=not turned)
        return [_of_matrix(op.outputs[0], d_rhs, turned), d_rhs]


def _of_matrix(x: Tensor, d_rhs: Tensor, turned: bool) -> Tensor:
    return -linalg.matmul(x, d_rhs, adjoint_b=True) if turned else -linalg.matmul(d_rhs, x, adjoint_b=True)


def _solve_triangular(xp: Any, node: Node, matrix: Any, rhs: Any) -> Any:
    if not matrix.size or not rhs.size:
        return xp.zeros((*np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2]), *rhs.shape[-2:]), rhs.dtype)
    matrix = (xp.tril if node["lower"] else xp.triu)(matrix)
    shared = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    rhs = xp.broadcast_to(rhs, (*shared, *rhs.shape[-2:]))
    try:
        return _solve(xp, node, xp.broadcast_to(matrix, (*shared, *matrix.shape[-2:])), rhs)
    except np.linalg.LinAlgError:
        return _substituted(conjugate_transposed(matrix) if node["adjoint"] else matrix, rhs, node)


def _substituted(matrix: Any, rhs: Any, node: Node) -> Any:
    """Row by row, so that a zero on the diagonal makes infinities where it should."""
    x, rows = rhs.copy(), range(matrix.shape[-1])
    down = node["lower"] != node["adjoint"]
    for i in rows if down else reversed(rows):
        known = slice(0, i) if down else slice(i + 1, None)
        sums = (matrix[..., i, known, None] * x[..., known, :]).sum(-2)
        x[..., i, :] = (rhs[..., i, :] - sums) / matrix[..., i, i, None]
    return x


@op("""MatrixTriangularSolve(matrix: T, rhs: T) -> (output: T)
       lower: bool = true, adjoint: bool = false, T: {bfloat16, double, float, half, complex64, complex128}""")
class MatrixTriangularSolve(Op):
    """The x with matrix·x = rhs, for one triangle of the matrix."""

    blas = True
    flops = _solved(0)
    bind = in_lapack(_solve_triangular, "Input matrix is not invertible.")

    def infer(op):
        matrix, rhs = square_shape(op), op.inputs[1].shape.with_rank_at_least(2)
        if matrix.ndims is None or rhs.ndims is None:
            return [TensorShape(None)]
        return [infer_broadcast(matrix[:-2], rhs[:-2]).concatenate([matrix[-1].merge_with(rhs[-2]), rhs[-1]])]

    def grad(op, dy):
        matrix, rhs = op.inputs
        turned, lower = op.get_attr("adjoint"), op.get_attr("lower")
        d_rhs = linalg.matrix_triangular_solve(matrix, dy, lower=lower, adjoint=not turned)
        d_matrix = _of_matrix(op.outputs[0], d_rhs, turned)
        d_matrix = arrays.matrix_band_part(d_matrix, *((-1, 0) if lower else (0, -1)))
        known = matrix.shape.is_fully_defined() and rhs.shape.is_fully_defined()
        if known and matrix.shape[:-2] == rhs.shape[:-2]:
            return [d_matrix, d_rhs]
        sm, sr = arrays.shape(matrix), arrays.shape(rhs)
        rm, rr = arrays.broadcast_gradient_args(sm[:-2], sr[:-2])
        pairs = ((d_matrix, rm, sm), (d_rhs, rr, sr))
        return [arrays.reshape(reduce.reduce_sum(d, axis=axes), shape) for d, axes, shape in pairs]


def _fitted(node: Node, ins: Any, outs: Any) -> int:
    """The normal equations: aᵀa, aᵀb, a factorization, both triangles. m rows, n columns, k right sides."""
    (count, m, n), (_, _, k) = map(matrices, ins[:2])
    return count * (m * n * n + 2 * m * n * k + n**3 // 3 + 2 * n * n * k)


@op(f"MatrixSolveLs(matrix: T, rhs: T, l2_regularizer: double) -> (output: T) where T: {TYPES}, fast: bool = true")
class MatrixSolveLs(Op):
    """The x for which matrix·x is nearest to rhs; of several the smallest."""

    blas = True
    flops = _fitted

    def infer(op):
        matrix, rhs = (x.shape.with_rank_at_least(2) for x in op.inputs[:2])
        matrix[-2].merge_with(rhs[-2])
        return [matrix[:-2].merge_with(rhs[:-2]).concatenate([matrix[-1], rhs[-1]])]

    def kernel(node, xp, matrix, rhs, l2):
        dtype = node["T"].as_numpy_dtype
        a, b = (x.astype(computed_in(dtype)) for x in (matrix, rhs))
        return (_least_squares(xp, a, b, l2) if node["fast"] else xp.linalg.pinv(a) @ b).astype(dtype)

    def grad(op, dy):
        if not op.get_attr("fast"):
            raise ValueError("Gradient not defined for fast=False")
        shape = op.inputs[0].shape[-2:]
        if shape.is_fully_defined():
            return [*(_tall_gradient if shape[-2] >= shape[-1] else _wide_gradient)(op, dy), None]
        sizes = arrays.shape(op.inputs[0])[-2:]
        found = cond.cond(sizes[-2] >= sizes[-1], lambda: _tall_gradient(op, dy), lambda: _wide_gradient(op, dy))
        return [*found, None]


def _least_squares(xp: Any, a: Any, b: Any, l2: Any) -> Any:
    """By the normal equations of the first kind for more equations than unknowns, else of the second."""
    adjoint_a = conjugate_transposed(a)
    tall = a.shape[-2] >= a.shape[-1]
    gram = adjoint_a @ a if tall else a @ adjoint_a
    gram = gram + xp.eye(gram.shape[-1], dtype=a.dtype) * a.dtype.type(float(l2))
    try:
        return xp.linalg.solve(gram, adjoint_a @ b) if tall else adjoint_a @ xp.linalg.solve(gram, b)
    except np.linalg.LinAlgError:
        raise invalid("Input matrix was rank deficient or ill-conditioned. Try setting fast=False.") from None


def _tall_gradient(op: Operation, dy: Any) -> list[Any]:
    a, b, _ = op.inputs
    x = op.outputs[0]
    chol = linalg._gram_cholesky(a, arrays.cast(op.inputs[2], a.dtype.base_dtype), first_kind=True)
    z = linalg.cholesky_solve(chol, dy)
    product = linalg.matmul(x, z, adjoint_b=True)
    both = product + arrays.matrix_transpose(product)
    return [-linalg.matmul(a, both) + linalg.matmul(b, z, adjoint_b=True), linalg.matmul(a, z)]


def _wide_gradient(op: Operation, dy: Any) -> list[Any]:
    a, b, _ = op.inputs
    chol = linalg._gram_cholesky(a, arrays.cast(op.inputs[2], a.dtype.base_dtype), first_kind=False)
    db = linalg.cholesky_solve(chol, linalg.matmul(a, dy))
    tmp = linalg.cholesky_solve(chol, b)
    first = -linalg.matmul(db, linalg.matmul(tmp, a, adjoint_a=True))
    second = linalg.matmul(tmp, dy - linalg.matmul(a, db, adjoint_a=True), adjoint_b=True)
    return [first + second, db]


# -- functions --------------------------------------------------------------------------------------------------------

"""Square roots and logarithms of matrices, from Schur's form.

Stands for `core/kernels/linalg/matrix_{square_root,logarithm}_op*` and their part of `python/ops/linalg_grad.py`;
the exponential, which is a graph of other ops, is in `matrix_exponential.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import cubic
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.linalg.solving import TYPES, conjugate_transposed, in_lapack, square_shapes
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce


def _of_triangle(function: Any) -> Any:
    """The kernel that has `function` of Schur's form: of upper triangles, whose basis it changes there and back.

    The basis is that of the eigenvectors, made orthogonal column by column: it is Schur's even where two of them are
    nearly the same. Real matrices with an eigenvalue below 0 have no real function, and infinite ones none: NaN.
    """

    def compute(xp: Any, node: Node, x: Any) -> Any:
        if not x.size:
            return x
        finite = xp.isfinite(x).all((-2, -1), keepdims=True)
        wide = xp.where(finite, x, xp.eye(x.shape[-1])).astype(np.complex128)
        values, vectors = xp.linalg.eig(wide if x.dtype.kind == "c" else wide.real)
        basis = xp.linalg.qr(vectors)[0]
        with np.errstate(all="ignore"):  # NaN stands for a missing result
            back = conjugate_transposed(basis)
            found = basis @ function(xp, xp.triu(back @ wide @ basis)) @ back
        if x.dtype.kind != "c":
            below = ((values.imag == 0) & (values.real < 0)).any(-1)[..., None, None]
            finite, found = finite & ~below, found.real
        return found * xp.where(finite, 1.0, np.nan)

    return in_lapack(compute, "The eigenvalues of the matrix are not found.")


def _square_root(xp: Any, x: Any) -> Any:
    """Björck and Hammarling's recurrence, each element from those to the left of it and below."""
    n = x.shape[-1]
    root = xp.zeros_like(x)
    for j in range(n):
        root[..., j, j] = xp.sqrt(x[..., j, j])
        for i in reversed(range(j)):
            between = (root[..., i, i + 1 : j] * root[..., i + 1 : j, j]).sum(-1)
            root[..., i, j] = (x[..., i, j] - between) / (root[..., i, i] + root[..., j, j])
    return root


def _logarithm(xp: Any, x: Any) -> Any:
    """Square roots until the matrix is next to 1; then 2 artanh((x - 1) / (x + 1)). 0 has none: NaN."""
    one, times = xp.eye(x.shape[-1]), 1
    x = xp.where((xp.diagonal(x, 0, -2, -1) == 0).any(-1)[..., None, None], np.nan, x)
    while times < 1 << 40 and bool((xp.abs(x - one).sum((-2, -1)) > 0.25).any()):
        x, times = _square_root(xp, x), times * 2
    z = xp.linalg.solve(x + one, x - one)
    square, power, total = z @ z, z, z
    for k in range(3, 25, 2):
        power = power @ square
        total = total + power / k
    return 2 * times * total


@op(f"MatrixSquareRoot(input: T) -> (output: T) where T: {TYPES}")
class MatrixSquareRoot(Op):
    """The matrix whose square is the input."""

    blas = True
    infer = square_shapes
    flops = cubic(28)  # a Schur form in 25, the root of its triangle, two products
    bind = _of_triangle(_square_root)

    def grad(op, dy):
        root = op.outputs[0]
        shape = arrays.shape(root)
        order, count = shape[-1], reduce.reduce_prod(shape[0:-2])
        eye = arrays.reshape(linalg.eye(order, dtype=root.dtype), [-1])
        eyes = arrays.reshape(arrays.tile(eye, [count]), shape)
        both = math.add(_kronecker(eyes, arrays.matrix_transpose(root)), _kronecker(root, eyes))
        outer = shape[:-2]
        flat = arrays.reshape(arrays.matrix_transpose(dy), arrays.concat([outer, [order * order], [1]], 0))
        return [arrays.matrix_transpose(arrays.reshape(linalg.matrix_solve(both, flat), shape))]


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    sa, sb = arrays.shape(a), arrays.shape(b)
    n, m, outer = sa[-1], sb[-1], sa[:-2]
    left = arrays.reshape(a, arrays.concat([outer, [n], [1], [n], [1]], 0))
    right = arrays.reshape(b, arrays.concat([outer, [1], [m], [1], [m]], 0))
    return arrays.reshape(left * right, arrays.concat([outer, [n * m], [n * m]], 0))


@op("MatrixLogarithm(input: T) -> (output: T) where T: {complex64, complex128}")
class MatrixLogarithm(Op):
    """The matrix whose exponential is the input."""

    blas = True
    infer = square_shapes
    flops = cubic(60)  # a Schur form, some roots, a series
    bind = _of_triangle(_logarithm)

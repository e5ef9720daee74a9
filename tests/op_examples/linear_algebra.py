"""Products over labelled axes, decompositions, solvers."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import MANY_ROUNDINGS, SOME_ROUNDINGS, Example, Values, examples

# Vectors may be the other way round, general eigenvalues come in no order, and what is not asked for has any shape.
IN_PROGRAMS = dict.fromkeys(("Eig", "SelfAdjointEigV2", "Svd"), "tests/ops/oracle/test_linear_algebra.py")


@examples("Einsum", roundings=SOME_ROUNDINGS)
def einsum(v: Values) -> list[Example]:
    if v.dtype not in EINSUM_TYPES:
        return []
    one = [("ij->ji", (2, 3)), ("ij->", (2, 3)), ("iji->j", (2, 3, 2)), ("i->ii", (3,)), ("...ij->...ji", (2, 1, 2, 3)),
           ("aabbcd->ca", (2, 2, 2, 2, 3, 2)), ("abcd->ac", (2, 2, 2, 2)), ("->", ()), ("i->", (0,))]  # fmt: skip
    two = [("ij,jk->ik", (2, 3), (3, 2)), ("bij,bkj->bik", (2, 2, 3), (2, 2, 3)), ("i,j->ij", (2,), (3,)),
           ("ij,ij->", (2, 3), (2, 3)), ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("ij,k->j", (2, 3), (2,)),
           ("abc,cd->da", (2, 2, 3), (3, 2)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)), ("a,a->aa", (2,), (2,)),
           ("Ab,bA->A", (2, 3), (3, 2)), ("i...,i...->...", (2, 3), (2, 1)), ("ij,jk->ik", (2, 0), (0, 3)),
           ("baab,b->a", (3, 2, 2, 3), (3,))]  # fmt: skip
    found = [v([v.array(*shape)], equation=equation) for equation, shape in one]
    return [*found, *(v([v.array(*a), v.array(*b)], equation=equation) for equation, a, b in two)]


EINSUM_TYPES = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.complex64, dtypes.float16, dtypes.bfloat16,
)  # fmt: skip


def definite(v: Values, *batch: int) -> np.ndarray:
    """Matrices with eigenvalues well above 0."""
    x = v.array(*batch, 3, 3)
    x = x if v.dtype.size > 2 else x.astype(np.float32)
    return (x @ x.conj().swapaxes(-1, -2) + 4 * np.eye(3)).astype(v.dtype.as_numpy_dtype)


@examples("Cholesky", "MatrixDeterminant", "LogMatrixDeterminant", "Lu", roundings=SOME_ROUNDINGS)
@examples("MatrixSquareRoot", roundings=MANY_ROUNDINGS)
def of_one_matrix(v: Values) -> list[Example]:
    if v.dtype == dtypes.float16:
        return []
    # Cholesky's gradient is that of a symmetric matrix, of which differences move one side only.
    found = [v(definite(v), smooth=v.op != "Cholesky"), v(definite(v, 2, 2), smooth=v.op != "Cholesky")]
    if v.op in ("MatrixDeterminant", "LogMatrixDeterminant", "Lu"):
        found.append(v(v.array(2, 4, 4) + np.eye(4, dtype=v.dtype.as_numpy_dtype)))
    return found


@examples("MatrixLogarithm", roundings=MANY_ROUNDINGS)
def logarithm(v: Values) -> list[Example]:
    return [v(definite(v)), v(definite(v, 2))]


@examples("MatrixSolve", "MatrixTriangularSolve", roundings=SOME_ROUNDINGS)
def solve(v: Values) -> list[Example]:
    if v.dtype.size == 2:
        return []
    flags = [{"adjoint": a} for a in (False, True)]
    if v.op == "MatrixTriangularSolve":
        flags = [{**f, "lower": b} for f in flags for b in (False, True)]
    found = [v(definite(v, *batch), v.array(*batch, 3, 2), **f) for f in flags for batch in ((), (2,))]
    if v.op == "MatrixTriangularSolve":
        found.append(v(definite(v, 2, 1), v.array(3, 3, 2)))
    return found


@examples("MatrixSolveLs", roundings=SOME_ROUNDINGS)
def least_squares(v: Values) -> list[Example]:
    if v.dtype.real_dtype != dtypes.float64:
        return []  # normal equations square what rounding does
    some = 0.0 if v.dtype.is_complex else 0.3
    shapes = [((4, 3), (4, 2)), ((2, 3, 4), (2, 3, 2))]
    return [v(v.array(*a), v.array(*b), np.array(some), fast=f, gradient=f)
            for a, b in shapes for f in (True, False) if f or not some or len(a) == 9]  # fmt: skip


@examples("Cross", roundings=SOME_ROUNDINGS)
def cross(v: Values) -> list[Example]:
    return [v(v.array(3), v.array(3)), v(v.array(2, 2, 3), v.array(2, 2, 3))]

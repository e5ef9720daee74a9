"""Eigenvalues and singular values, square roots and logarithms of matrices; what singular values give.

Stands for `core/kernels/linalg/{svd,self_adjoint_eig_v2,eig,matrix_square_root,matrix_logarithm}_op*`, their parts of
`python/ops/linalg_grad.py` and `linalg/linalg_impl.py`. Left out: SelfAdjointEig, eigenvalues of tridiagonal matrices.

Rule: LAPACK's numbers. A vector of theirs may be TensorFlow's the other way round, and general eigenvalues come in
another order; what does not depend on that agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import (
    casting,
    constant as constants,
    diagonal as diagonals,
    identity as array,
    joining,
    repeating,
    reshaping,
)
from dtflab.ops.costs import cubic, matrices
from dtflab.ops.linalg import matmul, matrices as linalg
from dtflab.ops.linalg.solving import (
    adjoint,
    conjugate_transposed,
    in_lapack,
    matrix_solve,
    square_shape,
    square_shapes,
)
from dtflab.ops.math import binary as math, logic, unary
from dtflab.ops.messages import invalid
from dtflab.ops.reduce import reduction

_TYPES = "{double, float, half, complex64, complex128}"


def _safe_reciprocal(x: Any) -> Any:
    return x * unary.reciprocal(x * x + 1e-20)


def _gaps(values: Any, square: Any) -> Any:
    """1 / (v_j - v_i), and 0 on the diagonal."""
    gaps = _safe_reciprocal(reshaping.expand_dims(values, -2) - reshaping.expand_dims(values, -1))
    return linalg.matrix_set_diag(gaps, constants.zeros_like(square))


def _eigen(values: int, vectors: int) -> Callable[..., int]:
    """Thirds of n³ operations, without and with eigenvectors; as Golub and Van Loan count the QR algorithm."""
    return lambda node, ins, outs: cubic(vectors if node["compute_v"] else values, 3)(node, ins, outs)


@op(f"""SelfAdjointEigV2(input: T) -> (e: T, v: T)
        compute_v: bool = true
        T: {_TYPES}""")
class SelfAdjointEigV2(Op):
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices, of which the lower triangle is read."""

    blas = True
    flops = _eigen(values=4, vectors=27)

    def infer(op):
        shape = square_shape(op)
        if shape.ndims is None:
            return [shape, shape if op.get_attr("compute_v") else TensorShape([0])]
        return [shape[:-1], shape if op.get_attr("compute_v") else TensorShape([0])]

    def bind(node, xp):
        def decompose(xp, node, x):
            if node["compute_v"]:
                values, vectors = xp.linalg.eigh(x, UPLO="L")
                return values, vectors
            return xp.linalg.eigvalsh(x, UPLO="L"), xp.empty(0, x.dtype)

        return in_lapack(decompose, "Self-adjoint eigen decomposition was not successful.")(node, xp)

    def grad(op, de, dv):
        e = op.outputs[0]
        with control_dependencies([de, dv]):
            if op.get_attr("compute_v"):
                v = op.outputs[1]
                middle = linalg.matrix_diag(de) + _gaps(e, e) * matmul.matmul(v, dv, adjoint_a=True)
            else:
                v = self_adjoint_eig(op.inputs[0])[1]
                middle = linalg.matrix_diag(de)
            dx = matmul.matmul(v, matmul.matmul(middle, v, adjoint_b=True))
            dx = diagonals.matrix_band_part(dx + adjoint(dx), -1, 0)
            return [linalg.matrix_set_diag(dx, 0.5 * linalg.matrix_diag_part(dx))]


@op("""Eig(input: T) -> (e: Tout, v: Tout)
       compute_v: bool = true
       T: {float, double, complex64, complex128}
       Tout: {complex64, complex128}""")
class Eig(Op):
    """Eigenvalues and eigenvectors of any square matrices."""

    blas = True
    flops = _eigen(values=30, vectors=75)
    infer = SelfAdjointEigV2.infer

    def bind(node, xp):
        target = node["Tout"].as_numpy_dtype

        def decompose(xp, node, x):
            if node["compute_v"]:
                return tuple(xp.linalg.eig(x))
            return xp.linalg.eigvals(x), xp.empty(0, target)

        def kernel(x):
            if x.shape[-1] != x.shape[-2]:
                raise invalid(f"Input matrix must be square, got shape {list(x.shape)}")
            return tuple(part.astype(target) for part in decompose(xp, node, x))

        return kernel

    def grad(op, de, dv):
        e = op.outputs[0]
        with control_dependencies([de, dv]):
            if op.get_attr("compute_v"):
                v = op.outputs[1]
                vt = adjoint(v)
                f = casting.conj(_gaps(e, e))
                vdv = matmul.matmul(vt, dv)
                real = linalg.matrix_diag_part(casting.cast(casting.real(vdv), vdv.dtype))
                middle = linalg.matrix_diag(de)
                middle += f * (vdv - matmul.matmul(matmul.matmul(vt, v), linalg.matrix_diag(real)))
                dx = matrix_solve(vt, matmul.matmul(middle, vt))
            else:
                vt = adjoint(eig(op.inputs[0])[1])
                dx = matrix_solve(vt, matmul.matmul(linalg.matrix_diag(de), vt))
            return [casting.cast(dx, op.inputs[0].dtype)]


@op(f"""Svd(input: T) -> (s: T, u: T, v: T)
        compute_uv: bool = true
        full_matrices: bool = false
        T: {_TYPES}""")
class Svd(Op):
    """Singular values, falling, and the vectors on both sides: input = u · diag(s) · vᴴ."""

    blas = True

    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(2)
        empty = [TensorShape([0])] * 2
        if shape.ndims is None:
            return [shape, *([shape] * 2 if op.get_attr("compute_uv") else empty)]
        batch, (m, n) = shape[:-2], shape[-2:].as_list()
        least = None if m is None or n is None else min(m, n)
        if not op.get_attr("compute_uv"):
            return [batch.concatenate([least]), *empty]
        columns = (m, n) if op.get_attr("full_matrices") else (least, least)
        return [batch.concatenate([least]), batch.concatenate([m, columns[0]]), batch.concatenate([n, columns[1]])]

    def bind(node, xp):
        dtype, full = node["T"].as_numpy_dtype, node["full_matrices"]
        computed = np.float32 if dtype == np.float16 else dtype

        def kernel(x):
            if not node["compute_uv"]:
                s = xp.linalg.svd(x.astype(computed), compute_uv=False)
                return s.astype(dtype), xp.empty(0, dtype), xp.empty(0, dtype)
            u, s, vh = xp.linalg.svd(x.astype(computed), full_matrices=full)
            return s.astype(dtype), u.astype(dtype), vh.conj().swapaxes(-1, -2).astype(dtype)

        return kernel

    def flops(node, ins, outs):
        """As Golub and Van Loan count the algorithm of Golub and Reinsch."""
        count, *sides = matrices(ins[0])
        m, n = max(sides), min(sides)
        return count * (14 * m * n * n + 8 * n**3 if node["compute_uv"] else 4 * m * n * n - 4 * n**3 // 3)

    def grad(op, ds, du, dv):
        a = op.inputs[0]
        ds = linalg.matrix_diag(casting.cast(ds, a.dtype))
        if not op.get_attr("compute_uv"):
            _, u, v = svd(a, compute_uv=True)
            return [matmul.matmul(u, matmul.matmul(ds, v, adjoint_b=True))]
        return [_svd_gradient(op, a, ds, du, dv)]


def _svd_gradient(op: Any, a: Tensor, ds: Tensor, du: Tensor, dv: Tensor) -> Tensor:
    """With more rows than columns that of the adjoint, the other way round."""
    m, n = a.shape[-2].value, a.shape[-1].value
    if m is None or n is None:
        raise NotImplementedError("SVD gradient has not been implemented for input with unknown inner matrix shape.")
    full = op.get_attr("full_matrices")
    if full and abs(m - n) > 1:
        raise NotImplementedError("svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True. "
                                  f"Received: m={m} and n={n} from op input={a} with shape={a.shape}.")  # fmt: skip
    s, u, v = op.outputs
    with control_dependencies([ds, du, dv]):
        if m > n:
            found = _svd_gradient_wide(s, v, u, ds, dv, du, n, m, full)
            return reshaping.matrix_transpose(found, conjugate=True)
        return _svd_gradient_wide(s, u, v, ds, du, dv, m, n, full)


def _svd_gradient_wide(
    s: Tensor, u: Tensor, v: Tensor, ds: Tensor, du: Tensor, dv: Tensor, m: int, n: int, full: bool
) -> Tensor:
    s = casting.cast(s, u.dtype)
    v1, dv1 = v[..., :m], dv[..., :m]
    gaps, inverse = _gaps(unary.square(s), s), linalg.matrix_diag(_safe_reciprocal(s))
    fu = gaps * matmul.matmul(u, du, adjoint_a=True)
    vdv = matmul.matmul(v1, dv1, adjoint_a=True)
    fv = gaps * vdv
    middle = ds + matmul.matmul(fu + adjoint(fu), linalg.matrix_diag(s))
    middle += matmul.matmul(linalg.matrix_diag(s), fv + adjoint(fv))
    if u.dtype.is_complex:
        own = linalg.matrix_diag(linalg.matrix_diag_part(vdv))
        middle += 0.5 * matmul.matmul(inverse, adjoint(own) - own)
    found = matmul.matmul(u, matmul.matmul(middle, v1, adjoint_b=True))
    if m == n:
        return found
    dv1h = adjoint(dv1)
    rest = dv1h - matmul.matmul(matmul.matmul(dv1h, v1), v1, adjoint_b=True)
    if full:
        rest -= matmul.matmul(matmul.matmul(v1, dv[..., m:n], adjoint_a=True), v[..., m:n], adjoint_b=True)
    return found + matmul.matmul(matmul.matmul(u, inverse), rest)


# -- functions of matrices --------------------------------------------------------------------------------------------


def _of_triangle(function: Any) -> Any:
    """The kernel that has `function` of Schur's form: of upper triangles, whose basis it changes there and back.

    The basis is that of the eigenvectors, made orthogonal column by column: it is Schur's even where two of them are
    nearly the same. Real matrices with an eigenvalue below 0 have no real function, and infinite ones none: NaN.
    """

    def compute(xp: Any, node: Any, x: Any) -> Any:
        if not x.size:
            return x
        finite = xp.isfinite(x).all((-2, -1), keepdims=True)
        wide = xp.where(finite, x, xp.eye(x.shape[-1])).astype(np.complex128)
        values, vectors = xp.linalg.eig(wide if x.dtype.kind == "c" else wide.real)
        basis = xp.linalg.qr(vectors)[0]
        with np.errstate(all="ignore"):  # NaN stands for what there is not
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


@op(f"MatrixSquareRoot(input: T) -> (output: T)\nT: {_TYPES}")
class MatrixSquareRoot(Op):
    """The matrix whose square is the input."""

    blas = True
    infer = square_shapes
    flops = cubic(28)  # a Schur form in 25, the root of its triangle, two products
    bind = _of_triangle(_square_root)

    def grad(op, dy):
        root = op.outputs[0]
        shape = array.shape(root)
        order, count = shape[-1], reduction.reduce_prod(shape[0:-2])
        eye = reshaping.reshape(linalg.eye(order, dtype=root.dtype), [-1])
        eyes = reshaping.reshape(repeating.tile(eye, [count]), shape)
        both = math.add(_kronecker(eyes, reshaping.matrix_transpose(root)), _kronecker(root, eyes))
        outer = shape[:-2]
        flat = reshaping.reshape(reshaping.matrix_transpose(dy), joining.concat([outer, [order * order], [1]], 0))
        return [reshaping.matrix_transpose(reshaping.reshape(matrix_solve(both, flat), shape))]


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    sa, sb = array.shape(a), array.shape(b)
    n, m, outer = sa[-1], sb[-1], sa[:-2]
    left = reshaping.reshape(a, joining.concat([outer, [n], [1], [n], [1]], 0))
    right = reshaping.reshape(b, joining.concat([outer, [1], [m], [1], [m]], 0))
    return reshaping.reshape(left * right, joining.concat([outer, [n * m], [n * m]], 0))


@op("MatrixLogarithm(input: T) -> (output: T)\nT: {complex64, complex128}")
class MatrixLogarithm(Op):
    """The matrix whose exponential is the input."""

    blas = True
    infer = square_shapes
    flops = cubic(60)  # a Schur form, some roots, a series
    bind = _of_triangle(_logarithm)


# -- functions --------------------------------------------------------------------------------------------------------


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(eigenvalues, rising; eigenvectors as columns) of Hermitian matrices, of which the lower triangle is read."""
    e, v = apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=True)
    return e, v


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, rising."""
    result: Tensor = apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=False)[0]
    return result


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(eigenvalues, eigenvectors as columns) of square matrices, complex and in no order."""
    wide = tensor.dtype in (dtypes.float64, dtypes.complex128)
    kind = dtypes.complex128 if wide else dtypes.complex64
    e, v = apply_op("Eig", name, input=tensor, compute_v=True, Tout=kind)
    return e, v


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """(s, u, v) with tensor = u · diag(s) · vᴴ, s falling; s alone without `compute_uv`."""
    s, u, v = apply_op("Svd", name, input=tensor, compute_uv=compute_uv, full_matrices=full_matrices)
    return (casting.real(s), u, v) if compute_uv else casting.real(s)


def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """The matrix whose square is `input`."""
    return apply_op("MatrixSquareRoot", name, input=input)


def matrix_logarithm(input: Any, name: str | None = None) -> Tensor:
    """The matrix whose exponential is `input`, which is complex."""
    return apply_op("MatrixLogarithm", name, input=input)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """How many singular values of each matrix are above `tol`, by default what rounding leaves of 0."""
    with name_scope(name or "matrix_rank"):
        a = _real_matrix(a)
        s = svd(a, compute_uv=False)
        if tol is None:
            sides = a.shape[-2:]
            largest = np.max(sides.as_list()) if sides.is_fully_defined() else reduction.reduce_max(array.shape(a)[-2:])
            eps = np.finfo(a.dtype.as_numpy_dtype).eps
            tol = eps * casting.cast(largest, a.dtype) * reduction.reduce_max(s, axis=-1, keepdims=True)
        return reduction.reduce_sum(casting.cast(s > tol, dtypes.int32), axis=-1)


def _real_matrix(a: Any) -> Tensor:
    a = convert_to_tensor(a, name="a")
    if not a.dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
    if a.shape.ndims is not None and a.shape.ndims < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {a.shape.ndims}).")
    return a


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Moore and Penrose's inverse; singular values below `rcond` times the largest count as 0."""
    with name_scope(name or "pinv"):
        a = _real_matrix(a)
        kind = a.dtype.as_numpy_dtype
        if rcond is None:
            rows, columns = a.shape[-2].value, a.shape[-1].value
            if rows is None or columns is None:
                rows = array.shape(a)[-2] if rows is None else rows
                columns = array.shape(a)[-1] if columns is None else columns
                largest = casting.cast(math.maximum(rows, columns), a.dtype)
            else:
                largest = float(max(rows, columns))
            rcond = 10.0 * largest * np.finfo(kind).eps
        rcond = convert_to_tensor(rcond, a.dtype, name="rcond")
        s, u, v = svd(a, full_matrices=False, compute_uv=True)
        cutoff = rcond * reduction.reduce_max(s, axis=-1)
        s = logic.where_v2(s > reshaping.expand_dims(cutoff, -1), s, np.array(np.inf, kind))
        found = matmul.matmul(v / reshaping.expand_dims(s, -2), u, adjoint_b=True)
        if a.shape.ndims is not None:
            found.set_shape(a.shape[:-2].concatenate([a.shape[-1], a.shape[-2]]))
        return found


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(tensor divided by its norm, the norm)."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        norm = casting.cast(linalg.norm(tensor, ord, axis, keepdims=True), tensor.dtype)
        return tensor / norm, norm

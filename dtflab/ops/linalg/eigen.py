"""Eigenvalues and singular values.

Stands for `core/kernels/linalg/{svd,self_adjoint_eig_v2,eig}_op*` and their parts of `python/ops/linalg_grad.py`. Left
out: SelfAdjointEig, eigenvalues of tridiagonal matrices.

Rule: LAPACK's numbers. Its vectors may have the opposite sign of TensorFlow's, and general eigenvalues come in
another order; what does not depend on that agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import cubic, matrices
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.linalg.solving import TYPES, computed_in, in_lapack, square_shape
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid


def _safe_reciprocal(x: Any) -> Any:
    return x * math.reciprocal(x * x + 1e-20)


def _gaps(values: Any, square: Any) -> Any:
    """1 / (v_j - v_i), and 0 on the diagonal."""
    gaps = _safe_reciprocal(arrays.expand_dims(values, -2) - arrays.expand_dims(values, -1))
    return linalg.matrix_set_diag(gaps, arrays.zeros_like(square))


def _eigen(values: int, vectors: int) -> Callable[..., int]:
    """Thirds of n³ operations, without and with eigenvectors; as Golub and Van Loan count the QR algorithm."""
    return lambda node, ins, outs: cubic(vectors if node["compute_v"] else values, 3)(node, ins, outs)


def _decomposed(xp: Any, node: Node, x: Any) -> Any:
    if node["compute_v"]:
        return tuple(xp.linalg.eigh(x, UPLO="L"))
    return xp.linalg.eigvalsh(x, UPLO="L"), xp.empty(0, x.dtype)


@op(f"SelfAdjointEigV2(input: T) -> (e: T, v: T) where compute_v: bool = true, T: {TYPES}")
class SelfAdjointEigV2(Op):
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices, of which the lower triangle is read."""

    blas = True
    flops = _eigen(values=4, vectors=27)

    def infer(op):
        shape = square_shape(op)
        vectors = shape if op.get_attr("compute_v") else TensorShape([0])
        return [shape if shape.ndims is None else shape[:-1], vectors]

    bind = in_lapack(_decomposed, "Self-adjoint eigen decomposition was not successful.")

    def grad(op, de, dv):
        e = op.outputs[0]
        with control_dependencies([de, dv]):
            if op.get_attr("compute_v"):
                v = op.outputs[1]
                middle = linalg.matrix_diag(de) + _gaps(e, e) * linalg.matmul(v, dv, adjoint_a=True)
            else:
                v = linalg.self_adjoint_eig(op.inputs[0])[1]
                middle = linalg.matrix_diag(de)
            dx = linalg.matmul(v, linalg.matmul(middle, v, adjoint_b=True))
            dx = arrays.matrix_band_part(dx + linalg.adjoint(dx), -1, 0)
            return [linalg.matrix_set_diag(dx, 0.5 * linalg.matrix_diag_part(dx))]


@op("""Eig(input: T) -> (e: Tout, v: Tout)
       compute_v: bool = true, T: {float, double, complex64, complex128}, Tout: {complex64, complex128}""")
class Eig(Op):
    """Eigenvalues and eigenvectors of any square matrices."""

    blas = True
    flops = _eigen(values=30, vectors=75)
    infer = SelfAdjointEigV2.infer

    def kernel(node, xp, x):
        if x.shape[-1] != x.shape[-2]:
            raise invalid(f"Input matrix must be square, got shape {list(x.shape)}")
        parts = xp.linalg.eig(x) if node["compute_v"] else (xp.linalg.eigvals(x), xp.empty(0))
        return tuple(part.astype(node["Tout"].as_numpy_dtype) for part in parts)

    def grad(op, de, dv):
        e = op.outputs[0]
        with control_dependencies([de, dv]):
            if op.get_attr("compute_v"):
                v = op.outputs[1]
                vt = linalg.adjoint(v)
                f = math.conj(_gaps(e, e))
                vdv = linalg.matmul(vt, dv)
                real = linalg.matrix_diag_part(arrays.cast(math.real(vdv), vdv.dtype))
                middle = linalg.matrix_diag(de)
                middle += f * (vdv - linalg.matmul(linalg.matmul(vt, v), linalg.matrix_diag(real)))
                dx = linalg.matrix_solve(vt, linalg.matmul(middle, vt))
            else:
                vt = linalg.adjoint(linalg.eig(op.inputs[0])[1])
                dx = linalg.matrix_solve(vt, linalg.matmul(linalg.matrix_diag(de), vt))
            return [arrays.cast(dx, op.inputs[0].dtype)]


@op(f"Svd(input: T) -> (s: T, u: T, v: T) where compute_uv: bool = true, full_matrices: bool = false, T: {TYPES}")
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

    def kernel(node, xp, x):
        dtype = node["T"].as_numpy_dtype
        x = x.astype(computed_in(dtype))
        if not node["compute_uv"]:
            return xp.linalg.svd(x, compute_uv=False).astype(dtype), xp.empty(0, dtype), xp.empty(0, dtype)
        u, s, vh = xp.linalg.svd(x, full_matrices=node["full_matrices"])
        return s.astype(dtype), u.astype(dtype), vh.conj().swapaxes(-1, -2).astype(dtype)

    def flops(node, ins, outs):
        """As Golub and Van Loan count the algorithm of Golub and Reinsch."""
        count, *sides = matrices(ins[0])
        m, n = max(sides), min(sides)
        return count * (14 * m * n * n + 8 * n**3 if node["compute_uv"] else 4 * m * n * n - 4 * n**3 // 3)

    def grad(op, ds, du, dv):
        a = op.inputs[0]
        ds = linalg.matrix_diag(arrays.cast(ds, a.dtype))
        if not op.get_attr("compute_uv"):
            _, u, v = linalg.svd(a, compute_uv=True)
            return [linalg.matmul(u, linalg.matmul(ds, v, adjoint_b=True))]
        return [_svd_gradient(op, a, ds, du, dv)]


def _svd_gradient(op: Operation, a: Tensor, ds: Tensor, du: Tensor, dv: Tensor) -> Tensor:
    """The gradient by `a`; with more rows than columns it is the adjoint of the gradient by aᴴ."""
    m, n = a.shape[-2].value, a.shape[-1].value
    if m is None or n is None:
        raise NotImplementedError("SVD gradient has not been implemented for input with unknown inner matrix shape.")
    full = op.get_attr("full_matrices")
    if full and abs(m - n) > 1:
        text = "svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True."
        raise NotImplementedError(f"{text} Received: m={m} and n={n} from op input={a} with shape={a.shape}.")
    s, u, v = op.outputs
    with control_dependencies([ds, du, dv]):
        if m > n:
            found = _svd_gradient_wide(s, v, u, ds, dv, du, n, m, full)
            return arrays.matrix_transpose(found, conjugate=True)
        return _svd_gradient_wide(s, u, v, ds, du, dv, m, n, full)


def _svd_gradient_wide(
    s: Tensor, u: Tensor, v: Tensor, ds: Tensor, du: Tensor, dv: Tensor, m: int, n: int, full: bool
) -> Tensor:
    s = arrays.cast(s, u.dtype)
    v1, dv1 = v[..., :m], dv[..., :m]
    gaps, inverse = _gaps(math.square(s), s), linalg.matrix_diag(_safe_reciprocal(s))
    fu = gaps * linalg.matmul(u, du, adjoint_a=True)
    vdv = linalg.matmul(v1, dv1, adjoint_a=True)
    fv = gaps * vdv
    middle = ds + linalg.matmul(fu + linalg.adjoint(fu), linalg.matrix_diag(s))
    middle += linalg.matmul(linalg.matrix_diag(s), fv + linalg.adjoint(fv))
    if u.dtype.is_complex:
        own = linalg.matrix_diag(linalg.matrix_diag_part(vdv))
        middle += 0.5 * linalg.matmul(inverse, linalg.adjoint(own) - own)
    found = linalg.matmul(u, linalg.matmul(middle, v1, adjoint_b=True))
    if m == n:
        return found
    dv1h = linalg.adjoint(dv1)
    rest = dv1h - linalg.matmul(linalg.matmul(dv1h, v1), v1, adjoint_b=True)
    if full:
        rest -= linalg.matmul(linalg.matmul(v1, dv[..., m:n], adjoint_a=True), v[..., m:n], adjoint_b=True)
    return found + linalg.matmul(linalg.matmul(u, inverse), rest)

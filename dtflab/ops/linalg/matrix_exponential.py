"""The exponential of matrices, as a graph: Padé's approximations, scaling and squaring.

Stands for `matrix_exponential` in `python/ops/linalg/linalg_impl.py`; the method is Higham's of 2005.

Rule: each matrix of a batch gets the approximation that its norm asks for; all are computed, one is chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce

# The coefficients of Padé's numerators, without the leading 1, and up to which norm each degree is exact.
_PADE = {
    3: [120.0, 60.0, 12.0],
    5: [30240.0, 15120.0, 3360.0, 420.0, 30.0],
    7: [17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0],
    9: [17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0],
}
_PADE_13 = """
    64764752532480000 32382376266240000 7771770303897600 1187353796428800 129060195264000 10559470521600 670442572800
    33522128640 1323241920 40840800 960960 16380 182"""
_SINGLE = {3: 0.4258730016922831, 5: 1.880152677804762, 7: 3.92572478313866}
_DOUBLE = {3: 0.01495585217958292, 5: 0.253939833006323, 7: 0.9504178996162932, 9: 2.097847961257068}
_DOUBLE[13] = 5.371920351148152


def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """The exponential of each matrix; NaN for all if one has no finite norm."""
    with name_scope(name, "matrix_exponential", [input]):
        matrix = convert_to_tensor(input, name="input")
        if matrix.shape[-2:] == [0, 0]:
            return matrix
        batch: Any = matrix.shape[:-2]
        if not batch.is_fully_defined():
            batch = arrays.shape(matrix)[:-2]
        matrix = arrays.reshape(matrix, arrays.concat(([-1], arrays.shape(matrix)[-2:]), axis=0))
        sizes, rows = math.abs(matrix), arrays.size(arrays.shape(matrix)) - 2
        norm = reduce.reduce_max(reduce.reduce_sum(sizes, axis=rows), axis=-1)[..., None, None]
        u, v, squarings = _quotient(matrix, norm)
        result = _squared(matrix, norm, u, v, squarings)
        if not matrix.shape.is_fully_defined():
            return arrays.reshape(result, arrays.concat((batch, arrays.shape(result)[-2:]), axis=0))
        return arrays.reshape(result, batch.concatenate(result.shape[-2:]))


def _quotient(matrix: Tensor, norm: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """u and v with exp(matrix / 2ˢ) ≈ (v - u)⁻¹ (v + u), and s."""
    if matrix.dtype in (dtypes.float16, dtypes.float32, dtypes.complex64):
        norms = _SINGLE
    elif matrix.dtype in (dtypes.float64, dtypes.complex128):
        norms = _DOUBLE
    else:
        raise ValueError(f"tf.linalg.expm does not support matrices of type {matrix.dtype}")
    *low, last = norms
    largest = constant(norms[last], norm.dtype)
    times = math.log(norm / largest) / math.log(constant(2.0, norm.dtype))
    squarings = math.maximum(math.floor(times), 0)
    pairs = [_pade(matrix, degree) for degree in low]
    scaled = matrix / arrays.cast(math.pow(constant(2.0, norm.dtype), squarings), matrix.dtype)
    pairs.append(_pade_13(scaled) if last == 13 else _pade(scaled, last))
    bounds = [norms[degree] for degree in low]
    return _chosen(norm, bounds, [u for u, _ in pairs]), _chosen(norm, bounds, [v for _, v in pairs]), squarings


def _chosen(norm: Tensor, bounds: list[float], cases: list[Tensor]) -> Tensor:
    below = _less(norm, bounds[0])
    rest = cases[1] if len(bounds) == 1 else _chosen(norm, bounds[1:], cases[1:])
    return indexing.where_v2(below, cases[0], rest)


def _less(norm: Tensor, bound: float) -> Tensor:
    return math.less(norm, constant(bound, norm.dtype))


def _identity(matrix: Tensor) -> Tensor:
    return linalg.eye(arrays.shape(matrix)[-2], batch_shape=arrays.shape(matrix)[:-2], dtype=matrix.dtype)


def _pade(matrix: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """Odd and even powers of the numerator, for the degrees without a shortcut."""
    b = [constant(x, matrix.dtype) for x in _PADE[degree]]
    identity = _identity(matrix)
    powers = [linalg.matmul(matrix, matrix)]
    for _ in range(degree // 2 - 1):
        powers.append(linalg.matmul(powers[-1], powers[0]))
    odd = powers[-1]
    for k in range(len(powers) - 2, -1, -1):
        odd += b[2 * k + 3] * powers[k]
    u = linalg.matmul(matrix, odd + b[1] * identity)
    even = b[-1] * powers[-1]
    for k in range(len(powers) - 2, -1, -1):
        even += b[2 * k + 2] * powers[k]
    return u, even + b[0] * identity


def _pade_13(matrix: Tensor) -> tuple[Tensor, Tensor]:
    b = [constant(x, matrix.dtype) for x in map(float, _PADE_13.split())]
    identity = _identity(matrix)
    m2 = linalg.matmul(matrix, matrix)
    m4 = linalg.matmul(m2, m2)
    m6 = linalg.matmul(m4, m2)
    odd = linalg.matmul(m6, m6 + b[11] * m4 + b[9] * m2) + b[7] * m6 + b[5] * m4 + b[3] * m2 + b[1] * identity
    u = linalg.matmul(matrix, odd)
    even = b[12] * m6 + b[10] * m4 + b[8] * m2
    return u, linalg.matmul(m6, even) + b[6] * m6 + b[4] * m4 + b[2] * m2 + b[0] * identity


def _squared(matrix: Tensor, norm: Tensor, u: Tensor, v: Tensor, squarings: Tensor) -> Tensor:
    """The quotient, squared as often as each matrix had been halved."""
    finite = math.is_finite(reduce.reduce_max(norm))
    nan = constant(np.nan, matrix.dtype)
    result = cond(finite, lambda: linalg.matrix_solve(-u + v, u + v), lambda: arrays.fill(arrays.shape(matrix), nan))
    most = reduce.reduce_max(squarings)

    def more(i: Any, _: Any) -> Any:
        return cond(finite, lambda: math.less(i, most), lambda: constant(False))

    def square(i: Any, r: Any) -> Any:
        return i + 1, indexing.where_v2(math.less(i, squarings), linalg.matmul(r, r), r)

    return while_loop(more, square, [constant(0.0, norm.dtype), result])[1]

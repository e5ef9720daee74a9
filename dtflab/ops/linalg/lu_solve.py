"""Uses of an LU decomposition: systems, inverses, and the matrix again.

Stands for `lu_solve`, `lu_matrix_inverse` and `lu_reconstruct` in `python/ops/linalg/linalg_impl.py`. Left out: the
assertions of `validate_args`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.functional.functions import map_fn
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.reduce import functions as reduce


def _given(lower_upper: Any, perm: Any) -> tuple[Tensor, Tensor]:
    lower_upper = convert_to_tensor(lower_upper, dtype_hint=dtypes.float32, name="lower_upper")
    perm = convert_to_tensor(perm, dtype_hint=dtypes.int32, name="perm")
    if lower_upper.shape.ndims is not None and lower_upper.shape.ndims < 2:
        raise ValueError("Input `lower_upper` must have at least 2 dimensions.")
    ranks = lower_upper.shape.ndims, perm.shape.ndims
    if None not in ranks and ranks[0] != ranks[1] + 1:
        raise ValueError("`rank(lower_upper)` must equal `rank(perm) + 1`")
    return lower_upper, perm


def _lower(lower_upper: Tensor, shape: Any) -> Tensor:
    """The lower triangle, with the ones that are not stored."""
    ones = arrays.ones(shape[:-1], dtype=lower_upper.dtype)
    return linalg.matrix_set_diag(arrays.matrix_band_part(lower_upper, num_lower=-1, num_upper=0), ones)


def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The x with A·x = rhs, given `lu(A)`."""
    with name_scope(name or "lu_solve"):
        lower_upper, perm = _given(lower_upper, perm)
        rhs = convert_to_tensor(rhs, dtype_hint=lower_upper.dtype, name="rhs")
        if rhs.shape.ndims == 2 and perm.shape.ndims == 1:
            rows = indexing.gather(rhs, perm, axis=-2)
        else:
            rows = _rows_in_order(rhs, perm)
        lower = _lower(lower_upper, arrays.shape(lower_upper))
        return linalg.matrix_triangular_solve(lower_upper, linalg.matrix_triangular_solve(lower, rows), lower=False)


def _rows_in_order(rhs: Tensor, perm: Tensor) -> Tensor:
    shape: Any = arrays.shape(rhs)
    batch = arrays.broadcast_dynamic_shape(shape[:-2], arrays.shape(perm)[:-1])
    rows, columns = shape[-2], shape[-1]
    whole: Any = arrays.concat([batch, [rows, columns]], axis=0)
    rhs = arrays.reshape(arrays.broadcast_to(rhs, whole), [-1, rows, columns])
    perm = arrays.reshape(arrays.broadcast_to(perm, whole[:-1]), [-1, rows])
    count = reduce.reduce_prod(batch)
    places: Any = arrays.range(count)
    which = arrays.broadcast_to(places[:, None], [count, rows])
    return arrays.reshape(indexing.gather_nd(rhs, arrays.stack([which, perm], axis=-1)), whole)


def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The inverse of A, given `lu(A)`."""
    with name_scope(name or "lu_matrix_inverse"):
        lower_upper, perm = _given(lower_upper, perm)
        shape: Any = arrays.shape(lower_upper)
        identity = linalg.eye(shape[-1], batch_shape=shape[:-2], dtype=lower_upper.dtype)
        return lu_solve(lower_upper, perm, rhs=identity)


def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """A again, from `lu(A)`."""
    with name_scope(name or "lu_reconstruct"):
        lower_upper, perm = _given(lower_upper, perm)
        shape: Any = arrays.shape(lower_upper)
        lower = _lower(lower_upper, shape)
        x = linalg.matmul(lower, arrays.matrix_band_part(lower_upper, num_lower=0, num_upper=-1))
        if lower_upper.shape.ndims == 2:
            x = indexing.gather(x, arrays.invert_permutation(perm))
        else:
            count, side = reduce.reduce_prod(shape[:-2]), shape[-1]
            x = arrays.reshape(x, [count, side, side])
            orders = map_fn(arrays.invert_permutation, arrays.reshape(perm, [count, side]))
            places: Any = arrays.range(count)
            which = arrays.broadcast_to(places[:, None], [count, side])
            x = arrays.reshape(indexing.gather_nd(x, arrays.stack([which, orders], axis=-1)), shape)
        x.set_shape(lower_upper.shape)
        return x

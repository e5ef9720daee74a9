"""The sum of products over any axes of two arrays, as one product of matrices.

Stands for `tensordot` in `python/ops/math_ops.py`. Left out: einsum.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import constant as constants, gathering, identity as array, joining, reshaping, stacking
from dtflab.ops.linalg.matmul import matmul
from dtflab.ops.math import logic
from dtflab.ops.reduce import reduction, segments


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over axes of `a` and `b`: the last and first `axes`, or those in a pair of lists."""
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        a_axes, b_axes = _contracted(a, axes)
        a_matrix, a_free, a_static = _as_matrix(a, a_axes, flipped=False)
        b_matrix, b_free, b_static = _as_matrix(b, b_axes, flipped=True)
        product = matmul(a_matrix, b_matrix)
        if isinstance(a_free, list) and isinstance(b_free, list):
            if product.shape.is_fully_defined() and product.shape.as_list() == a_free + b_free:
                return product
            return reshaping.reshape(product, a_free + b_free, name=scope)
        a_free, b_free = convert_to_tensor(a_free, dtypes.int32), convert_to_tensor(b_free, dtypes.int32)
        product = reshaping.reshape(product, joining.concat([a_free, b_free], 0), name=scope)
        if a_static is not None and b_static is not None:
            product.set_shape(a_static + b_static)
        return product


def _contracted(a: Tensor, axes: Any) -> tuple[Any, Any]:
    """The axes of a and of b to sum over."""
    if isinstance(axes, int | np.integer):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        ndims = a.shape.ndims
        if ndims is None:
            rank = array.rank(a)
            return constants.range(rank - axes, rank, dtype=dtypes.int32), constants.range(axes, dtype=dtypes.int32)
        if axes > ndims:
            raise ValueError(f"`axes` must not be larger than the number of dimensions of tensor {a}.  Received {axes}")
        return list(builtins.range(ndims - axes, ndims)), list(builtins.range(axes))
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
        a_axes, b_axes = ([x] if isinstance(x, int | np.integer) else x for x in axes)
        if len(a_axes) != len(b_axes):
            raise ValueError(f"Different number of contraction axes `a` and `b`, {len(a_axes)} != {len(b_axes)}.")
        return a_axes, b_axes
    axes = convert_to_tensor(axes, dtypes.int32, name="axes")
    return axes[0], axes[1]


def _as_matrix(a: Tensor, axes: Any, flipped: bool) -> tuple[Tensor, Any, Any]:
    """`a` as a matrix, its free axes before (or after) those to sum over; and the sizes of the free ones."""
    if not a.shape.is_fully_defined() or not isinstance(axes, list | tuple):
        return _as_matrix_later(a, axes, flipped)
    dims: list[Any] = a.shape.as_list()
    axes = [i % len(dims) for i in axes]
    free = [i for i in builtins.range(len(dims)) if i not in axes]
    free_dims = [dims[i] for i in free]
    shape = [int(np.prod(free_dims)), int(np.prod([dims[i] for i in axes]))]
    perm = [*axes, *free] if flipped else [*free, *axes]
    shape = shape[::-1] if flipped else shape
    if perm != list(builtins.range(len(dims))):
        a = reshaping.transpose(a, perm)
    if a.shape.as_list() != shape:
        a = reshaping.reshape(a, shape)
    return a, free_dims, free_dims


def _as_matrix_later(a: Tensor, axes: Any, flipped: bool) -> tuple[Tensor, Any, Any]:
    """The same with sizes that only the step knows."""
    static = None
    free: Any
    if a.shape.ndims is not None and isinstance(axes, list | tuple):
        dims = a.shape.as_list()
        axes = [i % len(dims) for i in axes]
        free = [i for i in builtins.range(len(dims)) if i not in axes]
        static = [dims[i] for i in free]
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        free = convert_to_tensor(free, dtypes.int32, name="free")
        shape = array.shape(a)
    else:
        shape = array.shape(a)
        rank = array.rank(a)
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        axes = logic.where(axes >= 0, axes, axes + rank)
        free, _ = segments.setdiff1d(constants.range(rank), axes, dtypes.int32)
    free_dims, axes_dims = gathering.gather(shape, free), gathering.gather(shape, axes)
    free_size, axes_size = reduction.reduce_prod(free_dims), reduction.reduce_prod(axes_dims)
    if flipped:
        perm, size = joining.concat([axes, free], 0), stacking.stack([axes_size, free_size])
    else:
        perm, size = joining.concat([free, axes], 0), stacking.stack([free_size, axes_size])
    return reshaping.reshape(reshaping.transpose(a, perm), size), free_dims, static

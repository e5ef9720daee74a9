"""Places in arrays: from one number to one per axis, and gather inside each element of a batch.

Stands for `core/kernels/unravel_index_op.cc`, `batch_gather` and `batch_gather_nd` of `python/ops/array_ops.py`.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import (
    arranging,
    constant as constants,
    gathering,
    identity as array,
    joining,
    repeating,
    reshaping,
    stacking,
)
from dtflab.ops.messages import invalid


@op("""UnravelIndex(indices: Tidx, dims: Tidx) -> (output: Tidx)
       Tidx: {int32, int64} = int32""")
class UnravelIndex(Op):
    """For each number of an element its place: column i of the result, one row per axis."""

    def infer(op):
        indices, dims = op.inputs[0].shape, op.inputs[1].shape
        if indices.ndims is None or dims.ndims is None:
            return [TensorShape(None)]
        dims = dims.with_rank(1)
        if indices.ndims == 0:
            return [dims]
        return [TensorShape([dims[0].value, indices.num_elements()])]

    def bind(node, xp):
        def kernel(indices, dims):
            if np.ndim(indices) > 1:
                raise invalid("The indices can only be scalar or vector.")
            if np.ndim(dims) != 1:
                raise invalid("The indices can only be 1-D" if np.ndim(dims) else "dims must be a vector")
            if (dims == 0).any():
                raise invalid(
                    "Input dims cannot contain a dim of zero, but dims contains zero at index "
                    f"{int((dims == 0).argmax())}"
                )
            if ((indices < 0) | (indices >= dims.prod())).any():
                raise invalid("index is out of bound as with dims")
            return xp.stack(xp.unravel_index(indices, tuple(dims.tolist()))).astype(indices.dtype)

        return kernel


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """The places that the elements number `indices`, a scalar or vector, have in an array of shape `dims`.

    The result has a row per axis. InvalidArgumentError for a number that is too large.
    """
    return apply_op("UnravelIndex", name, indices=indices, dims=dims)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """`gather` along the last axis of `indices`; the axes before it go together with those of `params`."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if indices.shape.ndims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        batch = indices.shape.ndims - 1
        if batch < 0:
            raise ValueError("Argument `batch_dims` = -1 must be less than rank(`indices`) = 0")
        if params.shape.ndims is not None and batch >= params.shape.ndims:
            text = f"less than rank(`params`) = {params.shape.ndims}"
            raise ValueError(f"Argument `batch_dims` = {batch} must be {text}")
        return _batch_gather(params, indices, batch)


def _batch_gather(params: Tensor, indices: Tensor, batch: int) -> Tensor:
    """By one gather along the rows, for which the elements of the batch stand one below the other."""
    indices_shape, params_shape = array.shape(indices), array.shape(params)
    rows = _rows_of_all(params_shape, indices, batch)
    flat = reshaping.reshape(rows, [-1])
    rest: Any = params_shape[batch + 1 :]
    count = apply_op("Prod", input=params_shape[: batch + 1], reduction_indices=[0], keep_dims=False)
    below = reshaping.reshape(params, joining.concat([[count], rest], axis=0))
    found = reshaping.reshape(gathering.gather(below, flat), joining.concat([indices_shape, rest], axis=0))
    common = indices.shape[:batch].merge_with(params.shape[:batch])
    found.set_shape(common.concatenate(indices.shape[batch:]).concatenate(params.shape[batch + 1 :]))
    return found


def _rows_of_all(params_shape: Tensor, indices: Tensor, batch: int) -> Any:
    dtype, ndims = indices.dtype.base_dtype, indices.shape.ndims
    assert ndims is not None
    rows: Any = indices
    stride: Any = constants.ones((), dtype)
    sizes: Any = apply_op("Cast", x=params_shape, DstT=dtype)
    for dim in builtins.range(batch, 0, -1):
        size = sizes[dim - 1]
        stride *= sizes[dim]
        start, step = constants.zeros((), dtype), constants.ones((), dtype)
        offsets: Any = apply_op("Range", start=start, limit=size, delta=step)
        offsets *= stride
        shape = stacking.stack([1] * (dim - 1) + [size] + [1] * (ndims - dim), axis=0)
        rows += reshaping.reshape(offsets, shape)
    return rows


def batch_gather_nd(
    params: Any, indices: Any, batch_dims: int, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """The slices of `params` at positions, where the first `batch_dims` axes go together with those of `indices`."""
    with name_scope(name, "BatchGatherND", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        _check_batch_dims(batch_dims, params, indices)
        params_shape: Any = array.shape(params)
        indices_shape: Any = array.shape(indices)
        batch = params_shape[:batch_dims]
        count = apply_op("Prod", input=batch, reduction_indices=[0])
        places = _places_in_batch(batch, indices, indices_shape, batch_dims)
        inner = reshaping.reshape(indices, joining.concat(([count], indices_shape[batch_dims:]), axis=0))
        whole = joining.concat((places, inner), axis=-1)
        found = apply_op("GatherNd", params=params, indices=whole, bad_indices_policy=bad_indices_policy)
        rest: Any = array.shape(found)
        return reshaping.reshape(found, joining.concat((batch, rest[1:]), axis=0))


def _check_batch_dims(batch_dims: int, params: Tensor, indices: Tensor) -> None:
    if not isinstance(batch_dims, int):
        raise TypeError(f"Argument `batch_dims` must be an int; got {batch_dims}")
    if batch_dims < 0:
        raise ValueError("tf.gather_nd does not allow negative batch_dims.")
    for what, ndims in (("indices", indices.shape.ndims), ("params", params.shape.ndims)):
        if ndims is not None and batch_dims >= ndims:
            raise ValueError(f"Argument `batch_dims` = {batch_dims} must be less than rank(`{what}`) = {ndims}")


def _places_in_batch(batch: Tensor, indices: Tensor, indices_shape: Any, batch_dims: int) -> Tensor:
    """For each position in `indices` where its element of the batch stands."""
    ndims = array.rank(indices) - batch_dims - 1
    between = indices_shape[batch_dims:-1]
    ranges = []
    for size in stacking.unstack(batch, axis=0):
        size = apply_op("Cast", x=size, DstT=dtypes.int32)
        ranges.append(apply_op("Cast", x=apply_op("Range", start=0, limit=size, delta=1), DstT=indices.dtype))
    grid = [reshaping.reshape(x, (-1,)) for x in arranging.meshgrid(*ranges, indexing="ij")]
    places = reshaping.transpose(stacking.stack(grid, axis=0))
    shape: Any = array.shape(places)
    ones = constants.ones(ndims, shape.dtype)
    places = reshaping.reshape(places, joining.concat([shape[:1], ones, shape[1:]], axis=0))
    return repeating.tile(places, joining.concat(((1,), between, (1,)), axis=0))

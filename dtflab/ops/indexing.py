"""Places in arrays: from one number to one per axis, and gather inside each element of a batch.

Stands for `core/kernels/unravel_index_op.cc` and `batch_gather` of `python/ops/array_ops.py`.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import array, constant as constants, gathering, joining, reshaping, stacking
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

"""Rows by index and by position: gather, and its inverse.

Stands for `core/kernels/gather_op.cc`, `gather_nd_op.cc`, `scatter_nd_op.cc` and their
parts of `array_grad.py`. Left out: what GPUs do with a bad index.

Rule: an index out of range is an error that names it. The gradient of a gather along the rows stays sparse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.indexed_slices import IndexedSlices, dense
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with
from dtflab.graph.static_value import constant_value, folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free, of_part, per_input
from dtflab.ops.indexing.functions import gather, gather_nd, scatter_nd
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.scatter import blank, check_output, check_range, check_static_slices


@op("""Gather(params: Tparams, indices: Tindices) -> (output: Tparams)
       validate_indices: bool = true, Tparams: type, Tindices: {int32, int64}""")
class Gather(Op):
    """The rows of params that the indices name."""

    def infer(op):
        params, indices = op.inputs
        return [indices.shape.concatenate(params.shape.with_rank_at_least(1)[1:])]

    def bind(node, xp):
        def kernel(params, indices):
            check_range(indices, params.shape[0])
            return params[indices]

        return _kept_in_array(kernel) if node["Tparams"] == dtypes.string else kernel

    flops = free
    bytes = of_part

    def grad(op, dy):
        params, indices = op.inputs
        return [_sparse_rows(dy, indices, *_sizes(params, indices)), None]


def _kept_in_array(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel for strings: NumPy takes a single one out of its array."""
    return lambda *args: np.asarray(kernel(*args), object)


def _sizes(params: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """The shape of params, and the number of indices as a vector."""
    with colocate_with(params):
        params_shape = arrays.shape(params)
    return params_shape, arrays.expand_dims(arrays.size(indices), 0)


def _sparse_rows(dy: Any, indices: Tensor, params_shape: Any, size: Tensor) -> IndexedSlices:
    """dy as the rows of a gradient for `params`."""
    values_shape = arrays.concat([size, params_shape[1:]], 0)
    values = arrays.reshape(dense(dy), values_shape)
    return IndexedSlices(values, arrays.reshape(indices, size), params_shape)


@op("""GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> (output: Tparams)
       batch_dims: int = 0, Tparams: type, Tindices: {int16, int32, int64}, Taxis: {int32, int64}""")
class GatherV2(Op):
    """The slices of params along an axis that the indices name; the first `batch_dims` axes go together."""

    def infer(op):
        params, indices, axis = op.inputs[0].shape, op.inputs[1].shape, folded_value(op.inputs[2])
        batch = op.get_attr("batch_dims")
        if params.ndims is None or indices.ndims is None:
            return [TensorShape(None)]
        batch = batch + indices.ndims if batch < 0 else batch
        if axis is None:
            return [TensorShape([None] * (params.ndims - 1 + indices.ndims - batch))]
        if not -params.ndims <= axis < params.ndims:
            raise ValueError(f"Shape must be at least rank {int(axis) + 1} but is rank {params.ndims}")
        axis = int(axis) % params.ndims
        params[:batch].assert_is_compatible_with(indices[:batch])
        return [params[:axis].concatenate(indices[batch:]).concatenate(params[axis + 1 :])]

    def bind(node, xp):
        batch_dims = node["batch_dims"]
        if batch_dims:
            return lambda params, indices, axis: _batch_gather(xp, params, indices, int(axis), batch_dims)

        def kernel(params, indices, axis):
            ndim, axis = params.ndim, int(axis)
            if not -ndim <= axis < ndim:
                raise invalid(f"Expected axis in the range [{-ndim}, {ndim}), but got {axis}")
            if xp is np and not indices.ndim and not axis and 0 <= int(indices) < len(params):
                row = params[int(indices)]  # where `take` would let other threads run
                return row.copy() if ndim > 1 else row
            check_range(indices, params.shape[axis])
            return params.take(indices, axis)

        return _kept_in_array(kernel) if node["Tparams"] == dtypes.string else kernel

    flops = free
    bytes = of_part

    def grad(op, dy):
        params, indices, axis = op.inputs
        params_shape, size = _sizes(params, indices)
        batch = op.get_attr("batch_dims")
        if batch < 0 and indices.shape.ndims is None:
            raise ValueError(
                "Currently, it is unsupported to take the gradient of tf.gather when batch_dims < 0 and the "
                "rank of the indices is unknown. Please pass a positive batch_dims or use tf.ensure_shape to "
                "update the shape of indices when calling tf.gather. "
                f"Got batch_dims={batch} and indices={indices}"
            )
        if constant_value(axis) == 0:
            return [_sparse_rows(dy, indices, params_shape, size), None, None]
        batch = batch + indices.shape.ndims if batch < 0 else batch
        dparams = _dense_gather_grad(dy, indices, axis, params_shape, batch)
        return [arrays.reshape(dparams, arrays.shape(params)), None, None]


def _batch_gather(xp: Any, params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    axis %= params.ndim
    check_range(indices, params.shape[axis])
    if params.shape[:batch] != indices.shape[:batch]:
        raise invalid(f"params.shape[0:{batch}] and indices.shape[0:{batch}] must be equal")
    count = math.prod(params.shape[:batch])
    slices = xp.moveaxis(params, axis, batch)
    flat = slices.reshape(count, *slices.shape[batch:])
    found = flat[xp.arange(count)[:, None], indices.reshape(count, math.prod(indices.shape[batch:]))]
    found = found.reshape(*indices.shape, *flat.shape[2:])
    new = range(indices.ndim - batch)
    return xp.moveaxis(found, [batch + i for i in new], [axis + i for i in new])


def _dense_gather_grad(dy: Any, indices: Tensor, axis: Tensor, params_shape: Any, batch_dims: int) -> Tensor:
    """The gradient of a gather along an axis other than the rows: moved to the rows, added up, moved back."""
    range_ = arrays.range
    outer, inner = params_shape[:axis], params_shape[axis:][1:]
    values_shape = arrays.concat([outer, [-1], inner], 0)
    values_dims, axis_dims = arrays.size(values_shape), arrays.size(outer)
    outer_batches, batch_axes = range_(batch_dims), range_(batch_dims, axis_dims)
    inner_axes = range_(axis_dims + 1, values_dims)

    values = arrays.reshape(dense(dy), values_shape)
    to_rows = arrays.concat([outer_batches, [axis_dims], batch_axes, inner_axes], 0)
    values = arrays.transpose(values, to_rows)
    shape = gather(params_shape, to_rows)
    dparams = _batch_gather_grad(shape, values, indices, batch_dims, params_shape[axis])
    return arrays.transpose(dparams, arrays.concat([outer_batches, batch_axes + 1, [batch_dims], inner_axes], 0))


def _batch_gather_grad(params_shape: Any, values: Any, indices: Any, batch_dims: int, rows: Any) -> Tensor:
    size = arrays.expand_dims(arrays.size(indices), 0)
    if batch_dims:
        values_shape = arrays.shape(values)
        outer, inner = values_shape[:batch_dims], values_shape[batch_dims:][1:]
        rows *= apply_op("Prod", input=outer, reduction_indices=[0], keep_dims=False)
        indices = _with_batch_offsets(params_shape, indices, batch_dims)
        flat = arrays.concat([[-1], inner], 0)
        values = arrays.reshape(values, flat)
    indices = arrays.reshape(indices, size)
    dparams = reduce.unsorted_segment_sum(values, indices, rows)
    return arrays.reshape(dparams, arrays.concat([outer, flat], 0)) if batch_dims else dparams


def _with_batch_offsets(params_shape: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """The indices as they are when the batches stand one below the other."""
    dtype = indices.dtype.base_dtype
    sizes: Any = arrays.cast(params_shape, dtype)
    stride: Any = arrays.ones((), dtype)
    result: Any = indices
    for dim in range(batch_dims, 0, -1):
        size = sizes[dim - 1]
        stride *= sizes[dim]
        offsets: Any = arrays.range(arrays.zeros((), dtype), size, arrays.ones((), dtype))
        offsets *= stride

        sizes_here = [arrays.tile([1], [dim - 1]), [size], arrays.tile([1], [arrays.rank(indices) - dim])]
        shape = arrays.concat(sizes_here, axis=0)
        result += arrays.reshape(offsets, shape)
    return result


# -- by coordinates ----------------------------------------------------------------------------------------


def _coordinates(node: Node, indices: Any, shape: tuple[int, ...], what: str) -> tuple[Any, ...]:
    """`indices`, whose last axis is a position, as NumPy wants them; an error names the first one outside."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise invalid(f"index innermost dimension length must be <= {what} rank; saw: {depth} vs. {len(shape)}")
    wrong = ((indices < 0) | (indices >= np.array(shape[:depth], indices.dtype, like=indices))).any(-1)
    if np.any(wrong):
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        text, position = ",".join(map(str, where)), ", ".join(map(str, indices[where].tolist()))
        of_params = what == "param"
        into = f"param shape {shape_text(shape)}, node name: {node.name}" if of_params else f"shape {shape_text(shape)}"
        raise invalid(f"indices[{text}] = [{position}] does not index into {into}")
    return tuple(np.moveaxis(indices, -1, 0))


@op("""GatherNd(params: Tparams, indices: Tindices) -> (output: Tparams)
       Tparams: type, Tindices: {int16, int32, int64}, bad_indices_policy: string = ''""")
class GatherNd(Op):
    """The slices of params at positions: the last axis of indices is a position."""

    def infer(op):
        params, indices = op.inputs[0].shape, op.inputs[1].shape
        if indices.ndims is None or indices[-1].value is None:
            return [TensorShape(None)]
        depth = indices[-1].value
        if params.ndims is not None and depth > params.ndims:
            text = f"but saw indices shape: {indices} and params shape: {params}"
            raise ValueError(f"indices.shape[-1] must be <= params.rank, {text}")
        return [indices[:-1].concatenate(params[depth:])]

    def bind(node, xp):
        def kernel(params, indices):
            if indices.shape[-1] == 0:  # each position is all of params
                return xp.broadcast_to(params, indices.shape[:-1] + params.shape)
            return params[_coordinates(node, indices, params.shape, "param")]

        return _kept_in_array(kernel) if node["Tparams"] == dtypes.string else kernel

    flops = free
    bytes = of_part

    def grad(op, dy):
        params, indices = op.inputs
        shape = arrays.shape(params, out_type=indices.dtype)
        if indices.shape.ndims == 2 and indices.shape[-1].value == 1:
            return [IndexedSlices(dy, arrays.squeeze(indices, axis=-1), shape), None]
        return [scatter_nd(indices, dy, shape, bad_indices_policy=op.get_attr("bad_indices_policy")), None]


@op("""ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> (output: T)
       T: type, Tindices: {int16, int32, int64}, bad_indices_policy: string = ''""")
class ScatterNd(Op):
    """Zeros, with the updates added at positions."""

    flops = per_input(1, index=1)

    def infer(op):
        shape = folded_shape(op.inputs[2])
        check_static_slices(shape, op.inputs[0].shape, op.inputs[1].shape)
        return [shape]

    def kernel(node, xp, indices, updates, shape):
        out = blank(xp, shape.tolist(), node["T"].as_numpy_dtype)
        check_output(out.shape, indices, updates)
        scatterer(xp, "add")(out, _coordinates(node, indices, out.shape, "output"), updates)
        return out

    def grad(op, dy):
        return [None, gather_nd(dy, op.inputs[0]), None]

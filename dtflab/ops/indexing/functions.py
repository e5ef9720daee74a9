"""Functions that choose elements of arrays: by slices, numbers, positions, masks or order.

Stand for their parts of `python/ops/array_ops.py`, `data_flow_ops.py`, `manip_ops.py` and `sort_ops.py`.

Rule: no op sorts. The k largest of k elements are all of them, in descending order; ascending order is the
descending one of the negated elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.messages import renamed
from dtflab.ops.strides import MASKS

# -- slices ----------------------------------------------------------------------------------------------


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """`size[i]` elements from `begin[i]` on, along each axis i; a size of -1 is all that are left."""
    return apply_op("Slice", name, input=input_, begin=begin, size=size)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """input_[begin:end:strides]; bit i of a mask says that it holds for entry i of the bounds.

    A slice of the variable `var` has a method `assign(value)`, which writes that part of the variable.
    """
    strides = arrays.ones_like(begin) if strides is None else strides
    masks = zip(MASKS, (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask))
    where = {"begin": begin, "end": end, "strides": strides, **dict(masks)}
    result: Tensor = apply_op("StridedSlice", name, input=input_, **where)
    if var is not None:
        default = f"{name}_assign"
        result.assign = lambda value, name=None: var._strided_slice_assign(value, name or default, where)
    return result


# -- by number and by position ---------------------------------------------------------------------------


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of `params` along `axis` that `indices` names; a variable's rows are read where it lives."""
    del validate_indices  # always
    axis = batch_dims if axis is None else axis
    static = constant_value(axis) if isinstance(axis, Tensor) else axis
    if static is None or static != 0:
        return apply_op("GatherV2", name, params=params, indices=indices, axis=axis, batch_dims=batch_dims)
    sparse_read = getattr(params, "sparse_read", None)
    if sparse_read is not None:
        return sparse_read(indices, name=name)
    return apply_op("GatherV2", name, params=params, indices=indices, axis=axis)


def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Tensor:
    """The slices of `params` at the positions in `indices`; a variable's are read where it lives.

    The first `batch_dims` axes of both go together.
    """
    if batch_dims:
        return batch_gather_nd(params, indices, batch_dims, name, bad_indices_policy)
    read = getattr(params, "gather_nd", None)
    if read is not None:
        return read(indices, name=name)
    return apply_op("GatherNd", name, params=params, indices=indices, bad_indices_policy=bad_indices_policy)


def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: Any = "", name: str | None = None) -> Tensor:
    """Zeros of `shape`, with `updates` added at the positions in `indices`."""
    given = {"indices": indices, "updates": updates, "shape": shape}
    return apply_op("ScatterNd", name, **given, bad_indices_policy=bad_indices_policy)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Vectors of length `depth` that are `on_value` (1) at the index and `off_value` (0) elsewhere."""
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value, axis, dtype]) as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        on = None if on_value is None else convert_to_tensor(on_value, dtype_hint=wanted)
        off = None if off_value is None else convert_to_tensor(off_value, dtype_hint=wanted)
        for value, which in ((on, "on_value"), (off, "off_value")):
            if value is not None and wanted is not None and value.dtype.base_dtype != wanted:
                raise TypeError(f"dtype {value.dtype.base_dtype} of {which} does not match dtype parameter {dtype}")
        given = on if on is not None else off
        wanted = wanted or (dtypes.float32 if given is None else given.dtype.base_dtype)
        on = convert_to_tensor(1, wanted, name="on_value") if on is None else on
        off = convert_to_tensor(0, wanted, name="off_value") if off is None else off
        if on.dtype.base_dtype != off.dtype.base_dtype:
            text = f"dtype {on.dtype.base_dtype} of on_value does not match dtype {off.dtype.base_dtype}"
            raise TypeError(f"{text} of off_value")
        return apply_op("OneHot", scope, indices=indices, depth=depth, on_value=on, off_value=off, axis=axis)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """The coordinates of the elements with the numbers `indices`, a scalar or vector, in an array of shape `dims`.

    The result has a row per axis. Raises InvalidArgumentError for a number that is too large.
    """
    return apply_op("UnravelIndex", name, indices=indices, dims=dims)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """`gather` along the last axis of `indices`; the axes before it go together with those of `params`."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices, params = convert_to_tensor(indices, name="indices"), convert_to_tensor(params, name="params")
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
    """One gather along the rows, with the elements of the batch stacked on top of each other."""
    indices_shape, params_shape = arrays.shape(indices), arrays.shape(params)
    flat = arrays.reshape(_rows_of_all(params_shape, indices, batch), [-1])
    rest: Any = params_shape[batch + 1 :]
    count = apply_op("Prod", input=params_shape[: batch + 1], reduction_indices=[0], keep_dims=False)
    below = arrays.reshape(params, arrays.concat([[count], rest], axis=0))
    found = arrays.reshape(gather(below, flat), arrays.concat([indices_shape, rest], axis=0))
    common = indices.shape[:batch].merge_with(params.shape[:batch])
    found.set_shape(common.concatenate(indices.shape[batch:]).concatenate(params.shape[batch + 1 :]))
    return found


def _rows_of_all(params_shape: Tensor, indices: Tensor, batch: int) -> Any:
    dtype, ndims = indices.dtype.base_dtype, indices.shape.ndims
    assert ndims is not None
    rows: Any = indices
    stride: Any = arrays.ones((), dtype)
    sizes: Any = apply_op("Cast", x=params_shape, DstT=dtype)
    for dim in range(batch, 0, -1):
        size = sizes[dim - 1]
        stride *= sizes[dim]
        start, step = arrays.zeros((), dtype), arrays.ones((), dtype)
        offsets: Any = apply_op("Range", start=start, limit=size, delta=step)
        offsets *= stride
        shape = arrays.stack([1] * (dim - 1) + [size] + [1] * (ndims - dim), axis=0)
        rows += arrays.reshape(offsets, shape)
    return rows


def batch_gather_nd(
    params: Any, indices: Any, batch_dims: int, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """The slices of `params` at positions, where the first `batch_dims` axes go together with those of `indices`."""
    with name_scope(name, "BatchGatherND", [params, indices]):
        indices, params = convert_to_tensor(indices, name="indices"), convert_to_tensor(params, name="params")
        _check_batch_dims(batch_dims, params, indices)
        params_shape, indices_shape = arrays.shape(params), arrays.shape(indices)
        batch = params_shape[:batch_dims]
        count = apply_op("Prod", input=batch, reduction_indices=[0])
        places = _places_in_batch(batch, indices, indices_shape, batch_dims)
        inner = arrays.reshape(indices, arrays.concat(([count], indices_shape[batch_dims:]), axis=0))
        whole = arrays.concat((places, inner), axis=-1)
        found = apply_op("GatherNd", params=params, indices=whole, bad_indices_policy=bad_indices_policy)
        rest: Any = arrays.shape(found)
        return arrays.reshape(found, arrays.concat((batch, rest[1:]), axis=0))


def _check_batch_dims(batch_dims: int, params: Tensor, indices: Tensor) -> None:
    if not isinstance(batch_dims, int):
        raise TypeError(f"Argument `batch_dims` must be an int; got {batch_dims}")
    if batch_dims < 0:
        raise ValueError("tf.gather_nd does not allow negative batch_dims.")
    for what, ndims in (("indices", indices.shape.ndims), ("params", params.shape.ndims)):
        if ndims is not None and batch_dims >= ndims:
            raise ValueError(f"Argument `batch_dims` = {batch_dims} must be less than rank(`{what}`) = {ndims}")


def _places_in_batch(batch: Tensor, indices: Tensor, indices_shape: Any, batch_dims: int) -> Tensor:
    """For each position in `indices`, the coordinates of its element of the batch."""
    ndims = arrays.rank(indices) - batch_dims - 1
    between = indices_shape[batch_dims:-1]
    ranges = []
    for size in arrays.unstack(batch, axis=0):
        size = apply_op("Cast", x=size, DstT=dtypes.int32)
        ranges.append(apply_op("Cast", x=apply_op("Range", start=0, limit=size, delta=1), DstT=indices.dtype))
    grid = [arrays.reshape(x, (-1,)) for x in arrays.meshgrid(*ranges, indexing="ij")]
    places = arrays.transpose(arrays.stack(grid, axis=0))
    shape: Any = arrays.shape(places)
    ones = arrays.ones(ndims, shape.dtype)
    places = arrays.reshape(places, arrays.concat([shape[:1], ones, shape[1:]], axis=0))
    return arrays.tile(places, arrays.concat(((1,), between, (1,)), axis=0))


# -- by masks and by values ------------------------------------------------------------------------------


def _where(op_type: str, condition: Any, x: Any, y: Any, name: str | None) -> Tensor:
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, preferred_dtype=dtypes.bool, name="condition")
            return apply_op("Where", scope, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op(op_type, name, condition=condition, t=x, e=y)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where `condition` holds, else y, all of one shape; without both the coordinates of what is true."""
    return _where("Select", condition, x, y, name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where `condition` holds, else y, broadcast to one shape; without both the coordinates of what is true."""
    return _where("SelectV2", condition, x, y, name)


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """One tensor out of several: `merged[indices[k][i]] = data[k][i]`."""
    return apply_op("DynamicStitch", name, indices=indices, data=data)


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """The rows of `data`, dealt out: row i goes to output `partitions[i]`."""
    return apply_op("DynamicPartition", name, data=data, partitions=partitions, num_partitions=num_partitions)


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """The slices of `a` whose row is not among `mask_indices`."""
    with name_scope(name, "sparse_mask", [a, mask_indices]) as scope:
        rows, places = apply_op("ListDiff", None, x=a.indices, y=mask_indices)
        return IndexedSlices(gather(a.values, places, name=scope), rows, a.dense_shape)


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """The elements of `x` that are not in `y`, and where they stood."""
    return apply_op("ListDiff", name, x=x, y=y, out_idx=index_dtype)


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """The results of `unique`, and how often each of the distinct elements occurs: (y, idx, count)."""
    return apply_op("UniqueWithCounts", name, x=x, out_idx=out_idx)


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """The distinct elements of the vector `x`, and for each element which of them it is."""
    return apply_op("Unique", name, x=x, out_idx=out_idx)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """The elements (or rows) of `tensor` where `mask` is true."""
    with name_scope(name, None, [tensor, mask]):
        tensor, mask = convert_to_tensor(tensor, name="tensor"), convert_to_tensor(mask, name="mask")
        ndims = mask.shape.ndims
        if ndims == 0:
            raise ValueError("mask cannot be scalar.")
        if ndims is None:
            text = "E.g. shape=[None] is ok, but shape=None is not."
            raise ValueError(f"Number of mask dimensions must be specified, even if some dimensions are None.  {text}")
        axis = 0 if axis is None else int(axis)
        static = tensor.shape
        static[axis : axis + ndims].assert_is_compatible_with(mask.shape)
        size = apply_op("Prod", input=arrays.shape(tensor)[axis : axis + ndims], reduction_indices=[0])
        shape = arrays.concat([arrays.shape(tensor)[:axis], [size], arrays.shape(tensor)[axis + ndims :]], 0)
        tensor = arrays.reshape(tensor, shape)
        rows = static[axis : axis + ndims].num_elements()
        tensor.set_shape(static[:axis].concatenate([rows]).concatenate(static[axis + ndims :]))
        mask = arrays.reshape(mask, [-1])
        indices = arrays.squeeze(where_v2(mask), axis=[1])
        return gather(tensor, indices, axis=axis)


# -- in order --------------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Where each of `values` would be inserted in the sorted last axis of `sorted_sequence`.

    `side` is "left" (before equal elements) or "right" (after them). The axes before the last one go together.
    """
    size: Any = arrays.shape_internal(sorted_sequence)[-1]
    wanted: Any = arrays.shape_internal(values)[-1]
    rows = arrays.reshape(sorted_sequence, [-1, size])
    looked_for = arrays.reshape(values, [-1, wanted])
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    bound = "UpperBound" if side == "right" else "LowerBound"
    places = apply_op(bound, name, sorted_inputs=rows, values=looked_for, out_type=out_type)
    return arrays.reshape(places, arrays.shape_internal(values))


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements of `values` in order along `axis`; `direction` is "ASCENDING" or "DESCENDING", else ValueError."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, places=False)


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The indices, int32, that sort `values` along `axis`; equal elements keep their order."""
    del stable  # always
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, places=True)


def _sorted(values: Any, axis: Any, direction: str, places: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        text = f"Received: direction={direction}"
        raise ValueError(f"Argument `direction` should be one of ASCENDING, DESCENDING. {text}")
    axis = convert_to_tensor(axis, name="axis")
    known = constant_value(axis)
    if axis.shape.ndims not in (None, 0) or known is None:
        raise ValueError(f"Argument `axis` must be a constant scalar. Received: axis={axis}.")
    values = convert_to_tensor(values, name="values")
    if direction == "DESCENDING":
        return _descending(values, int(known), places)
    found = _descending(_negated(values), int(known), places)
    return found if places else _negated(found)


def _negated(values: Any) -> Any:
    """Numbers in the opposite order; the negative of the smallest integer would not fit."""
    if values.dtype.is_unsigned:
        return values.dtype.max - values
    return -values - 1 if values.dtype.is_integer else -values


def _descending(values: Tensor, axis: Any, places: bool) -> Tensor:
    sizes: Any = arrays.shape(values)
    k, rank, ndims = sizes[axis], arrays.rank(values), values.shape.ndims
    if axis == -1 or axis + 1 == ndims:
        return apply_op("TopKV2", input=values, k=k)[places]
    if axis < 0:
        axis += ndims or rank
    to_the_end = _exchange_with_last(axis, rank, ndims)
    return arrays.transpose(apply_op("TopKV2", input=arrays.transpose(values, to_the_end), k=k)[places], to_the_end)


def _exchange_with_last(axis: Any, rank: Any, ndims: int | None) -> Tensor:
    """The order of axes in which `axis` and the last one have changed places."""
    if ndims is None:
        order, places = arrays.range(rank), [[axis], [rank - 1]]
        return apply_op("TensorScatterUpdate", tensor=order, indices=places, updates=[rank - 1, axis])
    permutation = np.arange(ndims)
    permutation[[axis, ndims - 1]] = ndims - 1, axis
    return constant(permutation, name="transposition")


# -- in other places, or more often ----------------------------------------------------------------------


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """The first `seq_lengths[i]` elements of each sequence in reverse order; the rest stays in place.

    `seq_lengths` is an integer vector. `seq_dim` and `batch_dim` are older names of the axes.
    """
    seq_axis = renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch_axis = renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    axes = {"seq_dim": seq_axis, "batch_dim": batch_axis or 0}
    return apply_op("ReverseSequence", name, input=input, seq_lengths=seq_lengths, **axes)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements of `input` moved by `shift` along `axis`; those that leave at the end return at the beginning.

    Both are scalars, or vectors of one length.
    """
    return apply_op("Roll", name, input=input, shift=shift, axis=axis)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None) -> Tensor:
    """For each length a row of that many True and then False: shape `lengths.shape` + [`maxlen`].

    Without `maxlen` the rows are as long as the greatest length. ValueError if it is not a scalar.
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            maxlen = apply_op("Max", input=lengths, reduction_indices=_all_axes(lengths))
            maxlen = apply_op("Maximum", x=constant(0, maxlen.dtype), y=maxlen)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.shape.ndims not in (None, 0):
            text = f"received `maxlen` = {maxlen} with shape '{maxlen.shape}' instead"
            raise ValueError(f"Argument `maxlen` must be scalar for sequence_mask, {text}")
        row: Any = apply_op("Range", start=constant(0, maxlen.dtype), limit=maxlen, delta=constant(1, maxlen.dtype))
        column = apply_op("Cast", x=arrays.expand_dims(lengths, -1), DstT=maxlen.dtype)
        mask: Tensor = row < column
        if dtype is None or mask.dtype.is_compatible_with(dtype):
            return mask
        return apply_op("Cast", x=mask, DstT=dtypes.as_dtype(dtype))


def _all_axes(x: Tensor) -> Tensor:
    if x.shape.ndims is not None:
        return constant(np.arange(x.shape.ndims), dtypes.int32)
    return apply_op("Range", start=0, limit=arrays.rank(x), delta=1)


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each slice of `input` along `axis` repeated: all slices equally often, or slice i `repeats[i]` times.

    Without an axis `input` is taken as a vector. ValueError for an axis out of range, TypeError if it or
    `repeats` is not an integer.
    """
    if axis is None:
        input, axis = arrays.reshape(input, [-1]), 0
    if not isinstance(axis, int):
        raise TypeError(f"Argument `axis` must be an int. Received `axis` = {axis} of type {type(axis).__name__}")
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        times = arrays.convert_to_int_tensor(repeats, name="repeats")
        times.shape.with_rank_at_most(1)
        data = _with_an_axis(data)
        axis = _positive(axis, data.shape.ndims)
        if times.shape.num_elements() == 1:
            return _all_equally_often(data, arrays.reshape(times, []), axis)
        return _each_its_times(data, times, axis)


def _with_an_axis(data: Tensor) -> Tensor:
    if data.shape.ndims is not None:
        return data if data.shape.ndims else arrays.stack([data])
    shape, rank = arrays.shape(data), arrays.rank(data)
    return arrays.reshape(data, arrays.concat([[1], shape], axis=0)[-rank:])


def _positive(axis: int, ndims: int | None) -> int:
    if ndims is None:
        if axis < 0:
            raise ValueError(f"axis={axis} may only be negative if rank(data) is statically known.")
        return axis
    if not -ndims <= axis < ndims:
        raise ValueError(f"axis={axis} out of bounds: expected {-ndims}<=axis<{ndims}")
    return axis % ndims


def _tiled(data: Tensor, axis: int, multiple: Any) -> Tensor:
    """`data` with a new axis behind `axis`, along which it is written several times."""
    expanded = arrays.expand_dims(data, axis + 1)
    ndims = expanded.shape.ndims
    if ndims is not None:
        multiples: Any = [1] * ndims
        multiples[axis + 1] = multiple
    else:
        ones = arrays.ones(arrays.rank(expanded), dtypes.int32)
        multiples = arrays.concat([ones[: axis + 1], [multiple], ones[axis + 2 :]], axis=0)
    return arrays.tile(expanded, multiples)


def _all_equally_often(data: Tensor, times: Any, axis: int) -> Tensor:
    shape: Any = arrays.shape(data, out_type=times.dtype)
    tiled = _tiled(data, axis, times)
    return arrays.reshape(tiled, arrays.concat([shape[:axis], [times * shape[axis]], shape[axis + 1 :]], axis=0))


def _each_its_times(data: Tensor, times: Tensor, axis: int) -> Tensor:
    """Repeat every slice as often as the most frequent one; a mask then drops the surplus."""
    shape: Any = arrays.shape(data, out_type=times.dtype)
    if times.shape.ndims == 1:
        data.shape[axis].assert_is_compatible_with(times.shape[0])
    of_slice = times = arrays.broadcast_to(times, [shape[axis]])
    if times.shape.ndims != axis + 1:
        times_shape, ndims = arrays.shape(times), arrays.rank(times)
        times = arrays.broadcast_to(times, arrays.concat([shape[: axis + 1 - ndims], times_shape], axis=0))
        times.set_shape([None] * (axis + 1))
    most = apply_op("Max", input=times, reduction_indices=_all_axes(times))
    most = apply_op("Maximum", x=constant(0, most.dtype, name="zero"), y=most)
    mask = sequence_mask(times, most)
    result = boolean_mask(_tiled(data, axis, most), mask)
    if axis:
        every = apply_op("Range", start=0, limit=arrays.rank(of_slice), delta=1)
        size = apply_op("Sum", input=of_slice, reduction_indices=every)
        result = arrays.reshape(result, arrays.concat([shape[:axis], [size], shape[axis + 1 :]], axis=0))
    if data.shape.ndims is not None:
        length = 0 if times.shape[0].value == 0 else None
        result.set_shape(data.shape[:axis].concatenate([length]).concatenate(data.shape[axis + 1 :]))
    return result

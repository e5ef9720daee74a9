"""The same elements elsewhere, or more often: reverse_sequence, roll, repeat, meshgrid; and sequence_mask.

Stands for `core/kernels/reverse_sequence_op.cc`, `roll_op.cc`, `python/ops/manip_ops.py` and parts of
`python/ops/array_ops.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import constant as constants, identity as array, joining, repeating, reshaping, stacking
from dtflab.ops.costs import free
from dtflab.ops.math import binary as math
from dtflab.ops.messages import invalid, renamed, shape_text
from dtflab.ops.reduce import segments


@op("""ReverseSequence(input: T, seq_lengths: Tlen) -> (output: T)
       seq_dim: int
       batch_dim: int = 0
       T: type
       Tlen: {int32, int64} = int64""")
class ReverseSequence(Op):
    """The first `seq_lengths[i]` elements along one axis in reverse order, where the other axis is at i."""

    flops = free

    def infer(op):
        shape, lengths = op.inputs[0].shape, op.inputs[1].shape.with_rank(1)
        batch, sequence = op.get_attr("batch_dim"), op.get_attr("seq_dim")
        if shape.ndims is None:
            return [shape]
        for what, axis in (("batch_dim", batch), ("seq_dim", sequence)):
            if axis >= shape.ndims:
                raise ValueError(f"{what} must be < input rank: {axis} vs. {shape.ndims}")
        dims = shape.as_list()
        dims[batch] = shape[batch].merge_with(lengths[0])
        return [TensorShape(dims)]

    def bind(node, xp):
        axes = node["batch_dim"], node["seq_dim"]

        def kernel(x, lengths):
            _check_lengths(x, lengths, *axes)
            rows, places = xp.moveaxis(x, axes, (0, 1)), xp.arange(x.shape[axes[1]])
            ends = lengths[:, None]
            places = xp.where(places < ends, ends - 1 - places, places)
            return xp.moveaxis(rows[xp.arange(len(lengths))[:, None], places], (0, 1), axes)

        return kernel

    def grad(op, dy):
        sequence, batch = op.get_attr("seq_dim"), op.get_attr("batch_dim")
        return [reverse_sequence(dy, op.inputs[1], sequence, batch), None]


def _check_lengths(x: Any, lengths: Any, batch: int, sequence: int) -> None:
    if np.ndim(lengths) != 1:
        raise invalid(f"seq_lens input must be 1-dim, not {np.ndim(lengths)}")
    if batch == sequence:
        raise invalid(f"batch_dim == seq_dim == {sequence}")
    for what, axis in (("seq_dim", sequence), ("batch_dim", batch)):
        if axis >= x.ndim:
            raise invalid(f"{what} must be < input rank ( {axis} vs. {x.ndim})")
    if len(lengths) != x.shape[batch]:
        raise invalid(f"Length of seq_lengths != input.dims({batch}), ({len(lengths)} vs. {x.shape[batch]})")
    for wrong, text in ((lengths < 0, "< 0"), (lengths > x.shape[sequence], f"> input.dims({sequence})")):
        if wrong.any():
            raise invalid(f"seq_lens({int(wrong.argmax())}) {text}")


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: int | None = None, batch_axis: int | None = None, name: str | None = None,
    seq_dim: int | None = None, batch_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """Each sequence of a batch reversed as far as it goes; what comes behind its end stays.

    `seq_lengths` says how long each is: an integer vector. `seq_dim` and `batch_dim` are older names of the axes.
    """
    seq_axis = renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch_axis = renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    return apply_op(
        "ReverseSequence", name, input=input, seq_lengths=seq_lengths, seq_dim=seq_axis, batch_dim=batch_axis or 0
    )


@op("""Roll(input: T, shift: Tshift, axis: Taxis) -> (output: T)
       T: type
       Tshift: {int32, int64}
       Taxis: {int32, int64}""")
class Roll(Op):
    """The elements moved along axes; those that leave at one end come in at the other."""

    flops = free

    def infer(op):
        for tensor in op.inputs[1:]:
            tensor.shape.with_rank_at_most(1)
        return [op.inputs[0].shape.with_rank_at_least(1)]

    def bind(node, xp):
        def kernel(x, shift, axis):
            _check_roll(x, shift, axis)
            shifts, axes = np.atleast_1d(shift).tolist(), np.atleast_1d(axis).tolist()
            return xp.roll(x, tuple(shifts), tuple(axes))

        return kernel

    def grad(op, dy):
        shift, axis = op.inputs[1:]
        return [roll(dy, -shift, axis), None, None]


def _check_roll(x: Any, shift: Any, axis: Any) -> None:
    if not x.ndim:
        raise invalid("input must be 1-D or higher")
    for what, value in (("shift", shift), ("axis", axis)):
        if np.ndim(value) > 1:
            raise invalid(f"{what} must be a scalar or a 1-D vector. Found: {shape_text(value)}")
    if np.shape(shift) != np.shape(axis):
        raise invalid("shift and axis must have the same size")
    for a in np.atleast_1d(axis).tolist():
        if not -x.ndim <= a < x.ndim:
            raise invalid(f"axis {a} is out of range")


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements of `input` moved by `shift` along `axis`, from the end back to the beginning.

    Both are scalars, or vectors of one length.
    """
    return apply_op("Roll", name, input=input, shift=shift, axis=axis)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None) -> Tensor:
    """For each length a row of so many True and then False: shape `lengths.shape` + [`maxlen`].

    Without `maxlen` the rows are as long as the greatest length. ValueError if it is no scalar.
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            maxlen = apply_op("Max", input=lengths, reduction_indices=_all_axes(lengths))
            maxlen = math.maximum(constant(0, maxlen.dtype), maxlen)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.shape.ndims not in (None, 0):
            raise ValueError(
                f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen} "
                f"with shape '{maxlen.shape}' instead"
            )
        row: Any = apply_op("Range", start=constant(0, maxlen.dtype), limit=maxlen, delta=constant(1, maxlen.dtype))
        column = apply_op("Cast", x=reshaping.expand_dims(lengths, -1), DstT=maxlen.dtype)
        mask: Tensor = row < column
        if dtype is None or mask.dtype.is_compatible_with(dtype):
            return mask
        return apply_op("Cast", x=mask, DstT=dtypes.as_dtype(dtype))


def _all_axes(x: Tensor) -> Tensor:
    if x.shape.ndims is not None:
        return constant(np.arange(x.shape.ndims), dtypes.int32)
    return apply_op("Range", start=0, limit=array.rank(x), delta=1)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = "meshgrid") -> list[Tensor]:
    """For N vectors N tensors of rank N: the coordinates of all points of the grid that they span.

    With "xy" the first two axes are exchanged, as in a picture; with "ij" axis i belongs to vector i; else ValueError.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    with name_scope(name, "meshgrid", list(args)):
        ndim = len(args)
        if not ndim:
            return []
        output = [_along(i, ndim, x) for i, x in enumerate(args)]
        sizes = [array.size(x) for x in args]
        dtype = convert_to_tensor(args[0]).dtype.base_dtype
        if indexing == "xy" and ndim > 1:
            output[0] = reshaping.reshape(output[0], (1, -1) + (1,) * (ndim - 2))
            output[1] = reshaping.reshape(output[1], (-1, 1) + (1,) * (ndim - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        whole = constants.ones(sizes, dtype)
        return [x * whole for x in output]


def _along(axis: int, ndim: int, x: Any) -> Any:
    """A vector as a tensor of rank `ndim`, along `axis`."""
    return reshaping.reshape(stacking.stack(x), (1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each slice of `input` along `axis` so many times: all equally often, or slice i `repeats[i]` times.

    Without an axis `input` is taken as a vector. ValueError for an axis that is not there, TypeError if it or
    `repeats` is no integer.
    """
    if axis is None:
        input, axis = reshaping.reshape(input, [-1]), 0
    if not isinstance(axis, int):
        raise TypeError(f"Argument `axis` must be an int. Received `axis` = {axis} of type {type(axis).__name__}")
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        times = _whole_numbers(repeats)
        times.shape.with_rank_at_most(1)
        data = _with_an_axis(data)
        axis = _positive(axis, data.shape.ndims)
        if times.shape.num_elements() == 1:
            return _all_equally_often(data, reshaping.reshape(times, []), axis)
        return _each_its_times(data, times, axis)


def _whole_numbers(repeats: Any) -> Tensor:
    tensor = convert_to_tensor(repeats, name="repeats", preferred_dtype=dtypes.int32)
    if not tensor.dtype.is_integer:
        raise TypeError(
            "Argument `tensor` (name: repeats) must be of type integer. "
            f"Received `tensor` = {tensor} of dtype: {tensor.dtype}"
        )
    return apply_op("Cast", x=tensor, DstT=dtypes.int32)


def _with_an_axis(data: Tensor) -> Tensor:
    if data.shape.ndims is not None:
        return data if data.shape.ndims else stacking.stack([data])
    shape, rank = array.shape(data), array.rank(data)
    return reshaping.reshape(data, joining.concat([[1], shape], axis=0)[-rank:])


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
    expanded = reshaping.expand_dims(data, axis + 1)
    ndims = expanded.shape.ndims
    if ndims is not None:
        multiples: Any = [1] * ndims
        multiples[axis + 1] = multiple
    else:
        ones = constants.ones(array.rank(expanded), dtypes.int32)
        multiples = joining.concat([ones[: axis + 1], [multiple], ones[axis + 2 :]], axis=0)
    return repeating.tile(expanded, multiples)


def _all_equally_often(data: Tensor, times: Any, axis: int) -> Tensor:
    shape: Any = array.shape(data, out_type=times.dtype)
    tiled = _tiled(data, axis, times)
    return reshaping.reshape(tiled, joining.concat([shape[:axis], [times * shape[axis]], shape[axis + 1 :]], axis=0))


def _each_its_times(data: Tensor, times: Tensor, axis: int) -> Tensor:
    """Every slice as often as the one that comes most often; then a mask takes what is too many."""
    shape: Any = array.shape(data, out_type=times.dtype)
    if times.shape.ndims == 1:
        data.shape[axis].assert_is_compatible_with(times.shape[0])
    of_slice = times = repeating.broadcast_to(times, [shape[axis]])
    if times.shape.ndims != axis + 1:
        times_shape, ndims = array.shape(times), array.rank(times)
        times = repeating.broadcast_to(times, joining.concat([shape[: axis + 1 - ndims], times_shape], axis=0))
        times.set_shape([None] * (axis + 1))
    most = apply_op("Max", input=times, reduction_indices=_all_axes(times))
    most = math.maximum(constant(0, most.dtype, name="zero"), most)
    mask = sequence_mask(times, most)
    result = segments.boolean_mask(_tiled(data, axis, most), mask)
    if axis:
        size = apply_op("Sum", input=of_slice, reduction_indices=_range_of_rank(of_slice))
        result = reshaping.reshape(result, joining.concat([shape[:axis], [size], shape[axis + 1 :]], axis=0))
    if data.shape.ndims is not None:
        length = 0 if times.shape[0].value == 0 else None
        result.set_shape(data.shape[:axis].concatenate([length]).concatenate(data.shape[axis + 1 :]))
    return result


def _range_of_rank(x: Tensor) -> Tensor:
    return apply_op("Range", start=0, limit=array.rank(x), delta=1)

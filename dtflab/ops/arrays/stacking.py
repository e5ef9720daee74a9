"""Several arrays to one along a new axis, and one to several: stack, unstack, split.

Stands for `core/kernels/pack_op.cc`, `unpack_op.cc`, `split_op.cc`, `split_v_op.cc` and their gradients.
ParallelConcat is here, too; TensorFlow writes each part into the result as soon as it is there, dtflab at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import concat, stack, unstack
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text


@op("Pack(values: N * T) -> (output: T) where N: int >= 1, T: type, axis: int = 0")
class Pack(Op):
    """The values side by side along a new axis."""

    def infer(op):
        shape = op.inputs[0].shape
        for tensor in op.inputs[1:]:
            shape = shape.merge_with(tensor.shape)
        if shape.ndims is None:
            return [shape]
        axis = op.get_attr("axis")
        if not -shape.ndims - 1 <= axis <= shape.ndims:
            raise ValueError(f"axis = {axis} not in [{-shape.ndims - 1}, {shape.ndims + 1})")
        dims = shape.as_list()
        dims.insert(axis if axis >= 0 else axis + shape.ndims + 1, len(op.inputs))
        return [TensorShape(dims)]

    def bind(node, xp):
        if node["T"] == dtypes.resource:
            return _handles
        axis, dtype = node["axis"], node["T"].as_numpy_dtype

        def kernel(*values):
            if not np.ndim(values[0]) and dtype is not object:  # sizes, mostly: three times as fast as `stack`
                return xp.array(values, dtype)
            try:
                return xp.stack(values, axis)
            except ValueError:
                raise invalid(f"Shapes of all inputs must match: {', '.join(map(shape_text, values))}") from None

        return kernel

    def grad(op, dy):
        return unstack(dy, num=op.get_attr("N"), axis=op.get_attr("axis"))


def _handles(*values: Any) -> Any:
    """A vector of resource handles, which are tuples: NumPy would make a matrix of their fields."""
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


@op("ParallelConcat(values: N * T) -> (output: T) where N: int >= 1, T: type, shape: shape")
class ParallelConcat(Op):
    """The values, of one row each, one below the other: a matrix of the shape that was said before."""

    def infer(op):
        shape = op.attrs["shape"]
        if not shape.is_fully_defined():
            raise ValueError("shape attr must be fully defined.")
        for tensor in op.inputs:
            if tensor.shape.with_rank_at_least(1)[0].value not in (1, None):
                raise ValueError("Size of first dimension must be 1.")
            tensor.shape[1:].assert_is_compatible_with(shape[1:])
        return [shape]

    def bind(node, xp):
        return lambda *values: xp.concatenate(values)


@op("Unpack(value: T) -> (output: num * T) where num: int >= 0, T: type, axis: int = 0")
class Unpack(Op):
    """The slices of the value along an axis, one by one."""

    aliasing = True

    def infer(op):
        shape, axis, num = op.inputs[0].shape, op.get_attr("axis"), op.get_attr("num")
        if shape.ndims is None:
            return [shape] * num
        if not -shape.ndims <= axis < shape.ndims:
            raise ValueError(f"axis = {axis} not in [{-shape.ndims}, {shape.ndims})")
        dims = shape.as_list()
        size = dims.pop(axis)
        if size not in (None, num):
            raise ValueError(f"Dimension must be {num} but is {size}")
        return [TensorShape(dims)] * num

    def bind(node, xp):
        axis, num = node["axis"], node["num"]

        def kernel(value):
            if not -np.ndim(value) <= axis < np.ndim(value) or value.shape[axis] != num:
                raise invalid(f"Input shape axis {axis} must equal {num}, got shape {shape_text(value)}")
            slices = xp.moveaxis(value, axis, 0)
            return [slices[i, ...] for i in range(num)]  # the dots keep a string in its array

        return kernel

    flops = free

    def grad(op, *dys):
        return [stack(dys, axis=op.get_attr("axis"))]


# -- split ------------------------------------------------------------------------------------------------


def _size_along(value: Tensor, axis: Any) -> int | None:
    """The static size of the axis, if both are known."""
    ndims = value.shape.ndims
    if axis is None or ndims is None or not -ndims <= axis < ndims:
        return None
    return value.shape.as_list()[int(axis)]


def _split_shapes(value: Tensor, axis: Any, sizes: list[int | None]) -> list[TensorShape]:
    if value.shape.ndims is None:
        return [TensorShape(None)] * len(sizes)
    if axis is None:
        return [TensorShape([None] * value.shape.ndims)] * len(sizes)
    ndims = value.shape.ndims
    if not -ndims <= axis < ndims:
        raise ValueError(f"Dimension size, given by scalar input, must be in range [{-ndims}, {ndims}) but got {axis}")
    dims = value.shape.as_list()
    before, after = dims[: int(axis) % ndims], dims[int(axis) % ndims + 1 :]
    return [TensorShape([*before, size, *after]) for size in sizes]


@op("Split(split_dim: int32, value: T) -> (output: num_split * T) where num_split: int >= 1, T: type")
class Split(Op):
    """The value in equal parts along an axis."""

    aliasing = True

    def infer(op):
        axis, value = folded_value(op.inputs[0]), op.inputs[1]
        count = op.get_attr("num_split")
        size = _size_along(value, axis)
        if size is not None and size % count:
            raise ValueError(f"Dimension size must be evenly divisible by {count} but is {size}")
        return _split_shapes(value, axis, [None if size is None else size // count] * count)

    def bind(node, xp):
        count = node["num_split"]

        def kernel(axis, value):
            axis = _checked_split_axis(axis, value)
            if value.shape[axis] % count:
                text = f"but got split_dim {axis} (size = {value.shape[axis]}) and num_split {count}"
                raise invalid(f"Number of ways to split should evenly divide the split dimension, {text}")
            before, size = (slice(None),) * axis, value.shape[axis] // count
            return [value[(*before, slice(i * size, (i + 1) * size))] for i in range(count)]

        return kernel

    flops = free

    def grad(op, *dys):
        return [None, concat(list(dys), op.inputs[0])]


def _checked_split_axis(axis: Any, value: Any) -> int:
    ndim = np.ndim(value)
    if not -ndim <= axis < ndim:
        raise invalid(f"-input rank(-{ndim}) <= split_dim < input rank ({ndim}), but got {int(axis)}")
    return int(axis) % ndim


def _filled_sizes(sizes: list[int], total: int) -> list[int]:
    """The sizes with a -1 replaced by what is left."""
    if sizes.count(-1) == 1:
        rest = total - sum(s for s in sizes if s != -1)
        sizes = [rest if s == -1 else s for s in sizes]
    return sizes


@op("""SplitV(value: T, size_splits: Tlen, split_dim: int32) -> (output: num_split * T)
       num_split: int >= 1, T: type, Tlen: {int8, int32, int64} = int64""")
class SplitV(Op):
    """The value in parts of given sizes along an axis; one size may be -1."""

    aliasing = True

    def infer(op):
        value, axis, count = op.inputs[0], folded_value(op.inputs[2]), op.get_attr("num_split")
        sizes = folded_value(op.inputs[1])
        if sizes is None:
            return _split_shapes(value, axis, [None] * count)
        total = _size_along(value, axis)
        parts: list[Any] = [int(s) for s in sizes]
        if total is not None:
            parts = _filled_sizes(parts, total)
            if sum(parts) != total or min(parts) < 0:
                raise ValueError(f"can't split axis of size {total} into pieces of size {shape_text(tuple(sizes))}")
        return _split_shapes(value, axis, [None if p == -1 else p for p in parts])

    def kernel(node, xp, value, sizes, axis):
        axis = _checked_split_axis(axis, value)
        parts = _filled_sizes(sizes.tolist(), value.shape[axis])
        if sum(parts) != value.shape[axis] or min(parts) < 0:
            raise invalid(
                "Determined shape must either match input shape along split_dim exactly if fully "
                "specified, or be less than the size of the input along split_dim if not fully "
                f"specified.  Got: {sum(parts)}"
            )
        return xp.split(value, np.cumsum(parts[:-1]), axis)

    flops = free

    def grad(op, *dys):
        return [concat(list(dys), op.inputs[2]), None, None]

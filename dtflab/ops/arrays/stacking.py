"""Several arrays to one along a new axis, and back: stack and unstack.

Stands for `core/kernels/pack_op.cc`, `unpack_op.cc`, `python/ops/array_ops_stack.py` and their gradients.
ParallelConcat is here, too; TensorFlow writes each part into the result as soon as it is there, dtflab at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import stack, unstack
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text


@op("""Pack(values: N * T) -> (output: T)
       N: int >= 1
       T: type
       axis: int = 0""")
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


@op("""ParallelConcat(values: N * T) -> (output: T)
       N: int >= 1
       T: type
       shape: shape""")
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


@op("""Unpack(value: T) -> (output: num * T)
       num: int >= 0
       T: type
       axis: int = 0""")
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

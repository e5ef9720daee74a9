"""Positions: of bounds in sorted rows, of the elements with given numbers, and as one-hot vectors.

Stands for `core/kernels/searchsorted_op.cc`, `unravel_index_op.cc` and `one_hot_op.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import searched
from dtflab.ops.messages import invalid


def _bound_rule(side: str) -> Callable[..., Any]:
    """The kernel that finds where in its row, which is sorted, each value would come."""

    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        dtype = node["out_type"].as_numpy_dtype

        def kernel(rows: Any, values: Any) -> Any:
            if len(rows) != len(values):
                raise invalid("Leading dim_size of both tensors must match.")
            out = xp.empty(values.shape, dtype)
            for i, row in enumerate(rows):
                out[i] = xp.searchsorted(row, values[i], side)
            return out

        return kernel

    return bind


def _bound_shape(op: Any) -> list[TensorShape]:
    rows, values = (t.shape.with_rank(2) for t in op.inputs)
    rows[:1].assert_is_compatible_with(values[:1])
    return [op.inputs[1].shape]


def _bound_flops(node: Any, ins: Any, outs: Any) -> int:
    return elements(ins[1]) * searched(ins[0].shape[-1])


_BOUND = "(sorted_inputs: T, values: T) -> (output: out_type) where T: type, out_type: {int32, int64} = int32"

# A value would come before its equals, or after them.
for _name, _side in {"LowerBound": "left", "UpperBound": "right"}.items():
    _members = {"infer": _bound_shape, "flops": _bound_flops, "bind": _bound_rule(_side)}
    op(_name + _BOUND)(type(_name, (Op,), _members))


@op("UnravelIndex(indices: Tidx, dims: Tidx) -> (output: Tidx) where Tidx: {int32, int64} = int32")
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


@op("""OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> (output: T)
       axis: int = -1, T: type, TI: {uint8, int8, int32, int64} = int64""")
class OneHot(Op):
    """Vectors that are `on_value` at one place, none for an index out of range."""

    grad = no_gradient

    def infer(op):
        indices, depth = op.inputs[0].shape, folded_value(op.inputs[1])
        axis = op.get_attr("axis")
        if depth is not None and depth < 0:
            raise ValueError(f"Dimension size, given by scalar input 1, must be non-negative but is {int(depth)}")
        if indices.ndims is None:
            return [TensorShape(None)]
        dims = indices.as_list()
        dims.insert(indices.ndims if axis == -1 else axis, None if depth is None else int(depth))
        return [TensorShape(dims)]

    def bind(node, xp):
        axis, dtype = node["axis"], node["T"].as_numpy_dtype

        def kernel(indices, depth, on_value, off_value):
            if not -1 <= axis <= np.ndim(indices):
                raise invalid(f"Expected axis to be -1 or between [0, {np.ndim(indices)}).  But received: {axis}")
            at = axis if axis >= 0 else np.ndim(indices)
            shape = indices.shape
            places = xp.arange(int(depth)).reshape((-1,) + (1,) * (len(shape) - at))
            hits = indices.reshape((*shape[:at], 1, *shape[at:])) == places
            return xp.where(hits, on_value, off_value).astype(dtype, copy=False)

        return kernel

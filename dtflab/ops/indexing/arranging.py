"""Elements in other places, and places of elements: reversed sequences, rolled axes, bounds, one-hot vectors.

Stands for `core/kernels/{reverse_sequence_op,roll_op,searchsorted_op,unravel_index_op,one_hot_op}.cc`,
`python/ops/manip_ops.py` and parts of `python/ops/array_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import free, searched
from dtflab.ops.indexing.functions import reverse_sequence, roll
from dtflab.ops.messages import invalid, shape_text


@op("""ReverseSequence(input: T, seq_lengths: Tlen) -> (output: T)
       seq_dim: int, batch_dim: int = 0, T: type, Tlen: {int32, int64} = int64""")
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

    def kernel(node, xp, x, lengths):
        axes = node["batch_dim"], node["seq_dim"]
        _check_lengths(x, lengths, *axes)
        rows, places = xp.moveaxis(x, axes, (0, 1)), xp.arange(x.shape[axes[1]])
        ends = lengths[:, None]
        places = xp.where(places < ends, ends - 1 - places, places)
        return xp.moveaxis(rows[xp.arange(len(lengths))[:, None], places], (0, 1), axes)

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


@op("""Roll(input: T, shift: Tshift, axis: Taxis) -> (output: T)
       T: type, Tshift: {int32, int64}, Taxis: {int32, int64}""")
class Roll(Op):
    """The elements moved along axes; those that leave at one end return at the other."""

    flops = free

    def infer(op):
        for tensor in op.inputs[1:]:
            tensor.shape.with_rank_at_most(1)
        return [op.inputs[0].shape.with_rank_at_least(1)]

    def kernel(node, xp, x, shift, axis):
        _check_roll(x, shift, axis)
        shifts, axes = np.atleast_1d(shift).tolist(), np.atleast_1d(axis).tolist()
        return xp.roll(x, tuple(shifts), tuple(axes))

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


# -- positions of bounds, of numbered elements, of ones --------------------------------------------------


def _bound_rule(side: str) -> Callable[..., Any]:
    """The kernel that finds where in its row, which is sorted, each value would come."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
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


def _bound_shape(op: Operation) -> list[TensorShape]:
    rows, values = (t.shape.with_rank(2) for t in op.inputs)
    rows[:1].assert_is_compatible_with(values[:1])
    return [op.inputs[1].shape]


def _bound_flops(node: Node, ins: Any, outs: Any) -> int:
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

    def kernel(node, xp, indices, dims):
        if np.ndim(indices) > 1:
            raise invalid("The indices can only be scalar or vector.")
        if np.ndim(dims) != 1:
            raise invalid("The indices can only be 1-D" if np.ndim(dims) else "dims must be a vector")
        if (dims == 0).any():
            at = int((dims == 0).argmax())
            raise invalid(f"Input dims cannot contain a dim of zero, but dims contains zero at index {at}")
        if ((indices < 0) | (indices >= dims.prod())).any():
            raise invalid("index is out of bound as with dims")
        return xp.stack(xp.unravel_index(indices, tuple(dims.tolist()))).astype(indices.dtype)


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

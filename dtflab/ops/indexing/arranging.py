"""Elements in other places: reversed sequences and rolled axes.

Stands for `core/kernels/reverse_sequence_op.cc`, `roll_op.cc`, `python/ops/manip_ops.py` and parts of
`python/ops/array_ops.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import free
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


@op("""Roll(input: T, shift: Tshift, axis: Taxis) -> (output: T)
       T: type, Tshift: {int32, int64}, Taxis: {int32, int64}""")
class Roll(Op):
    """The elements moved along axes; those that leave at one end return at the other."""

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

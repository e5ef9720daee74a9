"""Padding by reflection: values of the array itself, mirrored at its edge.

Stands for `core/kernels/mirror_pad_op.cc` and its gradients.

Rule: REFLECT leaves the edge itself out, SYMMETRIC has it twice.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid, shape_text

_ATTRS = "T: type\nTpaddings: {int32, int64} = int32\nmode: {'REFLECT', 'SYMMETRIC'}"


def _shape(op: Any, sign: int) -> list[TensorShape]:
    shape, paddings = op.inputs[0].shape, folded_value(op.inputs[1])
    op.inputs[1].shape.assert_is_compatible_with([shape.ndims, 2])
    if paddings is None:
        known = shape.ndims if shape.ndims is not None else op.inputs[1].shape.with_rank(2)[0].value
        return [TensorShape(None if known is None else [None] * known)]
    sizes = shape.with_rank(len(paddings)).as_list()
    return [TensorShape([None if n is None else n + sign * int(sum(p)) for n, p in zip(sizes, paddings)])]


def _checked(mode: bytes, shape: Any, paddings: Any) -> list[tuple[int, int]]:
    """The paddings, none larger than what is there to be mirrored."""
    pairs = [(int(before), int(after)) for before, after in paddings]
    if len(pairs) != len(shape):
        raise invalid(f"paddings must be a matrix with {len(shape)} rows: {shape_text(paddings)}")
    for size, pair in zip(shape, pairs):
        if min(pair) < 0:
            raise invalid(f"paddings must be non-negative: {pair[0]}, {pair[1]}")
        most = size - (mode == b"REFLECT")
        if max(pair) > most:
            word = "less than" if mode == b"REFLECT" else "no greater than"
            raise invalid(f"paddings must be {word} the dimension size: {pair[0]}, {pair[1]} not {word} {size}")
    return pairs


@op(f"MirrorPad(input: T, paddings: Tpaddings) -> (output: T) where {_ATTRS}")
class MirrorPad(Op):
    """The input with mirrored values around it."""

    def infer(op):
        return _shape(op, 1)

    def bind(node, xp):
        mode = node["mode"]
        return lambda x, paddings: xp.pad(x, _checked(mode, x.shape, paddings), mode.decode().lower())

    def grad(op, dy):
        return [apply_op("MirrorPadGrad", input=dy, paddings=op.inputs[1], mode=op.get_attr("mode")), None]


@op(f"MirrorPadGrad(input: T, paddings: Tpaddings) -> (output: T) where {_ATTRS}")
class MirrorPadGrad(Op):
    """The inner part, with what is around it folded back and added."""

    def infer(op):
        return _shape(op, -1)

    def bind(node, xp):
        mode = node["mode"]
        edge = int(mode == b"REFLECT")

        def kernel(dy, paddings):
            pairs = [(int(before), int(after)) for before, after in paddings]
            inner = [size - before - after for size, (before, after) in zip(dy.shape, pairs)]
            for axis, (size, (before, after)) in enumerate(zip(inner, _checked(mode, inner, pairs))):
                padded = xp.moveaxis(dy, axis, 0)
                kept = padded[before : before + size].copy()
                kept[edge : edge + before] += padded[:before][::-1]
                kept[size - edge - after : size - edge] += padded[before + size :][::-1]
                dy = xp.moveaxis(kept, 0, axis)
            return dy

        return kernel

    def grad(op, dy):
        return [apply_op("MirrorPad", input=dy, paddings=op.inputs[1], mode=op.get_attr("mode")), None]

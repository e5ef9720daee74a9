"""Larger arrays out of smaller ones along their axes: broadcast, tile, pad; and reversed axes.

Stands for `core/kernels/{broadcast_to_op,tile_ops,pad_op,mirror_pad_op,reverse_op}.cc` and their parts of
`python/ops/array_ops.py` and `array_grad.py`. Roll and ReverseSequence are in `arranging.py`.

Rule: of padding by reflection, REFLECT leaves the edge itself out, SYMMETRIC has it twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import constant_value_as_shape, folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import FreeOp
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.type_sets import REAL_COMPLEX_BOOL


@op("BroadcastTo(input: T, shape: Tidx) -> (output: T) where T: type, Tidx: {int32, int64} = int32")
class BroadcastTo(Op):
    """The input, repeated along axes of size 1 to fill `shape`."""

    aliasing = True

    def infer(op):
        target = folded_shape(op.inputs[1])
        if target.ndims is not None and op.inputs[0].shape.ndims is not None:
            infer_broadcast(op.inputs[0].shape, target)  # a ValueError where it can't be
        return [target]

    def kernel(node, xp, x, shape):
        try:
            return xp.broadcast_to(x, shape.tolist())
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(x)} vs. {shape_text(shape.tolist())}") from None

    def grad(op, dy):
        x, target = op.inputs
        x_shape = arrays.shape(x, out_type=target.dtype)
        static = constant_value_as_shape(target)
        if static.is_fully_defined():
            target = constant(static.as_list(), target.dtype)
        _, axes = arrays.broadcast_gradient_args(target, x_shape)
        return [arrays.reshape(reduce.reduce_sum(dy, axes, keepdims=True), x_shape), None]


@op("BroadcastArgs(s0: T, s1: T) -> (r0: T) where T: {int32, int64} = int32")
class BroadcastArgs(FreeOp):
    """The shape to which two shapes broadcast."""

    grad = None

    def infer(op):
        lengths = [t.shape.with_rank(1)[0].value for t in op.inputs]
        return [TensorShape([None if None in lengths else max(lengths)])]

    def kernel(node, xp, s0, s1):
        try:
            return np.array(np.broadcast_shapes(tuple(s0), tuple(s1)), node["T"].as_numpy_dtype)
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(s0.tolist())} vs. {shape_text(s1.tolist())}") from None


@op("BroadcastGradientArgs(s0: T, s1: T) -> (r0: T, r1: T) where T: {int32, int64} = int32")
class BroadcastGradientArgs(FreeOp):
    """The axes over which to sum the gradients of two inputs that were broadcast."""

    grad = no_gradient

    infer = shapes.fixed([None], [None])

    def kernel(node, xp, s0, s1):
        dtype = node["T"].as_numpy_dtype
        x, y = s0.tolist(), s1.tolist()
        if x == y:
            return np.array([], dtype), np.array([], dtype)
        rank = max(len(x), len(y))
        x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
        if any(a != b and 1 not in (a, b) for a, b in zip(x, y)):
            raise invalid(f"Incompatible shapes: {shape_text(s0.tolist())} vs. {shape_text(s1.tolist())}")
        # Summing over an axis that has size 1 in both is harmless; TensorFlow names it too.
        return tuple(np.array([i for i in range(rank) if dims[i] == 1], dtype) for dims in (x, y))


def _times(size: int | None, multiple: int | None) -> int | None:
    if 0 in (size, multiple):
        return 0
    return None if size is None or multiple is None else size * multiple


@op("Tile(input: T, multiples: Tmultiples) -> (output: T) where T: type, Tmultiples: {int32, int64} = int32")
class Tile(Op):
    """The input, written `multiples[i]` times along axis i."""

    def infer(op):
        shape = op.inputs[0].shape
        multiples = folded_shape(op.inputs[1])
        if shape.ndims is None and multiples.ndims is None:
            return [TensorShape(None)]
        ndims = shape.ndims if shape.ndims is not None else multiples.ndims
        dims = shape.with_rank(ndims).as_list()
        return [TensorShape([_times(d, m) for d, m in zip(dims, multiples.with_rank(ndims).as_list())])]

    def kernel(node, xp, x, multiples):
        times = multiples.tolist()
        if len(times) != x.ndim:
            text = f"a vector of length {x.ndim} but got length {len(times)}"
            raise invalid(f"Expected multiples argument to be {text}")
        if times.count(1) == len(times):
            return x
        if x.shape == (1,):  # the gradient of a mean
            return x.repeat(times[0])
        if all(d == 1 or m == 1 for d, m in zip(x.shape, times)):  # what gradients of sums ask for
            return xp.broadcast_to(x, [d * m for d, m in zip(x.shape, times)])
        return xp.tile(x, times)

    aliasing = True

    def grad(op, dy):
        x, multiples = op.inputs
        x_shape = arrays.shape(x, out_type=multiples.dtype)
        split = arrays.reshape(arrays.transpose(arrays.stack([multiples, x_shape])), [-1])
        axes = arrays.range(0, arrays.size(split), 2)
        if isinstance(dy, IndexedSlices):
            rows = arrays.cast(x_shape[0], dy.indices.dtype)
            dy = reduce.unsorted_segment_sum(dy.values, dy.indices % rows, rows)
            split = arrays.concat([[1], split[1:]], axis=0)
        dx = reduce.reduce_sum(arrays.reshape(dy, split), axes)
        dx.set_shape(x.shape)
        return [dx, None]


def _padded(shape: TensorShape, paddings: Any) -> TensorShape:
    if paddings is None:
        return TensorShape(None if shape.ndims is None else [None] * shape.ndims)
    dims = shape.with_rank(len(paddings)).as_list()
    return TensorShape([None if d is None else d + int(sum(p)) for d, p in zip(dims, paddings)])


class _Pad(Op):
    """Zeros, or for PadV2 another constant, around the input: paddings[i] of them before and after along axis i."""

    def infer(op):
        op.inputs[1].shape.assert_is_compatible_with([op.inputs[0].shape.ndims, 2])
        return [_padded(op.inputs[0].shape, folded_value(op.inputs[1]))]

    def bind(node, xp):
        dtype = node["T"].as_numpy_dtype
        zero = b"" if node["T"] == dtypes.string else dtype(0)

        def kernel(x, paddings, value=zero):
            if (paddings < 0).any():
                raise invalid(f"Paddings must be non-negative: {paddings.tolist()}")
            out = xp.full([d + b + a for d, (b, a) in zip(x.shape, paddings.tolist())], value, dtype)
            out[tuple(slice(int(b), int(b) + d) for d, (b, _) in zip(x.shape, paddings))] = x
            return out

        return kernel

    def grad(op, dy):
        x, paddings = op.inputs[:2]
        before = indexing.slice(paddings, [0, 0], arrays.stack([arrays.rank(x), 1]))
        begin = arrays.reshape(before, [-1])
        return [indexing.slice(dy, begin, arrays.shape(x, out_type=begin.dtype))] + [None] * (len(op.inputs) - 1)


for _inputs in ("Pad(input: T, paddings: Tpaddings)", "PadV2(input: T, paddings: Tpaddings, constant_values: T)"):
    _class = type(_inputs.partition("(")[0], (_Pad,), {})
    op(f"{_inputs} -> (output: T)\nT: type\nTpaddings: {{int32, int64}} = int32")(_class)


@op(f"""ReverseV2(tensor: T, axis: Tidx) -> (output: T)
        Tidx: {{int32, int64}} = int32, T: {REAL_COMPLEX_BOOL[:-1]}, string}}""")
class ReverseV2(Op):
    """The input, back to front along the given axes."""

    aliasing = True

    def infer(op):
        x, axes = op.inputs[0].shape, folded_value(op.inputs[1])
        if x.ndims is not None and axes is not None:
            for i, axis in enumerate(axes.tolist()):
                if not -x.ndims <= axis < x.ndims:
                    raise ValueError(f"'axis'[{i}] = {axis} is out of valid range [0, {x.ndims - 1}")
        return [x]

    def kernel(node, xp, x, axis):
        if x.ndim == 0:
            return x  # whatever the axes
        if axis.ndim != 1:
            raise invalid(f"'dims' must be 1-dimension, not {axis.ndim}")
        try:
            return xp.flip(x, tuple(axis.tolist()))
        except ValueError as error:
            raise invalid(f"'axis'[...] is out of valid range [-{np.ndim(x)}, {np.ndim(x) - 1}]: {error}") from None

    def grad(op, dy):
        return [arrays.reverse(dy, op.inputs[1]), None]


# -- padding by reflection -------------------------------------------------------------------------------


_MIRROR = "T: type\nTpaddings: {int32, int64} = int32\nmode: {'REFLECT', 'SYMMETRIC'}"


def _mirrored_shape(op: Operation, sign: int) -> list[TensorShape]:
    shape, paddings = op.inputs[0].shape, folded_value(op.inputs[1])
    op.inputs[1].shape.assert_is_compatible_with([shape.ndims, 2])
    if paddings is None:
        known = shape.ndims if shape.ndims is not None else op.inputs[1].shape.with_rank(2)[0].value
        return [TensorShape(None if known is None else [None] * known)]
    sizes = shape.with_rank(len(paddings)).as_list()
    return [TensorShape([None if n is None else n + sign * int(sum(p)) for n, p in zip(sizes, paddings)])]


def _checked_pairs(mode: bytes, shape: Any, paddings: Any) -> list[tuple[int, int]]:
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


@op(f"MirrorPad(input: T, paddings: Tpaddings) -> (output: T) where {_MIRROR}")
class MirrorPad(Op):
    """The input with mirrored values around it."""

    def infer(op):
        return _mirrored_shape(op, 1)

    def bind(node, xp):
        mode = node["mode"]
        return lambda x, paddings: xp.pad(x, _checked_pairs(mode, x.shape, paddings), mode.decode().lower())

    def grad(op, dy):
        return [apply_op("MirrorPadGrad", input=dy, paddings=op.inputs[1], mode=op.get_attr("mode")), None]


@op(f"MirrorPadGrad(input: T, paddings: Tpaddings) -> (output: T) where {_MIRROR}")
class MirrorPadGrad(Op):
    """The inner part, with what is around it folded back and added."""

    def infer(op):
        return _mirrored_shape(op, -1)

    def bind(node, xp):
        mode = node["mode"]
        edge = int(mode == b"REFLECT")

        def kernel(dy, paddings):
            pairs = [(int(before), int(after)) for before, after in paddings]
            inner = [size - before - after for size, (before, after) in zip(dy.shape, pairs)]
            for axis, (size, (before, after)) in enumerate(zip(inner, _checked_pairs(mode, inner, pairs))):
                padded = xp.moveaxis(dy, axis, 0)
                kept = padded[before : before + size].copy()
                kept[edge : edge + before] += padded[:before][::-1]
                kept[size - edge - after : size - edge] += padded[before + size :][::-1]
                dy = xp.moveaxis(kept, 0, axis)
            return dy

        return kernel

    def grad(op, dy):
        return [apply_op("MirrorPad", input=dy, paddings=op.inputs[1], mode=op.get_attr("mode")), None]

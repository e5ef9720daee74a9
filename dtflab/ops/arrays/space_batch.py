"""Blocks of images as further images, or as further channels, and back.

Stands for `core/kernels/spacetobatch_op.cc`, `batchtospace_op.cc`, `spacetodepth_op.cc`, `depthtospace_op.cc` and their
Python. Left out: the format NCHW_VECT_C.

Rule: nothing is computed: an axis of length n * block is two axes, n and block, and these change places. Each op is the
gradient of its inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth
from dtflab.ops.arrays.reshaping import divided
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text


def _pairs_in_front(count: int, rank: int) -> list[int]:
    """The order of axes in which blocks come first: of (batch, n1, block1, n2, block2, …, rest)."""
    blocks = [2 + 2 * i for i in range(count)]
    return [*blocks, 0, *[axis - 1 for axis in blocks], *range(1 + 2 * count, rank + count)]


def _space_to_batch(xp: Any, x: Any, block: Sequence[int], paddings: Any) -> Any:
    count = _check_blocks("paddings", x, block, paddings)
    x = xp.pad(x, [(0, 0), *map(tuple, paddings), *([(0, 0)] * (x.ndim - count - 1))])
    halves = []
    for axis, (size, b) in enumerate(zip(x.shape[1:], block)):
        if size % b:
            raise invalid(f"padded_shape[{axis}]={size} is not divisible by block_shape[{axis}]={b}")
        halves += [size // b, b]
    x = x.reshape(x.shape[0], *halves, *x.shape[1 + count :])
    x = x.transpose(_pairs_in_front(count, x.ndim - count))
    return x.reshape(int(np.prod(x.shape[: count + 1])), *x.shape[count + 1 :])


def _batch_to_space(x: Any, block: Sequence[int], crops: Any) -> Any:
    count = _check_blocks("crops", x, block, crops)
    images, left = divmod(x.shape[0], int(np.prod(block)))
    if left:
        blocks = f"product of block sizes ({np.prod(block)})"
        raise invalid(f"Input batch dimension ({x.shape[0]}) is not divisible by {blocks}")
    shape, rank = x.shape, x.ndim
    x = x.reshape(*block, images, *shape[1:])
    x = x.transpose(np.argsort(_pairs_in_front(count, rank)).tolist())
    sizes = [n * b for n, b in zip(shape[1:], block)]
    x = x.reshape(images, *sizes, *shape[1 + count :])
    for axis, (size, (start, end)) in enumerate(zip(sizes, crops)):
        if start + end > size:
            raise invalid(f"cropped_shape[{axis}]={size - start - end} must be non-negative")
    return x[(slice(None), *(slice(start, size - end) for size, (start, end) in zip(sizes, crops)))]


def _check_blocks(what: str, x: Any, block: Sequence[int], around: Any) -> int:
    count = len(block)
    if x.ndim < 1 + count:
        raise invalid(f"input rank should be >= {1 + count} instead of {x.ndim}")
    if around.shape != (count, 2):
        raise invalid(f"{what} should have shape [{count}, 2] instead of {shape_text(around)}")
    if any(b < 1 for b in block):
        raise invalid(f"All values in block_shape must be positive, got {list(block)}")
    if around.size and around.min() < 0:
        raise invalid(f"{what} cannot be negative")
    return count


def _known_blocks(op: Operation, what: str) -> tuple[int, Any, Any]:
    """How many axes have blocks; the sizes of these, and what is added or cut off, or None where that is not known."""
    if op.inputs[1].shape.ndims != 1:
        raise ValueError("block_shape must have rank 1.")
    count = op.inputs[1].shape[0].value
    if count is None:
        raise ValueError("block_shape must have known size.")
    op.inputs[2].shape.assert_is_compatible_with(TensorShape([count, 2]))
    block, around = folded_value(op.inputs[1]), folded_value(op.inputs[2])
    if block is not None and (block < 1).any():
        raise ValueError(f"block_shape must be positive, got {block.min()}")
    if around is not None and (around < 0).any():
        raise ValueError(f"{what} cannot be negative")
    return count, block if block is None else block.tolist(), around if around is None else around.tolist()


def _nd_shape(op: Operation, what: str, batch_of: Any, size_of: Any) -> list[TensorShape]:
    """The shape rule of both: `batch_of(batch, blocks)`, `size_of(size, block, around)`."""
    count, block, around = _known_blocks(op, what)
    shape = op.inputs[0].shape.with_rank_at_least(count + 1)
    if shape.ndims is None:
        return [shape]
    batch, *sizes = shape.as_list()[: count + 1]
    if block is None:
        return [TensorShape([None] * (count + 1)).concatenate(shape[count + 1 :])]
    blocks = int(np.prod(block))
    new = [None if None in (n, around) else size_of(n, b, sum(around[i])) for i, (n, b) in enumerate(zip(sizes, block))]
    return [TensorShape([None if batch is None else batch_of(batch, blocks), *new]).concatenate(shape[count + 1 :])]


def _cropped(size: int, crop: int) -> int:
    if size < crop:
        raise ValueError(f"Negative dimension size caused by subtracting {crop} from {size}")
    return size - crop


_ND = """(input: T, block_shape: Tblock_shape, around: Taround) -> (output: T)
         T: type, Tblock_shape: {int32, int64} = int32, Taround: {int32, int64} = int32"""


@op("SpaceToBatchND" + _ND.replace("around", "paddings"))
class SpaceToBatchND(Op):
    """Blocks, cut out of the axes after the first, as further elements of the batch."""

    flops = free

    def infer(op):
        return _nd_shape(op, "paddings", lambda batch, b: batch * b, lambda n, b, pad: divided(n + pad, b))

    def bind(node, xp):
        return lambda x, block, paddings: _space_to_batch(xp, x, block.tolist(), paddings)

    def grad(op, dy):
        return [batch_to_space_nd(dy, op.inputs[1], op.inputs[2]), None, None]


@op("BatchToSpaceND" + _ND.replace("around", "crops"))
class BatchToSpaceND(Op):
    """The inverse: elements of the batch as blocks; then the edges are cut off."""

    flops = free

    def infer(op):
        return _nd_shape(op, "crops", divided, lambda n, b, crop: _cropped(n * b, crop))

    def bind(node, xp):
        return lambda x, block, crops: _batch_to_space(x, block.tolist(), crops)

    def grad(op, dy):
        return [space_to_batch_nd(dy, op.inputs[1], op.inputs[2]), None, None]


def _image_shape(op: Operation, batch_of: Any, size_of: Any) -> list[TensorShape]:
    shape, b = op.inputs[0].shape.with_rank(4), op.get_attr("block_size")
    op.inputs[1].shape.assert_is_compatible_with(TensorShape([2, 2]))
    around = folded_value(op.inputs[1])
    batch, *sizes, depth = shape.as_list()
    rows = [None, None] if around is None else around
    new = [None if n is None or around is None else size_of(n, b, int(a.sum())) for n, a in zip(sizes, rows)]
    return [TensorShape([None if batch is None else batch_of(batch, b * b), *new, depth])]


@op("""SpaceToBatch(input: T, paddings: Tpaddings) -> (output: T)
       T: type, Tpaddings: {int32, int64} = int32, block_size: int >= 2""")
class SpaceToBatch(Op):
    """SpaceToBatchND for images and square blocks."""

    flops = free

    def infer(op):
        return _image_shape(op, lambda batch, b: batch * b, lambda n, b, pad: divided(n + pad, b))

    def kernel(node, xp, x, paddings):
        return _space_to_batch(xp, x, [node["block_size"]] * 2, paddings)

    def grad(op, dy):
        return [apply_op("BatchToSpace", input=dy, crops=op.inputs[1], block_size=op.get_attr("block_size")), None]


@op("""BatchToSpace(input: T, crops: Tidx) -> (output: T)
       T: type, block_size: int >= 2, Tidx: {int32, int64} = int32""")
class BatchToSpace(Op):
    """BatchToSpaceND for images and square blocks."""

    flops = free

    def infer(op):
        return _image_shape(op, divided, lambda n, b, crop: _cropped(n * b, crop))

    def kernel(node, xp, x, crops):
        return _batch_to_space(x, [node["block_size"]] * 2, crops)

    def grad(op, dy):
        return [apply_op("SpaceToBatch", input=dy, paddings=op.inputs[1], block_size=op.get_attr("block_size")), None]


# -- channels -----------------------------------------------------------------------------------------

_CHANNELS = """(input: T) -> (output: T)
               T: type, block_size: int >= 2, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"""


def _height_of(data_format: bytes) -> int:
    """The axis of the height; the width is the next one."""
    if data_format == b"NCHW_VECT_C":
        raise NotImplementedError("NCHW_VECT_C, TensorFlow's format for cuDNN's int8 kernels, is not in dtflab.")
    return 1 if data_format == b"NHWC" else 2


def _channels_of(height: int) -> int:
    """The axis of the channels: behind the width, or in front of the height."""
    return 3 if height == 1 else 1


def _channels_shape(op: Operation, size_of: Any, depth_of: Any) -> list[TensorShape]:
    block, height = op.get_attr("block_size"), _height_of(op.get_attr("data_format"))
    sizes = op.inputs[0].shape.with_rank(4).as_list()
    channels = _channels_of(height)
    for axis in (height, height + 1):
        sizes[axis] = None if sizes[axis] is None else size_of(sizes[axis], block)
    sizes[channels] = None if sizes[channels] is None else depth_of(sizes[channels], block * block)
    return [TensorShape(sizes)]


@op(f"SpaceToDepth{_CHANNELS}")
class SpaceToDepth(Op):
    """Each block of pixels as one pixel with block² times as many channels."""

    flops = free

    def infer(op):
        return _channels_shape(op, divided, lambda depth, b: depth * b)

    def kernel(node, xp, x):
        b, height = node["block_size"], _height_of(node["data_format"])
        rows, cols = x.shape[height : height + 2]
        if cols % b or rows % b:
            raise invalid(f"Image width {cols} and height {rows} should be divisible by block_size: {b}")
        n, depth, out = len(x), x.shape[_channels_of(height)], (rows // b, cols // b)
        halves = (out[0], b, out[1], b)
        if height == 1:
            return x.reshape(n, *halves, depth).transpose(0, 1, 3, 2, 4, 5).reshape(n, *out, b * b * depth)
        return x.reshape(n, depth, *halves).transpose(0, 3, 5, 1, 2, 4).reshape(n, b * b * depth, *out)

    def grad(op, dy):
        return [depth_to_space(dy, op.get_attr("block_size"), data_format=op.get_attr("data_format"))]


@op(f"DepthToSpace{_CHANNELS}")
class DepthToSpace(Op):
    """The inverse: the channels of a pixel as a block of pixels."""

    flops = free

    def infer(op):
        return _channels_shape(op, lambda size, b: size * b, divided)

    def kernel(node, xp, x):
        b, height = node["block_size"], _height_of(node["data_format"])
        n, (rows, cols), depth = len(x), x.shape[height : height + 2], x.shape[_channels_of(height)]
        if depth % (b * b):
            raise invalid(f"Input depth dimension {depth} should be divisible by: {b * b}")
        depth, out = depth // (b * b), (rows * b, cols * b)
        if height == 1:
            return x.reshape(n, rows, cols, b, b, depth).transpose(0, 1, 3, 2, 4, 5).reshape(n, *out, depth)
        return x.reshape(n, b, b, depth, rows, cols).transpose(0, 3, 4, 1, 5, 2).reshape(n, depth, *out)

    def grad(op, dy):
        return [space_to_depth(dy, op.get_attr("block_size"), data_format=op.get_attr("data_format"))]

"""Patches of images: every window of an image as one pixel with many channels.

Stands for `core/kernels/extract_image_patches_op.cc` and its gradient in `python/ops/array_grad.py`. Left out:
ExtractVolumePatches.
"""

from __future__ import annotations

from typing import Any

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.indexed_slices import dense
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.conv.windows import axis, patches
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.type_sets import REAL_COMPLEX_BOOL


def _ways(attrs: Any) -> list[list[int]]:
    """For height and width: size of the window, how far it moves, how far apart its pixels are."""
    return [[attrs[name][i] for name in ("ksizes", "strides", "rates")] for i in (1, 2)]


def _windows(size: int, window: int, stride: int, rate: int, padding: bytes) -> int:
    try:
        return axis(size, window, stride, rate, padding).out
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None


@op(f"""ExtractImagePatches(images: T) -> (patches: T)
        ksizes: list(int) >= 4, strides: list(int) >= 4, rates: list(int) >= 4, T: {REAL_COMPLEX_BOOL}
        padding: {{'SAME', 'VALID'}}""")
class ExtractImagePatches(Op):
    """For each window its pixels, row by row, one after the other in the channels."""

    flops = free

    def infer(op):
        batch, *sizes, depth = op.inputs[0].shape.with_rank(4).as_list()
        ways, padding = _ways(op.attrs), op.get_attr("padding")
        outs = [None, None] if None in sizes else [_windows(size, *way, padding) for size, way in zip(sizes, ways)]
        return [TensorShape([batch, *outs, None if depth is None else depth * ways[0][0] * ways[1][0]])]

    def bind(node, xp):
        ways, padding = _ways(node.attrs), node["padding"]

        def kernel(images):
            if images.ndim != 4:
                raise invalid(f"input must be 4-dimensional{shape_text(images)}")
            axes = [axis(size, *way, padding) for size, way in zip(images.shape[1:3], ways)]
            depth = images.shape[3] * axes[0].window * axes[1].window
            return patches(xp, images, axes).reshape(len(images), *(a.out for a in axes), depth)

        return kernel

    def grad(op, dy):
        batch, rows, cols, channels = arrays.unstack(arrays.shape(op.inputs[0], out_type=dtypes.int64))
        sizes: Any = arrays.shape(op.outputs[0], out_type=dtypes.int64)
        rows_out, cols_out = arrays.unstack(sizes[1:3])
        _, high, wide, _ = op.get_attr("ksizes")
        pixels = rows * cols
        # Each pixel has a number from 1; the patches of the numbers tell where each element of a patch came from.
        numbers = arrays.reshape(arrays.range(1, pixels + 1, dtype=dtypes.float32), (1, rows, cols, 1))
        attrs = {name: op.get_attr(name) for name in ("ksizes", "strides", "rates", "padding")}
        origin = arrays.cast(apply_op("ExtractImagePatches", images=numbers, **attrs), dtypes.int64)
        parts = arrays.reshape(dense(dy), (batch, rows_out, cols_out, high, wide, channels))
        parts = arrays.transpose(parts, (1, 2, 3, 4, 0, 5))
        parts = arrays.reshape(parts, (-1, batch * channels))
        origin = arrays.reshape(origin, [-1]) - 1  # padding is -1: of no segment
        total = reduce.unsorted_segment_sum(parts, origin, pixels)
        total = arrays.reshape(total, (rows, cols, batch, channels))
        return [arrays.transpose(total, (2, 0, 1, 3))]

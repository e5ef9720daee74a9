"""Windows without products: dilation of images (the largest of pixel plus filter), and patches.

Stands for `core/kernels/{dilation_ops,extract_image_patches_op}.cc` and their part of `nn_ops.py` and `array_grad.py`.
Left out: ExtractVolumePatches.

Rule: one pass over the images per position in the filter; of several equal largest values the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.dtypes import as_dtype
from dtflab.graph.indexed_slices import dense
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes, windows
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.type_sets import REAL_COMPLEX_BOOL
from dtflab.ops.windows import axis, patches

_ATTRS = "\nT: realnumbertype, strides: list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}"
_ALL = slice(None)


def _dilated(xp: Any, x: Any, w: Any, axes: Sequence[windows.Axis]) -> Any:
    y = xp.full((len(x), *windows.outs(axes), x.shape[-1]), as_dtype(x.dtype).min, x.dtype)
    for place, there, here in windows.positions(axes):
        part = y[(_ALL, *here)]
        xp.maximum(part, x[(_ALL, *there)] + w[place], out=part)
    return y


def _each_chosen(xp: Any, x: Any, w: Any, axes: Sequence[windows.Axis]) -> Iterator[tuple[Any, Any, Any, Any]]:
    """For each position in the filter: places in it, in x and in y, and where the largest value was found there."""
    y = _dilated(xp, x, w, axes)
    free = xp.ones(y.shape, bool)
    for place, there, here in windows.positions(axes):
        there, here = (_ALL, *there), (_ALL, *here)
        chosen = x[there] + w[place] == y[here]
        chosen &= free[here]
        free[here] ^= chosen
        yield place, there, here, chosen


def _with_axes(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`bind` of a kernel that wants to know how the filter moves, and that is sure of the shapes."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        def checked(x: Any, w: Any, *dy: Any) -> Any:
            if x.ndim != 4 or w.ndim != 3:
                raise invalid(f"input must be 4-dimensional, filter 3-dimensional: {shape_text(x)}, {shape_text(w)}")
            if x.shape[-1] != w.shape[-1]:
                raise invalid(f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[-1]}")
            ways = zip(x.shape[1:3], w.shape, node["strides"][1:3], node["rates"][1:3])
            axes = [windows.axis(size, k, stride, rate, node["padding"]) for size, k, stride, rate in ways]
            wanted = (len(x), *windows.outs(axes), x.shape[-1])
            if dy and dy[0].shape != wanted:
                raise invalid(f"out_backprop must have shape {shape_text(wanted)}, not {shape_text(dy[0])}")
            return kernel(xp, x, w, *dy, axes)

        return checked

    return bind


def _to_input(xp: Any, x: Any, w: Any, dy: Any, axes: Sequence[windows.Axis]) -> Any:
    dx = xp.zeros_like(x)
    for _, there, here, chosen in _each_chosen(xp, x, w, axes):
        dx[there] += windows.masked(chosen, dy[here])
    return dx


def _to_filter(xp: Any, x: Any, w: Any, dy: Any, axes: Sequence[windows.Axis]) -> Any:
    dw = xp.zeros_like(w)
    for place, _, here, chosen in _each_chosen(xp, x, w, axes):
        dw[place] = windows.masked(chosen, dy[here]).sum(axis=(0, 1, 2), dtype=dy.dtype)
    return dw


def _flops(node: Node, ins: Any, outs: Any) -> int:
    """An addition and a comparison for each element of a window; the gradients look for the largest once more."""
    windows_of = [*ins, *outs][2]  # the result, or its gradient
    return 2 * elements(windows_of) * prod(ins[1].shape[:2])


@op("Dilation2D(input: T, filter: T) -> (output: T)" + _ATTRS)
class Dilation2D(Op):
    """The largest of pixel plus filter in each window."""

    bind = _with_axes(_dilated)
    flops = _flops

    def infer(op):
        x, w = op.inputs[0].shape.with_rank(4), op.inputs[1].shape.with_rank(3)
        depth = x[3].merge_with(w[2])
        ways = zip(x.as_list()[1:3], w.as_list(), op.get_attr("strides")[1:3], op.get_attr("rates")[1:3])
        padding = op.get_attr("padding")
        sizes = [windows.static_size(size, k, stride, rate, padding) for size, k, stride, rate in ways]
        return [TensorShape([x[0], *sizes, depth])]

    def grad(op, dy):
        given = {"input": op.inputs[0], "filter": op.inputs[1], "out_backprop": dy}
        attrs = {name: op.get_attr(name) for name in ("strides", "rates", "padding")}
        return [apply_op(f"Dilation2DBackprop{end}", **given, **attrs) for end in ("Input", "Filter")]


@op("Dilation2DBackpropInput(input: T, filter: T, out_backprop: T) -> (in_backprop: T)" + _ATTRS)
class Dilation2DBackpropInput(Op):
    """The dilation's gradient by the images."""

    grad = None
    bind = _with_axes(_to_input)
    flops = _flops
    infer = shapes.unchanged


@op("Dilation2DBackpropFilter(input: T, filter: T, out_backprop: T) -> (filter_backprop: T)" + _ATTRS)
class Dilation2DBackpropFilter(Op):
    """The dilation's gradient by the filter."""

    grad = None
    bind = _with_axes(_to_filter)
    flops = _flops
    infer = shapes.like(1)


# -- patches: each window as one pixel -------------------------------------------------------------------


def _sides(attrs: Any) -> list[list[int]]:
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
        ways, padding = _sides(op.attrs), op.get_attr("padding")
        outs = [None, None] if None in sizes else [_windows(size, *way, padding) for size, way in zip(sizes, ways)]
        return [TensorShape([batch, *outs, None if depth is None else depth * ways[0][0] * ways[1][0]])]

    def bind(node, xp):
        ways, padding = _sides(node.attrs), node["padding"]

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
        # Each pixel has a number from 1; the patches of the numbers show where each element of a patch came from.
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

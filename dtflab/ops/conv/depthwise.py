"""Depthwise convolutions: each channel has filters of its own.

Stands for `core/kernels/depthwise_conv_op.cc`, `depthwise_conv_grad_op.cc`, and their part of `nn_grad.py`.

Rule: one multiplication of whole arrays per position in the filter; there is no product of matrices in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import windows
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.conv import convolution as conv, kernels
from dtflab.ops.messages import invalid

_ATTRS = """
    T: {half, bfloat16, float, double}, strides: list(int), padding: {'SAME', 'VALID', 'EXPLICIT'}
    explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, 1, 1, 1]"""
_ALL = slice(None)


def _apart(x: Any, w_shape: Sequence[int]) -> Any:
    """[…, channels · filters] as […, channels, filters]."""
    return x.reshape(*x.shape[:-1], *w_shape[-2:])


def convolve(xp: Any, x: Any, w: Any, axes: Sequence[windows.Axis]) -> Any:
    """Each channel of `x` [batch, sizes, channels] times its filters: [batch, outs, channels · filters]."""
    channels, filters = w.shape[-2:]
    y = xp.zeros((len(x), *windows.outs(axes), channels, filters), x.dtype)
    for place, there, here in windows.positions(axes):
        y[(_ALL, *here)] += x[(_ALL, *there)][..., None] * w[place]
    return y.reshape(*y.shape[:-2], channels * filters)


def convolve_back(xp: Any, dy: Any, w: Any, axes: Sequence[windows.Axis]) -> Any:
    """The gradient by the input."""
    dy = _apart(dy, w.shape)
    dx = xp.zeros((len(dy), *(a.size for a in axes), w.shape[-2]), dy.dtype)
    for place, there, here in windows.positions(axes):
        dx[(_ALL, *there)] += (dy[(_ALL, *here)] * w[place]).sum(-1)
    return dx


def correlate(xp: Any, x: Any, dy: Any, axes: Sequence[windows.Axis], shape: Sequence[int]) -> Any:
    """The gradient by the filters."""
    dy, dw = _apart(dy, shape), xp.zeros(shape, x.dtype)
    for place, there, here in windows.positions(axes):
        terms = x[(_ALL, *there)][..., None] * dy[(_ALL, *here)]
        dw[place] = terms.sum(axis=tuple(range(x.ndim - 1)))
    return dw


def _bind_forward(node: Node, xp: Any) -> Callable[..., Any]:
    def kernel(x: Any, w: Any) -> Any:
        kernels.check_ranks(node, x, w)
        x, w = kernels.channels_last(xp, node, x), kernels.wide(w)
        if x.shape[-1] != w.shape[-2]:
            raise invalid(f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[-2]}")
        return kernels.as_asked(xp, node, convolve(xp, x, w, kernels.axes_of(node, x.shape[1:-1], w.shape[:-2])))

    return kernel


def _bind_input(node: Node, xp: Any) -> Callable[..., Any]:
    def kernel(sizes: Any, w: Any, dy: Any) -> Any:
        kernels.check_ranks(node, dy, w)
        shape = kernels.sizes_of(node, sizes, dy, w)
        dy, w = kernels.channels_last(xp, node, dy), kernels.wide(w)
        axes = kernels.axes_of(node, windows.spatial(node, shape), w.shape[:-2])
        kernels.check_gradient(dy, shape[0], axes, w.shape[-2] * w.shape[-1])
        return kernels.as_asked(xp, node, convolve_back(xp, dy, w, axes))

    return kernel


def _bind_filter(node: Node, xp: Any) -> Callable[..., Any]:
    def kernel(x: Any, sizes: Any, dy: Any) -> Any:
        kernels.check_ranks(node, x, dy)
        shape = tuple(int(n) for n in sizes)
        x, dy = kernels.channels_last(xp, node, x), kernels.channels_last(xp, node, dy)
        axes = kernels.axes_of(node, x.shape[1:-1], shape[:-2])
        kernels.check_gradient(dy, len(x), axes, shape[-2] * shape[-1])
        return correlate(xp, x, dy, axes, shape).astype(node["T"].as_numpy_dtype, copy=False)

    return kernel


def _output_shape(op: Operation) -> list[TensorShape]:
    x, w = (t.shape.with_rank(4) for t in op.inputs[:2])
    for name, text in {"strides": "stride", "dilations": "dilations"}.items():
        if (found := len(op.get_attr(name))) != 4:
            raise ValueError(f"DepthwiseConv2D requires the {text} attribute to contain 4 values, but got: {found}")
    channels = x[1 if windows.is_channels_first(op) else -1].merge_with(w[2])
    sizes = windows.spatial(op, x.as_list())
    spatial = conv.output_sizes(op, sizes, w.as_list(), windows.static_paddings(op, 4))
    return [windows.with_channels(op, x[0], spatial, channels * w[3])]


@op("DepthwiseConv2dNative(input: T, filter: T) -> (output: T)" + _ATTRS)
class DepthwiseConv2dNative(Op):
    """Filters that move over images, each over one channel."""

    infer = _output_shape
    bind = _bind_forward

    def flops(node, ins, outs):
        return 2 * math.prod(ins[1].shape[:2]) * elements(outs[0])

    def grad(op, dy):
        (x, w), attrs = op.inputs, {"out_backprop": dy, **conv.ways(op, "explicit_paddings")}
        dx = apply_op(f"{op.type}BackpropInput", input_sizes=arrays.shape(x), filter=w, **attrs)
        return [dx, apply_op(f"{op.type}BackpropFilter", input=x, filter_sizes=arrays.shape(w), **attrs)]


@op("DepthwiseConv2dNativeBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> (output: T)" + _ATTRS)
class DepthwiseConv2dNativeBackpropInput(conv.BackToInput):
    """The depthwise convolution's gradient by the images."""

    blas = shards = False
    bind = _bind_input

    def infer(op):
        return [windows.given_shape(op, 0)]

    def flops(node, ins, outs):
        return 2 * math.prod(ins[1].shape[:2]) * elements(ins[2])


@op("DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> (output: T)" + _ATTRS)
class DepthwiseConv2dNativeBackpropFilter(conv.BackToFilter):
    """The depthwise convolution's gradient by the filters."""

    blas = shards = False
    bind = _bind_filter

    def flops(node, ins, outs):
        return 2 * math.prod(outs[0].shape[:2]) * elements(ins[2])

"""Grey-scale dilation of images (the largest of pixel plus filter), and erosion.

Stands for `core/kernels/dilation_ops.cc` and its part of `nn_ops.py`.

Rule: one pass over the images per position in the filter; of several equal largest values the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.dtypes import as_dtype
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.conv import windows
from dtflab.ops.conv.windows import Axis
from dtflab.ops.messages import invalid, shape_text

_ATTRS = "\nT: realnumbertype, strides: list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}"
_ALL = slice(None)


def _dilated(xp: Any, x: Any, w: Any, axes: Sequence[Axis]) -> Any:
    y = xp.full((len(x), *windows.outs(axes), x.shape[-1]), as_dtype(x.dtype).min, x.dtype)
    for place, there, here in windows.positions(axes):
        part = y[(_ALL, *here)]
        xp.maximum(part, x[(_ALL, *there)] + w[place], out=part)
    return y


def _each_chosen(xp: Any, x: Any, w: Any, axes: Sequence[Axis]) -> Iterator[tuple[Any, Any, Any, Any]]:
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

    def bind(node: Any, xp: Any) -> Callable[..., Any]:
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


def _to_input(xp: Any, x: Any, w: Any, dy: Any, axes: Sequence[Axis]) -> Any:
    dx = xp.zeros_like(x)
    for _, there, here, chosen in _each_chosen(xp, x, w, axes):
        dx[there] += windows.masked(chosen, dy[here])
    return dx


def _to_filter(xp: Any, x: Any, w: Any, dy: Any, axes: Sequence[Axis]) -> Any:
    dw = xp.zeros_like(w)
    for place, _, here, chosen in _each_chosen(xp, x, w, axes):
        dw[place] = windows.masked(chosen, dy[here]).sum(axis=(0, 1, 2), dtype=dy.dtype)
    return dw


def _flops(node: Any, ins: Any, outs: Any) -> int:
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
    """Its gradient by the images."""

    grad = None
    bind = _with_axes(_to_input)
    flops = _flops

    def infer(op):
        return [op.inputs[0].shape]


@op("Dilation2DBackpropFilter(input: T, filter: T, out_backprop: T) -> (filter_backprop: T)" + _ATTRS)
class Dilation2DBackpropFilter(Op):
    """Its gradient by the filter."""

    grad = None
    bind = _with_axes(_to_filter)
    flops = _flops

    def infer(op):
        return [op.inputs[1].shape]

"""Floats rounded to what few bits could hold, and still floats: for training a network that will be quantized.

Stands for `core/kernels/fake_quant_ops.cc`, `quantize_and_dequantize_op.cc` and their parts of
`python/ops/array_ops.py`. Left out: QuantizeAndDequantize, which TensorFlow refuses since 2017.

Rule: fake_quant moves the range so that zero is one of its steps; quantize_and_dequantize scales round zero. The
gradient passes where the input was inside the range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.messages import invalid
from dtflab.ops.nn.quantize import F
from dtflab.ops.type_sets import FLOAT

_BITS = "num_bits: int = 8\nnarrow_range: bool = false"
_ENDS = "min: float = -6.0\nmax: float = 6.0\n" + _BITS


def _check_bits(node: Node) -> None:
    if not 2 <= node["num_bits"] <= 16:
        raise invalid("num_bits must be between 2 and 16, inclusive")


def _check_fixed(node: Node) -> None:
    if node["min"] >= node["max"]:
        raise invalid(f"min has to be smaller than max, was: {node['min']:g} >= {node['max']:g}")


def _nudged(node: Node, xp: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """(low, high, step) of the range, moved so that zero is a whole number of steps from its ends."""
    low, high = xp.asarray(low), xp.asarray(high)  # a GPU's kernels take them from host memory
    least, most = F(node["narrow_range"]), F((1 << node["num_bits"]) - 1)
    step = (high - low) / (most - least)
    zero = least - low / step
    zero = xp.where(zero < least, least, xp.where(zero > most, most, xp.floor(zero + F(0.5))))
    return (least - zero) * step, (most - zero) * step, step


def _rounded(xp: Any, x: Any, low: Any, high: Any, step: Any) -> Any:
    inverse = F(1) / step
    zero = xp.floor(-low * inverse + F(0.5))
    steps = xp.floor((xp.maximum(xp.minimum(x, high), low) - low) * inverse - zero + F(0.5))
    return xp.where(step == 0, F(0), steps * step)


def _rounding(node: Node, xp: Any) -> Any:
    _check_bits(node)
    return lambda x, low, high: _rounded(xp, x, *_nudged(node, xp, low, high))


def _gradients(node: Node, xp: Any, axes: Any) -> Any:
    """A kernel for the gradients of the input and of both ends, summed over `axes`."""
    _check_bits(node)

    def kernel(dy: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
        low, high = xp.asarray(low), xp.asarray(high)
        nothing = (low == 0) & (high == 0)
        low, high, _ = _nudged(node, xp, low, high)
        below, above = (x < low) & ~nothing, (x > high) & ~nothing
        summed = axes(x)
        dx = xp.where(below | above, F(0), dy)
        return dx, (dy * below).sum(summed, dtype=F), (dy * above).sum(summed, dtype=F)

    return kernel


@op(f"FakeQuantWithMinMaxArgs(inputs: float) -> (outputs: float) where {_ENDS}")
class FakeQuantWithMinMaxArgs(Op):
    """Floats rounded to the steps of a fixed range."""

    infer = shapes.unchanged

    def bind(node, xp):
        _check_fixed(node)
        rounding, low, high = _rounding(node, xp), xp.asarray(F(node["min"])), xp.asarray(F(node["max"]))
        return lambda x: rounding(x, low, high)

    def grad(op, dy):
        attrs = {name: op.get_attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
        return [apply_op("FakeQuantWithMinMaxArgsGradient", gradients=dy, inputs=op.inputs[0], **attrs)]


@op(f"FakeQuantWithMinMaxArgsGradient(gradients: float, inputs: float) -> (backprops: float) where {_ENDS}")
class FakeQuantWithMinMaxArgsGradient(Op):
    """The gradient of FakeQuantWithMinMaxArgs."""

    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        _check_bits(node)
        _check_fixed(node)
        low, high, _ = _nudged(node, xp, xp.asarray(F(node["min"])), xp.asarray(F(node["max"])))
        return lambda dy, x: dy * ((x >= low) & (x <= high))


def _of_ends(op: Operation, dy: Tensor) -> list[Any]:
    x, low, high = op.inputs
    attrs = {name: op.get_attr(name) for name in ("num_bits", "narrow_range")}
    return list(apply_op(f"{op.type}Gradient", gradients=dy, inputs=x, min=low, max=high, **attrs))


@op(f"FakeQuantWithMinMaxVars(inputs: float, min: float, max: float) -> (outputs: float) where {_BITS}")
class FakeQuantWithMinMaxVars(Op):
    """Floats rounded to the steps of a range that is learnt."""

    infer = shapes.unchanged
    bind = _rounding
    grad = _of_ends


@op(f"FakeQuantWithMinMaxVarsPerChannel(inputs: float, min: float, max: float) -> (outputs: float) where {_BITS}")
class FakeQuantWithMinMaxVarsPerChannel(Op):
    """Floats rounded to the steps of ranges that are learnt, one for each place on the last axis."""

    infer = shapes.unchanged
    grad = _of_ends

    def bind(node, xp):
        rounding = _rounding(node, xp)

        def kernel(x, low, high):
            for what, end in (("min", low), ("max", high)):
                if end.shape != x.shape[-1:]:
                    raise invalid(f"{what} has incorrect size, expected {x.shape[-1]} was {end.size}")
            return rounding(x, low, high)

        return kernel


_GRADIENTS = f"""(gradients: float, inputs: float, min: float, max: float) ->
    (backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float) where {_BITS}"""


@op(f"FakeQuantWithMinMaxVarsGradient{_GRADIENTS}")
class FakeQuantWithMinMaxVarsGradient(Op):
    """The gradients of FakeQuantWithMinMaxVars."""

    grad = no_gradient

    def infer(op):
        return [op.inputs[0].shape.merge_with(op.inputs[1].shape), TensorShape([]), TensorShape([])]

    def bind(node, xp):
        return _gradients(node, xp, lambda x: None)


@op(f"FakeQuantWithMinMaxVarsPerChannelGradient{_GRADIENTS}")
class FakeQuantWithMinMaxVarsPerChannelGradient(Op):
    """The gradients of FakeQuantWithMinMaxVarsPerChannel."""

    grad = no_gradient

    def infer(op):
        shape = op.inputs[0].shape.merge_with(op.inputs[1].shape)
        last = TensorShape([None if shape.ndims is None else shape[-1]])
        ends = last.merge_with(op.inputs[2].shape).merge_with(op.inputs[3].shape)
        return [shape, ends, ends]

    def bind(node, xp):
        return _gradients(node, xp, lambda x: tuple(range(x.ndim - 1)))


# -- scaled round zero ----------------------------------------------------------------------------------------------


def _scales(xp: Any, low: Any, high: Any, signed: bool, bits: int, narrow: bool) -> tuple[Any, Any, Any, Any]:
    """(low, high, scale, step): the smaller scale at which both ends fit decides."""
    kind = low.dtype.type
    least = kind(-(1 << bits - 1) + narrow if signed else 0)
    most = kind((1 << bits - 1) - 1 if signed else (1 << bits) - 1)
    large = np.finfo(np.float32).max if kind is not np.float64 else np.finfo(np.float64).max
    from_low = xp.where(least * low > 0, least / low, kind(large))
    from_high = xp.where(most * high > 0, most / high, kind(large))
    by_low = from_low < from_high
    step = xp.where(by_low, low / least, high / most)
    low, high = xp.where(by_low, low, least * step), xp.where(by_low, most * step, high)
    return low, high, xp.where(by_low, from_low, from_high), step


def _along(xp: Any, x: Any, end: Any, axis: int) -> Any:
    end = xp.asarray(end)
    return end.reshape([-1 if i == axis else 1 for i in range(x.ndim)]) if axis != -1 else end.reshape(())


def _there_and_back(xp: Any, x: Any, low: Any, high: Any, node: Node, bits: int, half_up: bool) -> Any:
    axis = node["axis"]
    if not node["range_given"]:
        others = None if axis == -1 else tuple(i for i in range(x.ndim) if i != axis)
        low, high = x.min(others), x.max(others)
    low, high = _along(xp, x, low, axis), _along(xp, x, high, axis)
    if (low > high).any():
        raise invalid(f"Invalid range: input_min {low} > input_max {high}")
    low, high, scale, step = _scales(xp, low, high, node["signed_input"], bits, node["narrow_range"])
    inside = xp.maximum(xp.minimum(x, high), low) if node["range_given"] else x
    steps = inside * scale
    return (xp.floor(steps + steps.dtype.type(0.5)) if half_up else xp.rint(steps)) * step


_V2 = f"""(input: T, input_min: T, input_max: T) -> (output: T)
       signed_input: bool = true, num_bits: int = 8, range_given: bool = false, T: {FLOAT}
       round_mode: {{'HALF_TO_EVEN', 'HALF_UP'}} = "HALF_TO_EVEN", narrow_range: bool = false, axis: int = -1"""


def _everywhere(op: Operation, dy: Any) -> list[Any]:
    return [dy, *[None] * (len(op.inputs) - 1)]


class _Rounded(Op):
    infer = shapes.unchanged

    def bind(node: Node, xp: Any) -> Any:
        half_up, bits = node["round_mode"] == b"HALF_UP", node["num_bits"]
        return lambda x, low, high: _there_and_back(xp, x, low, high, node, bits, half_up)


@op(f"QuantizeAndDequantizeV2{_V2}")
class QuantizeAndDequantizeV2(_Rounded):
    """Floats rounded to what `num_bits` hold; the gradient passes everywhere."""

    grad = _everywhere


@op(f"QuantizeAndDequantizeV4{_V2}")
class QuantizeAndDequantizeV4(_Rounded):
    """Floats rounded to what `num_bits` hold; the gradient passes inside the range."""

    def grad(op, dy):
        given = dict(zip(("input", "input_min", "input_max"), op.inputs), gradients=dy, axis=op.get_attr("axis"))
        return list(apply_op("QuantizeAndDequantizeV4Grad", **given))


@op(f"""QuantizeAndDequantizeV3(input: T, input_min: T, input_max: T, num_bits: int32) -> (output: T)
        signed_input: bool = true, range_given: bool = true, T: {FLOAT}, narrow_range: bool = false, axis: int = -1""")
class QuantizeAndDequantizeV3(Op):
    """QuantizeAndDequantizeV2 with the number of bits as an input."""

    infer = shapes.unchanged

    def kernel(node, xp, x, low, high, bits):
        return _there_and_back(xp, x, low, high, node, int(bits), False)

    grad = _everywhere


@op(f"""QuantizeAndDequantizeV4Grad(gradients: T, input: T, input_min: T, input_max: T) -> (input_backprop: T, \
input_min_backprop: T, input_max_backprop: T)
        T: {FLOAT}
        axis: int = -1""")
class QuantizeAndDequantizeV4Grad(Op):
    """The gradients of QuantizeAndDequantizeV4."""

    def infer(op):
        ends = op.inputs[2].shape.with_rank(0 if op.get_attr("axis") == -1 else 1).merge_with(op.inputs[3].shape)
        return [op.inputs[0].shape.merge_with(op.inputs[1].shape), ends, ends]

    def kernel(node, xp, dy, x, low, high):
        axis = node["axis"]
        inside = (x >= _along(xp, x, low, axis)) & (x <= _along(xp, x, high, axis))
        return dy * inside, xp.zeros(low.shape, low.dtype), xp.zeros(high.shape, high.dtype)

    def grad(op, *dys):
        raise NotImplementedError("QuantizeAndDequantizeV4Grad has no gradient; TensorFlow's own function fails, too.")


# -- functions ------------------------------------------------------------------------------------------------------

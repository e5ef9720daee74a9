"""From floats to small integers and back: QuantizeV2, Dequantize, with their three ways to map a range.

Stands for `core/kernels/quantize_op.cc`, `dequantize_op.cc` and their parts of `python/ops/array_ops.py`. Left out:
arithmetic on quantized tensors (QuantizedMatMul and its kin).

Rule: a quantized array is a NumPy record of one field, so that its dtype differs; a kernel sees the integers
in it through a view. All arithmetic is float32, step by step as TensorFlow's, so that the integers are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.messages import invalid

F = np.float32


def integers(dtype: DType) -> np.dtype[Any]:
    """The plain integers that a quantized dtype is made of."""
    return dtype.as_numpy_dtype.fields[dtype.base_dtype.name][0]


def rounded_away(x: Any) -> Any:
    """To the nearest whole number, halves away from zero: C's `round`."""
    return np.trunc(x + np.copysign(F(0.5) - np.spacing(F(0.25)), x))


def _slices(ranges: Any, x: Any, axis: int, what: str) -> Any:
    """The range's ends, one for all of x or one per place on its axis, so that they broadcast with x."""
    if axis >= x.ndim:
        raise invalid(f"Axis must be less than input dimension({x.ndim}), got {axis}")
    count = x.shape[axis] if axis > -1 else 1
    if np.size(ranges) != count:
        wanted = f"as many elements as input on the quantization axis ({axis})"
        raise invalid(f"{what} must have {wanted}, got {np.size(ranges)}, expected {count}")
    if axis == -1:
        return np.reshape(ranges, ())
    return np.reshape(ranges, [-1 if i == axis else 1 for i in range(x.ndim)])


@op("""QuantizeV2(input: float, min_range: float, max_range: float) -> (output: T, output_min: float, output_max: float)
       T: quantizedtype, mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = "MIN_COMBINED"
       round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = "HALF_AWAY_FROM_ZERO", narrow_range: bool = false
       axis: int = -1, ensure_minimum_range: float = 0.01""")
class QuantizeV2(Op):
    """The integers that stand for floats of a range, and the range that they really cover."""

    def infer(op):
        shape, axis, ends = op.inputs[0].shape, op.get_attr("axis"), TensorShape([])
        if axis != -1:
            shape = shape.with_rank_at_least(axis + 1)
            ends = TensorShape([None if shape.ndims is None else shape[axis]])
        for given in op.inputs[1:]:
            ends = ends.merge_with(given.shape)
        return [shape, ends, ends]

    def bind(node, xp):
        axis, least, dtype = node["axis"], F(node["ensure_minimum_range"]), node["T"].as_numpy_dtype
        info, mode = np.iinfo(integers(node["T"])), node["mode"]
        narrow, to_even = node["narrow_range"], node["round_mode"] == b"HALF_TO_EVEN"
        if to_even and mode != b"SCALED":
            raise invalid(f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode.decode()}'.")

        def kernel(x, low, high):
            low, high = _slices(low, x, axis, "min_range"), _slices(high, x, axis, "max_range")
            if (high < low).any():
                raise invalid("input_max_range must be larger than input_min_range.")
            epsilon = np.maximum(F(1), np.maximum(np.abs(low), np.abs(high))) * least
            low = np.minimum(F(0), low)
            high = np.maximum(F(0), np.maximum(high, low + epsilon))
            if mode == b"SCALED":
                found, low, high = _scaled(x, low, high, info, narrow, to_even)
            else:
                found = (_combined if mode == b"MIN_COMBINED" else _first)(x, low, high, info)
            shape = () if axis == -1 else (-1,)
            return found.astype(info.dtype).view(dtype), *(np.reshape(end, shape).astype(F) for end in (low, high))

        return kernel


def _combined(x: Any, low: Any, high: Any, info: Any) -> Any:
    scale = F(float(info.max) - float(info.min)) / (high - low)
    steps = (np.maximum(np.minimum(x, high), low) - low) * scale
    if info.min == 0:
        return np.trunc(steps + F(0.5))
    return rounded_away(steps - F((float(info.max) - float(info.min) + 1) / 2))


def _first(x: Any, low: Any, high: Any, info: Any) -> Any:
    scale = ((2.0**info.bits - 1) / (high - low).astype(float)).astype(F)
    start = rounded_away(low * scale) - F(info.min)
    most = np.minimum(F(info.max), F(2147483520))
    return np.minimum(np.maximum(rounded_away(x * scale) - start, F(info.min)), most)


def _scaled(x: Any, low: Any, high: Any, info: Any, narrow: bool, to_even: bool) -> tuple[Any, Any, Any]:
    least, most, large = F(info.min + narrow), F(info.max), np.finfo(F).max
    from_low = np.where(least * low > 0, least / low, large)
    from_high = np.where(most * high > 0, most / high, large)
    scale = np.minimum(from_low, from_high)
    low, high = least / scale, most / scale
    steps = np.maximum(np.minimum(x, high), low) * scale
    return (np.rint if to_even else rounded_away)(steps), low, high


@op("""Dequantize(input: T, min_range: float, max_range: float) -> (output: dtype)
       T: quantizedtype, mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = "MIN_COMBINED", narrow_range: bool = false
       axis: int = -1, dtype: {bfloat16, float} = float""")
class Dequantize(Op):
    """The floats that quantized integers stand for."""

    infer = shapes.unchanged

    def bind(node, xp):
        axis, mode, plain = node["axis"], node["mode"], integers(node["T"])
        info, narrow, target = np.iinfo(plain), node["narrow_range"], node["dtype"].as_numpy_dtype

        def kernel(x, low, high):
            numbers = np.asarray(x).view(plain).astype(F)
            low, high = _slices(low, x, axis, "input_min_tensor"), _slices(high, x, axis, "input_max_tensor")
            if mode == b"MIN_COMBINED":
                half = F(0) if info.min == 0 else F((float(info.max) - float(info.min) + 1) / 2)
                scale = (high - low) / (F(info.max) - F(info.min))
                found = (numbers + half) * scale + low
            elif mode == b"SCALED":
                above = high / F(info.max)
                found = numbers * (above if info.min == 0 else np.maximum(low / F(info.min + narrow), above))
            else:
                scale = ((high - low).astype(float) / (2.0**info.bits - 1)).astype(F)
                found = (rounded_away(low / scale) * scale - F(info.min) * scale) + numbers * scale
                found = np.where(low == high, low, found)  # a range without width has no steps
            return found.astype(target, copy=False)

        return kernel

"""Floats rounded to few bits."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples

# Their inputs are quantized numbers, which the examples of other ops don't go through.
IN_PROGRAMS = dict.fromkeys(("QuantizeV2", "Dequantize"), "tests/ops/oracle/test_quantization.py")

_BITS = [{}, {"num_bits": 4}, {"narrow_range": True}, {"num_bits": 16, "narrow_range": True}]


def single(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


_RANGES = [(-1.0, 2.0), (0.0, 1.0), (-2.5, 0.0), (0.3, 2.0), (-3.0, -1.5)]


@examples("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")
def fake_quant_args(v: Values) -> list[Example]:
    inputs = (v.array(2, 3), v.array(2, 3)) if v.op.endswith("Gradient") else (v.array(2, 30),)
    return [v(*inputs, smooth=False, min=a, max=b, **bits) for a, b in _RANGES for bits in _BITS]


@examples("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient")
def fake_quant_vars(v: Values) -> list[Example]:
    inputs = (v.array(2, 3), v.array(2, 3)) if v.op.endswith("Gradient") else (v.array(2, 30),)
    ends = [(np.float32(a), np.float32(b)) for a, b in [*_RANGES, (0, 0)]]
    return [v(*inputs, *map(np.asarray, e), smooth=False, **bits) for e in ends for bits in _BITS]


@examples("FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_channels(v: Values) -> list[Example]:
    ends = single(-1, 0, -2.5), single(2, 1, 0.5)
    pair = v.op.endswith("Gradient")
    inputs = [tuple(v.array(*s) for _ in range(1 + pair)) for s in ((3,), (20, 3), (2, 2, 3, 3))]
    return [v(*i, *ends, smooth=False, **bits) for i in inputs for bits in _BITS]


@examples("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    low, high = np.array(-1.5, kind), np.array(2.25, kind)
    found = [
        v(v.array(2, 9), low, high, smooth=False, range_given=given, signed_input=signed, round_mode=mode, **bits)
        for given in (True, False)
        for signed in (True, False)
        for mode in ("HALF_TO_EVEN", "HALF_UP")
        for bits in _BITS[:3]
    ]
    ends = np.array([-1, -2, -0.5], kind), np.array([2, 1, 3], kind)
    return [*found, v(v.array(2, 3), *ends, smooth=False, axis=1)]  # a given range on an axis fails in TensorFlow


@examples("QuantizeAndDequantizeV3")
def quantize_and_dequantize_v3(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    ends = np.array(-1.5, kind), np.array(2.25, kind)
    bits = [np.array(n, np.int32) for n in (4, 8)]
    return [v(v.array(2, 9), *ends, n, smooth=False, narrow_range=r) for n in bits for r in (False, True)]


@examples("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_grad(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    one = v(v.array(2, 3), v.array(2, 3), np.array(-1.5, kind), np.array(2.25, kind), smooth=False, gradient=False)
    ends = np.array([-1, -2, -0.5], kind), np.array([2, 1, 3], kind)
    return [one, v(v.array(2, 3), v.array(2, 3), *ends, axis=1, smooth=False, gradient=False)]

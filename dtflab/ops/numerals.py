"""Text → numbers, as TensorFlow reads them: one at a time or many at once, with the same result.

Stands for `tsl/platform/numbers.cc` (`SafeStringToNumeric`). Around a number there may be white space; a float may be
hexadecimal, `inf`, `infinity` or `nan`; what is too large for a float is infinite, for an integer an error.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType

_RANGES = {d: range(d.min, d.max + 1) for d in (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)}


def number(text: bytes, dtype: DType) -> Any:
    """The NumPy scalar that `text` spells. Raises ValueError if it is not a number of this dtype."""
    if dtype is dtypes.float32:
        return _nearest_single(text)
    if dtype is dtypes.float64:
        return np.float64(_double(text))
    value = int(text)
    if value not in _RANGES[dtype] or b"_" in text:  # Python's numbers may have underscores
        raise ValueError(text)
    return dtype.as_numpy_dtype(value)


def numbers(texts: Sequence[bytes], dtype: DType) -> Any:
    """The array of `number` of each of `texts`. Raises ValueError if one is not a number."""
    if b"_" in b"".join(texts):
        raise ValueError("underscore")
    try:
        if dtype.is_floating:
            wide = np.fromiter(map(float, texts), np.float64, len(texts))
            return wide if dtype is dtypes.float64 else _singles(wide, texts)
        whole = np.fromiter(map(int, texts), np.uint64 if dtype is dtypes.uint64 else np.int64, len(texts))
    except (ValueError, OverflowError):  # or something rare, such as a hexadecimal float
        return np.array([number(text, dtype) for text in texts], dtype.as_numpy_dtype)
    if len(texts) and not (int(whole.min()) in _RANGES[dtype] and int(whole.max()) in _RANGES[dtype]):
        raise ValueError("out of range")
    return whole.astype(dtype.as_numpy_dtype, copy=False)


_HEX = re.compile(rb"\s*[+-]?0[xX]")
_NAN = re.compile(rb"\s*([+-]?)nan\(\w*\)\s*\Z", re.I)


def _double(text: bytes) -> float:
    if b"_" in text:
        raise ValueError(text)
    try:
        return float(text)
    except ValueError:
        if _HEX.match(text):
            return float.fromhex(text.decode())
        if _NAN.match(text):
            return float("nan")
        raise


# -- single precision -----------------------------------------------------------------------------------------------
# Rounding to a double and then to a single is wrong where the double lies half way between two singles and the text
# does not. Such doubles are rare and easy to recognize: their last 28 bits are zero.

_LAST_BITS = (1 << 28) - 1
_AS_BYTES = struct.Struct("<d").pack
_SMALLEST_NORMAL = 2.0**-126


def _nearest_single(text: bytes) -> Any:
    wide = _double(text)
    single = np.float32(wide)
    if (
        (_AS_BYTES(wide)[:3] == b"\0\0\0" or abs(wide) < _SMALLEST_NORMAL)
        and float(single) != wide
        and math.isfinite(wide)
    ):
        return _corrected(text, wide, single)
    return single


def _singles(wide: Any, texts: Sequence[bytes]) -> Any:
    singles = wide.astype(np.float32)
    doubtful = (wide.view(np.int64) & _LAST_BITS == 0) | (np.abs(wide) < _SMALLEST_NORMAL)
    if doubtful.any():
        for i in np.flatnonzero(doubtful & (singles != wide) & np.isfinite(wide)).tolist():
            singles[i] = _corrected(texts[i], float(wide[i]), singles[i])
    return singles


def _corrected(text: bytes, wide: float, single: Any) -> Any:
    """The single nearest to `text`, when `wide` is the nearest double and `single` is nearest to that."""
    from fractions import Fraction  # a millisecond, for one number in a billion

    def exactly(one: Any) -> Fraction:  # infinity counts as the number after the largest one
        return Fraction(float(one)) if math.isfinite(one) else Fraction(math.copysign(2.0**128, one))

    other = np.nextafter(single, np.float32(np.inf if wide > float(single) else -np.inf))
    if (exactly(single) + exactly(other)) / 2 != Fraction(wide) or _HEX.match(text):
        return single
    exact = Fraction(text.decode())
    if exact == Fraction(wide):
        return single
    return max(single, other) if exact > wide else min(single, other)

"""Fourier transforms, as programs call them.

Stands for the functions of `python/ops/signal/fft_ops.py`. Left out: windows and frames of `tf.signal`.

Rule: real numbers are cut or padded to the requested length before they are transformed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math

_REAL_TYPES, _COMPLEX_TYPES = (dtypes.float32, dtypes.float64), (dtypes.complex64, dtypes.complex128)


def _of_complex(op_type: str, summary: str) -> Callable[..., Tensor]:
    """The function for a transform of complex numbers."""

    def function(input: Any, name: str | None = None) -> Tensor:
        return apply_op(op_type, name, input=input)

    return arrays.described(function, op_type.lower(), summary)


fft = _of_complex("FFT", "The Fourier transform along the last axis.")
fft2d = _of_complex("FFT2D", "The Fourier transform over the last two axes.")
fft3d = _of_complex("FFT3D", "The Fourier transform over the last three axes.")
ifft = _of_complex("IFFT", "The inverse Fourier transform along the last axis.")
ifft2d = _of_complex("IFFT2D", "The inverse Fourier transform over the last two axes.")
ifft3d = _of_complex("IFFT3D", "The inverse Fourier transform over the last three axes.")


# ---- real numbers: half of the transform says it all ----


def _of_real(op_type: str, rank: int, inverse: bool, summary: str) -> Callable[..., Tensor]:
    """The function for a transform from or to real numbers."""
    kinds = _COMPLEX_TYPES if inverse else _REAL_TYPES

    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, op_type.lower(), [input_tensor, fft_length]) as scope:
            x = convert_to_tensor(input_tensor, dtype_hint=kinds[0])
            wide = x.dtype in (dtypes.float64, dtypes.complex128)
            if x.dtype not in kinds:
                what = "IRFFT" if inverse else "RFFT"
                raise ValueError(f"{what} requires tf.{kinds[0].name} or tf.{kinds[1].name} inputs, got: {x}")
            x.shape.with_rank_at_least(rank)
            length = _length(x, rank, inverse) if fft_length is None else convert_to_tensor(fft_length, dtypes.int32)
            x = _padded(x, rank, length, inverse)
            static = constant_value(length)
            length = length if static is None else static
            pair = {"Treal": _REAL_TYPES[wide], "Tcomplex": _COMPLEX_TYPES[wide]}
            return apply_op(op_type, scope, input=x, fft_length=length, **pair)

    return arrays.described(function, op_type.lower(), summary)


def _length(x: Tensor, rank: int, inverse: bool) -> Any:
    """The length of the real numbers that x is, or is the transform of."""
    shape = x.shape[-rank:]
    if not shape.is_fully_defined():
        sizes: Any = arrays.shape(x)[-rank:]
        if not inverse:
            return sizes
        sizes = arrays.unstack(sizes)
        sizes[-1] = math.maximum(0, 2 * (sizes[-1] - 1))
        return arrays.stack(sizes)
    known = shape.as_list()
    if inverse:
        known[-1] = max(0, 2 * (known[-1] - 1))
    return convert_to_tensor(known, dtypes.int32)


def _padded(x: Tensor, rank: int, length: Any, inverse: bool) -> Tensor:
    """x with zeros at the ends of axes that are too short."""
    if x.shape.ndims is not None and 0 in x.shape.as_list():
        return x
    static = constant_value(length)
    if static is not None and x.shape.ndims is not None and x.shape[-rank:].is_fully_defined():
        wanted = [int(n) for n in static]
        if inverse:
            wanted[-1] = wanted[-1] // 2 + 1
        missing = [max(n - have, 0) for n, have in zip(wanted, x.shape[-rank:].as_list())]
        if not any(missing):
            return x
        return arrays.pad(x, [[0, 0]] * (x.shape.ndims - rank) + [[0, n] for n in missing])
    rank_now, sizes = arrays.rank(x), arrays.shape(x)[-rank:]
    outer = arrays.zeros([math.maximum(0, rank_now - rank)], length.dtype)
    if inverse:
        length = arrays.concat([length[:-1], length[-1:] // 2 + 1], 0)
    ends = arrays.concat([outer, math.maximum(0, length - sizes)], 0)
    return arrays.pad(x, arrays.stack([arrays.zeros_like(ends), ends], axis=1))


rfft = _of_real("RFFT", 1, False, "The Fourier transform of real numbers along the last axis, its first half.")
rfft2d = _of_real("RFFT2D", 2, False, "The Fourier transform of real numbers over the last two axes, its first half.")
rfft3d = _of_real("RFFT3D", 3, False, "The Fourier transform of real numbers over the last three axes, its first half.")
irfft = _of_real("IRFFT", 1, True, "The real numbers whose transform's first half is given, along the last axis.")
irfft2d = _of_real("IRFFT2D", 2, True, "The real numbers whose transform's first half is given, over two axes.")
irfft3d = _of_real("IRFFT3D", 3, True, "The real numbers whose transform's first half is given, over three axes.")

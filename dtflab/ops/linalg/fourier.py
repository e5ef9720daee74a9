"""Fourier transforms of one, two and three axes, of complex and of real numbers.

Stands for `core/kernels/fft_ops.cc` and `python/ops/signal/fft_ops.py`. Left out: the n-dimensional ops, windows and
frames of `tf.signal`.

Rule: the transforms are the array module's, over the last axes; those of real numbers are cut or padded to the length
that is asked for, before.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import casting, constant as constants, identity as array, joining, repeating, reshaping, stacking
from dtflab.ops.linalg.matmul import matmul
from dtflab.ops.math import binary as math, unary
from dtflab.ops.math.division import floormod
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import reduction

_REAL_TYPES, _COMPLEX_TYPES = (dtypes.float32, dtypes.float64), (dtypes.complex64, dtypes.complex128)
_COMPLEX = "Tcomplex: {complex64, complex128} = complex64"
_BOTH = f"Treal: {{float, double}} = float\n{_COMPLEX}"


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _flops(rank: int, real: bool = False) -> Callable[..., int]:
    """5 n log n for a transform of n complex numbers, as FFTW's authors count; half of it for real ones."""

    def flops(node: Any, ins: Any, outs: Any) -> int:
        whole = max((ins[0], outs[0]), key=elements)  # of a real transform, the side that stores all numbers
        n = prod(whole.shape[-rank:])
        return round(5 * elements(whole) * log2(max(n, 1))) // (2 if real else 1)

    return flops


def _size(x: Any, rank: int) -> Tensor:
    return reduction.reduce_prod(array.shape(x)[-rank:])


def _gradient(rank: int, inverse: bool) -> Callable[..., Any]:
    def grad(op: Any, dy: Any) -> list[Any]:
        size = _size(dy, rank)
        if inverse:
            scale = casting.cast(1.0 / casting.cast(size, dy.dtype.real_dtype), dy.dtype)
            return [_FORWARD[rank](dy) * scale]
        return [_INVERSE[rank](dy) * casting.cast(size, dy.dtype)]

    return grad


def _of_complex(name: str, rank: int, inverse: bool, summary: str) -> Callable[..., Tensor]:
    """Register a transform of complex numbers, and return its function."""

    def bind(node: Any, xp: Any) -> Any:
        transform, dtype = xp.fft.ifftn if inverse else xp.fft.fftn, node["Tcomplex"].as_numpy_dtype

        def kernel(x: Any) -> Any:
            if x.ndim < rank:
                raise invalid(f"Input must have rank of at least {rank} but got: {shape_text(x)}")
            return transform(x, axes=_axes(rank)).astype(dtype, copy=False) if x.size else x

        return kernel

    def infer(op: Any) -> list[TensorShape]:
        return [op.inputs[0].shape.with_rank_at_least(rank)]

    members = {
        "__doc__": summary,
        "infer": infer,
        "bind": bind,
        "flops": _flops(rank),
        "grad": _gradient(rank, inverse),
    }
    op(f"{name}(input: Tcomplex) -> (output: Tcomplex)\n{_COMPLEX}")(type(name, (Op,), members))

    def function(input: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(members_name, name, input=input)
        return result

    members_name = name
    function.__name__ = function.__qualname__ = name.lower()
    function.__doc__ = summary
    return function


fft = _of_complex("FFT", 1, False, "The Fourier transform along the last axis.")
fft2d = _of_complex("FFT2D", 2, False, "The Fourier transform over the last two axes.")
fft3d = _of_complex("FFT3D", 3, False, "The Fourier transform over the last three axes.")
ifft = _of_complex("IFFT", 1, True, "The inverse Fourier transform along the last axis.")
ifft2d = _of_complex("IFFT2D", 2, True, "The inverse Fourier transform over the last two axes.")
ifft3d = _of_complex("IFFT3D", 3, True, "The inverse Fourier transform over the last three axes.")
_FORWARD = {1: fft, 2: fft2d, 3: fft3d}
_INVERSE = {1: ifft, 2: ifft2d, 3: ifft3d}


# -- of real numbers --------------------------------------------------------------------------------------------------


def _real_shape(rank: int, inverse: bool) -> Callable[[Any], list[TensorShape]]:
    def infer(op: Any) -> list[TensorShape]:
        shape, length = op.inputs[0].shape.with_rank_at_least(rank), folded_value(op.inputs[1])
        op.inputs[1].shape.merge_with([rank])
        if shape.ndims is None:
            return [shape]
        sizes = [None] * rank if length is None else [int(n) for n in length]
        if not inverse and sizes[-1] is not None:
            sizes[-1] = sizes[-1] // 2 + 1 if sizes[-1] else 0
        return [shape[: shape.ndims - rank].concatenate(sizes)]

    return infer


def _real_kernel(rank: int, inverse: bool) -> Callable[[Any, Any], Any]:
    def bind(node: Any, xp: Any) -> Any:
        transform = xp.fft.irfftn if inverse else xp.fft.rfftn
        dtype = node["Treal" if inverse else "Tcomplex"].as_numpy_dtype

        def kernel(x: Any, length: Any) -> Any:
            sizes = tuple(int(n) for n in length)
            if len(sizes) != rank or x.ndim < rank:
                raise invalid(f"fft_length must have shape [{rank}] and input rank {rank} or more: {shape_text(x)}")
            needed = (*sizes[:-1], sizes[-1] // 2 + 1) if inverse else sizes
            if any(have < n for have, n in zip(x.shape[-rank:], needed)):
                raise invalid(f"Input dimensions must have length of at least {list(needed)} but got: {shape_text(x)}")
            made = (*sizes[:-1], sizes[-1] if inverse or not sizes[-1] else sizes[-1] // 2 + 1)
            if not x.size or 0 in sizes:
                return xp.zeros((*x.shape[:-rank], *made), dtype)
            cut = x[(..., *(slice(n) for n in needed))]
            return transform(cut, s=sizes, axes=_axes(rank)).astype(dtype, copy=False)

        return kernel

    return bind


def _mask_matrix(length: Any, kind: Any) -> Tensor:
    a = repeating.tile(reshaping.expand_dims(constants.range(length), 0), (length, 1))
    b = reshaping.transpose(a, [1, 0])
    return unary.exp(-2j * np.pi * casting.cast(a * b, kind) / casting.cast(length, kind))


def _signs(length: Any, kind: Any) -> Tensor:
    return casting.cast(1 - 2 * (constants.range(length) % 2), kind)


def _tiled(matrix: Tensor, like: Tensor) -> Tensor:
    ones = constants.ones([array.rank(like) - 2], dtypes.int32)
    expanded = reshaping.reshape(matrix, joining.concat([ones, array.shape(matrix)], 0))
    return repeating.tile(expanded, joining.concat([array.shape(like)[:-2], [1, 1]], 0))


def _forward_gradient(rank: int) -> Callable[..., Any]:
    """Half of the transform is not stored; the columns that have no twin count once more."""

    def grad(op: Any, dy: Any) -> list[Any]:
        length, kind, shape = op.inputs[1], dy.dtype, array.shape(op.inputs[0])
        even = casting.cast(1 - length[-1] % 2, kind)
        first = dy[..., 0:1]
        if rank == 1:
            extra = first + even * dy[..., -1:] * _signs(shape[-1], kind)
        else:
            mask = _tiled(_mask_matrix(shape[-2], kind), first)
            extra, last = matmul(mask, casting.conj(first)), dy[..., -1:]
            turned = matmul(mask, casting.conj(last))
            inner = shape[-1]
            times = joining.concat([constants.ones([array.rank(dy) - 1], dtypes.int32), [inner]], 0)
            columns = repeating.tile(turned, times) * _signs(inner, kind)
            extra += even * columns
        size = casting.cast(_size(op.inputs[0], rank), kind.real_dtype)
        return [0.5 * (_IRFFT[rank](dy, length) * size + casting.real(extra)), None]

    return grad


def _inverse_gradient(rank: int) -> Callable[..., Any]:
    def grad(op: Any, dy: Any) -> list[Any]:
        length: Any = constant_value(op.inputs[1])
        length = op.inputs[1] if length is None else length
        kind = dtypes.complex64 if dy.dtype == dtypes.float32 else dtypes.complex128
        odd = floormod(length[-1], 2, name="mod")
        stored = array.shape(op.inputs[0])[-1]
        twins = 2.0 * constants.ones([stored - 2 + odd], dy.dtype)
        mask = joining.concat([[1.0], twins, constants.ones([1 - odd], dy.dtype)], 0)
        scale = unary.reciprocal(casting.cast(_size(dy, rank), dy.dtype))
        return [_RFFT[rank](dy, length) * casting.cast(scale * mask, kind), None]

    return grad


def _of_real(name: str, rank: int, inverse: bool, summary: str) -> Callable[..., Tensor]:
    """Register a transform from or to real numbers, and return its function."""
    source, target = ("Tcomplex", "Treal") if inverse else ("Treal", "Tcomplex")
    members = {
        "__doc__": summary, "infer": _real_shape(rank, inverse), "bind": _real_kernel(rank, inverse),
        "flops": _flops(rank, real=True),
    }  # fmt: skip
    if rank < 3:
        members["grad"] = (_inverse_gradient if inverse else _forward_gradient)(rank)
    op(f"{name}(input: {source}, fft_length: int32) -> (output: {target})\n{_BOTH}")(type(name, (Op,), members))

    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, op_name.lower(), [input_tensor, fft_length]) as scope:
            x = convert_to_tensor(input_tensor, dtype_hint=dtypes.complex64 if inverse else dtypes.float32)
            wide = x.dtype in (dtypes.float64, dtypes.complex128)
            kinds = _COMPLEX_TYPES if inverse else _REAL_TYPES
            if x.dtype not in kinds:
                what = "IRFFT" if inverse else "RFFT"
                raise ValueError(f"{what} requires tf.{kinds[0].name} or tf.{kinds[1].name} inputs, got: {x}")
            x.shape.with_rank_at_least(rank)
            length = _length(x, rank, inverse) if fft_length is None else convert_to_tensor(fft_length, dtypes.int32)
            x = _padded(x, rank, length, inverse)
            static = constant_value(length)
            length = length if static is None else static
            pair = {"Treal": _REAL_TYPES[wide], "Tcomplex": _COMPLEX_TYPES[wide]}
            return apply_op(op_name, scope, input=x, fft_length=length, **pair)

    op_name = name
    function.__name__ = function.__qualname__ = name.lower()
    function.__doc__ = summary
    return function


def _length(x: Tensor, rank: int, inverse: bool) -> Any:
    """The length of the real numbers that x is, or is the transform of."""
    shape = x.shape[-rank:]
    if not shape.is_fully_defined():
        sizes: Any = array.shape(x)[-rank:]
        if not inverse:
            return sizes
        sizes = stacking.unstack(sizes)
        sizes[-1] = math.maximum(0, 2 * (sizes[-1] - 1))
        return stacking.stack(sizes)
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
        lacking = [max(n - have, 0) for n, have in zip(wanted, x.shape[-rank:].as_list())]
        if not any(lacking):
            return x
        return repeating.pad(x, [[0, 0]] * (x.shape.ndims - rank) + [[0, n] for n in lacking])
    rank_now, sizes = array.rank(x), array.shape(x)[-rank:]
    outer = constants.zeros([math.maximum(0, rank_now - rank)], length.dtype)
    if inverse:
        length = joining.concat([length[:-1], length[-1:] // 2 + 1], 0)
    ends = joining.concat([outer, math.maximum(0, length - sizes)], 0)
    return repeating.pad(x, stacking.stack([constants.zeros_like(ends), ends], axis=1))


rfft = _of_real("RFFT", 1, False, "The Fourier transform of real numbers along the last axis, its first half.")
rfft2d = _of_real("RFFT2D", 2, False, "The Fourier transform of real numbers over the last two axes, its first half.")
rfft3d = _of_real("RFFT3D", 3, False, "The Fourier transform of real numbers over the last three axes, its first half.")
irfft = _of_real("IRFFT", 1, True, "The real numbers whose transform's first half is given, along the last axis.")
irfft2d = _of_real("IRFFT2D", 2, True, "The real numbers whose transform's first half is given, over two axes.")
irfft3d = _of_real("IRFFT3D", 3, True, "The real numbers whose transform's first half is given, over three axes.")
_RFFT = {1: rfft, 2: rfft2d}
_IRFFT = {1: irfft, 2: irfft2d}

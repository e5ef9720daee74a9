"""The ops of Fourier transforms of one, two and three axes, of complex and of real numbers.

Stands for `core/kernels/fft_ops.cc` and the gradients of `python/ops/signal/fft_ops.py`; the functions are in
`spectral.py`. Left out: the n-dimensional ops.

Rule: the transforms are the array module's, over the last axes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.static_value import constant_value, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.linalg.spectral import irfft, irfft2d, rfft, rfft2d
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce

_COMPLEX = "Tcomplex: {complex64, complex128} = complex64"
_BOTH = f"Treal: {{float, double}} = float\n{_COMPLEX}"


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _flops(rank: int, real: bool = False) -> Callable[..., int]:
    """5 n log n for a transform of n complex numbers, as FFTW's authors count; half of it for real ones."""

    def flops(node: Node, ins: Any, outs: Any) -> int:
        whole = max((ins[0], outs[0]), key=elements)  # of a real transform, the side that stores all numbers
        n = prod(whole.shape[-rank:])
        return round(5 * elements(whole) * log2(max(n, 1))) // (2 if real else 1)

    return flops


def _size(x: Any, rank: int) -> Tensor:
    return reduce.reduce_prod(arrays.shape(x)[-rank:])


def _gradient(name: str, rank: int, inverse: bool) -> Callable[..., Any]:
    def grad(op: Operation, dy: Any) -> list[Any]:
        size = _size(dy, rank)
        if inverse:
            scale = arrays.cast(1.0 / arrays.cast(size, dy.dtype.real_dtype), dy.dtype)
            return [apply_op(name.removeprefix("I"), input=dy) * scale]
        return [apply_op(f"I{name}", input=dy) * arrays.cast(size, dy.dtype)]

    return grad


def _register_complex(name: str, rank: int, inverse: bool) -> None:
    """Register a transform of complex numbers."""

    def bind(node: Node, xp: Any) -> Any:
        transform, dtype = xp.fft.ifftn if inverse else xp.fft.fftn, node["Tcomplex"].as_numpy_dtype

        def kernel(x: Any) -> Any:
            if x.ndim < rank:
                raise invalid(f"Input must have rank of at least {rank} but got: {shape_text(x)}")
            return transform(x, axes=_axes(rank)).astype(dtype, copy=False) if x.size else x

        return kernel

    def infer(op: Operation) -> list[TensorShape]:
        return [op.inputs[0].shape.with_rank_at_least(rank)]

    members = {"infer": infer, "bind": bind, "flops": _flops(rank), "grad": _gradient(name, rank, inverse)}
    op(f"{name}(input: Tcomplex) -> (output: Tcomplex) where {_COMPLEX}")(type(name, (Op,), members))


# -- of real numbers --------------------------------------------------------------------------------------------------


def _real_shape(rank: int, inverse: bool) -> Callable[[Any], list[TensorShape]]:
    def infer(op: Operation) -> list[TensorShape]:
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
    def bind(node: Node, xp: Any) -> Any:
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
    a = arrays.tile(arrays.expand_dims(arrays.range(length), 0), (length, 1))
    b = arrays.transpose(a, [1, 0])
    return math.exp(-2j * np.pi * arrays.cast(a * b, kind) / arrays.cast(length, kind))


def _signs(length: Any, kind: Any) -> Tensor:
    return arrays.cast(1 - 2 * (arrays.range(length) % 2), kind)


def _tiled(matrix: Tensor, like: Tensor) -> Tensor:
    ones = arrays.ones([arrays.rank(like) - 2], dtypes.int32)
    expanded = arrays.reshape(matrix, arrays.concat([ones, arrays.shape(matrix)], 0))
    return arrays.tile(expanded, arrays.concat([arrays.shape(like)[:-2], [1, 1]], 0))


def _forward_gradient(rank: int) -> Callable[..., Any]:
    """Half of the transform is not stored; the columns that have no twin count once more."""

    def grad(op: Operation, dy: Any) -> list[Any]:
        length, kind, shape = op.inputs[1], dy.dtype, arrays.shape(op.inputs[0])
        even = arrays.cast(1 - length[-1] % 2, kind)
        first = dy[..., 0:1]
        if rank == 1:
            extra = first + even * dy[..., -1:] * _signs(shape[-1], kind)
        else:
            mask = _tiled(_mask_matrix(shape[-2], kind), first)
            extra, last = matmul(mask, math.conj(first)), dy[..., -1:]
            turned = matmul(mask, math.conj(last))
            inner = shape[-1]
            times = arrays.concat([arrays.ones([arrays.rank(dy) - 1], dtypes.int32), [inner]], 0)
            columns = arrays.tile(turned, times) * _signs(inner, kind)
            extra += even * columns
        size = arrays.cast(_size(op.inputs[0], rank), kind.real_dtype)
        return [0.5 * ((irfft, irfft2d)[rank - 1](dy, length) * size + math.real(extra)), None]

    return grad


def _inverse_gradient(rank: int) -> Callable[..., Any]:
    def grad(op: Operation, dy: Any) -> list[Any]:
        length: Any = constant_value(op.inputs[1])
        length = op.inputs[1] if length is None else length
        kind = dtypes.complex64 if dy.dtype == dtypes.float32 else dtypes.complex128
        odd = math.floormod(length[-1], 2, name="mod")
        stored = arrays.shape(op.inputs[0])[-1]
        twins = 2.0 * arrays.ones([stored - 2 + odd], dy.dtype)
        mask = arrays.concat([[1.0], twins, arrays.ones([1 - odd], dy.dtype)], 0)
        scale = math.reciprocal(arrays.cast(_size(dy, rank), dy.dtype))
        return [(rfft, rfft2d)[rank - 1](dy, length) * arrays.cast(scale * mask, kind), None]

    return grad


def _register_real(name: str, rank: int, inverse: bool) -> None:
    """Register a transform from or to real numbers."""
    source, target = ("Tcomplex", "Treal") if inverse else ("Treal", "Tcomplex")
    members = {"infer": _real_shape(rank, inverse), "bind": _real_kernel(rank, inverse), "flops": _flops(rank, True)}
    if rank < 3:
        members["grad"] = (_inverse_gradient if inverse else _forward_gradient)(rank)
    op(f"{name}(input: {source}, fft_length: int32) -> (output: {target}) where {_BOTH}")(type(name, (Op,), members))


for _rank, _end in enumerate(("", "2D", "3D"), 1):
    _register_complex(f"FFT{_end}", _rank, False)
    _register_complex(f"IFFT{_end}", _rank, True)
    _register_real(f"RFFT{_end}", _rank, False)
    _register_real(f"IRFFT{_end}", _rank, True)

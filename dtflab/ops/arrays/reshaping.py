"""The same elements in another shape or order: reshape, expand_dims, squeeze, transpose, invert_permutation.

Stands for `core/kernels/reshape_op.cc`, `transpose_op.cc` and their parts of `python/ops/array_ops.py` and
`array_grad.py`. Left out: batch and space rearrangements (`space_batch.py`); broadcast, tile, pad (`repeating.py`).

Rule: where the elements stay where they are, the result is a view of the input (`aliasing`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.indexed_slices import dense
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import FreeOp, free
from dtflab.ops.messages import invalid, shape_text


@op("Reshape(tensor: T, shape: Tshape) -> (output: T) where T: type, Tshape: {int32, int64} = int32")
class Reshape(FreeOp):
    """The same elements in another shape; one size may be -1."""

    aliasing = True

    def infer(op):
        old, new = op.inputs[0].shape, folded_shape(op.inputs[1])
        if old.ndims is None or new.ndims is None:
            return [new]
        return [_reshaped(old.as_list(), new.as_list())]

    def kernel(node, xp, x, shape):
        sizes = shape.tolist()
        if 0 in sizes and x.size == 0 and sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = 1  # as in TensorFlow: any size would do
        try:
            return x.reshape(sizes)
        except ValueError:
            raise _reshape_error(x, sizes) from None

    def grad(op, dy):
        dims = op.inputs[0].shape
        target: Any = None
        if dims.ndims is not None and not dims.is_fully_defined():
            target = [-1 if d is None else d for d in dims.as_list()]
        if target is None or target.count(-1) != 1 or 0 in target:
            target = arrays.shape(op.inputs[0])
        return [arrays.reshape(dense(dy), target), None]


def _reshaped(old: list[int | None], new: list[int | None]) -> TensorShape:
    """`new` with its one open size filled in; ValueError if the elements can't fit."""
    old_size, new_size = (int(np.prod([d for d in dims if d is not None], dtype=np.int64)) for dims in (old, new))
    if None not in old and None not in new and old_size != new_size:
        text = f"shape {shape_text(new)} ({new_size} elements)"
        raise ValueError(f"Cannot reshape a tensor with {old_size} elements to {text}")
    if new.count(None) == 1 and None not in old:
        if new_size == 0 and old_size:
            text = f"shape {shape_text(new)} (0 elements)"
            raise ValueError(f"Cannot reshape a tensor with {old_size} elements to {text}")
        if new_size:
            free = divided(old_size, new_size)
            return TensorShape([free if d is None else d for d in new])
    if old.count(None) == 1 and None not in new and old_size:
        divided(new_size, old_size)
    return TensorShape(new)


def divided(size: int, by: int) -> int:
    """size / by; ValueError unless it is a whole number."""
    if size % by:
        raise ValueError(f"Dimension size must be evenly divisible by {by} but is {size}")
    return size // by


def _reshape_error(x: Any, shape: list[int]) -> Exception:
    wanted = int(np.prod([d for d in shape if d >= 0], dtype=np.int64))
    if shape.count(-1) > 1:
        first, second = [i for i, d in enumerate(shape) if d == -1][:2]
        return invalid(f"Only one input size may be -1, not both {first} and {second}")
    requires = "requires a multiple of" if -1 in shape else "has"
    text = f"but the requested shape {requires} {wanted}"
    return invalid(f"Input to reshape is a tensor with {np.size(x)} values, {text}")


@op("ExpandDims(input: T, dim: Tdim) -> (output: T) where T: type, Tdim: {int32, int64} = int32")
class ExpandDims(FreeOp):
    """A new axis of size 1 before axis `dim`."""

    aliasing = True

    def infer(op):
        shape, axis = op.inputs[0].shape, folded_value(op.inputs[1])
        if shape.ndims is None:
            return [TensorShape(None)]
        if axis is None:
            return [TensorShape([None] * (shape.ndims + 1))]
        axis = int(axis.item())
        if not -shape.ndims - 1 <= axis <= shape.ndims:
            raise ValueError(f"dim {axis} not in the interval [{-shape.ndims - 1}, {shape.ndims}].")
        dims = shape.as_list()
        dims.insert(axis if axis >= 0 else axis + shape.ndims + 1, 1)
        return [TensorShape(dims)]

    def kernel(node, xp, x, dim):
        shape, dim, ndim = list(x.shape), dim.item(), x.ndim
        if not -ndim - 1 <= dim <= ndim:
            raise invalid(f"Tried to expand dim index {dim} for tensor with {ndim} dimensions.")
        shape.insert(dim if dim >= 0 else dim + ndim + 1, 1)
        return x.reshape(shape)

    def grad(op, dy):
        return [arrays.reshape_to_input(op, dy), None]


@op("Squeeze(input: T) -> (output: T) where T: type, squeeze_dims: list(int) >= 0 = []")
class Squeeze(FreeOp):
    """The input without its axes of size 1, or without those named."""

    aliasing = True

    def infer(op):
        shape = op.inputs[0].shape
        named = op.get_attr("squeeze_dims")
        if shape.ndims is None or (not named and None in shape.as_list()):
            return [TensorShape(None)]
        dims = shape.as_list()
        gone = {_checked_axis(axis, shape.ndims) for axis in named} or {i for i, d in enumerate(dims) if d == 1}
        for axis in gone:
            if dims[axis] not in (1, None):
                raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
        return [TensorShape([d for i, d in enumerate(dims) if i not in gone])]

    def bind(node, xp):
        axes = tuple(node["squeeze_dims"]) or None

        def kernel(x):
            try:
                return xp.squeeze(x, axes)
            except ValueError:
                raise _squeeze_error(axes or (), np.shape(x)) from None

        return kernel

    def grad(op, dy):
        return [arrays.reshape_to_input(op, dy)]


def _squeeze_error(axes: tuple[int, ...], shape: tuple[int, ...]) -> Exception:
    for axis in axes:
        if not -len(shape) <= axis < len(shape):
            return invalid(f"Tried to squeeze dim index {axis} for tensor with {len(shape)} dimensions.")
        if shape[axis] != 1:
            return invalid(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {shape[axis]}")
    return invalid(f"Can not squeeze {axes} of {shape_text(shape)}: an axis is named twice")


def _checked_axis(axis: int, ndims: int) -> int:
    if not -ndims <= axis < ndims:
        raise ValueError(f"dim {axis} not in [{-ndims}, {ndims}).")
    return axis % ndims


def _permuted(op: Operation) -> list[TensorShape]:
    shape, perm = op.inputs[0].shape, folded_value(op.inputs[1])
    length = op.inputs[1].shape.with_rank(1)[0].value
    if perm is None:
        ndims = shape.ndims if shape.ndims is not None else length
        return [TensorShape(None if ndims is None else [None] * ndims)]
    if shape.ndims is None:
        return [TensorShape([None] * perm.size if perm.size else None)]  # as TensorFlow has it
    if shape.ndims != perm.size:
        raise ValueError(f"Dimension must be {shape.ndims} but is {perm.size}")
    return [TensorShape([shape.as_list()[i] for i in perm])]


def _permute(xp: Any, x: Any, perm: Any) -> Any:
    try:
        return xp.transpose(x, perm.tolist())
    except ValueError:
        missing = sorted(set(builtins.range(np.ndim(x))) - {int(p) % max(np.ndim(x), 1) for p in perm})
        if len(perm) != np.ndim(x):
            text = f"a vector of size {np.ndim(x)}. But input(1) is a vector of size {len(perm)}"
            raise invalid(f"transpose expects {text}") from None
        raise invalid(f"{missing[0]} is missing from {{{','.join(map(str, perm))}}}.") from None


def _transpose_op(name: str, conjugate: bool) -> None:
    """Register an op whose result has axis perm[i] of x as its axis i."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        if conjugate and node["T"].is_complex:
            return lambda x, perm: xp.conjugate(_permute(xp, x, perm))
        return lambda x, perm: _permute(xp, x, perm)

    def grad(op: Operation, dy: Any) -> list[Any]:
        return [arrays.transpose(dy, arrays.invert_permutation(op.inputs[1]), conjugate=conjugate), None]

    members = {"infer": _permuted, "bind": bind, "grad": grad, "flops": free, "aliasing": True}
    op(f"""{name}(x: T, perm: Tperm) -> (y: T)
           T: type, Tperm: {{int32, int64}} = int32""")(type(name, (Op,), members))


_transpose_op("Transpose", conjugate=False)
_transpose_op("ConjugateTranspose", conjugate=True)


@op("InvertPermutation(x: T) -> (y: T) where T: {int32, int64} = int32")
class InvertPermutation(Op):
    """y[x[i]] = i."""

    grad = no_gradient

    def infer(op):
        return [op.inputs[0].shape.with_rank(1)]

    def kernel(node, xp, x):
        y = np.full_like(x, -1)
        if ((x < 0) | (x >= len(x))).any():
            bad = next(int(v) for v in x if not 0 <= v < len(x))
            raise invalid(f"{bad} is not between 0 and {len(x)}")
        y[x] = np.arange(len(x), dtype=x.dtype)
        if (y < 0).any():
            raise invalid(f"{np.argmax(np.bincount(x))} is duplicated in the input.")
        return y

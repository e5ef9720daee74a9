"""Sums, means, products, extremes, `all` and `any` over axes.

Stands for `core/kernels/reduction_ops_*.cc` and its parts of `python/ops/math_ops.py` and `math_grad.py`.
Left out: the nodes that TensorFlow's gradient of a sum makes only to evaluate them at once.

Rule: a sum has the dtype of its terms; the short floats are added up in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, device
from dtflab.graph.static_value import constant_value, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import accumulator, reducer
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import of_first
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid
from dtflab.ops.reduce.functions import cumprod, reduce_prod, reduce_sum, reduced_shape
from dtflab.ops.segment_kernels import neutral
from dtflab.ops.type_sets import NUMBER, REAL_QUANTIZED


def _interface(name: str, types: str) -> str:
    return f"""{name}(input: T, reduction_indices: Tidx) -> (output: T)
               keep_dims: bool = false, T: {types}, Tidx: {{int32, int64}} = int32"""


def _axes(indices: Any, ndim: int) -> tuple[int, ...]:
    """The axes that `indices` names, not negative, each once; a ValueError says which is wrong."""
    axes = np.asarray(indices).reshape(-1).tolist()
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise ValueError(f"Invalid reduction dimension ({axis} for input with {ndim} dimension(s)")
    result = tuple(axis % ndim for axis in axes)
    if len(set(result)) < len(result):
        twice = next(axis for axis in result if result.count(axis) > 1)
        raise ValueError(f"Invalid reduction arguments: Axes contains duplicate dimension: {twice}")
    return result


class _Reduction(Op):
    """Base of the reductions."""

    def infer(op):
        shape, axes = op.inputs[0].shape, folded_value(op.inputs[1])
        keep = op.get_attr("keep_dims")
        if shape.ndims is None:
            return [TensorShape(None)]
        if axes is None:
            return [TensorShape([None] * shape.ndims if keep else None)]
        gone = _axes(axes, shape.ndims)
        if keep:
            return [TensorShape([1 if i in gone else d for i, d in enumerate(shape.as_list())])]
        return [TensorShape([d for i, d in enumerate(shape.as_list()) if i not in gone])]

    flops = of_first


def _over_axes(reduce: Callable[..., Any], keep: bool) -> Callable[[Any, Any], Any]:
    """The kernel that calls `reduce(x, axes, keepdims)`."""
    seen: tuple[Any, int, tuple[int, ...]] = (None, 0, ())  # of the last call: nearly always the same constant

    def kernel(x: Any, indices: Any) -> Any:
        nonlocal seen
        last, ndim, axes = seen
        if indices is not last or x.ndim != ndim:
            try:
                axes = _axes(indices, x.ndim)
            except ValueError as error:
                raise invalid(str(error)) from None
            seen = (indices, x.ndim, axes)
        return reduce(x, axes, keep)

    return kernel


def _added_in(dtype: dtypes.DType) -> Any:
    """The NumPy dtype in which numbers are added up."""
    return np.float32 if dtype in (dtypes.bfloat16, dtypes.float16) else dtype.as_numpy_dtype


def _accumulated(ufunc_name: str) -> Callable[[Any, Any], Callable[..., Any]]:
    """The kernels of Sum and Prod: NumPy's own (pairwise for floats) in the right dtype."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        reduce, dtype, wide = accumulator(xp, ufunc_name), node["T"].as_numpy_dtype, _added_in(node["T"])

        def rounded(x: Any, axes: Any, keep: bool) -> Any:
            return reduce(x, axes, wide, keep).astype(dtype)

        if wide is not dtype:
            return _over_axes(rounded, node["keep_dims"])
        return _over_axes(lambda x, axes, keep: reduce(x, axes, dtype, keep), node["keep_dims"])

    return bind


def _sum_grad(op: Operation, dy: Any) -> Tensor:
    """dy, repeated over the axes that were summed."""
    shape, axes = op.inputs[0].shape, constant_value(op.inputs[1])
    if shape.ndims is not None and axes is not None:
        if np.array_equal(axes, np.arange(shape.ndims)):
            dy = arrays.reshape(dy, [1] * shape.ndims)
            if shape.is_fully_defined():
                return arrays.tile(dy, constant(shape.as_list(), dtypes.int32))
            return arrays.tile(dy, arrays.shape(op.inputs[0]))
        if shape.is_fully_defined():
            gone = _axes(axes, shape.ndims)
            sizes: list[Any] = shape.as_list()
            kept = [1 if i in gone else d for i, d in enumerate(sizes)]
            times = [d // max(k, 1) for d, k in zip(sizes, kept)]
            return arrays.tile(arrays.reshape(dy, kept), times)
    input_shape = arrays.shape(op.inputs[0])
    if not op.get_attr("keep_dims"):
        with colocate_with(input_shape):
            kept_shape = reduced_shape(input_shape, op.inputs[1])
        dy = arrays.reshape(dy, kept_shape)
    return arrays.broadcast_to(dy, input_shape)


@op(_interface("Sum", NUMBER))
class Sum(_Reduction):
    """The sum over the given axes."""

    bind = _accumulated("add")

    def grad(op, dy):
        return [_sum_grad(op, dy), None]


@op(_interface("Mean", NUMBER))
class Mean(_Reduction):
    """The mean over the given axes; of whole numbers the whole part."""

    def bind(node, xp):
        dtype, wide, total = node["T"].as_numpy_dtype, _added_in(node["T"]), accumulator(xp, "add")

        def reduce(x, axes, keep):
            return total(x, axes, wide, keep) / wide(prod(x.shape[axis] for axis in axes))

        def reduce_short(x, axes, keep):
            return reduce(x, axes, keep).astype(dtype)

        def reduce_whole(x, axes, keep):
            y = total(x, axes, dtype, keep)
            count = dtype(np.size(x) // max(np.size(y), 1) or 1)
            return (y - xp.fmod(y, count)) // count

        short = reduce if wide is dtype else reduce_short
        return _over_axes(reduce_whole if node["T"].is_integer else short, node["keep_dims"])

    def grad(op, dy):
        total = _sum_grad(op, dy)
        x_shape, y_shape = op.inputs[0].shape, op.outputs[0].shape
        if x_shape.is_fully_defined() and y_shape.is_fully_defined():
            count = constant(x_shape.num_elements() // max(y_shape.num_elements(), 1), total.dtype)
        else:
            input_shape = arrays.shape(op.inputs[0])
            rank = arrays.size(input_shape)
            axes = arrays.cast(op.inputs[1], rank.dtype)
            axes = (axes + rank) % rank
            count = reduce_prod(indexing.gather(input_shape, axes))
        return [math.truediv(total, arrays.cast(count, total.dtype)), None]


@op(_interface("Prod", NUMBER))
class Prod(_Reduction):
    """The product over the given axes."""

    bind = _accumulated("multiply")

    def grad(op, dy):
        x = op.inputs[0]
        input_shape = arrays.shape(x)
        indices = arrays.reshape(op.inputs[1], [-1])
        if not op.get_attr("keep_dims"):
            dy = arrays.reshape(dy, reduced_shape(input_shape, op.inputs[1]))
        dy = arrays.broadcast_to(dy, input_shape)
        with device("/cpu:0"):  # shapes are computed where they are used
            rank = arrays.rank(x)
            indices = arrays.cast(indices, rank.dtype)
            reduced = (indices + rank) % rank
            others, _ = indexing.setdiff1d(arrays.range(0, rank), reduced, reduced.dtype)
            perm = arrays.concat([reduced, others], 0)
            reduced_count = reduce_prod(indexing.gather(input_shape, reduced))
            other_count = reduce_prod(indexing.gather(input_shape, others))
        permuted = arrays.transpose(x, perm)
        permuted_shape = arrays.shape(permuted)
        flat = arrays.reshape(permuted, (reduced_count, other_count))
        # The product of all the others, without dividing: of those before times of those after.
        left = cumprod(flat, axis=0, exclusive=True)
        right = cumprod(flat, axis=0, exclusive=True, reverse=True)
        y = arrays.reshape(math.conj(left) * math.conj(right), permuted_shape)
        return [arrays.reshape(dy * arrays.transpose(y, arrays.invert_permutation(perm)), input_shape), None]


@op(_interface("EuclideanNorm", NUMBER))
class EuclideanNorm(_Reduction):
    """The root of the sum of the squares of the absolute values; of whole numbers its whole part."""

    def bind(node, xp):
        dtype, wide, is_complex = node["T"].as_numpy_dtype, _added_in(node["T"]), node["T"].is_complex

        def reduce(x, axes, keep):
            x = x.astype(wide, copy=False)
            squares = x * xp.conj(x) if is_complex else xp.square(x)
            return xp.sqrt(xp.add.reduce(squares, axes, wide, None, keep)).astype(dtype)

        return _over_axes(reduce, node["keep_dims"])

    def grad(op, dy):
        norm = op.outputs[0]
        if not op.get_attr("keep_dims"):
            kept = reduced_shape(arrays.shape(op.inputs[0]), op.inputs[1])
            norm, dy = arrays.reshape(norm, kept), arrays.reshape(dy, kept)
        return [math.truediv(op.inputs[0], norm / dy), None]


def _extreme(ufunc: str) -> Callable[[Any, Any], Callable[..., Any]]:
    """The kernels of Max and Min; of nothing, the value that any number replaces."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        initial, reduce = neutral(ufunc, node["T"]), reducer(xp, ufunc)

        def reduce_any(x: Any, axes: Any, keep: bool) -> Any:
            if np.size(x):
                return reduce(x, axes, keep)
            kept = [1 if i in axes else dim for i, dim in enumerate(x.shape) if keep or i not in axes]
            return xp.full(kept, initial, x.dtype)

        return _over_axes(reduce_any, node["keep_dims"])

    return bind


def _truth(ufunc: str) -> Callable[[Any, Any], Callable[..., Any]]:
    return lambda node, xp: _over_axes(reducer(xp, ufunc), node["keep_dims"])


def _extreme_grad(op: Operation, dy: Any) -> list[Any]:
    """dy for the elements that are the extreme; where several are, each gets its part."""
    input_shape = arrays.shape(op.inputs[0])
    y, keep = op.outputs[0], op.get_attr("keep_dims")
    kept_shape = arrays.shape(y) if keep else reduced_shape(input_shape, op.inputs[1])
    if not keep:
        y, dy = arrays.reshape(y, kept_shape), arrays.reshape(dy, kept_shape)
    chosen = arrays.cast(math.equal(y, op.inputs[0]), dy.dtype)
    return [math.divide(chosen, arrays.reshape(reduce_sum(chosen, op.inputs[1]), kept_shape)) * dy, None]


for _name, _ufunc in {"Max": "maximum", "Min": "minimum"}.items():
    op(_interface(_name, REAL_QUANTIZED))(type(_name, (_Reduction,), {"bind": _extreme(_ufunc), "grad": _extreme_grad}))
for _name, _ufunc in {"All": "logical_and", "Any": "logical_or"}.items():
    op(f"""{_name}(input: bool, reduction_indices: Tidx) -> (output: bool)
           keep_dims: bool = false
           Tidx: {{int32, int64}} = int32""")(type(_name, (_Reduction,), {"bind": _truth(_ufunc)}))

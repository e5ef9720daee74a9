"""What is made of several reductions: log-sum-exp, variance, counts.

Stands for its part of `python/ops/math_ops.py`. Left out: moments (they are `tf.nn`'s).
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import casting, constant as constants, identity as array, reshaping
from dtflab.ops.math import binary as math, logic, unary
from dtflab.ops.messages import renamed
from dtflab.ops.reduce import reduction


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """log(sum(exp(x))) over `axis`, computed so that large elements do not overflow."""
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        raw_max = reduction.reduce_max(input_tensor, axis=axis, keepdims=True)
        finite = apply_op("SelectV2", condition=unary.is_finite(raw_max), t=raw_max, e=0)
        shift = array.stop_gradient(finite)
        shifted = unary.exp(math.subtract(input_tensor, shift))
        result = unary.log(reduction.reduce_sum(shifted, axis=axis, keepdims=keepdims))
        if not keepdims:
            shift = reshaping.reshape(shift, apply_op("Shape", input=result))
        return reduction.known_scalar(math.add(result, shift, name=scope), axis, keepdims)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The variance over `axis`."""
    with name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        means = reduction.reduce_mean(x, axis=axis, keepdims=True)
        if means.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex. Received integer type {means.dtype}.")
        diff = x - means
        if diff.dtype.is_complex:
            squares = casting.real(math.multiply(casting.conj(diff), diff))
        else:
            squares = unary.square(diff)
        return reduction.reduce_mean(squares, axis=axis, keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The standard deviation over `axis`."""
    with name_scope(name or "reduce_std"):
        x = convert_to_tensor(input_tensor)
        return unary.sqrt(reduce_variance(x, axis=axis, keepdims=keepdims))


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """How many elements over `axis` are not 0."""
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(name, "count_nonzero", [input_tensor]):
        x = convert_to_tensor(renamed("input", input, "input_tensor", input_tensor), name="input")
        if x.dtype != dtypes.bool:
            x = logic.not_equal(x, constants.zeros([], x.dtype))
        return casting.cast(reduction.reduce_sum(casting.cast(x, dtypes.int64), axis=axis, keepdims=keepdims), dtype)

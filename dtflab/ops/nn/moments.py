"""Means and variances, and the normalization of a batch (or a layer) by them, made of plain arithmetic.

Stands for `moments`, `weighted_moments`, `sufficient_statistics`, `normalize_moments` and `batch_normalization` of
`python/ops/nn_impl.py`. Left out: the ops that do all of it at once; FusedBatchNorm is in `batch_norm.py`.

Rule: half precision is averaged in float32; the mean that the variance is taken around counts as a constant for
gradients, which changes nothing, as the deviations from a mean sum to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.reduce import functions as reduce

Two = tuple[Tensor, Tensor]


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> Two:
    """The mean and the variance of `x` over `axes`, which stay with size 1 if `keepdims`; `shift` does nothing.

    Over [0] of [batch, units] these are the moments of batch normalization, over [-1] those of layer normalization.
    """
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "moments", [x, axes]):
        y = arrays.cast(x, dtypes.float32) if x.dtype == dtypes.float16 else x
        mean = reduce.reduce_mean(y, axes, keepdims=True, name="mean")
        squares = math.squared_difference(y, arrays.stop_gradient(mean))
        variance = reduce.reduce_mean(squares, axes, keepdims=True, name="variance")
        return _finished(mean, variance, axes, keepdims, x.dtype)


def _finished(mean: Tensor, variance: Tensor, axes: Any, keepdims: bool, dtype: Any) -> Two:
    """Remove the axes of size 1, and return to half precision if `dtype` is that."""
    if not keepdims:
        mean, variance = arrays.squeeze(mean, axes), arrays.squeeze(variance, axes)
    if dtype == dtypes.float16:
        mean, variance = arrays.cast(mean, dtype), arrays.cast(variance, dtype)
    return mean, variance


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> Two:
    """Mean and variance of `x` over `axes`, as if each element were there as often as its weight (broadcast) says."""
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        dtype = x.dtype
        if dtype == dtypes.float16:
            x = arrays.cast(x, dtypes.float32)
        if weights.dtype != x.dtype:
            weights = arrays.cast(weights, x.dtype)
        total = reduce.reduce_sum(weights * x, axes, name="weighted_input_sum", keepdims=True)
        count = reduce.reduce_sum(weights + arrays.zeros_like(x), axes, name="sum_of_weights", keepdims=True)
        mean = math.div_no_nan(total, count)
        squares = weights * math.squared_difference(x, mean)
        distance = reduce.reduce_sum(squares, axes, name="weighted_distsq", keepdims=True)
        return _finished(mean, math.div_no_nan(distance, count), axes, keepdims, dtype)


def sufficient_statistics(
    x: Any,
    axes: Sequence[int],
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The sums that moments are computed from, which can be added up over batches: (count, sum, sum of squares, shift).

    The sums are of x - `shift`: near the mean it saves digits.
    """
    axes = list(set(axes))
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        count = _count(x, axes)
        if shift is None:
            terms, squares = x, math.square(x)
        else:
            shift = convert_to_tensor(shift, name="shift")
            terms, squares = math.subtract(x, shift), math.squared_difference(x, shift)
        total = reduce.reduce_sum(terms, axes, keepdims=keepdims, name="mean_ss")
        return count, total, reduce.reduce_sum(squares, axes, keepdims=keepdims, name="var_ss"), shift


def _count(x: Tensor, axes: Sequence[int]) -> Tensor:
    """How many elements go into one sum over `axes`."""
    if x.shape.ndims is not None and all(x.shape[axis].value is not None for axis in axes):
        return constant(prod(x.shape[axis].value for axis in axes), x.dtype)
    rank = arrays.rank(x)
    positive = [axis + rank if axis < 0 else axis for axis in axes]
    return reduce.reduce_prod(indexing.gather(arrays.cast(arrays.shape(x), x.dtype), positive), name="count")


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None) -> Two:
    """The mean and the variance, from what `sufficient_statistics` gave (or sums of it)."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = math.reciprocal(counts, name="divisor")
        if shift is None:
            mean = shifted = math.multiply(mean_ss, divisor, name="mean")
        else:
            shifted = math.multiply(mean_ss, divisor, name="shifted_mean")
            mean = math.add(shifted, shift, name="mean")
        squares = math.multiply(variance_ss, divisor)
        return mean, math.subtract(squares, math.square(shifted), name="variance")


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) · scale + offset; both of the last may be None.

    Two products and a sum per element of x: what is the same for many of them is computed once.
    """
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        factor = math.rsqrt(variance + variance_epsilon)
        if scale is not None:
            factor *= scale
        scaled = x * arrays.cast(factor, x.dtype)
        rest = -mean * factor if offset is None else offset - mean * factor
        return scaled + arrays.cast(rest, x.dtype)


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """The older form of `batch_normalization`: `gamma` counts only if `scale_after_normalization`."""
    t, m, v = renamed("input", input, "t", t), renamed("mean", mean, "m", m), renamed("variance", variance, "v", v)
    return batch_normalization(t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name)

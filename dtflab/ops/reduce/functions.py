"""Functions that reduce many values to few: over axes, along one axis, by segments, as sets.

Stand for their parts of `python/ops/math_ops.py` and `sets_impl.py`. Left out: moments (they are `tf.nn`'s).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor


def _reduction_dims(x: Any, axis: Any) -> Any:
    """The axes to reduce, as TensorFlow writes “all”."""
    if axis is not None:
        return axis
    ndims = getattr(getattr(x, "shape", None), "ndims", None)
    if ndims:
        return constant(np.arange(ndims, dtype=np.int32))
    return arrays.range(0, arrays.rank(x))


def _reducer(op_type: str, summary: str) -> Callable[..., Tensor]:
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        axis = renamed("axis", axis, "reduction_indices", reduction_indices)
        keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
        indices = _reduction_dims(input_tensor, axis)
        reduced = apply_op(op_type, name, input=input_tensor, reduction_indices=indices, keep_dims=keepdims)
        return known_scalar(reduced, axis, keepdims)

    summary = f"{summary} over `axis` (by default all axes), which stay with size 1 if `keepdims`."
    return arrays.described(reduce, f"Reduce{op_type}", summary)


def known_scalar(output: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """`output`, known to be a scalar if all axes were reduced."""
    if axis is None and not keepdims and not output.shape.is_fully_defined():
        output.set_shape(())
    return output


reduce_sum = _reducer("Sum", "The sum")
reduce_mean = _reducer("Mean", "The mean")
reduce_prod = _reducer("Prod", "The product")
reduce_max = _reducer("Max", "The largest element")
reduce_min = _reducer("Min", "The smallest element")
reduce_all = _reducer("All", "Whether all elements are true")
reduce_any = _reducer("Any", "Whether any element is true")


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The Euclidean norm over `axis` (by default all axes), which stay with size 1 if `keepdims`."""
    indices = _reduction_dims(input_tensor, axis)
    norm = apply_op("EuclideanNorm", name, input=input_tensor, reduction_indices=indices, keep_dims=bool(keepdims))
    return known_scalar(norm, axis, keepdims)


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
        raw_max = reduce_max(input_tensor, axis=axis, keepdims=True)
        finite = apply_op("SelectV2", condition=math.is_finite(raw_max), t=raw_max, e=0)
        shift = arrays.stop_gradient(finite)
        shifted = math.exp(math.subtract(input_tensor, shift))
        result = math.log(reduce_sum(shifted, axis=axis, keepdims=keepdims))
        if not keepdims:
            shift = arrays.reshape(shift, apply_op("Shape", input=result))
        return known_scalar(math.add(result, shift, name=scope), axis, keepdims)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The variance over `axis`."""
    with name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        means = reduce_mean(x, axis=axis, keepdims=True)
        if means.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex. Received integer type {means.dtype}.")
        diff = x - means
        is_complex = diff.dtype.is_complex
        squares = math.real(math.multiply(math.conj(diff), diff)) if is_complex else math.square(diff)
        return reduce_mean(squares, axis=axis, keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The standard deviation over `axis`."""
    with name_scope(name or "reduce_std"):
        x = convert_to_tensor(input_tensor)
        return math.sqrt(reduce_variance(x, axis=axis, keepdims=keepdims))


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
            x = math.not_equal(x, arrays.zeros([], x.dtype))
        return arrays.cast(reduce_sum(arrays.cast(x, dtypes.int64), axis=axis, keepdims=keepdims), dtype)


def reduced_shape(input_shape: Any, axes: Any) -> Any:
    """`input_shape` with 1 for the reduced axes: a static array where both arguments are known."""
    static_shape, static_axes = constant_value(input_shape), constant_value(axes)
    if static_shape is not None and static_axes is not None:
        kept = np.array(static_shape, np.int32)
        kept[np.asarray(static_axes, np.int32)] = 1
        return kept
    axes = convert_to_tensor(axes)
    rank = arrays.size(input_shape, out_type=axes.dtype)
    axes = (axes + rank) % rank
    axes_shape = arrays.shape(axes)
    all_axes = arrays.range(rank)
    return indexing.dynamic_stitch([all_axes, axes], [input_shape, arrays.ones(axes_shape, input_shape.dtype)])


# -- along one axis -------------------------------------------------------------------------------------


def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """The index of the largest element along `axis` (by default 0); the first, if several are."""
    axis = renamed("axis", axis, "dimension", dimension)
    axis = 0 if axis is None else axis
    if isinstance(axis, Tensor):
        if not axis.dtype.is_integer:
            raise TypeError(f"axis tensor dtypes {axis.dtype} is not supported")
        if axis.dtype.size < 4:
            axis = arrays.cast(axis, dtypes.int32)
    elif not isinstance(axis, int | np.integer):
        raise TypeError("axis must be int or Tensor with integer datatype")
    return apply_op("ArgMax", name, input=input, dimension=axis, output_type=output_type)


def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """The index of the smallest element along `axis` (by default 0); the first, if several are."""
    axis = renamed("axis", axis, "dimension", dimension)
    return apply_op("ArgMin", name, input=input, dimension=0 if axis is None else axis, output_type=output_type)


def arg_max(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """`argmax` under its old name."""
    return apply_op("ArgMax", name, input=input, dimension=dimension, output_type=output_type)


def arg_min(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """`argmin` under its old name."""
    return apply_op("ArgMin", name, input=input, dimension=dimension, output_type=output_type)


def _scanned(op_type: str, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None) -> Tensor:
    with name_scope(name, op_type, [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return apply_op(op_type, scope, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running sums along `axis`; `exclusive` leaves out the element itself, `reverse` starts at the end."""
    return _scanned("Cumsum", x, axis, exclusive, reverse, name)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running products along `axis`; `exclusive` and `reverse` as in `cumsum`."""
    return _scanned("Cumprod", x, axis, exclusive, reverse, name)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """log of the running sum of exp(x) along `axis`; `exclusive` and `reverse` as in `cumsum`."""
    return _scanned("CumulativeLogsumexp", x, axis, exclusive, reverse, name)


# -- segments: rows with the same number ----------------------------------------------------------------


class SegmentFunction(Protocol):
    """A reduction of rows whose ids rise."""

    def __call__(self, data: Any, segment_ids: Any, name: str | None = None) -> Tensor: ...


class UnsortedSegmentFunction(Protocol):
    """A reduction of rows whose ids come in any order."""

    def __call__(self, data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor: ...


def _sorted_segments(op_name: str, what: str, empty: str) -> SegmentFunction:
    """The function `f(data, segment_ids, name=None)` of an op for ids that rise."""

    def function(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        return apply_op(op_name, name, data=data, segment_ids=segment_ids)

    summary = f"{what} (without rows: {empty}) of the rows of `data` with the same id, where ids rise."
    return arrays.described(function, op_name, summary)


def _unsorted_segments(op_name: str, what: str, empty: str) -> UnsortedSegmentFunction:
    """The function `f(data, segment_ids, num_segments, name=None)` of an op for ids in any order."""

    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        return apply_op(op_name, name, data=data, segment_ids=segment_ids, num_segments=num_segments)

    summary = f"{what} (without rows: {empty}) of the rows of `data` with the same id."
    return arrays.described(function, op_name, summary)


segment_sum = _sorted_segments("SegmentSum", "The sums", "0")
segment_mean = _sorted_segments("SegmentMean", "The means", "0")
segment_prod = _sorted_segments("SegmentProd", "The products", "1")
segment_max = _sorted_segments("SegmentMax", "The largest elements", "0")
segment_min = _sorted_segments("SegmentMin", "The smallest elements", "0")
unsorted_segment_sum = _unsorted_segments("UnsortedSegmentSum", "The sums", "0")
unsorted_segment_prod = _unsorted_segments("UnsortedSegmentProd", "The products", "1")
unsorted_segment_max = _unsorted_segments("UnsortedSegmentMax", "The largest elements", "the smallest number")
unsorted_segment_min = _unsorted_segments("UnsortedSegmentMin", "The smallest elements", "the largest number")


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The means of the rows of `data` with the same id; a segment without rows has 0."""
    with name_scope(name, "UnsortedSegmentMean"):
        total, number = _total_and_number(data, segment_ids, num_segments)
        return total / number


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sums of the rows of `data` with the same id, over the square root of how many there are."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        total, number = _total_and_number(data, segment_ids, num_segments)
        return total / math.sqrt(number)


def _total_and_number(data: Any, ids: Any, segments: Any) -> tuple[Any, Tensor]:
    """For each segment the sum of its rows and how many there are, 1 at least."""
    data, ids = convert_to_tensor(data), convert_to_tensor(ids)
    count: Any = convert_to_tensor(segments)
    number = unsorted_segment_sum(arrays.ones(arrays.shape_internal(ids), data.dtype), ids, count)
    rest = arrays.ones([arrays.rank(data) - arrays.rank(ids)], count.dtype)
    number = arrays.reshape(number, arrays.concat([count[None], rest], axis=0))
    number = math.maximum(number, 1)
    return unsorted_segment_sum(data, ids, segments), number


# -- sets: rows of the last dimension -------------------------------------------------------------------


_VALID = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.string)


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """The number of distinct elements in each row of the sparse tensor `a`: int32, of one rank less."""
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    if a.values.dtype.base_dtype not in _VALID:
        raise TypeError(f"Invalid dtype `{a.values.dtype}` not in supported dtypes: `{_VALID}`.")
    return apply_op("SetSize", **_parts("set", a), validate_indices=validate_indices)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements in the rows of both; `a` and `b` are dense or sparse, equal but for the last dimension."""
    return _set_operation("intersection", "intersection", a, b, validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements in the rows of `a` and not of `b`, or the reverse if `aminusb` is False."""
    operations = ("a-b", "b-a") if aminusb else ("b-a", "a-b")
    return _set_operation(*operations, a, b, validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements in the rows of either."""
    return _set_operation("union", "union", a, b, validate_indices)


def _set_operation(operation: str, if_exchanged: str, a: Any, b: Any, validate_indices: bool) -> SparseTensor:
    """A sparse and a dense operand are exchanged: there is an op for a dense and a sparse one only."""
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if a.dtype.base_dtype not in _VALID:
        raise TypeError(f"'a' has invalid dtype `{a.dtype}` not in supported dtypes: `{_VALID}`.")
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    if b.dtype.base_dtype != a.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype} vs {b.dtype}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        a, b, operation = b, a, if_exchanged
    kinds = ["Sparse" if isinstance(x, SparseTensor) else "Dense" for x in (a, b)]
    op_name, sets = f"{kinds[0]}To{kinds[1]}SetOperation", _parts("set1", a) | _parts("set2", b)
    return SparseTensor(*apply_op(op_name, **sets, set_operation=operation, validate_indices=validate_indices))


def _parts(name: str, x: Any) -> dict[str, Tensor]:
    if not isinstance(x, SparseTensor):
        return {name: x}
    return {f"{name}_indices": x.indices, f"{name}_values": x.values, f"{name}_shape": x.dense_shape}

"""Rows that are added up, interleaved or told apart by a vector of numbers.

Stands for `core/kernels/segment_reduction_ops.cc`, `dynamic_stitch_op.cc`, `dynamic_partition_op.cc`,
`unique_op.cc`, `listdiff_op.cc` and their Python. The other reductions over segments are in `segment_reductions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import of_inputs
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.indexing.functions import dynamic_partition, dynamic_stitch
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce_functions
from dtflab.ops.reduce.functions import unsorted_segment_sum
from dtflab.ops.type_sets import NUMBER
from dtflab.ops.variables.scatter import blank, check_range


def add_rows(out: Any, ids: Any, rows: Any, xp: Any, ufunc: str = "add") -> Any:
    """Add each of `rows` to the row of `out` (contiguous, its own) that `ids` names; the result is `out`.

    Or multiply it with that, or take the larger, as the ufunc does.
    """
    width, write = out[:1].size, scatterer(xp, ufunc)
    if width == 0:
        return out
    if out.ndim == 1:
        write(out, ids, rows)
        return out
    # NumPy has a fast loop for one axis only: three times as fast as adding rows.
    places = ids[:, None].astype(np.int64) * width + xp.arange(width)
    write(out.reshape(-1), places.reshape(-1), rows.reshape(-1))
    return out


def extreme_rows(out: Any, ids: Any, rows: Any, xp: Any, ufunc: str) -> Any:
    """`add_rows` with maximum or minimum, where `out` is what that begins with.

    As Eigen compares, any number takes the place of a NaN before it: only what follows a segment's last NaN counts.
    """
    if rows.dtype.kind in "iu" or not (nan := xp.isnan(rows)).any():
        return add_rows(out, ids, rows, xp, ufunc)
    at = xp.arange(1, len(rows) + 1)
    column = at.reshape(-1, *[1] * (rows.ndim - 1))
    last_nan = add_rows(xp.zeros(out.shape, np.int64), ids, xp.where(nan, column, 0), xp, "maximum")
    last = add_rows(xp.zeros(len(out), np.int64), ids, at, xp, "maximum").reshape(-1, *column.shape[1:])
    counted = xp.where(column > last_nan[ids], rows, out[ids])
    return xp.where((last_nan == last) & (last > 0), out.dtype.type(np.nan), add_rows(out, ids, counted, xp, ufunc))


def unsorted_shape(op: Any) -> list[TensorShape]:
    """The shape rule for rows that ids in any order deal out to a number of segments."""
    data, ids, count = op.inputs[0].shape, op.inputs[1].shape, folded_value(op.inputs[2])
    if ids.ndims is None:
        return [TensorShape(None)]
    if data.ndims is not None:
        data[: ids.ndims].assert_is_compatible_with(ids)
    return [TensorShape([None if count is None else int(count)]).concatenate(data[ids.ndims :])]


def reducer_of(ufunc: str) -> Callable[..., Any]:
    """What reduces rows by a ufunc: `add_rows`, or where NaN matters `extreme_rows`."""
    return extreme_rows if ufunc in ("maximum", "minimum") else add_rows


def unsorted_kernel(ufunc: str, start: Any, node: Any, xp: Any) -> Callable[..., Any]:
    """A kernel that reduces the rows with the same id by a ufunc, beginning with `start`."""
    dtype, reduce = node["T"].as_numpy_dtype, reducer_of(ufunc)

    def kernel(data: Any, ids: Any, segments: Any) -> Any:
        count = int(segments)
        if np.shape(data)[: np.ndim(ids)] != np.shape(ids):
            text = f"segment_ids.shape = {shape_text(ids)}"
            raise invalid(f"data.shape = {shape_text(data)} does not start with {text}")
        rows = data.reshape(ids.size, *np.shape(data)[np.ndim(ids) :])
        flat = ids.reshape(-1)
        if (flat >= count).any():
            at = int((flat >= count).argmax())
            raise invalid(f"segment_ids[{at}] = {flat[at]} is out of range [0, {count})")
        if (flat < 0).any():
            rows, flat = rows[flat >= 0], flat[flat >= 0]
        return reduce(xp.full((count, *rows.shape[1:]), start, dtype), flat, rows, xp, ufunc)

    return kernel


@op(f"""UnsortedSegmentSum(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T)
        T: {NUMBER}
        Tindices: {{int16, int32, int64}}
        Tnumsegments: {{int32, int64}} = int32""")
class UnsortedSegmentSum(Op):
    """output[i] is the sum of the rows whose segment is i; rows of negative segments are dropped."""

    infer = unsorted_shape

    def bind(node, xp):
        return unsorted_kernel("add", 0, node, xp)

    def flops(node, ins, outs):
        return elements(ins[0])

    def grad(op, dy):
        return [gather_dropping_negatives(dy, op.inputs[1]).rows, None, None]


class Gathered(NamedTuple):
    """Rows that ids name, zeros for negative ids; the ids without a sign, and whether each element has a row."""

    rows: Tensor
    clipped: Tensor
    positive: Tensor


def gather_dropping_negatives(
    params: Tensor, ids: Tensor, clipped: Tensor | None = None, positive: Tensor | None = None
) -> Gathered:
    """The rows of params that ids names; what is known from before need not be made again."""
    if clipped is None:
        clipped = math.maximum(ids, arrays.zeros_like(ids))
    gathered = indexing.gather(params, clipped)
    if positive is None:
        positive = math.greater_equal(ids, 0)
        shape = arrays.shape(positive)
        missing = arrays.rank(gathered) - arrays.rank(positive)
        positive = arrays.reshape(positive, arrays.concat([shape, arrays.ones([missing], shape.dtype)], axis=0))
        positive = positive & arrays.ones_like(gathered, dtypes.bool)
    return Gathered(indexing.where_v2(positive, gathered, arrays.zeros_like(gathered)), clipped, positive)


def sorted_shape(op: Any) -> list[TensorShape]:
    """The shape rule for rows with ids in rising order: the last one says how many segments there are."""
    op.inputs[1].shape.assert_has_rank(1)
    return [TensorShape([None]).concatenate(op.inputs[0].shape.with_rank_at_least(1)[1:])]


def count_segments(data: Any, ids: Any) -> int:
    """How many segments there are; InvalidArgumentError unless the ids rise and there is one for each row."""
    if len(ids) != len(data):
        raise invalid("segment_ids should be the same size as dimension 0 of input.")
    if (ids[1:] < ids[:-1]).any() or (ids[:1] < 0).any():
        raise invalid("segment ids are not increasing")
    return int(ids[-1]) + 1 if len(ids) else 0


@op(f"""SegmentSum(data: T, segment_ids: Tindices) -> (output: T)
        T: {NUMBER}
        Tindices: {{int32, int64}}""")
class SegmentSum(Op):
    """As UnsortedSegmentSum, for ids in rising order, as many segments as the last id says."""

    infer = sorted_shape

    def bind(node, xp):
        def kernel(data, ids):
            return add_rows(xp.zeros((count_segments(data, ids), *data.shape[1:]), data.dtype), ids, data, xp)

        return kernel

    def flops(node, ins, outs):
        return elements(ins[0])

    def grad(op, dy):
        return [indexing.gather(dy, op.inputs[1]), None]


# -- interleaving ------------------------------------------------------------------------------------------


@op("""DynamicStitch(indices: N * int32, data: N * T) -> (merged: T)
       N: int >= 1
       T: type""")
class DynamicStitch(Op):
    """merged[indices[k][i]] = data[k][i]; the last one wins."""

    def infer(op):
        n = len(op.inputs) // 2
        indices, data = op.inputs[:n], op.inputs[n:]
        values = [folded_value(t) for t in indices]
        rows = None
        if all(v is not None for v in values):
            rows = max((int(v.max()) for v in values if v is not None and v.size), default=-1) + 1
        rest = TensorShape(None)
        for i, d in zip(indices, data):
            if i.shape.ndims is not None:
                d.shape[: i.shape.ndims].assert_is_compatible_with(i.shape)
                rest = rest.merge_with(d.shape[i.shape.ndims :])
        return [TensorShape([rows]).concatenate(rest)]

    def bind(node, xp):
        n, dtype = node["N"], node["T"].as_numpy_dtype

        def kernel(*inputs):
            indices, data = inputs[:n], inputs[n:]
            rest = np.shape(data[0])[np.ndim(indices[0]) :]
            rows = max((int(i.max()) for i in indices if i.size), default=-1) + 1
            merged = blank(xp, (rows, *rest), dtype)
            for i, d in zip(indices, data):
                if np.shape(d) != np.shape(i) + rest:
                    raise invalid(f"data shape {shape_text(d)} does not fit indices shape {shape_text(i)}")
                merged[xp.asarray(i), ...] = d  # the dots: an object is not taken for what it holds
            return merged

        return kernel

    def flops(node, ins, outs):
        return 0

    def grad(op, dy):
        indices = op.inputs[: len(op.inputs) // 2]
        if isinstance(dy, IndexedSlices):
            rows = arrays.shape(op.outputs[0])[0]
            dy = unsorted_segment_sum(dy.values, dy.indices, rows)
        return [None] * len(indices) + [indexing.gather(dy, i) for i in indices]


@op("""ParallelDynamicStitch(indices: N * int32, data: N * T) -> (merged: T)
       N: int >= 1
       T: type""")
class ParallelDynamicStitch(DynamicStitch):
    """As DynamicStitch, where nobody relies on which of two writers wins."""


@op("""DynamicPartition(data: T, partitions: int32) -> (outputs: num_partitions * T)
       num_partitions: int >= 1
       T: type""")
class DynamicPartition(Op):
    """The rows of data, dealt out to outputs: row i goes to number partitions[i]."""

    def infer(op):
        data, partitions = (t.shape for t in op.inputs)
        if partitions.ndims is None:
            return [TensorShape(None)] * len(op.outputs)
        data[: partitions.ndims].assert_is_compatible_with(partitions)
        return [TensorShape([None]).concatenate(data[partitions.ndims :])] * len(op.outputs)

    def bind(node, xp):
        count = node["num_partitions"]

        def kernel(data, partitions):
            check_range(partitions, count, "partitions")
            return [data[partitions == k] for k in range(count)]

        return kernel

    def flops(node, ins, outs):
        return 0

    def grad(op, *dys):
        data, partitions = op.inputs
        shape = arrays.shape(partitions)
        positions = arrays.reshape(arrays.range(reduce_functions.reduce_prod(shape)), shape)
        dealt = dynamic_partition(positions, partitions, op.get_attr("num_partitions"))
        back = dynamic_stitch(dealt, list(dys))
        return [arrays.reshape(back, arrays.shape(data)), None]


# -- sets --------------------------------------------------------------------------------------------------


@op("""ListDiff(x: T, y: T) -> (out: T, idx: out_idx)
       T: type
       out_idx: {int32, int64} = int32""")
class ListDiff(Op):
    """The elements of x that are not in y, in their order, and where they stood."""

    flops = of_inputs

    def infer(op):
        return [TensorShape([None]), TensorShape([None])]

    def bind(node, xp):
        dtype = node["out_idx"].as_numpy_dtype

        def kernel(x, y):
            kept = np.flatnonzero([v not in y for v in x] if x.dtype == object else ~np.isin(x, y))
            return x[kept], kept.astype(dtype)

        return kernel


@op("""Unique(x: T) -> (y: T, idx: out_idx)
       T: type
       out_idx: {int32, int64} = int32""")
class Unique(Op):
    """The distinct elements in the order in which they first occur, and for each element which it is."""

    flops = of_inputs

    def infer(op):
        op.inputs[0].shape.assert_has_rank(1)
        return [TensorShape([None]), op.inputs[0].shape]

    def bind(node, xp):
        dtype = node["out_idx"].as_numpy_dtype

        def kernel(x):
            if np.ndim(x) != 1:
                raise invalid("unique expects a 1D vector.")
            first, idx = _distinct_words(x) if x.dtype == object else _distinct(xp, x)
            return x[first], idx.astype(dtype)

        return kernel


def _distinct_words(x: Any) -> tuple[Any, Any]:
    """Where each distinct element stands first, and for each element which of them it is."""
    first: dict[Any, int] = {}
    for i, word in enumerate(x):
        first.setdefault(word, i)
    number = {word: n for n, word in enumerate(first)}
    return list(first.values()), np.array([number[word] for word in x], np.int64)


def _distinct(xp: Any, x: Any) -> tuple[Any, Any]:
    """The same for numbers, which can be sorted; of two bytes by their bits: bfloat16's NaN would break the order."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        bits, nan = x.view(xp.uint16).astype(xp.int32), xp.isnan(x)
        bits[nan] = (1 << 16) + xp.arange(int(nan.sum()))  # none equals another
        x = bits
    _, first, idx = xp.unique(x, return_index=True, return_inverse=True, equal_nan=False)
    order = xp.argsort(first)
    return first[order], xp.argsort(order)[idx]


@op("""UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx)
       T: type
       out_idx: {int32, int64} = int32""")
class UniqueWithCounts(Op):
    """The same, and how often each occurs."""

    flops = of_inputs

    def infer(op):
        return [TensorShape([None]), op.inputs[0].shape, TensorShape([None])]

    def bind(node, xp):
        distinct = Unique.bind(node, xp)

        def kernel(x):
            y, idx = distinct(x)
            return y, idx, xp.bincount(idx, minlength=len(y)).astype(idx.dtype)

        return kernel

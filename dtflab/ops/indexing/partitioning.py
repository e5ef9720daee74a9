"""Rows dealt out, put together, or told apart by a vector of numbers: partition, stitch, unique, differences.

Stands for `core/kernels/dynamic_stitch_op.cc`, `dynamic_partition_op.cc`, `unique_op.cc` and `listdiff_op.cc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free, of_inputs
from dtflab.ops.indexing.functions import dynamic_partition, dynamic_stitch, gather
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.scatter import blank, check_range


@op("DynamicStitch(indices: N * int32, data: N * T) -> (merged: T) where N: int >= 1, T: type")
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

    def kernel(node, xp, *inputs):
        n, dtype = node["N"], node["T"].as_numpy_dtype
        indices, data = inputs[:n], inputs[n:]
        rest = np.shape(data[0])[np.ndim(indices[0]) :]
        rows = max((int(i.max()) for i in indices if i.size), default=-1) + 1
        merged = blank(xp, (rows, *rest), dtype)
        for i, d in zip(indices, data):
            if np.shape(d) != np.shape(i) + rest:
                raise invalid(f"data shape {shape_text(d)} does not fit indices shape {shape_text(i)}")
            merged[xp.asarray(i), ...] = d  # the dots: an object is not taken for what it holds
        return merged

    flops = free

    def grad(op, dy):
        indices = op.inputs[: len(op.inputs) // 2]
        if isinstance(dy, IndexedSlices):
            rows = arrays.shape(op.outputs[0])[0]
            dy = reduce.unsorted_segment_sum(dy.values, dy.indices, rows)
        return [None] * len(indices) + [gather(dy, i) for i in indices]


@op("ParallelDynamicStitch(indices: N * int32, data: N * T) -> (merged: T) where N: int >= 1, T: type")
class ParallelDynamicStitch(DynamicStitch):
    """As DynamicStitch, where nobody relies on which of two writers wins."""


@op("""DynamicPartition(data: T, partitions: int32) -> (outputs: num_partitions * T)
       num_partitions: int >= 1, T: type""")
class DynamicPartition(Op):
    """The rows of data, dealt out to outputs: row i goes to number partitions[i]."""

    def infer(op):
        data, partitions = (t.shape for t in op.inputs)
        if partitions.ndims is None:
            return [TensorShape(None)] * len(op.outputs)
        data[: partitions.ndims].assert_is_compatible_with(partitions)
        return [TensorShape([None]).concatenate(data[partitions.ndims :])] * len(op.outputs)

    def kernel(node, xp, data, partitions):
        count = node["num_partitions"]
        check_range(partitions, count, "partitions")
        return [data[partitions == k] for k in range(count)]

    flops = free

    def grad(op, *dys):
        data, partitions = op.inputs
        shape = arrays.shape(partitions)
        positions = arrays.reshape(arrays.range(reduce.reduce_prod(shape)), shape)
        dealt = dynamic_partition(positions, partitions, op.get_attr("num_partitions"))
        return [arrays.reshape(dynamic_stitch(dealt, list(dys)), arrays.shape(data)), None]


@op("ListDiff(x: T, y: T) -> (out: T, idx: out_idx) where T: type, out_idx: {int32, int64} = int32")
class ListDiff(Op):
    """The elements of x that are not in y, in their order, and where they stood."""

    flops = of_inputs

    infer = shapes.fixed([None], [None])

    def kernel(node, xp, x, y):
        kept = np.flatnonzero([v not in y for v in x] if x.dtype == object else ~np.isin(x, y))
        return x[kept], kept.astype(node["out_idx"].as_numpy_dtype)


@op("Unique(x: T) -> (y: T, idx: out_idx) where T: type, out_idx: {int32, int64} = int32")
class Unique(Op):
    """The distinct elements in the order in which they first occur, and for each element which it is."""

    flops = of_inputs

    def infer(op):
        op.inputs[0].shape.assert_has_rank(1)
        return [TensorShape([None]), op.inputs[0].shape]

    def kernel(node, xp, x):
        dtype = node["out_idx"].as_numpy_dtype
        if np.ndim(x) != 1:
            raise invalid("unique expects a 1D vector.")
        first, idx = _distinct_words(x) if x.dtype == object else _distinct(xp, x)
        return x[first], idx.astype(dtype)


def _distinct_words(x: Any) -> tuple[Any, Any]:
    """Where each distinct element stands first, and for each element which of them it is."""
    first: dict[Any, int] = {}
    for i, word in enumerate(x):
        first.setdefault(word, i)
    number = {word: n for n, word in enumerate(first)}
    return list(first.values()), np.array([number[word] for word in x], np.int64)


def _distinct(xp: Any, x: Any) -> tuple[Any, Any]:
    """Distinct numbers, found by sorting; two-byte ones by their bits: bfloat16's NaN would break the order."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        bits, nan = x.view(xp.uint16).astype(xp.int32), xp.isnan(x)
        bits[nan] = (1 << 16) + xp.arange(int(nan.sum()))  # none equals another
        x = bits
    _, first, idx = xp.unique(x, return_index=True, return_inverse=True, equal_nan=False)
    order = xp.argsort(first)
    return first[order], xp.argsort(order)[idx]


@op("UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx) where T: type, out_idx: {int32, int64} = int32")
class UniqueWithCounts(Op):
    """The distinct elements, the index of each element among them, and the count of each."""

    flops = of_inputs

    def infer(op):
        return [TensorShape([None]), op.inputs[0].shape, TensorShape([None])]

    def bind(node, xp):
        distinct = Unique.bind(node, xp)

        def kernel(x):
            y, idx = distinct(x)
            return y, idx, xp.bincount(idx, minlength=len(y)).astype(idx.dtype)

        return kernel

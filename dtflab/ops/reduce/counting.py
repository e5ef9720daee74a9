"""How often values occur: bincount and histograms of equal bins, as ops.

Stands for `core/kernels/bincount_op.cc` and `histogram_op.cc`. Left out: sparse and ragged counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.costs import of_inputs
from dtflab.ops.messages import invalid, shape_text

_COUNTED = "{int32, int64, float, double}"


def _counts(xp: Any, numbers: Any, size: int, weights: Any, dtype: Any, binary: bool) -> Any:
    """Per row of `numbers` how often each of 0 … size - 1 is there, or its weights' sum; larger ones are left out."""
    if size < 0:
        raise invalid(f"size ({size}) must be non-negative")
    if numbers.size and bool((numbers < 0).any()):
        raise invalid("Input arr must be non-negative!")
    rows = numbers.reshape((1, -1)) if numbers.ndim < 2 else numbers
    inside = rows < size
    out = xp.zeros((rows.shape[0], size), dtype)
    row = xp.broadcast_to(xp.arange(rows.shape[0])[:, None], rows.shape)[inside]
    column = rows[inside].astype(np.int64)
    if binary:
        out[row, column] = 1
    else:
        added = weights.reshape(rows.shape)[inside] if weights.size else xp.ones(row.shape, dtype)
        scatterer(xp, "add")(out, (row, column), added)
    return out.reshape(size) if numbers.ndim < 2 else out


def _known_size(op: Operation) -> int | None:
    size = folded_value(op.inputs[1])
    if size is not None and size < 0:
        raise ValueError(f"size ({int(size)}) must be non-negative")
    return None if size is None else int(size)


@op(f"Bincount(arr: int32, size: int32, weights: T) -> (bins: T) where T: {_COUNTED}")
class Bincount(Op):
    """How often each number from 0 to size - 1 is in an array, or the sum of its weights."""

    flops = of_inputs

    def infer(op):
        return [TensorShape([_known_size(op)])]

    def bind(node, xp):
        dtype = node["T"].as_numpy_dtype
        return lambda arr, size, weights: _counts(xp, arr.reshape(-1), int(size), weights, dtype, False)


@op(f"""DenseBincount(input: Tidx, size: Tidx, weights: T) -> (output: T)
        Tidx: {{int32, int64}}, T: {_COUNTED}, binary_output: bool = false""")
class DenseBincount(Op):
    """Bincount of a vector, or of each row of a matrix; with `binary_output` only whether a number is there."""

    flops = of_inputs

    def infer(op):
        shape, size = op.inputs[0].shape.with_rank_at_most(2), _known_size(op)
        if shape.ndims is None:
            return [TensorShape(None)]
        return [(shape[:-1] if shape.ndims == 2 else TensorShape([])).concatenate([size])]

    def bind(node, xp):
        dtype, binary = node["T"].as_numpy_dtype, node["binary_output"]
        return lambda x, size, weights: _counts(xp, x, int(size), weights, dtype, binary)


@op(f"""HistogramFixedWidth(values: T, value_range: T, nbins: int32) -> (out: dtype)
        T: {_COUNTED}, dtype: {{int32, int64}} = int32""")
class HistogramFixedWidth(Op):
    """How many values are in each of nbins equal bins of a range; the first and the last take all beyond."""

    flops = of_inputs

    def infer(op):
        op.inputs[1].shape.merge_with([2])
        bins = folded_value(op.inputs[2])
        if bins is not None and bins <= 0:
            raise ValueError(f"Requires nbins > 0: {int(bins)}")
        return [TensorShape([None if bins is None else int(bins)])]

    def kernel(node, xp, values, value_range, bins):
        dtype = node["dtype"].as_numpy_dtype
        if value_range.shape != (2,):
            raise invalid(f"value_range should be a vector of 2 elements: {shape_text(value_range)}")
        low, high = (float(end) for end in value_range)
        if low >= high:
            raise invalid(f"value_range should satisfy value_range[0] < value_range[1], but got [{low}, {high}]")
        if bins <= 0:
            raise invalid(f"nbins should be a positive number, but got {bins}")
        step = (high - low) / float(bins)
        places = (xp.clip(values.reshape(-1).astype(np.float64), low, high) - low) / step
        places = xp.minimum(xp.maximum(places, 0), int(bins) - 1).astype(np.int64)
        return _counts(xp, places, int(bins), places[:0], dtype, False)

"""How often values occur: bincount and histograms of equal bins.

Stands for `python/ops/bincount_ops.py` and `histogram_ops.py`. Left out: sparse and ragged counts.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.math import clipping, functions as math
from dtflab.ops.reduce import functions as reduce


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32
) -> Tensor:
    """How often each number from 0 up is in `arr`, or its `weights` summed, for `minlength` to `maxlength` numbers."""
    with name_scope("bincount"):
        arr = convert_to_tensor(arr, name="arr")
        given = weights is not None
        weights = convert_to_tensor(weights, name="weights") if given else None
        arr = arr if arr.dtype.is_integer else arrays.cast(arr, dtypes.int32)
        some = arrays.size(arr) > 0
        size = arrays.cast(some, arr.dtype) * (reduce.reduce_max(arr) + 1)
        if minlength is not None:
            size = math.maximum(convert_to_tensor(minlength, arr.dtype, name="minlength"), size)
        if maxlength is not None:
            size = math.minimum(convert_to_tensor(maxlength, arr.dtype, name="maxlength"), size)
        if given:
            weights = arrays.reshape(weights, [-1])
        arr = arrays.reshape(arr, [-1])
        weights = weights if given else constant([], dtypes.as_dtype(dtype))
        return apply_op("DenseBincount", input=arr, size=size, weights=weights, binary_output=False)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many `values` are in each of `nbins` equal bins of the range; what is outside counts in the outer bins."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        dtype = dtypes.as_dtype(dtype)
        return apply_op("HistogramFixedWidth", scope, values=values, value_range=value_range, nbins=nbins, dtype=dtype)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """In which of `nbins` equal bins of the range each value is."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        shape = arrays.shape(values)
        values = arrays.reshape(values, [-1])
        value_range = convert_to_tensor(value_range, name="value_range")
        nbins = convert_to_tensor(nbins, dtypes.int32, name="nbins")
        check = Assert(nbins > 0, [f"nbins {nbins} must > 0"])
        nbins = with_dependencies([check], nbins)
        count = arrays.cast(nbins, values.dtype)
        difference = values - value_range[0]
        width = value_range[1] - value_range[0]
        scaled = math.truediv(difference, width, name="scaled_values")
        places = math.floor(count * scaled, name="indices")
        places = arrays.cast(clipping.clip_by_value(places, 0, count - 1), dtypes.int32)
        return arrays.reshape(places, shape)

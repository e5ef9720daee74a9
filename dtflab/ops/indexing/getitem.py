"""`tensor[…]`: what an index means on tensors.

Stands for `python/ops/tensor_getitem_override.py`.
"""

from __future__ import annotations

import builtins
import numbers
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import Dimension
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing.functions import boolean_mask, strided_slice
from dtflab.ops.strides import MASKS

_INDEX_DTYPES = (dtypes.int16, dtypes.int32, dtypes.int64)


_INDICES = "integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors"


def _check_index(index: Any) -> None:
    if isinstance(index, numbers.Integral | Dimension):
        return
    dtype = getattr(index, "dtype", None)
    ok = dtype is not None and dtypes.as_dtype(dtype).base_dtype in _INDEX_DTYPES
    if not ok or (index.shape and len(index.shape) == 1):
        raise TypeError(f"Only {_INDICES} are valid indices, got {index!r}")


def getitem(tensor: Any, key: Any, var: Any = None) -> Tensor:
    """`tensor[key]`: ints, slices, `...`, `tf.newaxis`, scalar tensors, or one boolean mask."""
    tensor = convert_to_tensor(tensor)
    if isinstance(key, bool) or (isinstance(key, Tensor | np.ndarray) and key.dtype == np.bool_):
        return boolean_mask(tensor, key)
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(MASKS, 0)
    for i, part in enumerate(key if isinstance(key, list | tuple) else [key]):
        bounds, where = _bounds(part)
        for mask in where:
            masks[mask] |= 1 << i
        for bound, values in zip(bounds, (begin, end, strides)):
            values.append(bound)
    with name_scope(None, "strided_slice", [tensor, *begin, *end, *strides]) as scope:
        if not begin:
            empty = constant([], dtypes.int32)
            return strided_slice(tensor, empty, empty, empty, var=var, name=scope, **masks)
        packed = [arrays.stack(values) for values in (begin, end, strides)]
        if any(p.dtype == dtypes.int64 for p in packed):
            packed = [arrays.cast(p, dtypes.int64) for p in packed]
        first, last, step = packed
        return strided_slice(tensor, first, last, step, var=var, name=scope, **masks)


def _bounds(part: Any) -> tuple[tuple[Any, Any, Any], list[str]]:
    """One entry of a key as (begin, end, stride), and the masks that it sets."""
    if isinstance(part, builtins.slice):
        return _slice_bounds(part)
    if part is Ellipsis:
        return (0, 0, 1), ["ellipsis_mask"]
    if part is None:
        return (0, 0, 1), ["new_axis_mask"]
    _check_index(part)
    stride: Any = 1
    end = part + 1
    if isinstance(part, Tensor) and part.dtype.base_dtype in (dtypes.int16, dtypes.int64):
        stride = constant(1, part.dtype.base_dtype)
    return (part, end, stride), ["shrink_axis_mask"]


def _slice_bounds(part: builtins.slice) -> tuple[tuple[Any, Any, Any], list[str]]:
    dtype = None  # of the tensors among the bounds: then what is left out has it too
    for bound in (part.start, part.stop, part.step):
        if isinstance(bound, Tensor) and bound.dtype.base_dtype in _INDEX_DTYPES:
            base = bound.dtype.base_dtype
            dtype = base if dtype is None or base.size > dtype.size else dtype
    masks = []
    bounds = []
    for bound, mask, missing in zip((part.start, part.stop, part.step), ("begin_mask", "end_mask", ""), (0, 0, 1)):
        if bound is not None and not (isinstance(bound, Dimension) and bound.value is None):
            _check_index(bound)
            bounds.append(bound)
            continue
        bounds.append(missing if dtype is None else constant(missing, dtype))
        if mask:
            masks.append(mask)
    return (bounds[0], bounds[1], bounds[2]), masks

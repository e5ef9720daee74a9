"""Values and gradients kept within bounds.

Stands for `python/ops/clip_ops.py`.

Rule: IndexedSlices are clipped as slices, and stay sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce


def _values(t: Any, name: str) -> Tensor:
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name=name)


def _like(t: Any, values: Tensor) -> Any:
    """`values` as IndexedSlices, if that is what t is."""
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """`t`, but not below `clip_value_min` and not above `clip_value_max`."""
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t, "t")
        upper = math.minimum(values, clip_value_max)
        values.shape.assert_is_compatible_with(upper.shape)
        both = math.maximum(upper, clip_value_min, name=scope)
        values.shape.assert_is_compatible_with(both.shape)
        return _like(t, both)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """`t`, scaled down so that its L2 norm (over `axes`) is at most `clip_norm`."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t, "t")
        if np.isscalar(clip_norm):
            clip_norm = max(clip_norm, 0)  # type: ignore[type-var]
        else:
            clip_norm = arrays.cast(math.maximum(clip_norm, 0), values.dtype)
        squared = reduce.reduce_sum(values * values, axes, keepdims=True)
        positive = squared > 0
        safe = indexing.where(positive, squared, arrays.ones_like(squared))  # the gradient of sqrt at 0 is infinite
        norm = indexing.where(positive, math.sqrt(safe), squared)
        scaled = values * clip_norm
        values.shape.assert_is_compatible_with(scaled.shape)
        return _like(t, arrays.identity(scaled / math.maximum(norm, clip_norm), name=scope))


def _checked_list(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
    return list(t_list)


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """The L2 norm of all tensors together; None among them counts nothing."""
    tensors = _checked_list(t_list)
    with name_scope(name, "global_norm", tensors):
        values = [None if t is None else _values(t, f"t_{i}") for i, t in enumerate(tensors)]
        halves = []
        for value in values:
            if value is not None:
                with colocate_with(value):
                    halves.append(apply_op("L2Loss", t=value))
        half = reduce.reduce_sum(arrays.stack(halves))
        return math.sqrt(half * constant(2.0, half.dtype), name="global_norm")


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """The tensors, all scaled down by one factor so that their common norm is at most `clip_norm`; and the norm."""
    tensors = _checked_list(t_list)
    norm = global_norm(tensors, name) if use_norm is None else use_norm
    with name_scope(name, "clip_by_global_norm", [*tensors, clip_norm]) as scope:
        finite = clip_norm * math.minimum(1.0 / norm, constant(1.0, norm.dtype) / clip_norm)
        scale = finite + (norm - norm)  # NaN if the norm is infinite or NaN, so that nobody misses it
        values = [None if t is None else _values(t, f"t_{i}") for i, t in enumerate(tensors)]
        clipped: list[Any] = []
        for i, value in enumerate(values):
            if value is None:
                clipped.append(None)
                continue
            with colocate_with(value):
                scaled = value * arrays.cast(scale, value.dtype)
                clipped.append(_like(tensors[i], arrays.identity(scaled, name=f"{scope}_{i}")))
    return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """`t`, scaled down so that its norm divided by its size is at most `clip_norm`."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = convert_to_tensor(t, name="t")
        count = arrays.cast(arrays.size(t), dtypes.float32)
        axes = arrays.range(arrays.rank(t))
        inverse = math.rsqrt(reduce.reduce_sum(t * t, axes))
        scaled = t * clip_norm * math.minimum(inverse * count, constant(1.0) / clip_norm)
        return arrays.identity(scaled, name=scope)

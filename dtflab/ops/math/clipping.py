"""Values and gradients kept within bounds.

Stands for `python/ops/clip_ops.py` and `core/kernels/cwise_op_clip.cc`. Left out: nothing.

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
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, name_scope
from dtflab.ops import shapes
from dtflab.ops.arrays import casting, constant as constants, identity as array, repeating, reshaping, stacking
from dtflab.ops.math import binary as math, logic, unary
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import reduction
from dtflab.ops.type_sets import NUMBER


@op(f"""ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T)
        T: {NUMBER}""")
class ClipByValue(Op):
    """t, but not below the minimum and not above the maximum."""

    infer = shapes.unchanged

    def bind(node, xp):
        parts = node["T"].is_complex  # each for itself

        def clip(t, low, high):
            return xp.maximum(xp.minimum(t, high), low)  # of bounds that cross, the lower one holds

        def kernel(t, low, high):
            for bound in (low, high):
                if bound.shape not in ((), t.shape):
                    text = f"shape of {shape_text(t)}, but got {shape_text(bound)}"
                    raise invalid(f"clip_value_min and clip_value_max must be either of size 1 or have the {text}")
            if not parts:
                return clip(t, low, high)
            out = xp.empty_like(t)
            out.real, out.imag = clip(t.real, low.real, high.real), clip(t.imag, low.imag, high.imag)
            return out

        return kernel

    def flops(node, ins, outs):
        return 2 * elements(outs[0])

    def grad(op, dy):
        t, low, high = op.inputs
        t_shape, low_shape, high_shape = (array.shape(x) for x in op.inputs)
        zeros = constants.zeros(array.shape(dy), dy.dtype)
        below, above = logic.less(t, low), logic.greater(t, high)
        _, low_axes = repeating.broadcast_gradient_args(t_shape, low_shape)
        _, high_axes = repeating.broadcast_gradient_args(t_shape, high_shape)
        dt = logic.where(logic.logical_or(below, above), zeros, dy)
        dlow, dhigh = logic.where(below, dy, zeros), logic.where(above, dy, zeros)
        dlow = reshaping.reshape(reduction.reduce_sum(dlow, low_axes), low_shape)
        return [dt, dlow, reshaping.reshape(reduction.reduce_sum(dhigh, high_axes), high_shape)]


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
            clip_norm = casting.cast(math.maximum(clip_norm, 0), values.dtype)
        squared = reduction.reduce_sum(values * values, axes, keepdims=True)
        positive = squared > 0
        safe = logic.where(positive, squared, constants.ones_like(squared))  # the gradient of sqrt at 0 is infinite
        norm = logic.where(positive, unary.sqrt(safe), squared)
        scaled = values * clip_norm
        values.shape.assert_is_compatible_with(scaled.shape)
        return _like(t, array.identity(scaled / math.maximum(norm, clip_norm), name=scope))


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
        half = reduction.reduce_sum(stacking.stack(halves))
        return unary.sqrt(half * constant(2.0, half.dtype), name="global_norm")


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
                scaled = value * casting.cast(scale, value.dtype)
                clipped.append(_like(tensors[i], array.identity(scaled, name=f"{scope}_{i}")))
    return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """`t`, scaled down so that its norm divided by its size is at most `clip_norm`."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = convert_to_tensor(t, name="t")
        count = casting.cast(array.size(t), dtypes.float32)
        axes = constants.range(array.rank(t))
        inverse = unary.rsqrt(reduction.reduce_sum(t * t, axes))
        scaled = t * clip_norm * math.minimum(inverse * count, constant(1.0) / clip_norm)
        result: Tensor = array.identity(scaled, name=scope)
        return result

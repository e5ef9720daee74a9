"""Strided slices as NumPy's basic indexing: one function for the shape rule, the kernel and the gradient alike.

Stands for `core/util/strided_slice_op.cc`.
"""

from __future__ import annotations

import builtins
from typing import Any

from dtflab.graph.tensor_shape import TensorShape

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


MASK_ATTRS = "\n".join(f"{mask}: int = 0" for mask in MASKS)


_UNKNOWN = object()  # in an index: a slice whose bounds are not known before the step


def numpy_index(attrs: Any, begin: Any, end: Any, strides: Any, shape: Any) -> tuple[Any, ...]:
    """The masks and bounds as NumPy's index; a bound may be None, and so may sizes in `shape`.

    ValueError for a single index outside `shape`, or too many of them.
    """
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask = (attrs[m] for m in MASKS)
    if ellipsis_mask & (ellipsis_mask - 1):
        raise ValueError("Multiple ellipses in slice spec not allowed")
    not_axes = ellipsis_mask | new_axis_mask
    count = sum(not not_axes >> i & 1 for i in range(len(begin)))  # axes of the input that the entries stand for
    if count > len(shape):
        raise ValueError(f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims")
    index: list[Any] = []
    axis = 0
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
            axis += len(shape) - count
            continue
        if new_axis_mask & bit:
            index.append(None)
            continue
        if s == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        if shrink_mask & bit:
            index.append(_single(b, s, axis, shape[axis]))
        else:
            b, e = _UNKNOWN if b is None else b, _UNKNOWN if e is None else e
            index.append(_range(None if begin_mask & bit else b, None if end_mask & bit else e, s))
        axis += 1
    return tuple(index) if ellipsis_mask else (*index, Ellipsis)


def _single(begin: int | None, stride: int | None, axis: int, size: int | None) -> int:
    if stride is not None and stride < 0:
        raise ValueError("only stride 1 allowed on non-range indexing.")
    if begin is not None and size is not None and not -size <= begin < size:
        raise ValueError(f"slice index {begin} of dimension {axis} out of bounds.")
    return begin or 0


def _range(begin: Any, end: Any, stride: int | None) -> Any:
    return _UNKNOWN if _UNKNOWN in (begin, end) or stride is None else builtins.slice(begin, end, stride)


def _slice_shape(shape: TensorShape, index: tuple[Any, ...]) -> TensorShape:
    """The static shape of x[index] for an x of static shape `shape`."""
    dims = shape.as_list()
    hidden = len(dims) - sum(part is not None and part is not Ellipsis for part in index)
    result: list[int | None] = []
    for part in index:
        if part is None:
            result.append(1)
        elif part is Ellipsis:
            result += dims[:hidden]
            dims = dims[hidden:]
        else:
            size = dims.pop(0)
            if not isinstance(part, int):
                result.append(_slice_size(size, part))
    return TensorShape(result)


def _slice_size(size: int | None, part: Any) -> int | None:
    if part is _UNKNOWN:
        return None
    if size is not None:
        return len(range(*part.indices(size)))
    start, stop = part.start, part.stop
    if start is not None and stop is not None and (start < 0) == (stop < 0) and (stop - start) * part.step <= 0:
        return 0
    return None

"""Writing rows of an array by index: what all Scatter* ops of both variable families do.

Stands for `core/kernels/scatter_functor.h`. Writing by position is in `scatter_nd.py`.

Rule: duplicates count. `add` at the same row twice adds twice; `update` keeps the last. An index out of range
is an error before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.messages import invalid, shape_text

UFUNCS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "min": "minimum", "max": "maximum",
}  # fmt: skip


def blank(xp: Any, shape: Any, dtype: Any) -> Any:
    """Zeros of any dtype: empty text where the elements are text."""
    return np.full(shape, b"", object) if dtype is object else xp.zeros(shape, dtype)


def writer(how: str, xp: Any) -> Callable[[Any, Any, Any, Any], Any]:
    """A function (old, out, indices, updates) → new, written into `out` if given, else a copy of `old`."""
    scatter = scatterer(xp, UFUNCS[how]) if how in UFUNCS else None

    def write(old: Any, out: Any, indices: Any, updates: Any) -> Any:
        _check(old, indices, updates)
        new = old.copy() if out is None else out
        if scatter is None:
            new[indices] = updates
        elif how == "div" and new.dtype.kind in "iu":
            _divide_integers(xp, new, indices, updates)
        else:
            scatter(new, indices, updates)
        return new

    return write


def _divide_integers(xp: Any, new: Any, indices: Any, updates: Any) -> None:
    """Division that rounds towards zero, as in C; NumPy's own rounds down."""
    signs, sizes = xp.sign(new), xp.abs(new)
    scatterer(xp, "multiply")(signs, indices, xp.sign(updates))
    scatterer(xp, "floor_divide")(sizes, indices, xp.abs(updates))
    new[...] = signs * sizes


def _check(params: Any, indices: Any, updates: Any) -> None:
    if params.ndim == 0:
        raise invalid(f"params must be at least 1-D, got shape {shape_text(params.shape)}")
    if updates.ndim and updates.shape != indices.shape + params.shape[1:]:
        raise invalid(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
            f"got updates.shape {shape_text(updates.shape)}, indices.shape {shape_text(indices.shape)}, "
            f"params.shape {shape_text(params.shape)}"
        )
    check_range(indices, params.shape[0])


_UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def check_range(indices: Any, limit: int, name: str = "indices") -> None:
    """InvalidArgumentError that names the first index outside [0, limit)."""
    if indices.size == 1:
        fit = 0 <= indices.item() < limit
    else:  # as unsigned numbers, negative ones are the largest
        fit = not indices.size or indices.view(_UNSIGNED[indices.itemsize]).max() < limit
    if not fit:
        wrong = (indices < 0) | (indices >= limit)
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        at = f"[{','.join(map(str, where))}]" if where else ""
        raise invalid(f"{name}{at} = {indices[where]} is not in [0, {limit})")


def check_static(params: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
    """ValueError where the graph already shows that the shapes can't fit."""
    rows = params[1:]
    if updates.ndims != 0:
        updates.merge_with(indices.concatenate(rows))

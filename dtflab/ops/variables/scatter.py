"""Writing rows of an array by index and slices by position: the array code of all Scatter families.

Stands for `core/kernels/scatter_functor.h` and `scatter_nd_op.cc`. Which shapes of positions fit is in
`scatter_nd_shapes.py`. Left out: the way GPUs treat a bad position.

Rule: duplicates count. `add` at the same place twice adds twice; `update` keeps the last. A bad index or position is
an error before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.messages import invalid, shape_text

Places = Callable[[Any, Any, Any], Any]
_UFUNCS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "min": "minimum", "max": "maximum"}


def blank(xp: Any, shape: Any, dtype: Any) -> Any:
    """Zeros of any dtype: empty text where the elements are text."""
    return np.full(shape, b"", object) if dtype is object else xp.zeros(shape, dtype)


def writer(how: str, xp: Any, places: Places) -> Callable[[Any, Any, Any, Any], Any]:
    """A function (old, out, indices, updates) → new, written into `out` if given, else a copy of `old`.

    `places(old, indices, updates)` checks the shapes, and gives the places as NumPy takes them: `rows` or `positions`.
    """
    scatter = scatterer(xp, _UFUNCS[how]) if how in _UFUNCS else None

    def write(old: Any, out: Any, indices: Any, updates: Any) -> Any:
        where = places(old, indices, updates)
        new = old.copy() if out is None else out
        if scatter is None:
            new[where] = updates
        elif how == "div" and new.dtype.kind in "iu":
            _divide_integers(xp, new, where, updates)
        else:
            scatter(new, where, updates)
        return new

    return write


def _divide_integers(xp: Any, new: Any, where: Any, updates: Any) -> None:
    """Division that rounds towards zero, as in C; NumPy's own rounds down."""
    signs, sizes = xp.sign(new), xp.abs(new)
    scatterer(xp, "multiply")(signs, where, xp.sign(updates))
    scatterer(xp, "floor_divide")(sizes, where, xp.abs(updates))
    new[...] = signs * sizes


# -- rows ---------------------------------------------------------------------------------------------


def rows(params: Any, indices: Any, updates: Any) -> Any:
    """`indices`; InvalidArgumentError if they are not rows of `params`, or `updates` does not fit."""
    if params.ndim == 0:
        raise invalid(f"params must be at least 1-D, got shape {shape_text(params.shape)}")
    if updates.ndim and updates.shape != indices.shape + params.shape[1:]:
        raise invalid(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
            f"got updates.shape {shape_text(updates.shape)}, indices.shape {shape_text(indices.shape)}, "
            f"params.shape {shape_text(params.shape)}"
        )
    check_range(indices, params.shape[0])
    return indices


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


# -- slices by position -------------------------------------------------------------------------------


def positions(check: Callable[[tuple[int, ...], Any, Any], None]) -> Places:
    """The places that the last axis of `indices` names; `check` is one of `scatter_nd_shapes`."""

    def places(old: Any, indices: Any, updates: Any) -> tuple[Any, ...]:
        check(old.shape, indices, updates)
        depth = indices.shape[-1]
        wrong = ((indices < 0) | (indices >= np.array(old.shape[:depth], np.int64, like=indices))).any(-1)
        if np.any(wrong):
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            position = ", ".join(str(i) for i in indices[where])
            raise invalid(
                f"indices[{','.join(map(str, where))}] = [{position}] does not index into shape {shape_text(old.shape)}"
            )
        return tuple(np.moveaxis(indices, -1, 0))

    return places

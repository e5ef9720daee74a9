"""Writing rows of an array by index and slices by position: the array code of all Scatter families.

Stands for `core/kernels/scatter_functor.h`, `scatter_nd_op.cc` and `scatter_nd_util.cc`, and for
`ScatterNdUpdateShape` of `core/framework/common_shape_fns.cc`. Left out: the way GPUs treat a bad position.

Rules: duplicates count. `add` at the same place twice adds twice; `update` keeps the last. A bad index or position is
an error before anything is written. With positions of shape [outer…, depth], updates have shape [outer…, what a
position of `depth` sizes leaves…].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.tensor_shape import TensorShape, in_a_rule
from dtflab.ops.array_module import scatterer
from dtflab.ops.messages import invalid, shape_text

Shape = tuple[int, ...]
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


def check_static_rows(params: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
    """ValueError where the graph already shows that the shapes can't fit."""
    rows = params[1:]
    if updates.ndims != 0:
        updates.merge_with(indices.concatenate(rows))


# -- slices by position -------------------------------------------------------------------------------


def positions(check: Callable[[tuple[int, ...], Any, Any], None]) -> Places:
    """The places that the last axis of `indices` names; `check` is one of those below."""

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


# -- which shapes of positions and updates fit ---------------------------------------------------------


def check_static_slices(shape: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
    """ValueError where the graph already shows that the shapes can't fit."""
    indices.with_rank_at_least(1)
    updates.with_rank_at_least(1)
    if shape.num_elements() == 0 and indices.num_elements() and updates.num_elements():
        raise ValueError("Indices and updates specified for empty input")
    if indices.ndims is None or updates.ndims is None:
        return
    outer, depth, rank = indices.ndims - 1, indices[-1].value, shape.ndims
    _check_part(f"[0,{outer}) of indices", indices, indices[:-1], f"[0,{outer})", updates, updates[:outer])
    if depth is not None and rank is not None and depth <= rank:
        where = f"[{outer},{updates.ndims})"
        _check_part(f"[{depth},{rank}) of input", shape, shape[depth:], where, updates, updates[outer:])


def _check_part(
    what: str, whole: TensorShape, part: TensorShape, where: str, updates: TensorShape, rest: TensorShape
) -> None:
    try:
        part.merge_with(rest)
    except ValueError as error:
        raise ValueError(
            f"Dimensions {what}[shape={shape_text(whole)}] = {shape_text(part)} must match dimensions {where} of "
            f"updates[shape={shape_text(updates)}] = {shape_text(rest)}: {in_a_rule(error)}"
        ) from None


def check_output(shape: Shape, indices: Any, updates: Any) -> None:
    """InvalidArgumentError if ScatterNd can't write the updates into zeros of that shape."""
    _check_ranks(indices, updates)
    if not shape and indices.size and updates.size:
        raise invalid("Indices and updates specified for empty output shape")
    outer = indices.ndim - 1
    _check_outer(outer, indices, updates)
    _check_inner(shape, indices.shape[-1], outer, outer, updates)
    _check_room(shape, indices, updates)


def check_variable(shape: Shape, indices: Any, updates: Any) -> None:
    """InvalidArgumentError if the updates can't be written into a variable of that shape."""
    if not shape:
        raise invalid("Output must be at least 1-D, got shape: []")
    _check_room(shape, indices, updates)
    first = [x.shape[0] if x.ndim else 0 for x in (indices, updates)]
    if first[0] != first[1] or not indices.ndim or not updates.ndim:
        raise invalid(
            f"Dimensions [0,1) of indices[shape={shape_text(indices.shape)}] = {first[0]} must match dimensions [0,1) "
            f"of updates[shape={shape_text(updates.shape)}] = {first[1]}"
        )
    _check_outer(max(indices.ndim - 1, 1), indices, updates)
    depth = indices.shape[-1]
    _check_inner(shape, depth, indices.ndim - 1, depth, updates)


def _check_ranks(indices: Any, updates: Any) -> None:
    for name, x in (("Indices", indices), ("Updates", updates)):
        if not x.ndim:
            raise invalid(f"{name} shape must have rank at least one. Found:[]")


def _check_room(shape: Shape, indices: Any, updates: Any) -> None:
    if 0 in shape and indices.size and updates.size:
        raise invalid(f"Indices and updates specified for empty output.  indices shape: {shape_text(indices.shape)}")


def _check_outer(outer: int, indices: Any, updates: Any) -> None:
    if updates.shape[:outer] != indices.shape[:outer]:
        raise invalid(
            f"Dimensions [0,{outer}) of indices[shape={shape_text(indices.shape)}] must match dimensions [0,{outer}) "
            f"of updates[shape={shape_text(updates.shape)}]"
        )


def _check_inner(shape: Shape, depth: int, outer: int, named: int, updates: Any) -> None:
    """`named` is where TensorFlow says that the inner dimensions of the updates begin, which is `outer`."""
    if depth > len(shape) or updates.shape[outer:] != shape[depth:]:
        raise invalid(
            f"Dimensions [{depth},{len(shape)}) of input[shape={shape_text(shape)}] must match dimensions "
            f"[{named},{updates.ndim}) of updates[shape={shape_text(updates.shape)}]"
        )


def check_tensor(shape: Shape, indices: Any, updates: Any) -> None:
    """InvalidArgumentError if the updates can't be written into a tensor of that shape."""
    _check_ranks(indices, updates)
    if 0 in shape and indices.size and updates.size:
        raise invalid("Indices and updates specified for empty output shape")
    outer, depth = indices.ndim - 1, indices.shape[-1]
    if updates.shape[:outer] != indices.shape[:outer]:
        raise invalid(
            "Outer dimensions of indices and update must match. "
            f"Indices shape: {shape_text(indices.shape)}, updates shape:{shape_text(updates.shape)}"
        )
    if depth > len(shape) or updates.shape[outer:] != shape[depth:]:
        raise invalid(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {shape_text(shape)} updates: {shape_text(updates.shape)}"
        )
    check_variable(shape, indices, updates)

"""Which shapes of positions and updates fit what is written to: the rules of the ScatterNd family.

Stands for `ScatterNdUpdateShape` of `core/framework/common_shape_fns.cc` and the checks of
`core/kernels/scatter_nd_op.cc` and `scatter_nd_util.cc`.

Rule: with positions of shape [outer…, depth], updates have shape [outer…, what a position of `depth` sizes leaves…].
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.tensor_shape import TensorShape, in_a_rule
from dtflab.ops.messages import invalid, shape_text

Shape = tuple[int, ...]


def check_static(shape: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
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

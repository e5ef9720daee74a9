"""Rows with the same number, reduced to one by a ufunc: the kernels of the segment ops and of sparse ops.

Stands for the functors of `core/kernels/segment_reduction_ops.cc`. Holds no op.

Rule: where ids rise, a number that is left out is an empty segment, and its row is 0 (1 for a product). Where they come
in any order, an empty segment has what the reduction begins with: the smallest number for the largest element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.ops.array_module import scatterer
from dtflab.ops.messages import invalid, shape_text


def neutral(ufunc: str, dtype: DType, finite: bool = False) -> Any:
    """The value with which a reduction begins: for extremes an infinity, if the dtype has one, unless `finite`."""
    if ufunc in ("add", "multiply"):
        return int(ufunc == "multiply")
    if dtype.is_floating and not finite:
        return -np.inf if ufunc == "maximum" else np.inf
    return dtype.min if ufunc == "maximum" else dtype.max


def add_rows(out: Any, ids: Any, rows: Any, xp: Any, ufunc: str = "add") -> Any:
    """Add each of `rows` to the row of `out` (contiguous, its own) that `ids` names; the result is `out`.

    Or multiply it with that, or take the larger, as the ufunc does.
    """
    width, write = out[:1].size, scatterer(xp, ufunc)
    if width == 0:
        return out
    if out.ndim == 1:
        write(out, ids, rows)
        return out
    # NumPy has a fast loop for one axis only: three times as fast as adding rows.
    places = ids[:, None].astype(np.int64) * width + xp.arange(width)
    write(out.reshape(-1), places.reshape(-1), rows.reshape(-1))
    return out


def extreme_rows(out: Any, ids: Any, rows: Any, xp: Any, ufunc: str) -> Any:
    """`add_rows` with maximum or minimum, where `out` is what that begins with.

    As Eigen compares, any number takes the place of a NaN before it: only what follows a segment's last NaN counts.
    """
    if rows.dtype.kind in "iu" or not (nan := xp.isnan(rows)).any():
        return add_rows(out, ids, rows, xp, ufunc)
    at = xp.arange(1, len(rows) + 1)
    column = at.reshape(-1, *[1] * (rows.ndim - 1))
    last_nan = add_rows(xp.zeros(out.shape, np.int64), ids, xp.where(nan, column, 0), xp, "maximum")
    last = add_rows(xp.zeros(len(out), np.int64), ids, at, xp, "maximum").reshape(-1, *column.shape[1:])
    counted = xp.where(column > last_nan[ids], rows, out[ids])
    return xp.where((last_nan == last) & (last > 0), out.dtype.type(np.nan), add_rows(out, ids, counted, xp, ufunc))


def _reducer(ufunc: str) -> Callable[..., Any]:
    return extreme_rows if ufunc in ("maximum", "minimum") else add_rows


def count_segments(data: Any, ids: Any) -> int:
    """How many segments there are; InvalidArgumentError unless the ids rise and there is one for each row."""
    if len(ids) != len(data):
        raise invalid("segment_ids should be the same size as dimension 0 of input.")
    if (ids[1:] < ids[:-1]).any() or (ids[:1] < 0).any():
        raise invalid("segment ids are not increasing")
    return int(ids[-1]) + 1 if len(ids) else 0


def sorted_rule(ufunc: str, empty: Any) -> Callable[..., Any]:
    """A `bind` rule for ids that rise: rows with the same id reduced by a ufunc, `empty` where there is none."""
    reduce = _reducer(ufunc)

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        start = neutral(ufunc, node["T"])

        def kernel(data: Any, ids: Any) -> Any:
            count = count_segments(data, ids)
            out = reduce(xp.full((count, *data.shape[1:]), start, data.dtype), ids, data, xp, ufunc)
            if start != empty:
                out[xp.bincount(ids, minlength=count) == 0] = empty
            return out

        return kernel

    return bind


def unsorted_rule(ufunc: str) -> Callable[..., Any]:
    """A `bind` rule for ids in any order: the rows with the same id reduced by a ufunc; negative ids are dropped."""
    reduce = _reducer(ufunc)

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        dtype, start = node["T"].as_numpy_dtype, neutral(ufunc, node["T"], finite=True)

        def kernel(data: Any, ids: Any, segments: Any) -> Any:
            count = int(segments)
            if np.shape(data)[: np.ndim(ids)] != np.shape(ids):
                text = f"segment_ids.shape = {shape_text(ids)}"
                raise invalid(f"data.shape = {shape_text(data)} does not start with {text}")
            rows = data.reshape(ids.size, *np.shape(data)[np.ndim(ids) :])
            flat = ids.reshape(-1)
            if (flat >= count).any():
                at = int((flat >= count).argmax())
                raise invalid(f"segment_ids[{at}] = {flat[at]} is out of range [0, {count})")
            if (flat < 0).any():
                rows, flat = rows[flat >= 0], flat[flat >= 0]
            return reduce(xp.full((count, *rows.shape[1:]), start, dtype), flat, rows, xp, ufunc)

        return kernel

    return bind

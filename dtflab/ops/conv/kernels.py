"""The kernels of convolutions, over arrays [batch, sizes, channels]: convolve, back to the input, back to the filter.

Stands for `core/kernels/eigen_spatial_convolutions-inl.h` and its neighbours; the ops are in `convolution.py`. Left
out: direct and Winograd's algorithms.

Rule: a convolution is a product of matrices per block of images, of which the windows are laid out side by side;
the intra-op threads share the images, or the rows of a single one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.ops import windows
from dtflab.ops.blas import NANOSECONDS_PER_FLOP, Shard, alone
from dtflab.ops.messages import invalid, shape_text

SCRATCH = 1 << 21  # bytes of windows that are laid out at a time; with less, threads wait for Python's lock


class _Plan:
    """How a convolution becomes products: sizes of the matrices, and the blocks of units (images, mostly)."""

    def __init__(
        self, xp: Any, axes: Sequence[windows.Axis], places: int, depth: int, filters: int, itemsize: int
    ) -> None:
        self.places = places  # windows per unit
        self.positions = math.prod(a.window for a in axes)
        self.inner = self.positions * depth
        self.cost = 2 * places * self.inner * filters * itemsize / 4 * NANOSECONDS_PER_FLOP
        room = SCRATCH if xp is np else SCRATCH << 7
        self.block = max(1, room // max(1, places * self.inner * itemsize))

    def blocks(self, first: int, last: int) -> Iterator[tuple[slice, int]]:
        """Slices of units, and how many windows are in each."""
        for i in range(first, last, self.block):
            some = slice(i, min(i + self.block, last))
            yield some, (some.stop - i) * self.places


def _units(xp: Any, axes: Sequence[windows.Axis], x: Any, other: Any) -> tuple[Callable[[slice], Any], Any, int]:
    """The units that threads share: images, or the rows of a single one.

    Gives a function for the windows of some units as a matrix with a row each, the units of `other`, an array with
    the outs, and how many windows are in a unit.
    """
    first, *rest = windows.outs(axes)
    if len(x) == 1 and rest:
        seen = windows.patches(xp, x, axes)[0]
        return lambda rows: _laid_out(xp, seen[rows], len(axes) + 1), other[0], math.prod(rest)
    one_by_one = lambda images: _laid_out(xp, windows.patches(xp, x[images], axes), len(axes) + 1)  # noqa: E731
    return one_by_one, other, first * math.prod(rest)


def _laid_out(xp: Any, seen: Any, within: int) -> Any:
    """Windows as a matrix with a row each; `within` counts the dimensions of a window, with the channels.

    With one channel a row of a window is a few numbers, but a row of the image many. Then it is made by columns.
    """
    if seen.shape[-1] > 1:
        return seen.reshape(-1, math.prod(seen.shape[-within:]))
    seen = xp.moveaxis(seen, range(-within, 0), range(within))
    return seen.reshape(math.prod(seen.shape[:within]), -1).T


def convolve(xp: Any, shard: Shard, x: Any, w: Any, axes: Sequence[windows.Axis]) -> Any:
    """Each window of `x` times the filters: [batch, outs, filters]."""
    depth, filters = w.shape[-2:]
    out = xp.empty((len(x), *windows.outs(axes), filters), x.dtype)
    laid_out, parts, places = _units(xp, axes, x, out)
    plan = _Plan(xp, axes, places, depth, filters, x.itemsize)
    matrix = w.reshape(plan.inner, filters)

    def work(first: int, last: int) -> None:
        for some, rows in plan.blocks(first, last):
            xp.matmul(laid_out(some), matrix, out=parts[some].reshape(rows, filters))

    shard(len(parts), plan.cost, work)
    return out


def convolve_back(xp: Any, shard: Shard, dy: Any, w: Any, axes: Sequence[windows.Axis]) -> Any:
    """The gradient by the input: what each output sends back through its window, added up.

    Along the last axis, if the filter moves there in steps of 1, that is a convolution with the filter turned round.
    """
    depth, filters = w.shape[-2:]
    seen, along = [windows.Axis(n, 1, 1, 1, 0, 0, n) for n in windows.outs(axes)], axes[-1].turned()
    if filters <= 4 * depth and along.before >= 0 and along.after >= 0 and along.stride == 1:
        back, outer, seen[-1] = xp.moveaxis(xp.flip(w, -3), (-3, -1), (0, 1)), axes[:-1], along
    else:
        back, outer = xp.moveaxis(w, -1, 0), axes
    plan = _Plan(xp, outer, math.prod(windows.outs(seen)), depth, filters * seen[-1].window, dy.itemsize)
    back = back.reshape(*(a.window for a in seen), filters, plan.inner)
    dx = xp.zeros((len(dy), *(a.size for a in axes), depth), dy.dtype)

    def work(first: int, last: int) -> None:
        for some, _ in plan.blocks(first, last):
            sent = convolve(xp, alone if len(dy) > 1 else shard, dy[some], back, seen)
            sent = sent.reshape(*sent.shape[:-1], plan.positions, depth)
            for k, (_, there, here) in enumerate(windows.positions(outer)):
                dx[some][(slice(None), *there)] += sent[(slice(None), *here)][..., k, :]

    shard(len(dy), plan.cost, work)
    return dx


def correlate(xp: Any, shard: Shard, x: Any, dy: Any, axes: Sequence[windows.Axis]) -> Any:
    """The gradient by the filters: all windows, transposed, times the gradients of their outputs."""
    depth, filters = x.shape[-1], dy.shape[-1]
    laid_out, grads, places = _units(xp, axes, x, dy)
    plan = _Plan(xp, axes, places, depth, filters, x.itemsize)
    totals: dict[int, Any] = {}  # one per part, by its first unit, so that they are added in order

    def work(first: int, last: int) -> None:
        totals[first] = total = xp.zeros((plan.inner, filters), x.dtype)
        for some, rows in plan.blocks(first, last):
            total += xp.matmul(laid_out(some).T, grads[some].reshape(rows, filters))

    shard(len(grads), plan.cost, work)
    return sum(totals[first] for first in sorted(totals)).reshape(*(a.window for a in axes), depth, filters)


def channels_last(xp: Any, node: Node, x: Any) -> Any:
    """`x` as the kernels want it; the short floats as float32."""
    x = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    return xp.moveaxis(x, 1, -1) if windows.is_channels_first(node) else x


def as_asked(xp: Any, node: Node, y: Any) -> Any:
    """A result with channels last in the format and the type of `node`."""
    y = xp.ascontiguousarray(xp.moveaxis(y, -1, 1)) if windows.is_channels_first(node) else y
    return y.astype(node["T"].as_numpy_dtype, copy=False)


def wide(w: Any) -> Any:
    """Filters, the short floats as float32."""
    return w.astype(np.float32) if w.dtype.itemsize == 2 else w


def axes_of(node: Node, sizes: Sequence[int], window: Sequence[int]) -> list[windows.Axis]:
    """How the filter of `node` moves; InvalidArgumentError or UnimplementedError if it can't."""
    windows.check_not_over_batch_and_depth(node)
    paddings = windows.pairs(node.attrs.get("explicit_paddings") or [], len(sizes) + 2)
    ways = (windows.spatial(node, values) for values in (node["strides"], node["dilations"], paddings))
    dims, padding = zip(sizes, window, *ways), node["padding"]
    return [windows.axis(*each, padding=padding, explicit=explicit) for *each, explicit in dims]


def check_ranks(node: Node, x: Any, w: Any) -> None:
    """InvalidArgumentError unless there is a dimension for each stride."""
    ndims = len(node["strides"])
    for name, value in (("input", x), ("filter", w)):
        if len(value.shape) != ndims:
            raise invalid(f"{name} must be {ndims}-dimensional: {shape_text(value)}")


def groups_of(depth: int, per_filter: int, filters: int) -> int:
    """How many groups of channels are convolved side by side: one, mostly."""
    if not per_filter or depth % per_filter:
        raise invalid(f"input depth must be evenly divisible by filter depth: {depth} vs {per_filter}")
    groups = depth // per_filter
    if groups and filters % groups:
        raise invalid(f"output depth must be evenly divisible by number of groups: {filters} vs {groups}")
    return max(groups, 1)


def by_groups(xp: Any, kernel: Callable[..., Any], groups: int, *arrays: Any) -> Any:
    """`kernel` over each group of channels, the last dimension of each array."""
    if groups == 1:
        return kernel(*arrays)
    parts = [xp.split(a, groups, axis=-1) for a in arrays]
    return xp.concatenate([kernel(*some) for some in zip(*parts)], axis=-1)


def check_gradient(dy: Any, batch: int, axes: Sequence[windows.Axis], filters: int) -> None:
    """InvalidArgumentError unless `dy` [batch, outs, filters] is what the convolution gave."""
    wanted = (batch, *windows.outs(axes), filters)
    if dy.shape != wanted:
        text = f"{shape_text(wanted)}, got {shape_text(dy)}"
        raise invalid(f"out_backprop must be of the shape of the convolution, {text}")


def sizes_of(node: Node, sizes: Any, dy: Any, w: Any) -> tuple[int, ...]:
    """`input_sizes` as a shape: all of it, or only height and width."""
    dims = tuple(int(n) for n in sizes)
    if len(dims) == dy.ndim - 2:
        whole = (dy.shape[0], w.shape[-2], *dims) if windows.is_channels_first(node) else None
        return whole or (dy.shape[0], *dims, w.shape[-2])
    if len(dims) != dy.ndim:
        raise invalid(f"input_sizes must hold {dy.ndim} or {dy.ndim - 2} values, not {len(dims)}")
    return dims

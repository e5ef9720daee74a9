"""The kernels of pooling, over arrays of any number of dimensions: largest, mean, and the ways back.

Stands for `core/kernels/{eigen_pooling,maxpooling_op,pooling_ops_common}.h`; the ops are in `pooling.py`. Left out:
quantized values.

Rule: one pass over the input for each position in the window; the windows move over all dimensions of the array, and so
each format is the same to a kernel. A pass is bound by memory, so a second thread gains nothing. Of several equal
largest values the first one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph.dtypes import as_dtype
from dtflab.ops import windows


def largest(xp: Any, x: Any, axes: Sequence[windows.Axis]) -> Any:
    """The largest that each window sees."""
    y = xp.full((len(x), *windows.outs(axes)), as_dtype(x.dtype).min, x.dtype)
    for _, there, here in windows.positions(axes):
        part = y[(slice(None), *here)]
        xp.maximum(part, x[(slice(None), *there)], out=part)
    return y


def _each_chosen(xp: Any, axes: Sequence[windows.Axis], x: Any, y: Any) -> Any:
    """For each position in the window: the places in x and in y, and where y was found there first."""
    free = xp.ones(y.shape, bool)
    for _, there, here in windows.positions(axes):
        there, here = (slice(None), *there), (slice(None), *here)
        chosen = x[there] == y[here]
        chosen &= free[here]
        free[here] ^= chosen
        yield there, here, chosen


def to_largest(xp: Any, x: Any, y: Any, dy: Any, axes: Sequence[windows.Axis]) -> Any:
    """The gradient of `largest`: each output's gradient, at the place of its value."""
    dx = xp.zeros(x.shape, dy.dtype)
    apart = all(a.stride >= a.window for a in axes)
    for there, here, chosen in _each_chosen(xp, axes, x, y):
        sent = windows.masked(chosen, dy[here])
        dx[there] = sent if apart else dx[there] + sent
    return dx


def from_largest(xp: Any, x: Any, y: Any, dx: Any, axes: Sequence[windows.Axis]) -> Any:
    """The gradient of that gradient: what stands at the place of each largest value."""
    dy = xp.zeros(y.shape, dx.dtype)
    for there, here, chosen in _each_chosen(xp, axes, x, y):
        dy[here] += windows.masked(chosen, dx[there])
    return dy


def _counts(xp: Any, axes: Sequence[windows.Axis], dtype: Any) -> Any:
    """How many elements each window sees: padding does not count."""
    counts = np.ones((), dtype)
    for i, a in enumerate(axes):
        along = np.zeros(a.out, dtype)
        for k in range(a.window):
            along[a.reach(k)[1]] += 1
        counts = counts * along.reshape((-1,) + (1,) * (len(axes) - 1 - i))
    return xp.asarray(counts)


def mean(xp: Any, x: Any, axes: Sequence[windows.Axis]) -> Any:
    """The mean of what each window sees; of short floats in float32."""
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    y, counts = xp.zeros((len(x), *windows.outs(axes)), wide), _counts(xp, axes, wide)
    for _, there, here in windows.positions(axes):
        y[(slice(None), *here)] += x[(slice(None), *there)]
    y /= counts
    return y.astype(x.dtype, copy=False)


def spread(xp: Any, dy: Any, axes: Sequence[windows.Axis]) -> Any:
    """The gradient of `mean`: an equal part of each output for all that its window sees."""
    wide = np.float32 if dy.dtype.itemsize == 2 else dy.dtype
    dx, counts = xp.zeros((len(dy), *(a.size for a in axes)), wide), _counts(xp, axes, wide)
    shares = dy / counts
    for _, there, here in windows.positions(axes):
        dx[(slice(None), *there)] += shares[(slice(None), *here)]
    return dx.astype(dy.dtype, copy=False)


def places_of_largest(xp: Any, x: Any, axes: Sequence[windows.Axis], with_batch: bool, dtype: Any) -> tuple[Any, Any]:
    """The largest that each window sees, and its number in its image, or in the batch."""
    y = largest(xp, x, axes)
    size = x.size if with_batch else x.size // max(len(x), 1)
    numbers = xp.broadcast_to(xp.arange(size, dtype=dtype).reshape(-1, *x.shape[1:]), x.shape)
    places = xp.zeros(y.shape, dtype)
    for there, here, chosen in _each_chosen(xp, axes, x, y):
        places[here] += numbers[there] * chosen
    return y, places

"""Where the pixels of a resized image come from: along one axis, the old ones and their weights.

Stands for `core/util/image_resizer_state.h` and the tables in `core/kernels/image/resize_*_op.cc`.

Rule: height and width are resized independently. Along each, a new pixel is a weighted sum of a few old ones, its
taps; after that, resizing only gathers rows and adds them up. Positions are float32, as in TensorFlow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Taps = list[tuple[Any, Any]]  # for each tap: the old pixel of each new one (int64), and its weight (float32)


class Axis(NamedTuple):
    """One axis of an image before and after, and how the two grids are aligned."""

    size: int
    out: int
    align_corners: bool = False
    half_pixel_centers: bool = False

    @property
    def scale(self) -> Any:
        """How far apart new pixels are on the old grid."""
        if self.align_corners and self.out > 1 and self.size > 1:
            return np.float32(self.size - 1) / np.float32(self.out - 1)
        return np.float32(self.size) / np.float32(self.out)

    def positions(self, xp: Any) -> Any:
        """Where the new pixels are on the old grid, an old pixel being at its number."""
        x = xp.arange(self.out, dtype=xp.float32)
        return (x + 0.5) * self.scale - 0.5 if self.half_pixel_centers else x * self.scale

    def inside(self, xp: Any, index: Any) -> Any:
        """The numbers, clipped to old pixels that exist."""
        return xp.clip(index, 0, self.size - 1).astype(xp.int64)


def nearest(xp: Any, axis: Axis) -> Any:
    """The old pixel that each new one copies."""
    places = axis.positions(xp) + 0.5 if axis.half_pixel_centers else axis.positions(xp)
    whole = xp.floor(places)
    if axis.align_corners:  # round, halves up: adding a half before floor would take 0.49999997 for 1
        whole += places - whole >= 0.5
    return axis.inside(xp, whole)


def bilinear(xp: Any, axis: Axis) -> tuple[Any, Any, Any]:
    """The old pixels on both sides of each new one, and how far it is from the lower to the upper."""
    places = axis.positions(xp)
    whole = xp.floor(places)
    return axis.inside(xp, whole), axis.inside(xp, xp.ceil(places)), places - whole


def bilinear_taps(xp: Any, axis: Axis) -> Taps:
    lower, upper, part = bilinear(xp, axis)
    return [(lower, 1 - part), (upper, part)]


def bicubic_taps(xp: Any, axis: Axis) -> Taps:
    """The four old pixels around each new one, weighed by a cubic: with half pixels Keys' one, the edges cut off."""
    keys = axis.half_pixel_centers
    places = axis.positions(xp)
    whole = xp.floor(places)
    weights = [w.astype(xp.float32) for w in _cubics(xp, places - whole, -0.5 if keys else -0.75)]
    wanted = [whole + i for i in (-1, 0, 1, 2)]
    indices = [axis.inside(xp, i) for i in wanted]
    if keys:
        weights = [w * (i == want) for w, i, want in zip(weights, indices, wanted)]
        whole_weight = 1 / sum(weights)
        weights = [w * whole_weight for w in weights]
    return list(zip(indices, weights))


def _cubics(xp: Any, part: Any, a: float) -> list[Any]:
    """The weights of the pixels at -1, 0, 1, 2, seen from `part` in [0, 1), which counts in steps of 1/1024."""
    part = xp.rint(part * 1024).astype(xp.float64) / 1024

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


def area_taps(xp: Any, axis: Axis) -> Taps:
    """The old pixels that each new one covers, weighed by how much of them it covers."""
    x = xp.arange(axis.out + 1, dtype=xp.float32) * axis.scale
    begin, end = x[:-1], x[1:]
    first = xp.floor(begin)
    most = int((xp.ceil(end) - first).max())
    pixels = [first + i for i in range(most)]
    covered = [xp.clip(xp.minimum(end, p + 1) - xp.maximum(begin, p), 0, 1) for p in pixels]
    return [(axis.inside(xp, p), w) for p, w in zip(pixels, covered)]


def along(values: Any, axis: int) -> Any:
    """A number per pixel of an axis, to be multiplied with images [batch, height, width, channels]."""
    return values.reshape(-1, *[1] * (3 - axis))


def weighted(x: Any, taps: Taps, axis: int) -> Any:
    """The new pixels along an axis, as float32."""
    return sum(x.take(index, axis).astype(np.float32) * along(weight, axis) for index, weight in taps)


def back(xp: Any, dy: Any, taps: tuple[Taps, Taps], sizes: tuple[int, int]) -> Any:
    """The gradient: each new pixel's goes to its old ones, by one matrix product per axis."""
    for axis, size, some in zip((1, 2), sizes, taps):
        pixels = xp.arange(size)[:, None]
        matrix = sum((pixels == index) * weight.astype(dy.dtype) for index, weight in some)
        dy = xp.moveaxis(xp.tensordot(matrix, dy, (1, axis)), 0, axis)
    return dy

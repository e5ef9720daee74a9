"""Colours and sizes of images. Files of images are compared by their pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples

IN_PROGRAMS = dict.fromkeys(("DecodePng", "EncodePng"), "tests/files/oracle/test_images.py")


def _colors(v: Values) -> list[np.ndarray]:
    """Images, with greys, and pure and mixed colours among their pixels."""
    few = np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    return [v.within(0.05, 1, 2, 3, 3), v.within(0, 1, 2, 2, 1, 3), few[None].astype(v.dtype.as_numpy_dtype)]


@examples("AdjustContrastv2", "AdjustHue", "AdjustSaturation")
def adjusting(v: Values) -> list[Example]:
    images = [*_colors(v), v.within(0, 1, 0, 2, 3)]
    amounts = [0.3, -0.9, 0.0] if v.op == "AdjustHue" else [0.3, 1.7, 0.0]
    return [v(image, np.float32(amount)) for image in images for amount in amounts]


@examples("RGBToHSV", "HSVToRGB")
def color_spaces(v: Values) -> list[Example]:
    some, batch, few = _colors(v)
    return [v(some), v(batch), v(few, smooth=False), v(v.within(0.1, 0.9, 3))]


_WAYS: list[dict[str, bool]] = [{}, {"align_corners": True}, {"half_pixel_centers": True}]
_SIZES = [((2, 3, 4, 2), (6, 8)), ((1, 2, 2, 3), (4, 4)), ((1, 4, 6, 1), (2, 3)), ((0, 2, 2, 1), (4, 4))]
# Positions that float32 has no exact number for; the double of TensorFlow's gradients is a sum of float32.
_UNEVEN = [((1, 5, 7, 3), (3, 11)), ((2, 3, 3, 1), (1, 7)), ((1, 1, 1, 2), (3, 2)), ((1, 9, 4, 1), (2, 4))]


def _resizings(v: Values) -> list[tuple[tuple[int, ...], np.ndarray, dict[str, bool]]]:
    ways = _WAYS[:1] if v.dtype == dtypes.float64 and v.op.startswith("ResizeBilinear") else _WAYS
    sizes = _SIZES[:3] if v.dtype == dtypes.float64 else _SIZES + _UNEVEN
    return [(shape, np.array(size, np.int32), way) for shape, size in sizes for way in ways]


@examples("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
def resizing(v: Values) -> list[Example]:
    return [v(v.array(*shape), size, **way) for shape, size, way in _resizings(v)]


@examples("ResizeArea")
def resizing_by_area(v: Values) -> list[Example]:
    return [
        v(v.positive(*shape), np.array(size, np.int32), align_corners=aligned)
        for shape, size in _SIZES + _UNEVEN
        for aligned in (False, True)
    ]


def _quarters(v: Values, *shape: int) -> np.ndarray:
    """Positive numbers of which sums in 16 bits are exact, and no sum is small by cancelling."""
    few: np.ndarray = np.round(v.positive(*shape).astype(np.float32) * 4) / 4
    return few.astype(v.dtype.as_numpy_dtype)


@examples("ResizeNearestNeighborGrad")
def resizing_back(v: Values) -> list[Example]:
    return [
        v(_quarters(v, shape[0], *size, shape[3]), np.array(shape[1:3], np.int32), **w)
        for shape, size, w in _resizings(v)
    ]


@examples("ResizeBilinearGrad", "ResizeBicubicGrad")
def resizing_smoothly_back(v: Values) -> list[Example]:
    single = Values(v.op, dtypes.float32)
    return [
        v(_quarters(single, shape[0], *size, shape[3]), v.array(*shape), **way) for shape, size, way in _resizings(v)
    ]


# The second one is upside down, the third reaches out of the image.
_BOXES = np.array([[0.1, 0.2, 0.7, 0.9], [0.8, 0.1, 0.3, 0.6], [-0.3, 0.15, 0.65, 1.4]], np.float32)
_OF = np.array([1, 0, 1], np.int32)


@examples("CropAndResize")
def crops(v: Values) -> list[Example]:
    image = v.positive(2, 5, 6, 2)
    sizes = [np.array(size, np.int32) for size in ((3, 4), (1, 2))]
    ways: list[dict[str, Any]] = [{}, {"method": "nearest", "extrapolation_value": 2.5}]
    # The gradient by the image is a sum of float32, even for double: tests/ops/oracle/test_image_functions.py has it.
    return [v(image, _BOXES, _OF, size, gradient=False, **way) for size in sizes for way in ways]


@examples("CropAndResizeGradImage")
def crops_back(v: Values) -> list[Example]:
    size, exact = np.array([2, 5, 9, 2], np.int32), np.array([[0, 0.25, 1, 0.75], [1, 0, 0.5, 0.5]], np.float32)
    grads = _quarters(Values(v.op, dtypes.float32), 2, 3, 5, 2)
    return [v(grads, exact, _OF[:2], size, method=method, T=v.dtype) for method in ("bilinear", "nearest")]


@examples("CropAndResizeGradBoxes")
def crops_back_to_boxes(v: Values) -> list[Example]:
    single = Values(v.op, dtypes.float32)
    down, across = np.arange(5)[:, None, None], np.arange(6)[:, None]
    slope = np.broadcast_to(down**2 + 2 * across, (2, 5, 6, 2)).astype(v.dtype.as_numpy_dtype)  # no cancelling
    return [v(_quarters(single, 3, *size, 2), slope, _BOXES, _OF) for size in ((3, 4), (1, 2))]

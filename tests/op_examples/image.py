"""Colours and sizes of images. Files of images are compared by their pixels."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples

IN_PROGRAMS = dict.fromkeys(("DecodePng", "EncodePng"), "tests/oracle/test_images.py")


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

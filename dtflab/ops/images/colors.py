"""The ops that change contrast, hue and saturation, and those between RGB and HSV.

Stands for `core/kernels/image/{adjust_contrast,adjust_hue,adjust_saturation,colorspace}_op.cc` and the gradient of
RGBToHSV in `python/ops/image_grad.py`. Left out: the older AdjustContrast.

Rule: the channels are the last dimension, and red, green and blue are views of the pixels there.
"""

from __future__ import annotations

from typing import Any

from dtflab.base.errors import FailedPreconditionError
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_input
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.type_sets import FLOAT


class _OnImages(Op):
    """An op on images and a scalar."""

    flops = per_input(10)

    def infer(op):
        images, scalar = op.inputs
        scalar.shape.with_rank(0)
        return [images.shape.with_rank_at_least(3)]


def _check(images: Any, scalar: Any, what: str, channels: int | None) -> None:
    if images.ndim < 3:
        raise invalid(f"input must be at least 3-D, got shape{shape_text(images)}")
    if scalar.ndim:
        raise invalid(f"{what} must be scalar: {shape_text(scalar)}")
    if channels is not None and images.shape[-1] != channels:
        raise invalid(f"input must have {channels} channels but instead has {images.shape[-1]} channels.")


@op("AdjustContrastv2(images: T, contrast_factor: float) -> (output: T) where T: {half, float} = float")
class AdjustContrastv2(_OnImages):
    """(x - mean) * factor + mean, the mean being that of the image's channel."""

    def kernel(node, xp, images, factor):
        _check(images, factor, "contrast_factor", None)
        x = images.astype(xp.float32)
        mean = x.mean((-3, -2), keepdims=True) if x.size else x
        return ((x - mean) * factor + mean).astype(images.dtype)


@op("AdjustHue(images: T, delta: float) -> (output: T) where T: {half, float} = float")
class AdjustHue(_OnImages):
    """Each colour turned by delta around the circle of hues; its darkest and brightest channel stay as they are."""

    def kernel(node, xp, images, delta):
        _check(images, delta, "delta", 3)
        colors = images.astype(xp.float32)
        low, high = colors.min(-1), colors.max(-1)
        hue = (_hue(xp, colors, low, high) + delta * 6) % 6
        return (low[..., None] + (high - low)[..., None] * _pure(xp, hue)).astype(images.dtype)


@op("AdjustSaturation(images: T, scale: float) -> (output: T) where T: {half, float} = float")
class AdjustSaturation(_OnImages):
    """Each colour with its saturation times a scale, at most 1; hue and value stay as they are."""

    def kernel(node, xp, images, scale):
        _check(images, scale, "scale", 3)
        colors = images.astype(xp.float32)
        low, value = colors.min(-1), colors.max(-1)
        saturation = xp.clip(_saturation(xp, low, value) * scale, 0, 1)
        chroma = saturation * value
        pure = _pure(xp, _hue(xp, colors, low, value))
        return ((value - chroma)[..., None] + chroma[..., None] * pure).astype(images.dtype)


def _saturation(xp: Any, low: Any, value: Any) -> Any:
    """The range of the channels relative to the brightest; 0 for what is not brighter than black."""
    bright = value > 0
    return xp.where(bright, (value - low) / xp.where(bright, value, 1), 0)


def _hue(xp: Any, colors: Any, low: Any, high: Any) -> Any:
    """The place on the circle of hues, from 0 (red) over 2 (green) and 4 (blue) to below 6; 0 for grey."""
    red, green, blue = colors[..., 0], colors[..., 1], colors[..., 2]
    colored = high > low
    per = 1 / xp.where(colored, high - low, 1)
    others = xp.where(green == high, (blue - red) * per + 2, (red - green) * per + 4)
    hue = xp.where(colored, xp.where(red == high, (green - blue) * per, others), 0)
    return xp.where(hue < 0, hue + 6, hue)


def _pure(xp: Any, hue: Any) -> Any:
    """The colours of these hues with channels from 0 to 1."""
    channels = [abs(hue - 3) - 1, 2 - abs(hue - 2), 2 - abs(hue - 4)]
    return xp.clip(xp.stack(channels, -1), 0, 1)


class _BetweenSpaces(Op):
    """An op from colours to colours."""

    flops = per_input(10)

    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(1)
        shape[-1].assert_is_compatible_with(3)
        return [shape[:-1].concatenate(TensorShape([3]))]


def _check_channels(x: Any) -> None:
    if not x.ndim:
        raise invalid(f"input must be at least 1D{shape_text(x)}")
    if x.shape[-1] != 3:
        text = f"input must have 3 channels but input only has {x.shape[-1]} channels."
        raise FailedPreconditionError.of(text)


@op(f"RGBToHSV(images: T) -> (output: T) where T: {FLOAT} = float")
class RGBToHSV(_BetweenSpaces):
    """Hue, saturation and value, all from 0 to 1."""

    def kernel(node, xp, images):
        _check_channels(images)
        low, value = images.min(-1), images.max(-1)
        hue = _hue(xp, images, low, value) / 6
        return xp.stack([hue, _saturation(xp, low, value), value], -1).astype(images.dtype)

    def grad(op, dy):
        x = op.inputs[0]
        high, low = reduce.reduce_max(x, -1, keepdims=True), reduce.reduce_min(x, -1, keepdims=True)
        is_high = _one_hot(reduce.argmax(x, -1), x.dtype)
        is_low = _one_hot(2 - reduce.argmin(arrays.reverse(x, [-1]), -1), x.dtype)
        dhue, dsaturation, dvalue = (dy[..., i : i + 1] for i in range(3))
        # With the brightest channel's two successors on the circle, hue = constant + (next - last) / range / 6.
        is_next, is_last = _rolled(is_high), _rolled(_rolled(is_high))
        per = math.div_no_nan(arrays.cast(1.0, x.dtype), high - low) / 6
        slope = math.div_no_nan(reduce.reduce_sum((is_next - is_last) * x, -1, keepdims=True), high - low)
        by_hue = per * (is_next - is_last - slope * (is_high - is_low))
        # saturation = 1 - low / high; TensorFlow lets no gradient through to a channel that is 0.
        by_saturation = math.div_no_nan(is_high * math.div_no_nan(low, high) - is_low, high)
        by_saturation *= arrays.cast(x > 0, x.dtype)
        return [dvalue * is_high + dsaturation * by_saturation + dhue * by_hue]


def _one_hot(places: Tensor, dtype: DType) -> Any:
    return indexing.one_hot(places, 3, dtype=dtype)


def _rolled(channels: Any) -> Any:
    """Each channel's value at the next one."""
    return arrays.concat([channels[..., 2:], channels[..., :2]], -1)


@op(f"HSVToRGB(images: T) -> (output: T) where T: {FLOAT} = float")
class HSVToRGB(_BetweenSpaces):
    """Red, green and blue of a hue (0 to 1), a saturation and a value."""

    grad = no_gradient

    def kernel(node, xp, images):
        _check_channels(images)
        hue, saturation, value = (images[..., i, None] for i in range(3))
        pure = _pure(xp, hue[..., 0] * 6)
        return ((1 - saturation + saturation * pure) * value).astype(images.dtype)

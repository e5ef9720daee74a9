"""Light and colours of images changed, by a given amount or at random, and images standardized.

Stands for that part of `python/ops/image_ops_impl.py`. Left out: the stateless forms and the quality of JPEG.

Rule: the work is done in floats, and the result is of the image's type again.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.images.checks import checked, grayscale, require
from dtflab.ops.images.dtype import convert_image_dtype, in_floats
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce, functions as statistics
from dtflab.ops.sampling import draws as random


def per_image_standardization(image: Any) -> Tensor:
    """`image` [height, width, channels], or each of a batch, shifted and scaled to mean 0 and variance 1, as float32.

    The deviation counts as at least 1/sqrt(number of values), so that an image of one colour gives zeros.
    """
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = checked(convert_to_tensor(image, name="image"))
        image = arrays.cast(image, dtypes.float32)
        sizes: Any = arrays.shape(image)
        count = reduce.reduce_prod(sizes[-3:])
        mean = reduce.reduce_mean(image, axis=[-1, -2, -3], keepdims=True)
        deviation = statistics.reduce_std(image, axis=[-1, -2, -3], keepdims=True)
        least = math.rsqrt(arrays.cast(count, dtypes.float32))
        deviation = math.maximum(deviation, least)
        image -= mean
        return math.divide(image, deviation, name=scope)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """`image` with the scalar `delta` added to each value; integers count as 0 to 1, and are saturated."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        image = convert_to_tensor(image, name="image")
        floats = in_floats(image)
        adjusted = math.add(floats, arrays.cast(delta, floats.dtype), name=scope)
        return convert_image_dtype(adjusted, image.dtype, saturate=True)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a random amount in [-max_delta, max_delta)."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random.random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """`images` [..., height, width, channels] with each value's distance from its channel's mean times a scalar."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        images = convert_to_tensor(images, name="images")
        adjusted = apply_op("AdjustContrastv2", scope, images=in_floats(images), contrast_factor=contrast_factor)
        return convert_image_dtype(adjusted, images.dtype, saturate=True)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a random factor in [lower, upper)."""
    return adjust_contrast(image, _random_factor(lower, upper, seed))


def _random_factor(lower: float, upper: float, seed: int | None) -> Tensor:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return random.random_uniform([], lower, upper, seed=seed)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """`image` [..., 3] of red, green and blue with the hue turned by `delta` of a circle, a scalar in [-1, 1]."""
    return _adjusted("AdjustHue", "adjust_hue", image, name, delta=delta)


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a random amount in [-max_delta, max_delta); `max_delta` is at most 0.5."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random.random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """`image` [..., 3] of red, green and blue with the saturation times a scalar."""
    return _adjusted("AdjustSaturation", "adjust_saturation", image, name, scale=saturation_factor)


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a random factor in [lower, upper)."""
    return adjust_saturation(image, _random_factor(lower, upper, seed))


def _adjusted(op_type: str, scope: str, image: Any, name: str | None, **amount: Any) -> Tensor:
    with name_scope(name, scope, [image]):
        image = convert_to_tensor(image, name="image")
        return convert_image_dtype(apply_op(op_type, images=in_floats(image), **amount), image.dtype)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """`gain * image ** gamma`; integers count as 0 to 1, and are saturated. ValueError if `gamma` is negative."""
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        image = convert_to_tensor(image, name="image")
        floats: Any = in_floats(image)
        required = require(gamma >= 0, "Gamma should be a non-negative real number.")
        gamma = with_dependencies(required, gamma) if required else gamma
        return convert_image_dtype(gain * floats**gamma, image.dtype, saturate=True)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """`images` [..., 3] of red, green and blue as [..., 1], weighed as the eye does."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        floats = convert_image_dtype(images, dtypes.float32)
        gray = linalg.tensordot(floats, [0.2989, 0.587, 0.114], [-1, -1])
        return convert_image_dtype(arrays.expand_dims(gray, -1), images.dtype, name=scope)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """`images` [..., 1] with the one channel three times."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        images = with_dependencies(grayscale(images), images)
        before: Any = arrays.rank(images)
        count = arrays.expand_dims(before - 1, 0)
        times = [arrays.ones(count, dtypes.int32), arrays.expand_dims(3, 0)]
        rgb = arrays.tile(images, arrays.concat(times, 0), name=scope)
        rgb.set_shape(images.shape[:-1].concatenate([3]))
        return rgb

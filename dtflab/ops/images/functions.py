"""Images changed pixel by pixel, measured, cut, read and written: light and colours, flips, measures, boxes, files.

Stands for that part of `python/ops/image_ops_impl.py`; sizes are in `sizes.py`. Left out: the stateless
forms, which TF1 does not export, SSIM, the quality of JPEG.

Rule: an image is [height, width, channels], or a batch of these; if its rank is unknown the step decides. Floats are
between 0 and 1, integers between 0 and the largest of their type; colours are changed in floats, and the result is of
the image's type again.
"""

from __future__ import annotations

import functools
import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.control import case
from dtflab.ops.control.cond import cond
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.conv.functions import depthwise_conv2d
from dtflab.ops.images.checks import by_rank, checked, grayscale, require
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sampling import functions as sampling

# ---- numbers for pixels ----


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """`image`, of any shape, as `dtype`: floats are scaled by the largest integer, wider integers by their ratio.

    With `saturate`, what is too large for `dtype` becomes its largest number instead of wrapping around.
    AttributeError if one of the types is neither floating point nor integer.
    """
    image = convert_to_tensor(image, name="image")
    dtype = dtypes.as_dtype(dtype)
    for what, kind in (("dtype", dtype), ("image dtype", image.dtype)):
        if not kind.is_floating and not kind.is_integer:
            raise AttributeError(f"{what} must be either floating point or integer")
    if dtype == image.dtype:
        return arrays.identity(image, name=name)
    cast = math.saturate_cast if saturate else arrays.cast
    with name_scope(name, "convert_image", [image]) as scope:
        if dtype.is_integer:
            to_integer = _between_integers if image.dtype.is_integer else _from_unit
            return to_integer(image, dtype, cast, scope)
        if image.dtype.is_floating:
            return arrays.cast(image, dtype, name=scope)
        return math.multiply(arrays.cast(image, dtype), 1.0 / image.dtype.max, name=scope)


def _between_integers(image: Tensor, dtype: dtypes.DType, cast: Callable[..., Tensor], scope: str) -> Tensor:
    """Narrower by division before the cast, wider by multiplication after it."""
    largest_in, largest_out = image.dtype.max, dtype.max
    if largest_in > largest_out:
        return cast(math.floordiv(image, (largest_in + 1) // (largest_out + 1)), dtype, name=scope)
    return math.multiply(cast(image, dtype), (largest_out + 1) // (largest_in + 1), name=scope)


def _from_unit(image: Tensor, dtype: dtypes.DType, cast: Callable[..., Tensor], scope: str) -> Tensor:
    return cast(math.multiply(image, dtype.max + 0.5), dtype, name=scope)  # the half rounds to the nearest


def in_floats(image: Tensor) -> Tensor:
    """The image as the kernels of colours take it: half and float as they are, all others as float."""
    return image if image.dtype in (dtypes.float16, dtypes.float32) else convert_image_dtype(image, dtypes.float32)


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
        deviation = reduce.reduce_std(image, axis=[-1, -2, -3], keepdims=True)
        least = math.rsqrt(arrays.cast(count, dtypes.float32))
        deviation = math.maximum(deviation, least)
        image -= mean
        return math.divide(image, deviation, name=scope)


# ---- light and colours ----


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """`image` with the scalar `delta` added to each value; integers count as 0 to 1, and are saturated."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        image = convert_to_tensor(image, name="image")
        floats = in_floats(image)
        adjusted = math.add(floats, arrays.cast(delta, floats.dtype), name=scope)
        return convert_image_dtype(adjusted, image.dtype, saturate=True)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a random amount in [-max_delta, max_delta)."""
    return adjust_brightness(image, _random_amount(max_delta, seed))


def _random_amount(most: float, seed: int | None) -> Tensor:
    if most < 0:
        raise ValueError("max_delta must be non-negative.")
    return sampling.random_uniform([], -most, most, seed=seed)


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
    return sampling.random_uniform([], lower, upper, seed=seed)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """`image` [..., 3] of red, green and blue with the hue turned by `delta` of a circle, a scalar in [-1, 1]."""
    return _adjusted("AdjustHue", "adjust_hue", image, name, delta=delta)


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a random amount in [-max_delta, max_delta); `max_delta` is at most 0.5."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    return adjust_hue(image, _random_amount(max_delta, seed))


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


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """`images` [..., 3] of red, green and blue, floats from 0 to 1, as hue, saturation and value, from 0 to 1, too."""
    return apply_op("RGBToHSV", name, images=images)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """The way back from `rgb_to_hsv`."""
    return apply_op("HSVToRGB", name, images=images)


# ---- flips and turns ----


def flip_left_right(image: Any) -> Tensor:
    """`image` [height, width, channels], or each of a batch, mirrored left to right."""
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: Any) -> Tensor:
    """`image` [height, width, channels], or each of a batch, mirrored top to bottom."""
    return _flip(image, 0, "flip_up_down")


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """`image` [height, width, channels] mirrored left to right with a chance of one half; in a batch each by itself."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """`image` [height, width, channels] mirrored top to bottom with a chance of one half; in a batch each by itself."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def _flip(image: Any, axis: int, scope: str) -> Tensor:
    with name_scope(None, scope, [image]):
        image = checked(convert_to_tensor(image, name="image"))
        one = functools.partial(arrays.reverse, image, [axis])
        return by_rank(image, lambda: _with_shape_of(image, one()), lambda: arrays.reverse(image, [axis + 1]))


def _random_flip(image: Any, axis: int, seed: int | None, scope: str) -> Tensor:
    with name_scope(None, scope, [image]) as name:
        image = checked(convert_to_tensor(image, name="image"))

        def one() -> Tensor:
            chance = sampling.random_uniform([], 0, 1.0, seed=seed)
            flipped = cond(math.less(chance, 0.5), lambda: arrays.reverse(image, [axis]), lambda: image, name=name)
            return _with_shape_of(image, flipped)

        def batch() -> Tensor:
            count = arrays.shape(image)[0]
            chances = sampling.random_uniform([count], 0, 1.0, seed=seed)
            flips = arrays.cast(math.round(arrays.reshape(chances, [count, 1, 1, 1])), image.dtype)
            flipped = arrays.reverse(image, [axis + 1])
            return flips * flipped + (1 - flips) * image

        return by_rank(image, one, batch)


def _with_shape_of(image: Tensor, result: Tensor) -> Tensor:
    result.set_shape([None] * 3 if image.shape.ndims is None else image.shape)
    return result


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """`image` [height, width, channels], or each of a batch, turned `k` times by 90 degrees against the clock."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = checked(convert_to_tensor(image, name="image"))
        k = convert_to_tensor(k, dtypes.int32, name="k")
        k.shape.assert_has_rank(0)
        k = k % 4
        return by_rank(image, lambda: _turned(image, k, 0, scope), lambda: _turned(image, k, 1, scope))


def _turned(image: Tensor, k: Tensor, first: int, scope: str) -> Tensor:
    """The image turned k times, its height being axis `first`."""
    rows, cols = first, first + 1
    swapped = [*range(first), cols, rows, cols + 1]
    turns = {
        1: lambda: arrays.transpose(arrays.reverse(image, [cols]), swapped),
        2: lambda: arrays.reverse(image, [rows, cols]),
        3: lambda: arrays.reverse(arrays.transpose(image, swapped), [cols]),
    }
    cases = [(math.equal(k, times), turn) for times, turn in turns.items()]
    result: Tensor = case.case(cases, default=lambda: image, exclusive=True, name=scope)
    before, (*_, channels) = result.shape[:first], image.shape.with_rank(first + 3).as_list()
    result.set_shape([*before.as_list(), None, None, channels])
    return result


def transpose(image: Any, name: str | None = None) -> Tensor:
    """`image` [height, width, channels], or each of a batch, with height and width exchanged."""
    with name_scope(name, "transpose", [image]):
        image = checked(convert_to_tensor(image, name="image"))
        exchanged = functools.partial(arrays.transpose, image, name=name)
        return by_rank(image, lambda: exchanged([1, 0, 2]), lambda: exchanged([0, 2, 1, 3]))


# ---- measures ----


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences between neighbouring pixels: a scalar for [height, width, channels], else a vector.

    ValueError if `images` has neither three nor four dimensions.
    """
    with name_scope(name, "total_variation"):
        ndims = images.shape.ndims
        if ndims not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axis = None if ndims == 3 else [1, 2, 3]
        differences = [_difference(images, ndims - 3), _difference(images, ndims - 2)]
        down, across = (reduce.reduce_sum(math.abs(d), axis=axis) for d in differences)
        return down + across


def _difference(images: Any, axis: int) -> Tensor:
    """Each pixel's difference from the one before it along an axis."""
    ndims = images.shape.ndims

    def part(along: slice) -> Any:
        return images[tuple(along if i == axis else slice(None) for i in range(ndims))]

    return part(slice(1, None)) - part(slice(None, -1))


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """(dy, dx) of `image` [batch, height, width, channels]: the differences to the next pixel, 0 at the last one."""
    if image.shape.ndims != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    shape = arrays.shape(image)
    batch, height, width, depth = arrays.unstack(shape)
    dy, dx = _difference(image, 1), _difference(image, 2)
    return (_with_zeros(dy, 1, [batch, 1, width, depth], shape), _with_zeros(dx, 2, [batch, height, 1, depth], shape))


def _with_zeros(differences: Tensor, axis: int, sizes: list[Any], shape: Tensor) -> Tensor:
    zeros = arrays.zeros(arrays.stack(sizes), differences.dtype)
    return arrays.reshape(arrays.concat([differences, zeros], axis), shape)


_SOBEL = [[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]]


def sobel_edges(image: Any) -> Tensor:
    """Sobel's (dy, dx) of `image` [batch, height, width, channels], side by side in a last dimension of 2."""
    known = image.shape
    shape: Any = arrays.shape(image)
    filters = np.expand_dims(np.transpose(np.asarray(_SOBEL), (1, 2, 0)), -2)
    per_channel = arrays.tile(constant(filters, image.dtype), [1, 1, shape[-1], 1], name="sobel_filters")
    padded = arrays.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, per_channel, [1, 1, 1, 1], "VALID")
    edges = arrays.reshape(edges, arrays.concat([shape, [2]], 0))
    edges.set_shape(known.concatenate([2]))
    return edges


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio in decibels of images [..., height, width, channels], one for each.

    `max_val` is the largest value minus the smallest that there may be.
    """
    with name_scope(name, "PSNR", [a, b]):
        largest = convert_image_dtype(arrays.cast(max_val, a.dtype), dtypes.float32)
        a, b = (convert_image_dtype(image, dtypes.float32) for image in (a, b))
        error: Any = reduce.reduce_mean(math.squared_difference(a, b), [-3, -2, -1])
        peak = 20 * math.log(largest) / math.log(10.0)
        ratio = math.subtract(peak, np.float32(10 / numbers.log(10)) * math.log(error), name="psnr")
        with control_dependencies(_of_equal_shapes(a, b)):
            return arrays.identity(ratio)


def _of_equal_shapes(a: Tensor, b: Tensor) -> list[Operation]:
    """The checks that two images fit together; ValueError if it is known that they do not."""
    known = a.shape.with_rank_at_least(3), b.shape.with_rank_at_least(3)
    known[0][-3:].assert_is_compatible_with(known[1][-3:])
    if known[0].ndims is not None and known[1].ndims is not None:
        pairs = zip(*(reversed(shape.as_list()[:-3]) for shape in known))
        if any(None not in pair and 1 not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(f"Two images are not compatible: {known[0]} and {known[1]}")
    shapes: Any = arrays.shape_n([a, b])
    deep = assertions.Assert(math.greater_equal(arrays.size(shapes[0]), 3), shapes, summarize=10)
    equal = reduce.reduce_all(math.equal(shapes[0][-3:], shapes[1][-3:]))
    return [deep, assertions.Assert(equal, shapes, summarize=10)]


# ---- boxes and files ----


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Pieces of `image` [batch, height, width, depth], as float32 [boxes, crop_height, crop_width, depth].

    `boxes` [boxes, 4] has y1, x1, y2, x2 of each, from 0 to 1, `box_indices` (or `box_ind`) [boxes] the image it is
    cut from, `crop_size` the two sizes. `method` is "bilinear" or "nearest".
    """
    box_ind = renamed("box_indices", box_indices, "box_ind", box_ind)
    pieces = {"boxes": boxes, "box_ind": box_ind, "crop_size": crop_size}
    ways = {"method": method, "extrapolation_value": extrapolation_value}
    return apply_op("CropAndResize", name, image=image, **pieces, **ways)


def decode_png(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Tensor:
    """The image in a PNG file, a string scalar: [height, width, channels] of uint8 or uint16.

    `channels` 1, 3 or 4 make it grey, RGB or RGBA; 0 leaves it as it is.
    """
    return apply_op("DecodePng", name, contents=contents, channels=channels, dtype=dtype)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """An image of uint8 or uint16, [height, width, channels] with 1 to 4 channels, as a PNG file, a string scalar.

    `compression` is 0 to 9, or -1 for a middle way. More dimensions before these are a batch.
    """
    return apply_op("EncodePng", name, image=convert_to_tensor(image), compression=compression)


# ---- single ways to resize; all together in `sizes.py` ----


def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """`images` [batch, height, width, channels] resized to `size`, [new_height, new_width], as float32."""
    return _single("ResizeBilinear", images, size, align_corners, name, half_pixel_centers)


def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """`images` [batch, height, width, channels] resized to `size`, each new pixel being an old one."""
    return _single("ResizeNearestNeighbor", images, size, align_corners, name, half_pixel_centers)


def resize_bicubic(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """`images` [batch, height, width, channels] resized to `size` by cubics, as float32."""
    return _single("ResizeBicubic", images, size, align_corners, name, half_pixel_centers)


def _single(op_type: str, images: Any, size: Any, align: bool, name: str | None, half: bool) -> Tensor:
    return apply_op(op_type, name, images=images, size=size, align_corners=align, half_pixel_centers=half)


def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """`images` [batch, height, width, channels] resized to `size`, each pixel the mean of its area, as float32."""
    return apply_op("ResizeArea", name, images=images, size=size, align_corners=align_corners)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A piece of shape `size`, a vector, out of `value`, all places being equally likely.

    InvalidArgumentError if `value` is smaller than that.
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        wanted: Any = convert_to_tensor(size, dtypes.int32, name="size")
        shape: Any = arrays.shape(value)
        fits = reduce.reduce_all(shape >= wanted)
        check = assertions.Assert(fits, ["Need value.shape >= size, got ", shape, wanted], summarize=1000)
        shape = with_dependencies([check], shape)
        places: Any = sampling.random_uniform(
            arrays.shape(shape), maxval=wanted.dtype.max, dtype=wanted.dtype, seed=seed
        )
        return indexing.slice(value, places % (shape - wanted + 1), wanted, name=scope)

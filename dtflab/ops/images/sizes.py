"""Images in other sizes: crops to a box, to the middle, to a size; margins; resizing.

Stands for that part of `python/ops/image_ops_impl.py`. Left out: what TF2 added (antialiasing, Lanczos).

Rule: offsets and sizes are numbers, checked at once, or scalar tensors, checked by Asserts in the step. TF1's
`resize_images` puts the corner of the first pixel on the corner of the new one, wherever the middles come to lie;
`half_pixel_centers` of the single functions is TF2's way.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value, constant_value_as_shape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.images import checks
from dtflab.ops.images.checks import is_tensor, require
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The box of `target_height` × `target_width` pixels whose upper left corner is at the offsets.

    `image` is [height, width, channels] or a batch of these. ValueError if the box does not fit into it
    (InvalidArgumentError in the step, if sizes are not known before).
    """
    with name_scope(None, "crop_to_bounding_box", [image]):
        images, was_batch = checks.as_batch(convert_to_tensor(image, name="image"))
        required = checks.at_least_3d(images)
        batch, height, width, depth = checks.dimensions(images, 4)
        required += require(offset_width >= 0, "offset_width must be >= 0.")
        required += require(offset_height >= 0, "offset_height must be >= 0.")
        required += _positive(target_height, target_width)
        required += require(width >= target_width + offset_width, "width must be >= target + offset.")
        required += require(height >= target_height + offset_height, "height must be >= target + offset.")
        images = with_dependencies(required, images)
        begin = arrays.stack([0, offset_height, offset_width, 0])
        images_in, channels = (_size(images, i) for i in (0, 3))
        cropped = indexing.slice(images, begin, arrays.stack([images_in, target_height, target_width, channels]))
        cropped.set_shape(checks.known_sizes([batch, target_height, target_width, depth]))
        return checks.like_given(cropped, was_batch)


def _positive(height: Any, width: Any) -> list[Operation]:
    return require(width > 0, "target_width must be > 0.") + require(height > 0, "target_height must be > 0.")


def _size(image: Tensor, axis: int) -> Tensor:
    return arrays.shape(image)[axis]


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """`image` on black ground of `target_height` × `target_width` pixels, its upper left corner at the offsets.

    `image` is [height, width, channels] or a batch of these. ValueError if it does not fit (InvalidArgumentError in
    the step, if sizes are not known before).
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        images, was_batch = checks.as_batch(convert_to_tensor(image, name="image"))
        batch, height, width, depth = checks.dimensions(images, 4)
        right = target_width - offset_width - width
        below = target_height - offset_height - height
        required = checks.at_least_3d(images)
        required += require(offset_height >= 0, "offset_height must be >= 0")
        required += require(offset_width >= 0, "offset_width must be >= 0")
        required += require(right >= 0, "width must be <= target - offset")
        required += require(below >= 0, "height must be <= target - offset")
        images = with_dependencies(required, images)
        margins = arrays.stack([0, 0, offset_height, below, offset_width, right, 0, 0])
        padded = arrays.pad(images, arrays.reshape(margins, [4, 2]))
        padded.set_shape(checks.known_sizes([batch, target_height, target_width, depth]))
        return checks.like_given(padded, was_batch)


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """`image` cut to the middle, or with a black margin, so that it has `target_height` × `target_width` pixels.

    `image` is [height, width, channels] or a batch of these. ValueError for sizes that are not positive.
    """
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        images, was_batch = checks.as_batch(convert_to_tensor(image, name="image"))
        required = checks.at_least_3d(images) + _positive(target_height, target_width)
        images = with_dependencies(required, images)
        target_height, target_width = _after(required, target_height), _after(required, target_width)
        _, height, width, _ = checks.dimensions(images, 4)
        crop_width, pad_width = _cut_and_margin(target_width, width)
        crop_height, pad_height = _cut_and_margin(target_height, height)
        smaller = (_smaller(target_height, height), _smaller(target_width, width))
        cropped = crop_to_bounding_box(images, crop_height, crop_width, *smaller)
        resized = pad_to_bounding_box(cropped, pad_height, pad_width, target_height, target_width)
        _, height, width, _ = checks.dimensions(resized, 4)
        required = require(_equal(height, target_height), "resized height is not correct.")
        required += require(_equal(width, target_width), "resized width is not correct.")
        return checks.like_given(with_dependencies(required, resized), was_batch)


def _after(required: list[Operation], size: Any) -> Any:
    return with_dependencies(required, size) if is_tensor(size) else size


def _cut_and_margin(target: Any, size: Any) -> tuple[Any, Any]:
    """How much is taken off one side, and how much is added to it."""
    difference = target - size
    return larger(-difference // 2, 0), larger(difference // 2, 0)


def larger(x: Any, y: Any) -> Any:
    """The larger of two numbers or scalar tensors."""
    return math.maximum(x, y) if is_tensor(x) or is_tensor(y) else max(x, y)


def _smaller(x: Any, y: Any) -> Any:
    return math.minimum(x, y) if is_tensor(x) or is_tensor(y) else min(x, y)


def _equal(x: Any, y: Any) -> Any:
    return math.equal(x, y) if is_tensor(x) or is_tensor(y) else x == y


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of `image`, `central_fraction` (above 0, up to 1) of its height and of its width.

    `image` is [height, width, channels] or a batch of these.
    """
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        known = constant_value(central_fraction)
        if known is None:
            inside = math.logical_or(central_fraction > 0.0, central_fraction <= 1.0)
            image = with_dependencies(require(inside, "central_fraction must be within (0, 1]"), image)
        elif not 0.0 < known <= 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        elif known == 1.0:
            return image
        checks.checked(image)
        if image.shape.ndims not in (3, 4):
            ranks = "rank = 3 or rank = 4"
            raise ValueError(f"`image` should either be a Tensor with {ranks}. Had rank = {image.shape.ndims}.")
        return _middle(image, central_fraction, known)


def _middle(image: Tensor, fraction: Any, known: Any) -> Tensor:
    *batch, height, width, depth = image.shape.as_list()
    first = len(batch)
    sizes = [_size(image, first + i) if size is None else size for i, size in enumerate((height, width))]
    starts = [_start(size, fraction, known) for size in sizes]
    kept = [size - start * 2 for size, start in zip(sizes, starts)]
    begin = arrays.stack([*[0] * first, *starts, 0])
    piece = indexing.slice(image, begin, arrays.stack([*[-1] * first, *kept, -1]))
    piece.set_shape([*batch, *checks.known_sizes(kept), depth])
    return piece


def _start(size: Any, fraction: Any, known: Any) -> Any:
    """Where the middle begins: a number if size and fraction are."""
    if known is not None and not is_tensor(size):
        return int((float(size) - float(size) * known) / 2)
    size = arrays.cast(size, dtypes.float64)
    return arrays.cast((size - size * arrays.cast(fraction, dtypes.float64)) / 2, dtypes.int32)


# ---- resizing ----


class ResizeMethod:
    """How `resize_images` finds the new pixels."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_OPS = {
    **dict.fromkeys((ResizeMethod.BILINEAR, "bilinear"), "ResizeBilinear"),
    **dict.fromkeys((ResizeMethod.NEAREST_NEIGHBOR, "nearest"), "ResizeNearestNeighbor"),
    **dict.fromkeys((ResizeMethod.BICUBIC, "bicubic"), "ResizeBicubic"),
    **dict.fromkeys((ResizeMethod.AREA, "area"), "ResizeArea"),
}


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """`images` [height, width, channels], or a batch of these, resized to `size`, [new_height, new_width].

    float32, but for the nearest neighbour, and but for images that have that size already. With `align_corners` the
    middles of the corner pixels stay where they are. With `preserve_aspect_ratio` the size is the largest one.
    ValueError for an unknown rank or method, or if `size` is not a vector of two int32.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        if images.shape.ndims is None:
            raise ValueError("'images' contains no shape.")
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        images, was_batch = checks.as_batch(images)
        size = _checked(size)
        if preserve_aspect_ratio:
            size = _largest_inside(images, size)
        before, after = images.shape.as_list()[1:3], constant_value_as_shape(size).as_list()
        if before != after or None in before:
            images = _resized(images, size, method, align_corners)
            images.set_shape([None, *after, None])
        return checks.like_given(images, was_batch)


def _checked(size: Any) -> Tensor:
    try:
        size = convert_to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError):
        raise ValueError("'size' must be a 1-D int32 Tensor") from None
    if not size.shape.is_compatible_with([2]):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    return size


def _resized(images: Tensor, size: Tensor, method: Any, align_corners: bool) -> Tensor:
    if method not in _OPS:
        raise ValueError(f"Resize method is not implemented: {method}")
    return apply_op(_OPS[method], images=images, size=size, align_corners=align_corners)


def _largest_inside(images: Tensor, size: Any) -> Tensor:
    """The largest size within `size` that is as high relative to its width as the images are."""
    before = checks.dimensions(images, 4)[1:3]
    ratios = [arrays.cast(size[i], dtypes.float32) / arrays.cast(b, dtypes.float32) for i, b in enumerate(before)]
    ratio: Any = math.minimum(*ratios)
    scaled = [arrays.cast(math.round(ratio * arrays.cast(b, dtypes.float32)), dtypes.int32) for b in before]
    return convert_to_tensor(scaled, dtypes.int32, name="size")


def resize_image_with_pad(
    image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False
) -> Tensor:
    """`image` [height, width, channels], or a batch, resized as a whole, with a black margin to the target size."""
    with name_scope(None, "resize_image_with_pad", [image]):
        images, was_batch = checks.as_batch(convert_to_tensor(image, name="image"))
        images = with_dependencies(checks.at_least_3d(images) + _positive(target_height, target_width), images)
        (height, width), (high, wide) = _inside(images, target_height, target_width)
        resized = resize_images(images, [height, width], method, align_corners=align_corners)
        padded = pad_to_bounding_box(resized, high, wide, target_height, target_width)
        checks.dimensions(padded, 4)
        return checks.like_given(padded, was_batch)


def _inside(images: Tensor, *target: Any) -> tuple[list[Any], list[Any]]:
    """The size of the images so that they just fit into the target, and the margins above and to the left."""
    before = [arrays.cast(size, dtypes.float32) for size in checks.dimensions(images, 4)[1:3]]
    goal = [arrays.cast(size, dtypes.float32) for size in target]
    by_width, by_height = before[1] / goal[1], before[0] / goal[0]
    ratio = larger(by_width, by_height)
    exact = [size / ratio for size in before]
    sizes = [arrays.cast(math.floor(size), dtypes.int32) for size in exact]
    margins = [(g - size) / 2 for g, size in zip(goal, exact)]
    whole = [math.floor(margin) for margin in margins]
    return sizes, [larger(0, arrays.cast(margin, dtypes.int32)) for margin in whole]

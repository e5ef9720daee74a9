"""resize_images and its kin: images in other sizes.

Stands for that part of `python/ops/image_ops_impl.py`. Left out: what TF2 added (antialiasing, Lanczos).

Rule: TF1's functions put the corner of the first pixel on the corner of the new one, without regard to where the
middles come to lie; `half_pixel_centers` of the single functions is TF2's way.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value_as_shape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.images.checks import as_batch, at_least_3d, dimensions, like_given, require
from dtflab.ops.images.crops import larger, pad_to_bounding_box
from dtflab.ops.math import functions as math


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
    images: Any, size: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False,
    preserve_aspect_ratio: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`images` [height, width, channels], or a batch of these, resized to `size`, [new_height, new_width].

    float32, but for the nearest neighbour, and but for images that have that size already. With `align_corners` the
    middles of the corner pixels stay where they are. With `preserve_aspect_ratio` the size is the largest one.
    ValueError for an unknown rank or method, or if `size` is no vector of two int32.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        if images.shape.ndims is None:
            raise ValueError("'images' contains no shape.")
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        images, was_batch = as_batch(images)
        size = _checked(size)
        if preserve_aspect_ratio:
            size = _largest_inside(images, size)
        before, after = images.shape.as_list()[1:3], constant_value_as_shape(size).as_list()
        if before != after or None in before:
            images = _resized(images, size, method, align_corners)
            images.set_shape([None, *after, None])
        return like_given(images, was_batch)


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
    before = dimensions(images, 4)[1:3]
    ratios = [arrays.cast(size[i], dtypes.float32) / arrays.cast(b, dtypes.float32) for i, b in enumerate(before)]
    ratio: Any = math.minimum(*ratios)
    scaled = [arrays.cast(math.round(ratio * arrays.cast(b, dtypes.float32)), dtypes.int32) for b in before]
    return convert_to_tensor(scaled, dtypes.int32, name="size")


def resize_image_with_pad(
    image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False
) -> Tensor:
    """`image` [height, width, channels], or a batch, resized as a whole, with a black margin to the target size."""
    with name_scope(None, "resize_image_with_pad", [image]):
        images, was_batch = as_batch(convert_to_tensor(image, name="image"))
        required = at_least_3d(images)
        required += require(target_width > 0, "target_width must be > 0.")
        required += require(target_height > 0, "target_height must be > 0.")
        images = with_dependencies(required, images)
        (height, width), (high, wide) = _inside(images, target_height, target_width)
        resized = resize_images(images, [height, width], method, align_corners=align_corners)
        padded = pad_to_bounding_box(resized, high, wide, target_height, target_width)
        dimensions(padded, 4)
        return like_given(padded, was_batch)


def _inside(images: Tensor, *target: Any) -> tuple[list[Any], list[Any]]:
    """The size of the images so that they just fit into the target, and the margins above and to the left."""
    before = [arrays.cast(size, dtypes.float32) for size in dimensions(images, 4)[1:3]]
    goal = [arrays.cast(size, dtypes.float32) for size in target]
    by_width, by_height = before[1] / goal[1], before[0] / goal[0]
    ratio = larger(by_width, by_height)
    exact = [size / ratio for size in before]
    sizes = [arrays.cast(math.floor(size), dtypes.int32) for size in exact]
    margins = [(g - size) / 2 for g, size in zip(goal, exact)]
    whole = [math.floor(margin) for margin in margins]
    return sizes, [larger(0, arrays.cast(margin, dtypes.int32)) for margin in whole]


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

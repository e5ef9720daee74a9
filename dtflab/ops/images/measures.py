"""What images look like in numbers: how rough they are, where their edges are, how far one is from another.

Stands for that part of `python/ops/image_ops_impl.py`. Left out: SSIM.
"""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.images.dtype import convert_image_dtype
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.windows.atrous import depthwise_conv2d


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
        result: Tensor = down + across
        return result


def _difference(images: Any, axis: int) -> Tensor:
    """Each pixel's difference from the one before it along an axis."""
    ndims = images.shape.ndims

    def part(along: slice) -> Any:
        return images[tuple(along if i == axis else slice(None) for i in range(ndims))]

    result: Tensor = part(slice(1, None)) - part(slice(None, -1))
    return result


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """(dy, dx) of `image` [batch, height, width, channels]: the differences to the next pixel, 0 at the last one."""
    if image.shape.ndims != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    shape = arrays.shape(image)
    batch, height, width, depth = arrays.unstack(shape)
    dy, dx = _difference(image, 1), _difference(image, 2)
    return (
        _with_zeros(dy, 1, [batch, 1, width, depth], shape),
        _with_zeros(dx, 2, [batch, height, 1, depth], shape),
    )


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
            result: Tensor = arrays.identity(ratio)
            return result


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

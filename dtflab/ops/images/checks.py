"""Checks that functions on images make of their arguments: statically if the shapes are known, else in the step.

Stands for the helpers at the top of `python/ops/image_ops_impl.py`.

Rule: a check that is already decided makes no node; each of the others is one Assert, in TensorFlow's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.operation import Operation, Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.control.cond import cond
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.math import functions as math
from dtflab.ops.variables.variable import Variable


def is_tensor(x: Any) -> bool:
    """True if only a step can tell the value."""
    return isinstance(x, Tensor | Variable)


def require(condition: Any, message: str) -> list[Operation]:
    """ValueError if the condition does not hold; an Assert if it is a tensor."""
    if is_tensor(condition):
        return [assertions.Assert(condition, [message])]
    if not condition:
        raise ValueError(message)
    return []


def at_least_3d(image: Tensor) -> list[Operation]:
    """The checks that an image has a height, a width and channels, and none of them is 0."""
    try:
        known = image.shape.with_rank(3) if image.shape.ndims is None else image.shape.with_rank_at_least(3)
    except ValueError:
        raise ValueError(f"'image' (shape {image.shape}) must be at least three-dimensional.") from None
    inner = known[-3:]
    if 0 in inner.as_list():
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {known}")
    if inner.is_fully_defined():
        return []
    sizes: Any = arrays.shape(image)
    return [
        assertions.assert_positive(sizes[-3:], ["inner 3 dims of 'image.shape' must be > 0."]),
        assertions.assert_greater_equal(arrays.rank(image), 3, message="'image' must be at least three-dimensional."),
    ]


def grayscale(image: Tensor) -> list[Operation]:
    """The checks that an image has one channel."""
    one_channel = "Last dimension of a grayscale image should be size 1."
    try:
        known = image.shape.with_rank(2) if image.shape.ndims is None else image.shape.with_rank_at_least(2)
    except ValueError:
        raise ValueError(f"A grayscale image (shape {image.shape}) must be at least two-dimensional.") from None
    if known.is_fully_defined():
        return require(known.as_list()[-1] == 1, one_channel)
    sizes: Any = arrays.shape(image)
    two_dimensional = "A grayscale image must be at least two-dimensional."
    one = assertions.assert_equal(sizes[-1], 1, message=one_channel)
    return [one, assertions.assert_greater_equal(arrays.rank(image), 3, message=two_dimensional)]


def checked(image: Tensor) -> Tensor:
    """The image, once it has been seen to be one, or a batch of them."""
    return with_dependencies(at_least_3d(image), image)


def by_rank(image: Tensor, one: Callable[[], Any], batch: Callable[[], Any]) -> Any:
    """`one()` for [height, width, channels], `batch()` for a batch of these; a cond if the rank is unknown."""
    ndims = image.shape.ndims
    if ndims is None:
        return cond(math.equal(arrays.rank(image), 3), one, batch)
    if ndims not in (3, 4):
        raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
    return one() if ndims == 3 else batch()


def as_batch(image: Tensor) -> tuple[Tensor, bool]:
    """The image as a batch of one, and False; a batch as it is, and True. An unknown rank counts as 3."""
    ndims = image.shape.ndims
    if ndims == 4:
        return image, True
    if ndims not in (3, None):
        raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
    image = arrays.expand_dims(image, 0)
    image.set_shape([None] * 4)
    return image, False


def like_given(images: Tensor, was_batch: bool) -> Tensor:
    """The way back from `as_batch`."""
    return images if was_batch else arrays.squeeze(images, axis=[0])


def dimensions(image: Tensor, rank: int) -> list[Any]:
    """The sizes: ints, and scalar tensors for those that are not known."""
    if image.shape.is_fully_defined():
        return list(image.shape.as_list())
    known = image.shape.with_rank(rank).as_list()
    later = arrays.unstack(arrays.shape(image), rank)
    return [later[i] if size is None else size for i, size in enumerate(known)]


def known_sizes(sizes: Sequence[Any]) -> list[int | None]:
    """A static shape: None for each size that is a tensor."""
    return [None if is_tensor(size) else size for size in sizes]

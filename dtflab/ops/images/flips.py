"""Images mirrored and turned: flips, also at random, quarter turns, transposition.

Stands for that part of `python/ops/image_ops_impl.py`. Left out: the stateless forms, which TF1 does not export.

Rule: an image is [height, width, channels], or a batch of these; if its rank is unknown the step decides.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import case
from dtflab.ops.control.cond import cond
from dtflab.ops.images.checks import by_rank, checked
from dtflab.ops.math import functions as math
from dtflab.ops.sampling import draws as random


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """`image` [height, width, channels] mirrored left to right with a chance of one half; in a batch each by itself."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """`image` [height, width, channels] mirrored top to bottom with a chance of one half; in a batch each by itself."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def flip_left_right(image: Any) -> Tensor:
    """`image` [height, width, channels], or each of a batch, mirrored left to right."""
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: Any) -> Tensor:
    """`image` [height, width, channels], or each of a batch, mirrored top to bottom."""
    return _flip(image, 0, "flip_up_down")


def _flip(image: Any, axis: int, scope: str) -> Tensor:
    with name_scope(None, scope, [image]):
        image = checked(convert_to_tensor(image, name="image"))
        result: Tensor = by_rank(
            image,
            lambda: _with_shape_of(image, arrays.reverse(image, [axis])),
            lambda: arrays.reverse(image, [axis + 1]),
        )
        return result


def _random_flip(image: Any, axis: int, seed: int | None, scope: str) -> Tensor:
    with name_scope(None, scope, [image]) as name:
        image = checked(convert_to_tensor(image, name="image"))

        def one() -> Tensor:
            chance = random.random_uniform([], 0, 1.0, seed=seed)
            flipped = cond(math.less(chance, 0.5), lambda: arrays.reverse(image, [axis]), lambda: image, name=name)
            return _with_shape_of(image, flipped)

        def batch() -> Tensor:
            sizes: Any = arrays.shape(image)
            count = sizes[0]
            chances = random.random_uniform([count], 0, 1.0, seed=seed)
            flips: Any = math.round(arrays.reshape(chances, [count, 1, 1, 1]))
            flips = arrays.cast(flips, image.dtype)
            flipped = arrays.reverse(image, [axis + 1])
            result: Tensor = flips * flipped + (1 - flips) * image
            return result

        result: Tensor = by_rank(image, one, batch)
        return result


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
        result: Tensor = by_rank(image, lambda: _turned(image, k, 0, scope), lambda: _turned(image, k, 1, scope))
        return result


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
        result: Tensor = by_rank(
            image,
            lambda: arrays.transpose(image, [1, 0, 2], name=name),
            lambda: arrays.transpose(image, [0, 2, 1, 3], name=name),
        )
        return result

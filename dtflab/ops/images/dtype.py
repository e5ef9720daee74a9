"""convert_image_dtype: pixels as other numbers, black staying 0 and white the largest.

Stands for that function of `python/ops/image_ops_impl.py`.

Rule: floats are between 0 and 1, integers between 0 and the largest of their type; to go from one to the other the
numbers are scaled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math


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
        same: Tensor = arrays.identity(image, name=name)
        return same
    cast = math.saturate_cast if saturate else arrays.cast
    with name_scope(name, "convert_image", [image]) as scope:
        if dtype.is_integer:
            to_integer = _between_integers if image.dtype.is_integer else _from_unit
            return to_integer(image, dtype, cast, scope)
        if image.dtype.is_floating:
            result: Tensor = arrays.cast(image, dtype, name=scope)
            return result
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

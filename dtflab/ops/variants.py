"""Variants: values that travel along edges and are not arrays: lists of tensors, optional values.

Stands for `core/framework/variant.h`. Left out: tensors of several variants; data sets (`datasets/`).

Rule: a variant never changes; to add to it makes another one. On an edge it is the Python object itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import dtype_text, invalid, shape_text


class Variant:
    """Base of values of dtype `variant`, whose static shape is that of a scalar."""

    __slots__ = ()
    shape = ()
    ndim = 0

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """A copy, with `function` of each tensor in it."""
        return self

    def zeros_like(self, xp: Any) -> Any:
        """The result of `ZerosLike` for this value."""
        raise invalid(f"There are no zeros like {self!r}.")

    def plus(self, other: Any, xp: Any) -> Any:
        """The result of `AddN` for two of these values."""
        raise invalid(f"{self!r} and {other!r} can't be added.")


class TensorList(Variant):
    """Tensors of one dtype whose shapes fit `element_shape`; an item is None until it is set."""

    __slots__ = ("dtype", "element_shape", "items", "limit")

    def __init__(self, items: Sequence[Any], dtype: DType, element_shape: TensorShape, limit: int = -1) -> None:
        """`limit` is the most items that it may hold; -1: any number."""
        self.items, self.dtype, self.element_shape, self.limit = tuple(items), dtype, element_shape, limit

    def replaced(self, items: Sequence[Any]) -> TensorList:
        """A list of the same kind with other items."""
        return TensorList(items, self.dtype, self.element_shape, self.limit)

    def check_fits(self, value: Any, refused: str) -> None:
        """InvalidArgumentError, which begins with `refused`, unless `value` has the shape of an element."""
        if not self.element_shape.is_compatible_with(TensorShape(value.shape)):
            raise invalid(f"{refused}: {shape_text(value)} list shape: {shape_text(self.element_shape)}")

    def check_can_be_set(self, value: Any) -> None:
        """InvalidArgumentError unless `value` can become an item."""
        self.check_fits(value, "Tried to set a tensor with incompatible shape at a list index. Item element shape")

    def checked(self, dtype: DType) -> TensorList:
        """Itself; InvalidArgumentError if its elements are not of `dtype`."""
        if dtype != self.dtype:
            raise invalid(
                f"Invalid data types; op elements {dtype_text(dtype)} but list elements {dtype_text(self.dtype)}"
            )
        return self

    def common_shape(self, shape: TensorShape) -> TensorShape:
        """The shape of an element as far as it is known from the list, `shape` and the items.

        Raises ValueError if they disagree.
        """
        shape = shape.merge_with(self.element_shape)
        for item in () if shape.is_fully_defined() else self.items:
            shape = shape if item is None else shape.merge_with(item.shape)
        return shape

    def mapped(self, function: Callable[[Any], Any]) -> TensorList:
        return self.replaced([None if item is None else function(item) for item in self.items])

    def zeros_like(self, xp: Any) -> TensorList:
        return self.mapped(lambda item: _zeros_like(item, xp))

    def plus(self, other: TensorList, xp: Any) -> TensorList:
        if len(self.items) != len(other.items):
            raise invalid(
                "Trying to add two lists of tensors with different lengths. One is "
                f"{len(self.items)} and the other is {len(other.items)}"
            )
        return self.replaced([_sum(a, b, xp) for a, b in zip(self.items, other.items, strict=True)])

    def __repr__(self) -> str:
        return f"<list of {len(self.items)} {self.dtype.name} tensors{shape_text(self.element_shape)}>"


def _zeros_like(value: Any, xp: Any) -> Any:
    return value.zeros_like(xp) if isinstance(value, Variant) else xp.zeros_like(value)


def _sum(a: Any, b: Any, xp: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a.plus(b, xp) if isinstance(a, Variant) else xp.add(a, b)


class Optional(Variant):
    """Some values, or none."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any] | None) -> None:
        self.values = None if values is None else tuple(values)

    def mapped(self, function: Callable[[Any], Any]) -> Optional:
        return self if self.values is None else Optional([function(value) for value in self.values])

    def zeros_like(self, xp: Any) -> Optional:
        return self.mapped(lambda value: _zeros_like(value, xp))

    def plus(self, other: Optional, xp: Any) -> Optional:
        if self.values is None or other.values is None:
            if self.values is not other.values:
                raise invalid("Cannot add optionals because one has a value and the other doesn't.")
            return self
        return Optional([_sum(a, b, xp) for a, b in zip(self.values, other.values, strict=True)])

    def __repr__(self) -> str:
        return "<no value>" if self.values is None else f"<optional of {len(self.values)} values>"


def zeros(shape: TensorShape, dtype: DType, xp: Any) -> Any:
    """A tensor of zeros, as an element that was never set reads."""
    if dtype == dtypes.string:
        return np.full(shape.as_list(), b"", object)
    return xp.zeros(shape.as_list(), dtype.as_numpy_dtype)

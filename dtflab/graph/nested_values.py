"""Python and NumPy values → one array, of the dtype that TensorFlow would give them.

Stands for the first half of `make_tensor_proto` in `tensorflow/python/framework/tensor_util.py`.
Left out: composite values (sparse and ragged tensors), which never are constants.
The rule it obeys: lists are judged by their elements, which must be of the asked dtype's kind (1.5 is not an int32);
what is an array already is cast.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import Dimension
from dtflab.graph.valueless import Valueless

_INTEGERS = (numbers.Integral, np.integer, Dimension)
_REALS = (numbers.Real, np.integer, np.floating)
_NUMBERS = (numbers.Complex, np.number)


class Symbolic(Valueless):
    """Base of Tensor: what can't be an element of an array."""

    __slots__ = ()


def to_array(values: Any, dtype: DType | None, shape: Any = None) -> np.ndarray[Any, Any]:
    """`values` as an array: of `dtype` if NumPy has it, else of the dtype that TensorFlow would guess.

    Python's floats are float32 and its ints are int32 where they fit; arrays keep their type.
    """
    target = dtype.as_numpy_dtype if dtype is not None and dtype.is_numpy_compatible else None
    if isinstance(values, np.ndarray | np.generic):
        array = np.asarray(values) if target is None else np.asarray(values.astype(target))
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if values is None:
        raise ValueError("None values not supported.")
    if shape is not None and np.prod([int(dim) for dim in shape], dtype=np.int64) == 0:
        array = np.empty([int(dim) for dim in shape], target)
    else:
        array = _dense(values, dtype, target)
    return array if dtype is not None else _narrowed(array)


def _dense(values: Any, dtype: DType | None, target: Any) -> np.ndarray[Any, Any]:
    """Nested lists as an array; they must be rectangular."""
    check_elements(values, dtype)
    if target is not None and np.issubdtype(target, np.number):
        array = np.array(values).astype(target)  # in two steps: what does not fit wraps around as in C
    else:
        array = np.array(values, target)
    nested = _nested_shape(values)
    quantized = dtype is not None and dtype.is_quantized  # its elements are tuples, which look like an axis
    if list(array.shape) != nested and not quantized:
        raise ValueError(
            f"Expected values {values} to be a dense tensor with shape {nested}, but got shape {list(array.shape)}."
        )
    return array


def _nested_shape(values: Any) -> list[int]:
    """The shape that the first items of nested lists promise."""
    shape = []
    while isinstance(values, list | tuple):
        shape.append(len(values))
        if not values:
            break
        values = values[0]
    return shape


def _narrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Python's double and 64-bit integers as TensorFlow's defaults."""
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64:
        small = array.astype(np.int32)
        return small if np.array_equal(small, array) else array
    return array


def is_array_like(value: Any) -> bool:
    """Whether NumPy can see the values without asking element by element."""
    if isinstance(value, Symbolic):  # has __array__ only to say that it has no value yet
        return False
    if callable(getattr(value, "__array__", None)) or hasattr(value, "__array_interface__"):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return not isinstance(value, bytes)


def leaves(values: Any) -> Iterator[Any]:
    """The items of nested lists and tuples."""
    if isinstance(values, list | tuple):
        for item in values:
            yield from leaves(item)
    else:
        yield values


def _elements(values: Any) -> Iterator[Any]:
    """The items of nested sequences of any kind; text is none."""
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        for item in values:
            yield from _elements(item)
    else:
        yield values


def check_elements(values: Any, dtype: DType | None) -> None:
    """TypeError for the first element of `values` that is not of `dtype`'s kind, or is a tensor."""
    if dtype is not None and dtype.is_quantized:
        refused = _not_quantized(values)
    else:
        kinds = _kinds(dtype)
        refused = (item for item in _elements(values) if not _is_one_of(item, kinds))
    for item in refused:
        if dtype is None:
            raise TypeError("Expected any non-tensor type, but got a tensor instead.")
        raise TypeError(f"Expected {dtype.name}, but got {item} of type '{type(item).__name__}'.")


def _kinds(dtype: DType | None) -> tuple[type, ...] | None:
    """The types that an element of `dtype` may have; None where all but tensors will do."""
    if dtype is None:
        return None
    if dtype.base_dtype == dtypes.string:
        return (bytes, str)
    if dtype.is_bool:
        return (bool,)
    if dtype.is_integer:
        return _INTEGERS
    if dtype.is_floating:
        return _REALS
    return _NUMBERS if dtype.is_complex else None


def _is_one_of(item: Any, kinds: tuple[type, ...] | None) -> bool:
    if kinds is None:
        return not isinstance(item, Symbolic)
    return isinstance(item, kinds) or (isinstance(item, np.ndarray) and issubclass(item.dtype.type, kinds))


def _not_quantized(values: Any) -> Iterator[Any]:
    """Whatever is not a tuple of integers in nested lists of such tuples."""
    if isinstance(values, list):
        for item in values:
            yield from _not_quantized(item)
    elif isinstance(values, tuple):
        yield from (item for item in _elements(values) if not _is_one_of(item, _INTEGERS))
    else:
        yield values

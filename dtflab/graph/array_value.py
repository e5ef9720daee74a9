"""The value of a constant: Python and NumPy values → one array that nobody else holds.

Stands for what `python/framework/constant_op.py` adds to `make_tensor_proto`: the same rules, without a message.

Rules: text is bytes in an object array; one value, or the last one, may fill a larger shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.nested_values import is_array_like, leaves, to_array

Array = np.ndarray[Any, Any]


def as_array(values: Any, dtype: DType | None = None, shape: Any = None, verify_shape: bool = False) -> Array:
    """`values` as a read-only array of `dtype`, filled or reshaped to `shape`.

    Raises TypeError where a value does not fit the dtype, ValueError where lists are ragged or do not fit
    `shape`.
    """
    array = _typed(values, dtype, shape)
    if shape is not None:
        array = _in_shape(array, tuple(int(d) for d in shape), verify_shape)
    array.flags.writeable = False
    return array


def _typed(values: Any, dtype: DType | None, shape: Any) -> Array:
    given = values
    if is_array_like(values):
        values = np.asarray(values)
    text = dtype is None and _has_text(values)
    array = to_array(values, dtypes.string if text else dtype, shape)
    if array.dtype.kind in "OSU":
        array = _encoded(array)
    elif array is values or array.base is not None:
        array = array.copy()
    found = dtype if dtype is not None and dtype.is_quantized else dtypes.as_dtype(array.dtype)
    if dtype is not None and dtype.base_dtype != found.base_dtype:
        raise TypeError(f"`dtype` {dtype!r} is not compatible with {given!r} of dtype {array.dtype}.")
    return array


def _has_text(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "OSU"
    return any(isinstance(item, str | bytes) for item in leaves(values))


def _encoded(array: Array) -> Array:
    """Text as bytes, in a new array."""
    flat = np.empty(array.size, object)
    for i, item in enumerate(array.ravel().tolist()):
        if not isinstance(item, str | bytes | bytearray):
            raise TypeError(f"Expected binary or unicode string, got {item!r}")
        flat[i] = item.encode() if isinstance(item, str) else bytes(item)
    return flat.reshape(array.shape)


def _in_shape(array: Array, shape: tuple[int, ...], verify: bool) -> Array:
    if verify and array.shape != shape:
        raise TypeError(f"Expected Tensor's shape: {shape}, but got {array.shape}.")
    size = int(np.prod(shape, dtype=np.int64))
    if array.size > size:
        raise ValueError(f"Too many elements provided. Takes at most {size}, but got {array.size}.")
    if array.size == size:
        return array.reshape(shape)
    if array.size == 1:
        return np.broadcast_to(array.reshape(()), shape)
    if array.size == 0:
        return np.full(shape, b"" if array.dtype == object else 0, array.dtype)
    return np.concatenate([array.ravel(), np.repeat(array.ravel()[-1:], size - array.size)]).reshape(shape)

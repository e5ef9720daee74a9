"""Python and NumPy values → one array of the dtype that TensorFlow would give them.

Stands for the first half of `make_tensor_proto` in `python/framework/tensor_util.py`.

Rules: Python floats are float32, Python ints int32 where they fit, text is bytes in an object array; a value
that would lose information in the asked dtype (1.5 as int32) is refused; one value may fill a larger shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType


def as_array(values: Any, dtype: DType | None = None, shape: Any = None, verify_shape: bool = False) -> np.ndarray:
    """`values` as an array of `dtype`, filled or reshaped to `shape`.

    Raises TypeError where a value does not fit the dtype, ValueError where lists are ragged or do not fit `shape`.
    """
    array = _to_array(values, dtype)
    if shape is None:
        return array
    shape = tuple(int(d) for d in shape)
    if verify_shape and array.shape != shape:
        raise TypeError(f"Expected Tensor's shape: {shape}, but got {array.shape}.")
    size = int(np.prod(shape, dtype=np.int64))
    if array.size == size:
        return array.reshape(shape)
    if array.size > size:
        raise ValueError(f"Too many elements provided. Takes at most {size}, but got {array.size}.")
    if array.size == 1:
        return np.broadcast_to(array.reshape(()), shape)
    if array.size == 0:
        return np.zeros(shape, array.dtype)
    return np.concatenate([array.ravel(), np.repeat(array.ravel()[-1:], size - array.size)]).reshape(shape)


def _to_array(values: Any, dtype: DType | None) -> np.ndarray:
    if values is None:
        raise ValueError("None values not supported.")
    if isinstance(values, np.ndarray | np.generic):
        return _from_numpy(np.asarray(values), dtype)
    if hasattr(values, "__array__") and not isinstance(values, type):
        return _from_numpy(np.asarray(values), dtype)
    _check_elements(values, dtype)
    try:
        array = np.array(values, dtype=_numpy_dtype(dtype))
    except (ValueError, OverflowError) as error:
        if "inhomogeneous" in str(error) or "sequence" in str(error):
            raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {_short(values)}") from None
        raise TypeError(f"Cannot convert {_short(values)} to EagerTensor of dtype {_name(dtype)}: {error}") from None
    if dtype is not None:
        return _strings(array) if dtype == dtypes.string else array
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64:
        small = array.astype(np.int32)
        return small if np.array_equal(small, array) else array
    return _strings(array)


def _from_numpy(array: np.ndarray, dtype: DType | None) -> np.ndarray:
    if dtype is not None and dtype != dtypes.string:
        if array.dtype.kind in "OSU":
            raise TypeError(f"`dtype` {dtype!r} is not compatible with {_short(array)} of dtype {array.dtype}.")
        return array.astype(_numpy_dtype(dtype))
    array = _strings(array)
    if dtype is not None and array.dtype != object:
        raise TypeError(f"`dtype` {dtype!r} is not compatible with {_short(array)} of dtype {array.dtype}.")
    return array.copy()


def _numpy_dtype(dtype: DType | None) -> Any:
    return dtype.as_numpy_dtype if dtype is not None else None


def _strings(array: np.ndarray) -> np.ndarray:
    """Text arrays (str, bytes, object) as object arrays of bytes; others unchanged."""
    if array.dtype.kind not in "OSU":
        dtypes.as_dtype(array.dtype)  # TypeError for what TensorFlow has no dtype for
        return array
    out = np.empty(array.shape, object)
    flat = out.reshape(-1) if out.ndim else out
    for i, item in enumerate(array.reshape(-1)):
        if not isinstance(item, str | bytes):
            raise TypeError(
                f"Failed to convert elements of {_short(array)} to Tensor. Consider casting elements to a supported type."
            )
        encoded = item.encode() if isinstance(item, str) else bytes(item)
        if out.ndim:
            flat[i] = encoded
        else:
            out[()] = encoded
    return out


def _check_elements(values: Any, dtype: DType | None) -> None:
    """TypeError for the first element that TensorFlow would refuse in `dtype`."""
    if dtype is None:
        allowed: tuple[type, ...] = (object,)
    elif dtype == dtypes.string:
        allowed = (str, bytes)
    elif dtype == dtypes.bool:
        allowed = (bool, np.bool_)
    elif dtype.is_complex:
        allowed = (int, float, complex, np.number)
    elif dtype.is_floating:
        allowed = (int, float, np.integer, np.floating)
    elif dtype.is_integer or dtype.is_quantized:
        allowed = (int, np.integer)
    else:
        allowed = (object,)
    for item in _flatten(values):
        if item is None:
            raise ValueError("None values not supported.")
        if hasattr(item, "value_index"):
            raise TypeError(f"Expected any non-tensor type, but got a tensor instead: {item!r}.")
        refused_bool = isinstance(item, bool) and dtype is not None and bool not in allowed
        if isinstance(item, np.ndarray):
            continue
        if not isinstance(item, allowed) or refused_bool:
            raise TypeError(f"Expected {_name(dtype)}, but got {item!r} of type '{type(item).__name__}'.")


def _flatten(values: Any) -> Any:
    if isinstance(values, list | tuple):
        for item in values:
            yield from _flatten(item)
    else:
        yield values


def _name(dtype: DType | None) -> str:
    return dtype.name if dtype is not None else "any"


def _short(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else text[:77] + "..."



"""The Python functions behind PyFunc ops: where a kernel finds them, and how it calls them.

Stands for `python/lib/core/py_func.cc`.

Rules: a graph holds a token, never code. The function is found in the process that made it, and lives as long as its
graph. It runs where the kernel runs, on host memory, and gets copies, which it may change. Its exception becomes the
error of the step, with the user's lines.
"""

from __future__ import annotations

import itertools
import os
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import _PACKAGE
from dtflab.ops.entropy import from_system
from dtflab.ops.messages import dtype_text, invalid

_numbers = itertools.count()


class Script:
    """A function under its token, which `found` knows as long as this object lives."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # The number is TensorFlow's; with the rest, a token of another process never names a function of this one.
        self.token = f"pyfunc_{next(_numbers)}_{from_system():016x}"
        self.function = function
        found[self.token] = self


found: weakref.WeakValueDictionary[str, Script] = weakref.WeakValueDictionary()


_CLASSES: dict[type[BaseException], type[errors.OpError]] = {
    ValueError: errors.InvalidArgumentError,
    TypeError: errors.InvalidArgumentError,
    StopIteration: errors.OutOfRangeError,
    MemoryError: errors.ResourceExhaustedError,
    NotImplementedError: errors.UnimplementedError,
}


def called(function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """The function's results, one item each; its exception as TensorFlow's class for it."""
    try:
        returned = function(*map(_argument, values))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        users = [frame for frame in frames if not frame.filename.startswith(_PACKAGE + "ops" + os.sep)]
        lines = "".join(traceback.format_list(users))
        name = type(error).__name__
        kind = next((c for base, c in _CLASSES.items() if isinstance(error, base)), errors.UnknownError)
        raise kind.of(f"{name}: {error}\nTraceback (most recent call last):\n{lines}{name}: {error}") from None
    if returned is None:
        return []
    return list(returned) if isinstance(returned, list | tuple) else [returned]


def _argument(value: Any) -> Any:
    """The function's argument for a tensor: bytes, a NumPy scalar, or an array of its own."""
    return value if isinstance(value, bytes) else np.array(value)[()]


def checked(returned: list[Any], types: list[DType], label: str) -> list[Any]:
    """The results as arrays; InvalidArgumentError unless their number and dtypes are those that the program stated."""
    if len(returned) != len(types):
        raise invalid(f"{label} returns {len(returned)} values, but expects to see {len(types)} values.")
    results = []
    for i, (value, wanted) in enumerate(zip(returned, types, strict=True)):
        array = _array(value)
        dtype = dtypes.as_dtype(array.dtype)
        if dtype != wanted:
            raise invalid(f"{i}-th value returned by {label} is {dtype_text(dtype)}, but expects {dtype_text(wanted)}")
        results.append(array)
    return results


def _array(value: Any) -> Any:
    """An array that the function can no longer write into; text is bytes."""
    array = np.asarray(value, order="C")
    if array.dtype.kind in "SU":
        flat = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
        text = np.empty(len(flat), object)
        text[:] = [value] if isinstance(value, bytes) else flat  # NumPy cuts zeros off
        return text.reshape(array.shape)
    if array.dtype == object and not all(isinstance(item, bytes) for item in array.flat):
        raise errors.InternalError.of(f"Unsupported object type {type(array.flat[0]).__name__}")
    if array is value or array.base is not None:
        array = array.copy()
    array.flags.writeable = False
    return array

"""Values as JSON and back: what programs answer, types included. Nothing that is read is run."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import ml_dtypes  # noqa: F401 (NumPy then knows bfloat16 by name)
import numpy as np

# JSON's own; everything else is an object with one key, the kind.
_PLAIN = (int, float, bool, type(None))
_FRAME = re.compile(r'\n +File "[^\n]*", line \d+, in [^\n]*')  # of a traceback in one of TensorFlow's errors


def encode(value: Any) -> str:
    """The value as a line of JSON, without the frames of tracebacks.

    Raises TypeError if it holds something that has no notation.
    """
    return json.dumps(_written(value), separators=(",", ":"), ensure_ascii=True)


def decode(text: str) -> Any:
    return _read(json.loads(text))


def _written(value: Any) -> Any:
    if type(value) is str:
        return _FRAME.sub("", value)
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_written(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_written(key), _written(item)] for key, item in value.items()]}
    if isinstance(value, set | frozenset):
        return {"set": sorted((_written(item) for item in value), key=json.dumps)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.ndarray | np.generic):
        return {"array" if isinstance(value, np.ndarray) else "scalar": _array(np.asarray(value))}
    raise TypeError(f"{value!r} is a {type(value).__name__}, which has no notation")


def _array(array: np.ndarray) -> list[Any]:
    if array.dtype == object:
        return ["object", list(array.shape), [_written(item) for item in array.ravel()]]
    kind = array.dtype.str if array.dtype.kind in "SU" else array.dtype.name
    return [kind, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    return _READERS[kind](held)


def _read_array(held: list[Any]) -> np.ndarray:
    dtype, shape, data = held
    if dtype == "object":
        array = np.empty(len(data), object)
        for i, item in enumerate(data):
            array[i] = _read(item)
        return array.reshape(shape)
    return np.ndarray(shape, np.dtype(dtype), buffer=bytearray(base64.b64decode(data)))


_READERS = {
    "tuple": lambda held: tuple(map(_read, held)),
    "dict": lambda held: {_read(key): _read(item) for key, item in held},
    "set": lambda held: set(map(_read, held)),
    "bytes": base64.b64decode,
    "complex": lambda held: complex(*held),
    "array": _read_array,
    "scalar": lambda held: _read_array(held)[()],
}

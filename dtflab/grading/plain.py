"""Plain values as JSON, between the process of an answer and the one that judges it by a hidden check.

    3, "a", None          as they are; lists, too
    {"tuple": [1, 2]}     a kind that JSON does not have, and what it is made of
    {"there": [7, "<function f>", true, ""]}   an object that stays there: its number, its repr, whether it can be
                          called, its class if that is the library's
    {"here": 7}           the same on its way back

Rule: what comes in is data. Nothing of it is evaluated or unpickled, and of classes only the named tuples that are
known by `record` are made. So a submission can say nothing that does anything in the grader.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dtflab.graph.dtypes import DType, as_dtype

_AS_THEY_ARE = (type(None), bool, int, float, str)
_ITERABLES: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_records: dict[str, Any] = {}
Kind = TypeVar("Kind", bound=type)
Other = Callable[[Any], Any]  # what is done with a value that is not plain: its JSON, or its value


def encode(value: Any, other: Other) -> Any:
    """Turn a value into what JSON can hold; `other` does it for one that is not plain."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is list:
        return [encode(one, other) for one in value]
    if kind is dict:
        return {"dict": [[encode(key, other), encode(one, other)] for key, one in value.items()]}
    if kind.__name__ in _ITERABLES and kind in _ITERABLES.values():
        return {kind.__name__: [encode(one, other) for one in value]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is DType:
        return {"dtype": value.name}
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject and value.dtype.names is None:
        content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.str, [*value.shape], kind is not np.ndarray, content]}
    if _name(kind) in _records:
        return {"record": [_name(kind), *(encode(one, other) for one in value)]}
    return other(value)


def decode(found: Any, other: Other) -> Any:
    """The value that `encode` describes; `other` finds objects by `{"there": …}` or `{"here": …}`."""
    if isinstance(found, list):
        return [decode(one, other) for one in found]
    if not isinstance(found, dict):
        return found
    ((kind, content),) = found.items()
    if kind == "dict":
        return {decode(key, other): decode(one, other) for key, one in content}
    if kind in _ITERABLES:
        return _ITERABLES[kind](decode(one, other) for one in content)
    if kind == "bytes":
        return base64.b64decode(content)
    if kind == "dtype":
        return as_dtype(content)
    if kind == "array":
        return _array(*content)
    if kind == "record":
        return _records[content[0]](*(decode(one, other) for one in content[1:]))
    return other(found)


def _array(dtype: str, shape: list[int], scalar: bool, content: str) -> Any:
    array = np.frombuffer(bytearray(base64.b64decode(content)), np.dtype(dtype)).reshape(shape)
    return array[()] if scalar else array


def record(kind: Kind) -> Kind:
    """Let a named tuple travel, as one of its own kind."""
    _records[_name(kind)] = kind
    return kind


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"

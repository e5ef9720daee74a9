"""Methods of variables that are made in loops: those that write parts, and the operators that are refused.

Stands for the scatter methods of `python/ops/ref_variable.py` and `resource_variable_ops.py`, and for `__iadd__` and
the like of the latter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dtflab.graph.dtypes import DType
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.ops.variables import functions


class ScatterMethods:
    """`v.scatter_add(slices)` and the like."""

    def _in_order(self) -> contextlib.AbstractContextManager[Any]:
        """The scope for a write: after the one that this variable is the result of."""
        return contextlib.nullcontext()

    def _written(self) -> Any:
        """What the functions that write parts of variables are given."""
        raise NotImplementedError


def _scatter(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: ScatterMethods, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        if not (functions.is_ref(self) or isinstance(sparse_delta, IndexedSlices)):
            raise TypeError(f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {sparse_delta}")
        with self._in_order():
            return function(self._written(), sparse_delta.indices, sparse_delta.values, use_locking, name)

    method.__name__ = function.__name__
    method.__doc__ = f"As `tf.{function.__name__}`, for IndexedSlices."
    return method


def _scatter_nd(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: ScatterMethods, indices: Any, updates: Any, name: Any = None) -> Any:
        with self._in_order():
            return function(self._written(), indices, updates, use_locking=True, name=name)

    method.__name__ = function.__name__
    method.__doc__ = f"As `tf.{function.__name__}`."
    return method


for _function in functions.SCATTERS:
    setattr(ScatterMethods, _function.__name__, _scatter(_function))
for _function in functions.SLICE_SCATTERS:
    setattr(ScatterMethods, _function.__name__, _scatter_nd(_function))


class RefusedOperators:
    """`v += 1` is an error where it would make a tensor of what was a variable."""


def _refused(symbol: str, use: str) -> Any:
    def method(self: RefusedOperators, other: Any) -> Any:
        raise RuntimeError(
            f"`variable {symbol}= value` with `tf.Variable`s is not supported. Use `{use}` to modify the "
            f"variable, or `out = variable {symbol} value` if you need to get a new output Tensor."
        )

    return method


for _name, _symbol, _use in (
    ("add", "+", "variable.assign_add(value)"),
    ("sub", "-", "variable.assign_sub(value)"),
    ("mul", "*", "var.assign(var * value)"),
    ("truediv", "/", "var.assign(var / value)"),
    ("pow", "**", "var.assign(var ** value)"),
):
    setattr(RefusedOperators, f"__i{_name}__", _refused(_symbol, _use))


def check_conversion(variable: Any, dtype: DType | None) -> None:
    """ValueError if the value of `variable` is not of `dtype`."""
    if dtype is not None and not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type "
            f"'{variable.dtype.name}'"
        )

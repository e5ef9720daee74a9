"""Operators and methods that are made in loops: those of what is used like a tensor, and of variables.

Stands for `_OverloadAllOperators` of `python/ops/variables.py`, `_LazyEvalTensor` of `variable_scope.py`, the scatter
methods of `python/ops/ref_variable.py` and `resource_variable_ops.py`, and the likes of `__iadd__` of the latter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dtflab.base.naming import named
from dtflab.graph.convert import register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.fetches import register_fetch_expansion
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collection, colocate_with, name_scope
from dtflab.ops.variables import functions


class Operators:
    """Base of what has the operators of the tensor `_operand()`."""

    def _operand(self) -> Tensor:
        raise NotImplementedError


def _deferred(operator: str) -> Callable[..., Any]:
    """Tensor's operator, looked up late, since the ops install it."""

    def run(self: Operators, *args: Any) -> Any:
        return getattr(self._operand(), operator)(*args)

    run.__name__ = operator
    return run


for _name in (
    "add radd sub rsub mul rmul div rdiv truediv rtruediv floordiv rfloordiv mod rmod pow rpow "
    "matmul rmatmul lt le gt ge and rand or ror xor rxor invert neg abs getitem"
).split():
    setattr(Operators, f"__{_name}__", _deferred(f"__{_name}__"))


class LazyTensor(Operators):
    """A tensor that is built again wherever it is used, so that it can also be used inside a branch or a loop."""

    def __init__(self, build: Callable[[], Tensor]) -> None:
        self._build = build
        self._first = build()

    def _operand(self) -> Tensor:
        return self._build()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._first, name)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in `session` or the default session."""
        return self._build().eval(feed_dict, session)

    def __str__(self) -> str:
        return str(self._first)


register_tensor_conversion_function(LazyTensor, lambda lazy, dtype=None, name=None, as_ref=False: lazy._build())
register_fetch_expansion(LazyTensor, lambda lazy: ([lazy._first], lambda values: values[0]))


def regularize(variable: Any, name: str, regularizer: Callable[[Any], Any]) -> None:
    """Put the loss that `regularizer` makes of the variable, if any, where losses are collected."""

    def build() -> Tensor:
        with colocate_with(variable), name_scope(f"{name}/Regularizer/"):
            return regularizer(variable)

    if regularizer(variable) is not None:
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, LazyTensor(build))


# -- of variables ---------------------------------------------------------------------------------------


class ScatterMethods:
    """`v.scatter_add(slices)` and the like."""

    def _in_order(self) -> contextlib.AbstractContextManager[Any]:
        """The scope for a write: after the one that this variable is the result of."""
        return contextlib.nullcontext()

    def _written(self) -> Any:
        """The variable as the functions that write parts of variables take it."""
        raise NotImplementedError


def _scatter(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: ScatterMethods, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        if not (functions.is_ref(self) or isinstance(sparse_delta, IndexedSlices)):
            raise TypeError(f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {sparse_delta}")
        with self._in_order():
            return function(self._written(), sparse_delta.indices, sparse_delta.values, use_locking, name)

    return named(method, function.__name__, f"As `tf.{function.__name__}`, for IndexedSlices.")


def _scatter_nd(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: ScatterMethods, indices: Any, updates: Any, name: Any = None) -> Any:
        with self._in_order():
            return function(self._written(), indices, updates, use_locking=True, name=name)

    return named(method, function.__name__, f"As `tf.{function.__name__}`.")


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

"""Operators of things used like tensors: variables, and tensors that are built again wherever they are used.

Stands for `_OverloadAllOperators` of `python/ops/variables.py` and `_LazyEvalTensor` of `variable_scope.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.convert import register_tensor_conversion_function
from dtflab.graph.fetches import register_fetch_expansion
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collection, colocate_with, name_scope


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

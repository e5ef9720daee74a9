"""`a + b`, `a < b`, `a[i]`: what Python's operators mean on tensors.

Stands for `python/framework/override_binary_operator.py` and `python/ops/tensor_math_operator_overrides.py`.

Rule: names are TensorFlow's: `a * 2` is the op `mul` with the constant `mul/y`. `==` and `!=` compare the
tensors themselves, as in TF1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.indexing.getitem import getitem
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.math import functions as math
from dtflab.ops.sparse.sparse_tensor import SparseTensor


def _is_bool(*values: Any) -> bool:
    return any(isinstance(v, Tensor) and v.dtype.base_dtype == dtypes.bool for v in values)


def _add(x: Any, y: Any, name: str | None = None) -> Tensor:
    if not isinstance(y, Tensor):
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
    return apply_op("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", name, x=x, y=y)


def _mul(x: Any, y: Any, name: str | None = None) -> Any:
    if isinstance(y, SparseTensor):
        values = apply_op(
            "SparseDenseCwiseMul", name, sp_indices=y.indices, sp_values=y.values, sp_shape=y.dense_shape, dense=x
        )
        return SparseTensor(y.indices, values, y.dense_shape)
    if not _is_bool(x, y):
        return math.multiply(x, y, name)
    x, y = (apply_op("Cast", x=v, DstT=dtypes.int32) for v in (x, y))
    return apply_op("Cast", x=math.multiply(x, y, name), DstT=dtypes.bool)


def _mod(x: Any, y: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "mod", [x, y]) as scope:
        return apply_op("FloorMod", scope, x=x, y=y)


def _and(x: Any, y: Any, name: str | None = None) -> Tensor:
    return math.logical_and(x, y, name) if _is_bool(x) else math.bitwise_and(x, y)


def _or(x: Any, y: Any, name: str | None = None) -> Tensor:
    return math.logical_or(x, y, name) if _is_bool(x) else math.bitwise_or(x, y)


def _xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    return math.logical_xor(x, y, name or "LogicalXor") if _is_bool(x) else math.bitwise_xor(x, y)


def _invert(x: Any, name: str | None = None) -> Tensor:
    return math.logical_not(x, name) if _is_bool(x) else math.invert(x, name)


def _matmul(x: Any, y: Any, name: str | None = None) -> Tensor:
    return matmul(x, y, name=name)


_BINARY: dict[str, Callable[..., Tensor]] = {
    "add": _add,
    "and": _and,
    "div": math.div,
    "floordiv": math.floordiv,
    "matmul": _matmul,
    "mod": _mod,
    "mul": _mul,
    "or": _or,
    "pow": math.pow,
    "sub": math.subtract,
    "truediv": math.truediv,
    "xor": _xor,
}


def _left(function: Callable[..., Tensor], operator: str) -> Callable[[Any, Any], Any]:
    """`x op y`, where x is a tensor."""
    reflected = f"__r{operator}__"

    def method(x: Any, y: Any) -> Any:
        with name_scope(None, operator, [x, y]) as scope:
            try:
                return function(x, y, name=scope)
            except (TypeError, ValueError):
                # y may know what to do with a tensor on its left (a variable, a user's class).
                if isinstance(y, Tensor) or not hasattr(type(y), reflected):
                    raise
                try:
                    result = getattr(y, reflected)(x)
                except (TypeError, ValueError, NotImplementedError):  # the last is NumPy's, which can't take a tensor
                    result = NotImplemented
                if result is NotImplemented:
                    raise
                return result

    return method


def _right(function: Callable[..., Tensor], operator: str) -> Callable[[Any, Any], Any]:
    """`x op y`, where y is a tensor and x is not."""

    def method(y: Any, x: Any) -> Any:
        with name_scope(None, operator, [x, y]) as scope:
            return function(convert_to_tensor(x, y.dtype.base_dtype, name="x"), y, name=scope)

    return method


def _without_name(function: Callable[..., Tensor]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(x, y)


for _operator, _function in _BINARY.items():
    Tensor.override_operator(f"__{_operator}__", _left(_function, _operator))
    Tensor.override_operator(f"__r{_operator}__", _right(_function, _operator))
Tensor.override_operator("__lt__", _without_name(math.less))
Tensor.override_operator("__le__", _without_name(math.less_equal))
Tensor.override_operator("__gt__", _without_name(math.greater))
Tensor.override_operator("__ge__", _without_name(math.greater_equal))
Tensor.override_operator("__neg__", lambda x: math.negative(x))
Tensor.override_operator("__abs__", lambda x: math.abs(x))
Tensor.override_operator("__invert__", _invert)
Tensor.override_operator("__getitem__", getitem)

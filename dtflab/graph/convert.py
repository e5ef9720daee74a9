"""Anything a program may pass → a Tensor.

Stands for `python/framework/tensor_conversion_registry.py` and `constant_op.py`.

Rule: types of upper rooms (variables, sparse values) register their own conversion; everything else is a
constant, or a `Pack` where a list has tensors in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.array_value import as_array
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import get_default_graph
from dtflab.graph.tensor_shape import Dimension, TensorShape

Conversion = Callable[..., Any]
_conversions: list[tuple[type, Conversion]] = []


def _not_loaded(values: Sequence[Any], dtype: DType | None, name: str) -> Tensor:
    raise NotImplementedError("dtflab.graph.apply_op is not loaded")


pack = _not_loaded  # how a list with tensors becomes one; `apply_op.py`, which needs conversions, enters its own


def register_tensor_conversion_function(base_type: Any, conversion_func: Conversion, priority: int = 100) -> None:
    """`conversion_func(value, dtype, name, as_ref)` makes tensors of values of `base_type`."""
    _conversions.extend((one, conversion_func) for one in (base_type if isinstance(base_type, tuple) else [base_type]))


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    as_ref: bool = False,
) -> Tensor:
    """`value` as a Tensor of the default graph.

    `preferred_dtype` is tried first and dropped if it does not fit. Raises TypeError or ValueError for a value
    of another dtype, or one that is not a tensor at all.
    """
    wanted = dtypes.as_dtype(dtype) if dtype is not None else None
    hint = preferred_dtype if preferred_dtype is not None else dtype_hint
    if isinstance(value, Tensor):
        return _checked(value, wanted, name)
    for base_type, conversion in _conversions:
        if isinstance(value, base_type):
            converted: Tensor = conversion(value, dtype=wanted, name=name, as_ref=as_ref)
            return converted
    if wanted is None and hint is not None:
        try:
            return _from_python(value, dtypes.as_dtype(hint).base_dtype, name)
        except (TypeError, ValueError):
            pass
    return _from_python(value, wanted, name)


def _checked(value: Tensor, wanted: DType | None, name: str | None) -> Tensor:
    if wanted is not None and not wanted.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.name}: {value!r}"
        )
    return value


def _from_python(value: Any, dtype: DType | None, name: str | None) -> Tensor:
    if isinstance(value, Operation):
        raise TypeError(
            f"Can't convert Operation '{value.name}' to Tensor (target dtype={dtype.name if dtype else None!r}, "
            f"name={name!r}): it has no value. Fetch it with session.run, or use one of its outputs."
        )
    if isinstance(value, TensorShape):
        return _from_shape(value, dtype, name)
    if isinstance(value, Dimension):
        if value.value is None:
            raise ValueError(f"Cannot convert unknown Dimension to a Tensor: {value}")
        return constant(value.value, dtype or dtypes.int32, name=name or "Const")
    if isinstance(value, list | tuple) and contains_tensor(value):
        return pack(value, dtype, name or "packed")
    if isinstance(value, list | tuple) and any(isinstance(v, Dimension) for v in value):
        if dtype is None:
            raise TypeError(f"Failed to convert elements of {value} to Tensor. Consider casting them to integers.")
        return constant([int(v) for v in value], dtype or dtypes.int32, name=name or "Const")
    return constant(value, dtype, name=name or "Const")


def _from_shape(value: TensorShape, dtype: DType | None, name: str | None) -> Tensor:
    if not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
    dims = value.as_list()
    if dtype not in (None, dtypes.int32, dtypes.int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype {dtype.name}. Prefer tf.int32 or tf.int64.")
    return constant(dims, dtype or dtypes.int32, name=name or "shape_as_tensor")


def contains_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(contains_tensor, value))
    return isinstance(value, Tensor) or any(isinstance(value, t) for t, _ in _conversions)


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False
) -> Tensor:
    """A tensor whose value stands in the graph.

    `shape` may be larger than the value: the last element fills the rest. Raises TypeError for a value that does
    not fit `dtype`.
    """
    wanted = dtypes.as_dtype(dtype).base_dtype if dtype is not None else None
    dims = shape if shape is None or isinstance(shape, list | tuple | np.ndarray) else TensorShape(shape).as_list()
    array = as_array(value, wanted, dims, verify_shape)
    array.flags.writeable = False
    attrs = {"value": array, "dtype": wanted or dtypes.as_dtype(array.dtype)}
    return get_default_graph().create_op("Const", [], name=name, attrs=attrs).outputs[0]

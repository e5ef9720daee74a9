"""The arguments of `padded_batch`: shapes and values as tensors, one per component.

Stands for the helpers of `python/data/ops/padded_batch_op.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtflab.base import nest
from dtflab.data.structure import leaves_up_to
from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape, as_shape


def padded_shape_tensors(shapes: Any, padded: Any) -> tuple[list[Tensor], list[TensorShape]]:
    """Each padded shape as an int64 vector, and as far as it is known before; ValueError if one does not fit."""
    flat = nest.flatten(shapes)
    if padded is None:
        for i, shape in enumerate(flat):
            if shape.ndims is None:
                raise ValueError(f"You must provide `padded_shapes` argument because component {i} has unknown rank.")
    wanted = flat if padded is None else leaves_up_to(shapes, padded)
    found = [_padded_shape(one, shape) for one, shape in zip(wanted, flat, strict=True)]
    return [tensor for tensor, _ in found], [static for _, static in found]


def _padded_shape(padded: Any, shape: TensorShape) -> tuple[Tensor, TensorShape]:
    if isinstance(padded, Tensor):
        tensor = padded
        if tensor.dtype != dtypes.int64 or tensor.shape.ndims not in (None, 1):
            raise TypeError(f"Padded shape {padded} must be a `tf.int64` vector tensor.")
        value = constant_value(tensor)
        if value is not None:
            static = TensorShape([None if d < 0 else int(d) for d in value])
        else:
            static = TensorShape([None] * tensor.shape[0].value if tensor.shape.is_fully_defined() else None)
    else:
        sizes = [None if size == -1 else size for size in padded] if isinstance(padded, list | tuple) else padded
        static = as_shape(sizes)
        tensor = convert_to_tensor([-1 if d is None else d for d in static.as_list()], dtypes.int64)
    if not _fits(static, shape):
        raise ValueError(
            f"The padded shape {static} is not compatible with the shape {shape} of the corresponding input component."
        )
    return tensor, static


def _fits(padded: TensorShape, shape: TensorShape) -> bool:
    if padded.ndims is None or shape.ndims is None:
        return True
    pairs = zip(padded.as_list(), shape.as_list(), strict=False)
    return padded.ndims == shape.ndims and all(p is None or s is None or p >= s for p, s in pairs)


def padding_value_tensors(types: Any, values: Any) -> list[Tensor]:
    """Each padding value as a scalar of its component's dtype; TypeError if it is of another one."""
    flat = nest.flatten(types)
    values = leaves_up_to(types, values) if isinstance(values, Mapping | tuple) else [values] * len(flat)
    return [_padding_value(value, dtype) for value, dtype in zip(values, flat, strict=True)]


def _padding_value(value: Any, dtype: DType) -> Tensor:
    if value is None:
        return convert_to_tensor(b"" if dtype == dtypes.string else 0 if not dtype.is_bool else False, dtype)
    tensor = convert_to_tensor(value, name="padding_value")
    if not tensor.shape.is_compatible_with([]):
        raise ValueError(
            f"Invalid `padding_values`. `padding_values` values should be scalars, but got {tensor.shape}."
        )
    if tensor.dtype != dtype:
        raise TypeError(
            f"Invalid `padding_values`. `padding_values` values type {tensor.dtype!r} does not match type {dtype!r} "
            "of the corresponding input component."
        )
    return tensor

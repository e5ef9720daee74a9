"""Variants ⇄ VariantTensorDataProto: lists of tensors and optional values between tasks.

Stands for `TensorList::Encode` and `Decode` in `core/kernels/tensor_list.cc` and their like in
`core/kernels/data/optional_ops.h`. Left out: data sets, which TensorFlow does not send either.

Rule: the bytes are TensorFlow's, so that the other task may be a TensorFlow process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base.varint import get_varint, put_varint
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.variants import Optional, TensorList, Variant
from dtflab.protos.tensor_pb2 import VariantTensorDataProto
from dtflab.protos.tensor_shape_pb2 import TensorShapeProto

_LIST, _OPTIONAL = "tensorflow::TensorList", "tensorflow::data::Optional"
_UNLIMITED = 2**64 - 1  # -1 as TensorFlow writes it


def variant_to_proto(value: Variant, to_proto: Callable[[Any], Any]) -> VariantTensorDataProto:
    """A variant as a message; `to_proto` is for the tensors in it. TypeError for one that can't travel."""
    if isinstance(value, TensorList):
        unset = [i for i, item in enumerate(value.items) if item is None]
        limit = _UNLIMITED if value.limit < 0 else value.limit
        numbers = [len(unset), *unset, value.dtype.as_datatype_enum, limit]
        metadata = b"".join(map(put_varint, numbers)) + value.element_shape.as_proto().SerializeToString()
        tensors = [to_proto(item) for item in value.items if item is not None]
        return VariantTensorDataProto(type_name=_LIST, metadata=metadata, tensors=tensors)
    if isinstance(value, Optional):
        metadata, tensors = bytes([value.values is not None]), [to_proto(one) for one in value.values or ()]
        return VariantTensorDataProto(type_name=_OPTIONAL, metadata=metadata, tensors=tensors)
    raise TypeError(f"{value!r} stays in its task: put its producer and its consumer there.")


def variant_from_proto(message: Any, from_proto: Callable[[Any], Any]) -> Variant:
    """The variant in a message; TypeError for a kind that dtflab does not have."""
    tensors = [from_proto(tensor) for tensor in message.tensors]
    if message.type_name == _OPTIONAL:
        return Optional(tensors if message.metadata[:1] == b"\1" else None)
    if message.type_name != _LIST:
        raise TypeError(f"dtflab has no variants of type {message.type_name!r}")
    view, position = memoryview(message.metadata), 0
    count, position = get_varint(view, position)
    unset = []
    for _ in range(count):
        index, position = get_varint(view, position)
        unset.append(index)
    dtype, position = get_varint(view, position)
    limit, position = get_varint(view, position)
    shape = TensorShape(TensorShapeProto.FromString(bytes(view[position:])))
    for index in unset:  # in rising order
        tensors.insert(index, None)
    return TensorList(tensors, DType(dtype), shape, -1 if limit >= 1 << 31 else limit)

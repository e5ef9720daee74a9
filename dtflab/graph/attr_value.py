"""Attribute values: Python ⇄ AttrValue messages.

Stands for `core/framework/attr_value_util.cc`. Python's side is int, float, bool, bytes, DType, TensorShape,
np.ndarray (a tensor), FunctionAttr (a function), and lists of these.

Rule: the op's interface says what a declared attribute holds; an undeclared one says it by itself, and what
Python could not give back unchanged (a list of two kinds, say) stays a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dtflab.base.limits import beyond, limits
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.function_attr import FunctionAttr
from dtflab.graph.op_registry import AttrDef
from dtflab.graph.tensor_proto import listed_values, make_ndarray, make_tensor_proto
from dtflab.graph.tensor_shape import TensorShape
from dtflab.protos.attr_value_pb2 import AttrValue, NameAttrList
from dtflab.protos.types_pb2 import DataType

# Kind of attribute in an interface → field of AttrValue.
FIELD_OF_KIND = {kind: kind[0] for kind in ("int", "float", "bool", "string")}
FIELD_OF_KIND |= {kind: kind for kind in ("type", "shape", "tensor", "func")}


def array_to_proto(array: np.ndarray) -> Any:
    """A TensorProto; one value spread over a shape (`np.broadcast_to`) travels once."""
    array = np.asarray(array)
    if array.size > 1 and not any(array.strides):
        return make_tensor_proto(array[(0,) * array.ndim], dtypes.as_dtype(array.dtype), array.shape)
    return make_tensor_proto(array, dtypes.as_dtype(array.dtype))


def proto_to_array(proto: Any) -> np.ndarray:
    """The tensor, read-only; one value spread over a shape stays one value in memory."""
    dtype = DType(proto.dtype)
    if dtype._is_ref_dtype or not dtype.is_numpy_compatible:
        raise ValueError(f"A tensor of type {dtype.name} can't be the value of an attribute")
    if not proto.tensor_content:
        values = listed_values(proto, dtype)
        if values.size == 1:
            return np.broadcast_to(values.reshape(()), [dim.size for dim in proto.tensor_shape.dim])
    array = make_ndarray(proto)
    array.flags.writeable = False
    return array


def expanded(attrs: Mapping[str, Any], messages: Mapping[str, Any]) -> int:
    """The bytes of tensors in attributes that their messages, which list fewer elements, do not have."""
    found = 0
    for name, value in attrs.items():
        if isinstance(value, _MAY_HOLD_TENSORS) and name in messages:
            tensors = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, np.ndarray)]
            nbytes = sum(tensor.nbytes for tensor in tensors if any(tensor.strides))
            found += max(0, nbytes - int(messages[name].ByteSize())) if nbytes > _SMALL else 0
    return found


def listed(attrs: Mapping[str, Any]) -> int:
    """The elements of lists in attributes, without those of short ones."""
    return sum(len(value) for value in attrs.values() if isinstance(value, list) and len(value) > _SHORT)


_MAY_HOLD_TENSORS = (np.ndarray, list)
# Smaller things are not counted: a node of a message takes as much memory.
_SMALL = 1 << 12  # bytes of a tensor
_SHORT = 1 << 7  # elements of a list


def function_to_proto(function: FunctionAttr) -> NameAttrList:
    message = NameAttrList(name=function.name)
    for name, value in function.attrs.items():
        write(message.attr[name], value)
    return message


def function_from_proto(message: Any) -> FunctionAttr:
    """The function that a message names; `function_attr.bound` says where to find it."""
    return FunctionAttr(message.name, {name: read(value) for name, value in message.attr.items()})


def _shape_from_proto(message: Any) -> TensorShape:
    """ValueError for more dimensions than any tensor of TensorFlow has."""
    if len(message.dim) > _MOST_DIMENSIONS:
        raise ValueError(f"A shape has too many dimensions: {len(message.dim)}, not at most {_MOST_DIMENSIONS}")
    return TensorShape(message)


_MOST_DIMENSIONS = 254

_MESSAGES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # to message, from message
    "shape": (TensorShape.as_proto, _shape_from_proto),
    "tensor": (array_to_proto, proto_to_array),
    "func": (function_to_proto, function_from_proto),
}


# -- Python → message -----------------------------------------------------------------------------------------


def write(message: Any, value: Any, kind: str | None = None) -> None:
    """Put `value` into an empty AttrValue; without `kind` the value's type decides."""
    if isinstance(value, AttrValue):
        message.CopyFrom(value)
    elif isinstance(value, list | tuple):
        message.list.SetInParent()  # also an empty list is a list
        if value:
            field = FIELD_OF_KIND[kind[5:-1]] if kind else _field_of(value[0])
            getattr(message.list, field).extend(_stored(field, item) for item in value)
    else:
        _set(message, FIELD_OF_KIND[kind] if kind else _field_of(value), value)


def _set(message: Any, field: str, value: Any) -> None:
    if field in _MESSAGES:
        getattr(message, field).CopyFrom(_stored(field, value))
    else:
        setattr(message, field, _stored(field, value))


def _stored(field: str, value: Any) -> Any:
    """The form in which that field of an AttrValue, or an item of it in its list, holds `value`."""
    if field in _MESSAGES:
        return _MESSAGES[field][0](value)
    if field == "type":
        return value.as_datatype_enum
    return value.encode() if isinstance(value, str) else value


_FIELD_OF_TYPE: list[tuple[Any, str]] = [
    ((bool, np.bool_), "b"),  # before int, which bool is
    ((int, np.integer), "i"),
    ((float, np.floating), "f"),
    ((bytes, str), "s"),
    (DType, "type"),
    (TensorShape, "shape"),
    (np.ndarray, "tensor"),
    (FunctionAttr, "func"),
]


def _field_of(value: Any) -> str:
    for python_type, field in _FIELD_OF_TYPE:
        if isinstance(value, python_type):
            return field
    raise TypeError(f"{value!r} of type {type(value).__name__} can't be the value of an attribute.")


def as_message(value: Any) -> Any:
    """A value as `Operation.get_attr` gives it: shapes, tensors and functions are messages, all else is what it is."""
    if isinstance(value, list):
        return [as_message(item) for item in value]
    if isinstance(value, TensorShape):
        return value.as_proto()
    if isinstance(value, FunctionAttr):
        return function_to_proto(value)
    return array_to_proto(value) if isinstance(value, np.ndarray) else value


# -- message → Python -----------------------------------------------------------------------------------------

_FROM_FIELD: dict[str, Callable[[Any], Any]] = {"type": DType, **{f: rules[1] for f, rules in _MESSAGES.items()}}
_KIND_OF_FIELD = {field: kind for kind, field in FIELD_OF_KIND.items()}


def plain(value: Any, attr: AttrDef | None = None) -> Any:
    """The Python value of an attribute, which a program gives as it is or as an AttrValue."""
    return read(value, attr) if isinstance(value, AttrValue) else value


def read(message: Any, attr: AttrDef | None = None) -> Any:
    """The value in an AttrValue, checked against the declaration if there is one (ValueError)."""
    field = message.WhichOneof("value")
    if attr is None:
        return _read_undeclared(message, field)
    kind = attr.type
    if kind.startswith("list("):
        wanted = FIELD_OF_KIND[kind[5:-1]]
        if field != "list" or (not getattr(message.list, wanted) and message.list.ListFields()):
            raise ValueError(_wrong_kind(message, field, kind))
        value: Any = _read_list(message.list, wanted)
    else:
        wanted = FIELD_OF_KIND[kind]
        if field != wanted:
            raise ValueError(_wrong_kind(message, field, kind))
        value = getattr(message, wanted)
        if wanted in _FROM_FIELD:
            value = _FROM_FIELD[wanted](value)
    types = [value] if kind == "type" else value if kind == "list(type)" else ()
    if any(dtype._is_ref_dtype for dtype in types):
        raise ValueError(f"AttrValue must not have reference type value for attr '{attr.name}'")
    if attr.allowed is not None or attr.minimum is not None:
        check(attr, value)
    return value


def _read_list(message: Any, field: str) -> list[Any]:
    convert = _FROM_FIELD.get(field)
    values = getattr(message, field)
    if len(values) > limits.list_length:
        raise ValueError(beyond("list_length", f"A list in an attribute has {len(values)} elements"))
    return list(values) if convert is None else [convert(value) for value in values]


def _read_undeclared(message: Any, field: str | None) -> Any:
    try:
        if field == "list":
            filled = message.list.ListFields()
            if len(filled) < 2:
                return _read_list(message.list, filled[0][0].name) if filled else []
        elif field is not None and field != "placeholder":
            value = getattr(message, field)
            return _FROM_FIELD[field](value) if field in _FROM_FIELD else value
    except (TypeError, ValueError):  # a note of its writer, such as grappler's shapes with symbols for sizes
        pass
    return AttrValue.FromString(message.SerializeToString())


def _wrong_kind(message: Any, field: str | None, kind: str) -> str:
    if field is None:
        found = "no value"
    elif field == "list":
        filled = message.list.ListFields()
        found = f"value with type 'list({_KIND_OF_FIELD[filled[0][0].name] if filled else 'any'})'"
    else:
        found = f"value with type '{_KIND_OF_FIELD.get(field, field)}'"
    return f"AttrValue had {found} when '{kind}' expected"


def check(attr: AttrDef, value: Any) -> None:
    """ValueError if a stored value is not among those that the interface allows."""
    if attr.allowed is not None:
        for one in value if isinstance(value, list) else (value,):
            if one not in attr.allowed:
                shown = ", ".join(_shown(a) for a in attr.allowed)
                raise ValueError(
                    f"Value for attr '{attr.name}' of {_shown(one)} is not in the list of allowed values: {shown}"
                )
    if attr.minimum is not None:
        if isinstance(value, list) and len(value) < attr.minimum:
            raise ValueError(f"Length for attr '{attr.name}' of {len(value)} must be at least minimum {attr.minimum}")
        if isinstance(value, int) and value < attr.minimum:
            raise ValueError(f"Value for attr '{attr.name}' of {value} must be at least minimum {attr.minimum}")


def _shown(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    return f'"{value.decode(errors="replace")}"' if isinstance(value, bytes) else str(value)


# -- in messages ----------------------------------------------------------------------------------------------

_MOST_LISTED, _MOST_CHARACTERS = 50, 80  # what is longer is shown by its two ends
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def summary_of_all(attrs: dict[str, Any]) -> str:
    """Attributes as TensorFlow's messages show them: `T=DT_FLOAT, use_locking=true`."""
    return ", ".join(f"{name}={summary(value)}" for name, value in sorted(attrs.items()))


def summary(value: Any) -> str:
    """One value, a long text or list without its middle, a tensor without its elements."""
    if isinstance(value, AttrValue):
        return str(value).strip()
    if isinstance(value, list | tuple):
        shown = [summary(item) for item in value]
        return f"[{', '.join(shown if len(shown) < _MOST_LISTED else [*shown[:5], '...', *shown[-5:]])}]"
    return _SUMMARIES[_field_of(value)](value)


def _float_summary(value: float) -> str:
    single = np.float32(value)
    short = f"{single:.6g}"
    return short if np.float32(short) == single else f"{single:.9g}"


def _text_summary(value: bytes | str) -> str:
    characters = (value.encode() if isinstance(value, str) else value).decode("latin-1")
    text = "".join(_ESCAPES.get(c) or (c if " " <= c <= "~" else f"\\{ord(c):03o}") for c in characters)
    return f'"{text if len(text) < _MOST_CHARACTERS else f"{text[:10]}...{text[-10:]}"}"'


def _shape_summary(shape: TensorShape) -> str:
    if shape.ndims is None:
        return "<unknown>"
    return f"[{','.join('?' if size is None else str(size) for size in shape.as_list())}]"


def _function_summary(function: FunctionAttr) -> str:
    return f"{function.name}[{summary_of_all(function.attrs)}]"


_SUMMARIES: dict[str, Callable[[Any], str]] = {
    "b": lambda value: str(bool(value)).lower(),
    "i": str,
    "f": _float_summary,
    "s": _text_summary,
    "type": lambda value: DataType.Name(value.as_datatype_enum),
    "shape": _shape_summary,
    "tensor": lambda value: f"Tensor<type: {value.dtype} shape: {_shape_summary(TensorShape(value.shape))}>",
    "func": _function_summary,
}

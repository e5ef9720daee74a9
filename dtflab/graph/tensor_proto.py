"""Values in a graph: Python and NumPy values → TensorProto, and TensorProto → array.

Stands for `make_tensor_proto` and `MakeNdarray` in `tensorflow/python/framework/tensor_util.py`.
Left out: variants. Better than there: arrays of foreign byte order keep their values.
The rule it obeys: the message is TensorFlow's byte for byte, because GraphDefs are compared with its own. So
one element goes into the `*_val` field of its dtype, more than one into `tensor_content`, and with a larger
`shape` the last value of the field stands for all that are missing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dtflab.base.limits import beyond, limits
from dtflab.base.varint import get_varint
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.nested_values import is_array_like, leaves, to_array
from dtflab.graph.tensor_shape import as_shape
from dtflab.protos.tensor_pb2 import TensorProto

# Which field holds single values.
_FIELDS: dict[DType, str] = {
    **dict.fromkeys((dtypes.float16, dtypes.bfloat16), "half_val"),
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    **dict.fromkeys((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16), "int_val"),
    **dict.fromkeys((dtypes.qint8, dtypes.qint16, dtypes.qint32, dtypes.quint8, dtypes.quint16), "int_val"),
    dtypes.int64: "int64_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
    dtypes.bool: "bool_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.string: "string_val",
    **dict.fromkeys((dtypes.float8_e5m2, dtypes.float8_e4m3fn, dtypes.float8_e4m3fnuz), "float8_val"),
    **dict.fromkeys((dtypes.float8_e4m3b11fnuz, dtypes.float8_e5m2fnuz, dtypes.float4_e2m1fn), "float8_val"),
    **dict.fromkeys((dtypes.int4, dtypes.uint4, dtypes.int2, dtypes.uint2), "int_val"),
}
_NARROW_INTS = (dtypes.int4, dtypes.uint4, dtypes.int2, dtypes.uint2)
# What make_tensor_proto always lists. That uint16 is among them has no reason but TensorFlow's example.
_NO_CONTENT = {*(dtypes.bool, dtypes.complex64, dtypes.complex128, dtypes.string, dtypes.uint16), *_NARROW_INTS}
# The plain NumPy type whose bits an element has, where a message stores bits or parts.
_BITS: dict[str, Any] = {"half_val": np.uint16, "float8_val": np.uint8}
_BITS |= {"scomplex_val": np.float32, "dcomplex_val": np.float64}
_MAX_CONTENT = (1 << 31) - 1  # protobuf counts bytes in an int32


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> TensorProto:
    """`values` as a TensorProto; a TensorProto is returned as it is.

    Raises TypeError where a value does not fit `dtype`, ValueError where lists are ragged or hold more
    elements than `shape`; with `verify_shape` a TypeError unless the shapes are equal.
    """
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    if isinstance(values, TensorProto):
        return values
    wanted = dtypes.as_dtype(dtype) if dtype is not None else None
    if is_array_like(values):
        values = np.asarray(values)
    array = to_array(values, wanted, shape)
    found = wanted if wanted is not None and wanted.is_quantized else dtypes.as_dtype(array.dtype)
    if wanted is not None and wanted.base_dtype != found.base_dtype:
        raise TypeError(f"`dtype` {wanted} is not compatible with {values} of dtype {array.dtype}.")
    if shape is None:
        dims: list[int] = list(array.shape)
    else:
        dims = [int(dim) for dim in shape]
        _check_shape(array, dims, verify_shape, allow_broadcast)
    proto = TensorProto(tensor_shape=as_shape(dims).as_proto())
    proto.dtype = found.as_datatype_enum  # type: ignore[assignment]  # an enum field takes any number
    _fill(proto, array, found, values, int(np.prod(dims, dtype=np.int64)))
    return proto


def _check_shape(array: np.ndarray[Any, Any], dims: list[int], verify: bool, allow_broadcast: bool) -> None:
    size = int(np.prod(dims, dtype=np.int64))
    if allow_broadcast:
        wrong = array.shape not in ((), (1,)) and array.size != size
    else:
        wrong = verify and array.shape != tuple(dims)
    if wrong:
        raise TypeError(f"Expected Tensor's shape: {tuple(dims)}, but got {array.shape}.")
    if not allow_broadcast and array.size > size:
        raise ValueError(f"Too many elements provided. Takes at most {size:d}, but got {array.size:d}.")


def _fill(proto: TensorProto, array: np.ndarray[Any, Any], dtype: DType, values: Any, size: int) -> None:
    if 1 < size == array.size and dtype not in _NO_CONTENT:
        if array.nbytes > _MAX_CONTENT:
            raise ValueError("Cannot create a tensor proto whose content is larger than 2GB.")
        proto.tensor_content = array.tobytes()
    elif dtype == dtypes.string:
        # From the given values, not from the array: NumPy cuts trailing zero bytes off.
        from_array = isinstance(values, np.ndarray)
        proto.string_val.extend(_strings(array.ravel().tolist() if from_array else values, from_array))
    elif (field := _FIELDS[dtype]) == "float8_val":
        proto.float8_val = array.tobytes()
    else:
        getattr(proto, field).extend(_elements(array.ravel(), dtype, field))


def list_values(proto: TensorProto, array: np.ndarray[Any, Any], dtype: DType) -> None:
    """Put every element into the `*_val` field of `dtype`, whatever their number; KeyError if it has none."""
    field, flat = _FIELDS[dtype], array.ravel()
    values = _strings(flat.tolist(), True) if dtype == dtypes.string else _elements(flat, dtype, field)
    getattr(proto, field).extend(values)


def _elements(flat: np.ndarray[Any, Any], dtype: DType, field: str) -> Any:
    """The entries of the `*_val` field for these elements."""
    if field in _BITS:
        flat = flat.view(_BITS[field])
    elif dtype in _NARROW_INTS:
        flat = flat.astype(np.int8)
    elif dtype.is_quantized:
        flat = flat[dtype.name]
    return flat.tolist()


def _strings(values: Any, from_array: bool) -> list[bytes]:
    try:
        return [_as_bytes(item) for item in leaves(values)]
    except TypeError:
        if from_array:
            raise
        raise TypeError(
            f"Failed to convert elements of {values} to Tensor. Consider casting elements to a supported "
            "type. See https://www.tensorflow.org/api_docs/python/tf/dtypes for supported TF dtypes."
        ) from None


def _as_bytes(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes | bytearray):
        return bytes(item)
    raise TypeError(f"Expected binary or unicode string, got {item!r}")


def make_ndarray(tensor: Any) -> np.ndarray[Any, Any]:
    """The value of a TensorProto as a new array.

    Raises KeyError for handles and variants, which have no array form, as TensorFlow does.
    """
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    dtype = dtypes.as_dtype(tensor.dtype)
    if tensor.tensor_content and dtype == dtypes.string:
        count = int(np.prod(shape, dtype=np.int64))
        return _objects(string_content(memoryview(tensor.tensor_content), count)).reshape(shape)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype.as_numpy_dtype).copy().reshape(shape)
    return repeat_last(listed_values(tensor, dtype), shape)


def string_content(content: memoryview, count: int) -> list[bytes]:
    """The strings of a `tensor_content`, as TensorFlow's runtime writes them: all lengths, then all bytes."""
    lengths, position = [], 0
    for _ in range(count):
        length, position = get_varint(content, position)
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise ValueError(f"{count} strings do not fill its {len(content)} bytes")
    strings = []
    for length in lengths:
        strings.append(bytes(content[position : position + length]))
        position += length
    return strings


def listed_values(tensor: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """The elements in the `*_val` field of `dtype`, as a vector."""
    numpy_type = dtype.as_numpy_dtype
    field = _FIELDS[dtype]
    values = getattr(tensor, field)
    if field == "float8_val":
        return np.frombuffer(values, numpy_type)
    if field in _BITS:
        return np.fromiter(values, _BITS[field]).view(numpy_type)
    if dtype in _NARROW_INTS:
        return np.fromiter(values, np.int8).astype(numpy_type)
    if dtype.is_quantized:
        return np.fromiter(values, numpy_type[0]).view(numpy_type)
    return _objects(values) if dtype == dtypes.string else np.fromiter(values, numpy_type)


def _objects(values: Any) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = list(values)
    return array


def repeat_last(values: np.ndarray[Any, Any], shape: list[int]) -> np.ndarray[Any, Any]:
    """`values` in `shape`, the last one filling what is missing; without any, zeros or empty strings.

    ValueError for more than `limits.expanded_bytes` that are missing.
    """
    missing = math.prod(shape) - values.size
    if missing < 0:
        raise ValueError(f"A tensor of shape {shape} cannot hold the {values.size} values that it lists.")
    if missing == 0:
        return values.reshape(shape)
    if missing * values.itemsize > limits.expanded_bytes:
        what = f"A tensor of shape {shape} that lists {values.size} of its elements"
        raise ValueError(beyond("expanded_bytes", what))
    if values.size == 0:
        return np.full(shape, b"", object) if values.dtype == object else np.zeros(shape, values.dtype)
    return np.concatenate([values, np.repeat(values[-1:], missing)]).reshape(shape)

"""The element types of tensors: `float32`, `string`, `resource`, their `_ref` twins, and `as_dtype`.

Stands for `tensorflow/python/framework/dtypes.py`. Left out: trace types (they belong to `tf.function`).
The rule it obeys: a DType is interned, so `is` and `==` agree, and its hash is its number on the wire.
"""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

_REF_OFFSET = 100  # DT_FLOAT_REF = DT_FLOAT + 100, in types.proto

_BY_ENUM: dict[int, DType] = {}
# Everything hashable that as_dtype looks up directly: names, enum numbers, NumPy scalar types.
_BY_KEY: dict[Any, DType] = {}


class DType:
    """The type of a tensor's elements. A `_ref` type marks an edge that carries a variable, not its value."""

    __slots__ = (
        *("__weakref__", "_as_ref", "_is_ref_dtype", "_kind", "_numpy"),
        *("as_datatype_enum", "base_dtype", "name", "size"),
    )

    name: str
    base_dtype: DType
    as_datatype_enum: int
    size: int  # bytes of one element; 0 where it has no fixed width
    _as_ref: DType
    _is_ref_dtype: builtins.bool
    _kind: str  # one letter: f)loat i)nt u)nsigned c)omplex b)ool q)uantized s)tring r)esource v)ariant
    _numpy: Any

    def __new__(cls, type_enum: int) -> DType:
        try:
            return _BY_ENUM[int(type_enum)]
        except KeyError:
            raise TypeError(f"{type_enum} does not correspond to a valid tensorflow::DataType") from None

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy type of the elements; strings are objects. KeyError where NumPy has none."""
        if self._numpy is None:
            raise KeyError(self.as_datatype_enum)
        return self._numpy

    @property
    def is_floating(self) -> builtins.bool:
        return self._kind == "f"

    @property
    def is_integer(self) -> builtins.bool:
        """True for plain integers; quantized ones are not."""
        return self._kind in "iu"

    @property
    def is_unsigned(self) -> builtins.bool:
        return self._kind == "u"

    @property
    def is_complex(self) -> builtins.bool:
        return self._kind == "c"

    @property
    def is_quantized(self) -> builtins.bool:
        return self._kind == "q"

    @property
    def is_bool(self) -> builtins.bool:
        return self._kind == "b"

    @property
    def is_numeric(self) -> builtins.bool:
        """True for numbers, quantized too; TF leaves out the small floats and ints that were added later."""
        return self._kind in "fiucq" and self.base_dtype.as_datatype_enum < 24

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        return self._numpy is not None

    @property
    def real_dtype(self) -> DType:
        """The type of the real part; itself unless complex."""
        return {8: float32, 18: float64}.get(self.base_dtype.as_datatype_enum, self)

    @property
    def min(self) -> Any:
        """The smallest value an element can have."""
        return self._extreme("min", "minimum")

    @property
    def max(self) -> Any:
        """The largest value an element can have."""
        return self._extreme("max", "maximum")

    def _extreme(self, end: str, word: str) -> Any:
        if self._kind in "rv":
            raise TypeError(f"Cannot find {word} value of {self}.")
        if self._kind in "bcqs":
            quantized = "quantized " if self.is_quantized else ""
            raise TypeError(f"Cannot find {word} value of {self} with {quantized}type {self.base_dtype}.")
        info = ml_dtypes.finfo if self.is_floating else ml_dtypes.iinfo
        return getattr(info(self._numpy), end)

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range of intensities of an image with such elements, negative part clipped away."""
        base = self.base_dtype
        if base in (float32, float64):
            return 0, 1
        if self.is_bool:
            return 0, True
        if self.is_integer and self.as_numpy_dtype.__module__ == "numpy":
            return 0, self.max
        _ = self.as_numpy_dtype  # a KeyError where there is none, as in TF
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """True if a tensor of type `other` may be used here: the same type, or a reference to it."""
        other = as_dtype(other)
        return self is other or self is other.base_dtype

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __repr__(self) -> str:
        return "tf." + self.name

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return as_dtype, (self.name,)


def _intern(name: str, enum: int, kind: str, numpy_type: Any, size: int) -> DType:
    dtype = object.__new__(DType)
    dtype.name, dtype.as_datatype_enum, dtype.size = name, enum, size
    dtype._kind, dtype._numpy = kind, numpy_type
    dtype._is_ref_dtype = enum > _REF_OFFSET
    _BY_ENUM[enum] = _BY_KEY[enum] = _BY_KEY[name] = dtype
    return dtype


def _define(name: str, enum: int, kind: str, numpy_type: Any = None) -> DType:
    """Makes a type and its reference twin, and lets as_dtype find both."""
    size = 0 if kind in "srv" else np.dtype(numpy_type).itemsize
    base = _intern(name, enum, kind, numpy_type, size)
    ref = _intern(name + "_ref", enum + _REF_OFFSET, kind, numpy_type, size)
    for dtype in (base, ref):
        dtype.base_dtype, dtype._as_ref = base, ref
    if numpy_type is not None:
        _BY_KEY[numpy_type] = base
    return base


def _quantized(name: str, code: str) -> np.dtype[Any]:
    return np.dtype([(name, code)])  # NumPy has no quantized types: a record of one field says what it is


float32 = _define("float32", 1, "f", np.float32)
float64 = double = _define("float64", 2, "f", np.float64)
int32 = _define("int32", 3, "i", np.int32)
uint8 = _define("uint8", 4, "u", np.uint8)
int16 = _define("int16", 5, "i", np.int16)
int8 = _define("int8", 6, "i", np.int8)
string = _define("string", 7, "s", object)
complex64 = _define("complex64", 8, "c", np.complex64)
int64 = _define("int64", 9, "i", np.int64)
bool = _define("bool", 10, "b", np.bool_)
qint8 = _define("qint8", 11, "q", _quantized("qint8", "i1"))
quint8 = _define("quint8", 12, "q", _quantized("quint8", "u1"))
qint32 = _define("qint32", 13, "q", _quantized("qint32", "<i4"))
bfloat16 = _define("bfloat16", 14, "f", ml_dtypes.bfloat16)
qint16 = _define("qint16", 15, "q", _quantized("qint16", "<i2"))
quint16 = _define("quint16", 16, "q", _quantized("quint16", "<u2"))
uint16 = _define("uint16", 17, "u", np.uint16)
complex128 = _define("complex128", 18, "c", np.complex128)
float16 = half = _define("float16", 19, "f", np.float16)
resource = _define("resource", 20, "r")
variant = _define("variant", 21, "v")
uint32 = _define("uint32", 22, "u", np.uint32)
uint64 = _define("uint64", 23, "u", np.uint64)
float8_e5m2 = _define("float8_e5m2", 24, "f", ml_dtypes.float8_e5m2)
float8_e4m3fn = _define("float8_e4m3fn", 25, "f", ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _define("float8_e4m3fnuz", 26, "f", ml_dtypes.float8_e4m3fnuz)
float8_e4m3b11fnuz = _define("float8_e4m3b11fnuz", 27, "f", ml_dtypes.float8_e4m3b11fnuz)
float8_e5m2fnuz = _define("float8_e5m2fnuz", 28, "f", ml_dtypes.float8_e5m2fnuz)
int4 = _define("int4", 29, "i", ml_dtypes.int4)
uint4 = _define("uint4", 30, "u", ml_dtypes.uint4)
int2 = _define("int2", 31, "i", ml_dtypes.int2)
uint2 = _define("uint2", 32, "u", ml_dtypes.uint2)
float4_e2m1fn = _define("float4_e2m1fn", 33, "f", ml_dtypes.float4_e2m1fn)

float32_ref = float32._as_ref
float64_ref = double_ref = float64._as_ref
int32_ref = int32._as_ref
uint8_ref = uint8._as_ref
int16_ref = int16._as_ref
int8_ref = int8._as_ref
string_ref = string._as_ref
complex64_ref = complex64._as_ref
int64_ref = int64._as_ref
bool_ref = bool._as_ref
qint8_ref = qint8._as_ref
quint8_ref = quint8._as_ref
qint32_ref = qint32._as_ref
bfloat16_ref = bfloat16._as_ref
qint16_ref = qint16._as_ref
quint16_ref = quint16._as_ref
uint16_ref = uint16._as_ref
complex128_ref = complex128._as_ref
float16_ref = half_ref = float16._as_ref
resource_ref = resource._as_ref
variant_ref = variant._as_ref
uint32_ref = uint32._as_ref
uint64_ref = uint64._as_ref

QUANTIZED_DTYPES = frozenset(dtype for dtype in _BY_ENUM.values() if dtype.is_quantized)

_BY_KEY |= {
    "float": float32,
    "float_ref": float32_ref,
    "double": float64,
    "double_ref": float64_ref,
    "half": float16,
    "half_ref": float16_ref,
    float: float32,  # Python's float is TF's default float, not NumPy's float64; int is refused
    builtins.bool: bool,
    np.object_: string,
    np.str_: string,
    np.bytes_: string,
    np.longlong: int64,  # a type of its own next to np.int64 on some platforms
    np.ulonglong: uint64,
    np.intc: int32,
    np.uintc: uint32,
}


def as_dtype(type_value: Any) -> DType:
    """The DType of a DType, name, enum number, Python type, or object that NumPy takes as a dtype or that has one.

    Raises:
      TypeError: any other value, also Python's `int` and `str`, whose width is not known.
    """
    if type(type_value) is DType:
        return type_value
    try:
        found = _BY_KEY.get(type_value)
    except TypeError:  # unhashable, such as an array: it may still have a dtype
        found = None
    if found is None and (numpy_dtype := _numpy_dtype_of(type_value)) is not None:
        found = _BY_KEY.get(numpy_dtype.type) or _BY_KEY.get(numpy_dtype)
    if found is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
    return found


def _numpy_dtype_of(value: Any) -> np.dtype[Any] | None:
    dtype = value if isinstance(value, np.dtype) else getattr(value, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else None


_IN_CPP = {"float32": "float", "float64": "double", "float16": "half"}


def dtype_text(dtype: DType) -> str:
    """The name that a dtype has in TensorFlow's messages from C++: `float`, `double`, `half`, else its own."""
    return _IN_CPP.get(dtype.base_dtype.name, dtype.base_dtype.name)

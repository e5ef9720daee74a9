"""Ops between strings and numbers: as_string, string_to_number, decode_raw.

Stands for `core/kernels/as_string_op.cc`, `string_to_number_op.cc`, `decode_raw_op.cc` and `decode_padded_raw_op.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.static_value import folded_value
from dtflab.ops import shapes
from dtflab.ops.messages import check_rank, dtype_text, invalid
from dtflab.ops.numerals import number, numbers

# -- numbers to strings, by a format of C made of the attributes --------------------------------------

_REAL = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"


@op(f"""AsString(input: T) -> (output: string)
       T: {{{_REAL}, complex64, complex128, bool, variant, string}}
       precision: int = -1, scientific: bool = false, shortest: bool = false, width: int = -1, fill: string = ''""")
class AsString(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        _check(node)
        as_text = _converter(node)

        def convert(values):
            texts = [as_text(value) for value in np.asarray(values).ravel().tolist()]
            return np.array(texts, object).reshape(values.shape)

        return convert


def _check(node: Node) -> None:
    dtype = node["T"]
    if not (dtype.is_floating or dtype.is_complex or dtype == dtypes.string):
        if node["scientific"] or node["shortest"]:
            raise invalid(f"scientific and shortest format not supported for datatype {dtype_text(dtype)}")
        if node["precision"] >= 0:
            raise invalid(f"precision not supported for datatype {dtype_text(dtype)}")
    if len(node["fill"]) > 1:
        raise invalid("Fill string must be one or fewer characters")
    if node["scientific"] and node["shortest"]:
        raise invalid("Cannot select both scientific and shortest notation")
    if node["fill"] not in (b"", b" ", b"+", b"-", b"0", b"#"):
        raise invalid(f'Fill argument not supported: "{node["fill"].decode()}"')


def _converter(node: Node) -> Callable[[Any], bytes]:
    """The function from an element to its text."""
    dtype, fill = node["T"], node["fill"].decode()
    width = str(node["width"]) if node["width"] >= 0 else ""
    point = f".{node['precision']}" if node["precision"] >= 0 else ""
    letter = "g" if node["shortest"] else "e" if node["scientific"] else "f"
    if dtype.is_bool:
        return lambda value: b"true" if value else b"false"
    if dtype == dtypes.string:
        text_format = f"%{fill.replace('0', '')}{width}{point}s".encode()
        return lambda value: text_format % value
    if dtype.is_integer:
        integer_format = f"%{fill.strip(' +') if dtype.is_unsigned else fill}{width}d"
        return lambda value: (integer_format % value).encode()
    plain = f"%{fill}{width}{point}{letter}"
    without_zeros = f"%{fill.replace('0', '')}{width}{point}{letter}"

    def real(value: float) -> str:
        return (plain if math.isfinite(value) else without_zeros) % value

    if dtype.is_complex:
        return lambda value: f"({real(value.real)},{real(value.imag)})".encode()
    return lambda value: real(value).encode()


# -- strings to numbers -------------------------------------------------------------------------------


@op("""DecodeRaw(bytes: string) -> (output: out_type)
       out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}
       little_endian: bool = true""")
class DecodeRaw(Op):
    grad = no_gradient

    def infer(operation):
        return [operation.inputs[0].shape.concatenate([None])]

    def kernel(node, xp, strings):
        out, width = node["out_type"].as_numpy_dtype, node["out_type"].size
        texts = strings.ravel().tolist()
        length = len(texts[0]) if texts else 0
        for i, text in enumerate(texts):
            if len(text) != length:
                raise invalid(
                    f"DecodeRaw requires input strings to all be the same size, but element {i} has size "
                    f"{length} != {len(text)}"
                )
        if length % width:
            raise invalid(
                f"Input to DecodeRaw has length {length} that is not a multiple of {width}, the size of "
                f"{dtype_text(node['out_type'])}"
            )
        return _numbers(b"".join(texts), node, out).reshape(*strings.shape, length // width)


def _numbers(data: bytes, node: Node, dtype: Any) -> Any:
    """The bytes as a writable array."""
    if dtype is np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    whole = np.frombuffer(bytearray(data), np.uint8)
    if not node["little_endian"]:
        part = 2 if node["out_type"].is_complex else 1  # the two parts of a complex number are swapped by themselves
        width = node["out_type"].size // part
        whole = whole.reshape(-1, width)[:, ::-1].ravel()
    return whole.view(dtype)


@op("""DecodePaddedRaw(input_bytes: string, fixed_length: int32) -> (output: out_type)
       out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}
       little_endian: bool = true""")
class DecodePaddedRaw(Op):
    grad = no_gradient

    def infer(operation):
        length, width = folded_value(operation.inputs[1]), operation.get_attr("out_type").size
        operation.inputs[1].shape.with_rank(0)
        if length is None:
            return [operation.inputs[0].shape.concatenate([None])]
        if length < 0:
            raise ValueError(f"Dimension size, given by scalar input 1, must be non-negative but is {length}")
        if length % width:
            raise ValueError(f"Dimension size must be evenly divisible by {width} but is {length}")
        return [operation.inputs[0].shape.concatenate([int(length) // width])]

    def kernel(node, xp, strings, fixed_length):
        out, width = node["out_type"].as_numpy_dtype, node["out_type"].size
        check_rank(fixed_length, 0, "k must be scalar, got shape {}")
        length = int(fixed_length)
        if length <= 0:
            raise invalid(f"fixed_length ({length}) must be greater than zero.")
        if length % width:
            raise invalid(f"fixed_length ({length}) must be a multiple of the size of out_type ({width})")
        padded = b"".join(text[:length].ljust(length, b"\0") for text in strings.ravel().tolist())
        return _numbers(padded, node, out).reshape(*strings.shape, length // width)


@op("""StringToNumber(string_tensor: string) -> (output: out_type)
       out_type: {float, double, int32, int64, uint32, uint64} = float""")
class StringToNumber(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def kernel(node, xp, strings):
        dtype = node["out_type"]
        texts = strings.ravel().tolist()
        try:
            return numbers(texts, dtype).reshape(strings.shape)
        except ValueError:
            raise _not_a_number(texts, dtype) from None

    def flops(node, ins, outs):
        return elements(outs[0])


def _not_a_number(texts: list[bytes], dtype: Any) -> Exception:
    for text in texts:
        try:
            number(text, dtype)
        except ValueError:
            shown = text.decode(errors="replace")
            return invalid(f"StringToNumberOp could not correctly convert string: {shown}")
    raise AssertionError("every text is a number")

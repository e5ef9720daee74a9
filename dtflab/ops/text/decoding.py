"""Strings of bytes → numbers: decode_raw, string_to_number.

Stands for `kernels/decode_raw_op.cc`, `decode_padded_raw_op.cc` and `string_to_number_op.cc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import folded_value
from dtflab.ops import shapes
from dtflab.ops.messages import dtype_text, invalid, renamed, shape_text
from dtflab.ops.text.numerals import number, numbers


@op("""DecodeRaw(bytes: string) -> (output: out_type)
       out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}
       little_endian: bool = true""")
class DecodeRaw(Op):
    grad = no_gradient

    def infer(operation):
        return [operation.inputs[0].shape.concatenate([None])]

    def bind(node, xp):
        out, width = node["out_type"].as_numpy_dtype, node["out_type"].size

        def decode(strings):
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

        return decode


def _numbers(data: bytes, node: Any, dtype: Any) -> Any:
    """The bytes as an array that may be written to."""
    if dtype is np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    whole = np.frombuffer(bytearray(data), np.uint8)
    if not node["little_endian"]:
        part = 2 if node["out_type"].is_complex else 1  # of a complex number each part is turned
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

    def bind(node, xp):
        out, width = node["out_type"].as_numpy_dtype, node["out_type"].size

        def decode(strings, fixed_length):
            if fixed_length.ndim:
                raise invalid(f"k must be scalar, got shape {shape_text(fixed_length)}")
            length = int(fixed_length)
            if length <= 0:
                raise invalid(f"fixed_length ({length}) must be greater than zero.")
            if length % width:
                raise invalid(f"fixed_length ({length}) must be a multiple of the size of out_type ({width})")
            padded = b"".join(text[:length].ljust(length, b"\0") for text in strings.ravel().tolist())
            return _numbers(padded, node, out).reshape(*strings.shape, length // width)

        return decode


@op("""StringToNumber(string_tensor: string) -> (output: out_type)
       out_type: {float, double, int32, int64, uint32, uint64} = float""")
class StringToNumber(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        dtype = node["out_type"]

        def convert(strings):
            texts = strings.ravel().tolist()
            try:
                return numbers(texts, dtype).reshape(strings.shape)
            except ValueError:
                raise _not_a_number(texts, dtype) from None

        return convert

    def flops(node, ins, outs):
        return elements(outs[0])


def _not_a_number(texts: list[bytes], dtype: Any) -> Exception:
    for text in texts:
        try:
            number(text, dtype)
        except ValueError:
            shown = text.decode(errors="replace")
            return invalid(f"StringToNumberOp could not correctly convert string: {shown}")
    raise AssertionError("one of them is no number")


# -- what programs call -----------------------------------------------------------------------------------------------


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The bytes of each string as numbers of `out_type`, in one more dimension; all strings have the same length.

    InvalidArgumentError where the lengths differ or are not whole numbers. `bytes` is the old name of `input_bytes`.
    """
    input_bytes = renamed("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    return apply_op("DecodeRaw", name, bytes=input_bytes, out_type=out_type, little_endian=little_endian)


def decode_raw_v2(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: Any = None, name: str | None = None
) -> Tensor:
    """As `decode_raw`; with `fixed_length` bytes per string, shorter ones filled up by zeros, longer ones cut."""
    if fixed_length is None:
        return apply_op("DecodeRaw", name, bytes=input_bytes, out_type=out_type, little_endian=little_endian)
    return apply_op(
        "DecodePaddedRaw", name, input_bytes=input_bytes, fixed_length=fixed_length, out_type=out_type,
        little_endian=little_endian,
    )  # fmt: skip


def string_to_number(
    string_tensor: Any = None, out_type: Any = dtypes.float32, name: str | None = None, input: Any = None
) -> Tensor:
    """Each string as a number of `out_type`; InvalidArgumentError names one that is none.

    `input` is the name of `string_tensor` in TensorFlow 2.
    """
    string_tensor = renamed("input", input, "string_tensor", string_tensor)
    return apply_op("StringToNumber", name, string_tensor=string_tensor, out_type=out_type)

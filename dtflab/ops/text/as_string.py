"""Numbers → strings.

Stands for `core/kernels/as_string_op.cc`: a format of C, made of the attributes, for every element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.messages import dtype_text, invalid

_REAL = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"


@op(f"""AsString(input: T) -> (output: string)
       T: {{{_REAL}, complex64, complex128, bool, variant, string}}
       precision: int = -1
       scientific: bool = false
       shortest: bool = false
       width: int = -1
       fill: string = ''""")
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


def _check(node: Any) -> None:
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


def _converter(node: Any) -> Callable[[Any], bytes]:
    """How one element is written."""
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


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Each number as text: with `precision` digits after the point, as 1e+05 if `scientific`, as %g if `shortest`.

    `width` is the least number of characters; `fill` is one of the flags of C's printf: ' ', '+', '-', '0' and '#'.
    """
    return apply_op(
        "AsString", name, input=input, precision=precision, scientific=scientific, shortest=shortest, width=width,
        fill=fill,
    )  # fmt: skip

"""Quotients and remainders.

Stands for the divisions in `core/kernels/cwise_op_div.cc`, `cwise_op_floor_div.cc`, `cwise_op_floor_mod.cc`,
`cwise_op_mod.cc`, and their parts of `python/ops/math_ops.py` and `math_grad.py`.

Rule: whole numbers divide as in TensorFlow: by zero is an error; `FloorDiv` and `FloorMod` round down; `Div`,
`TruncateDiv`, `Mod` and `TruncateMod` towards zero. Elsewhere dividing by zero gives infinities, silently.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops import shapes
from dtflab.ops.arrays import casting
from dtflab.ops.math import unary
from dtflab.ops.math.elementwise import into, no_slope, reduce_to_inputs
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.type_sets import REAL_COMPLEX


def _whole(divide: Callable[[Any, Any], Any], xp: Any) -> Callable[[Any, Any], Any]:
    """A division of whole numbers that refuses zeros."""

    def kernel(x: Any, y: Any) -> Any:
        if not y.all() and x.size:
            raise invalid("Integer division by zero")
        return divide(x, y)

    return kernel


def _truncated(node: Any, xp: Any) -> Callable[[Any, Any], Any]:
    if node["T"].is_unsigned:
        return _whole(xp.floor_divide, xp)
    if node["T"].is_integer:
        return _whole(lambda x, y: xp.floor_divide(x - xp.fmod(x, y), y), xp)
    if node["T"].is_complex:
        return xp.divide
    return lambda x, y: xp.trunc(xp.divide(x, y))


def _quotient_grad(op: Any, dz: Any, divide: Callable[..., Tensor]) -> list[Any]:
    """dz / y and -dz * x / y²"""
    x, y = op.inputs
    cx, cy = casting.conj(x), casting.conj(y)
    dx = divide(dz, cy)
    dy = dz * divide(divide(-cx, cy), cy)
    return reduce_to_inputs(x, y, dx, dy)


# -- quotients -------------------------------------------------------------------------------------------


@op(f"""Div(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class Div(Op):
    """x / y; of whole numbers the whole part."""

    infer = shapes.broadcast

    def bind(node, xp):
        return _truncated(node, xp) if node["T"].is_integer else xp.divide

    def grad(op, dz):
        return _quotient_grad(op, dz, divide)


@op(f"""RealDiv(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class RealDiv(Op):
    """x / y, for numbers that have fractions."""

    infer = shapes.broadcast

    def bind(node, xp):
        if node["T"].is_integer:
            raise errors.NotFoundError.of(f"RealDiv has no kernel for {dtype_text(node['T'])}: cast first.")
        return xp.divide if node["T"].is_complex else operator.truediv  # which is faster with scalars

    into = into("divide")

    def grad(op, dz):
        return _quotient_grad(op, dz, realdiv)


@op(f"""TruncateDiv(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class TruncateDiv(Op):
    """The whole part of x / y, rounded towards zero."""

    infer = shapes.broadcast
    bind = _truncated
    grad = no_slope


@op(f"""FloorDiv(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class FloorDiv(Op):
    """x / y, rounded down."""

    infer = shapes.broadcast
    grad = no_slope

    def bind(node, xp):
        if node["T"].is_integer:
            return _whole(xp.floor_divide, xp)
        return lambda x, y: xp.floor(xp.divide(x, y))  # NumPy's own goes by the remainder: 1 // 0.1 is 9 there


@op("""DivNoNan(x: T, y: T) -> (z: T)
       T: {half, float, bfloat16, double, complex64, complex128}""")
class DivNoNan(Op):
    """x / y, and 0 where y is 0."""

    infer = shapes.broadcast

    def bind(node, xp):
        zero = node["T"].as_numpy_dtype(0)
        return lambda x, y: xp.where(y == zero, zero, xp.divide(x, y))

    def grad(op, dz):
        x, y = casting.conj(op.inputs[0]), casting.conj(op.inputs[1])
        dx = div_no_nan(dz, y)
        dy = dz * div_no_nan(div_no_nan(-x, y), y)
        return reduce_to_inputs(x, y, dx, dy)


_TRUE_QUOTIENT = {  # the dtype in which `/` divides; None: its own
    **dict.fromkeys((dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16), dtypes.float32),
    **dict.fromkeys((dtypes.uint32, dtypes.int32, dtypes.uint64, dtypes.int64), dtypes.float64),
    **dict.fromkeys((dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)),
    **dict.fromkeys((dtypes.complex64, dtypes.complex128)),
}


def _cast_for_quotient(x: Tensor, y: Tensor, where: str) -> tuple[Tensor, Tensor]:
    """x and y in the dtype in which they divide; TypeError for two dtypes, or one that can't."""
    x_dtype, y_dtype = x.dtype.base_dtype, y.dtype.base_dtype
    if x_dtype != y_dtype:
        raise TypeError(f"`x` and `y` must have the same dtype, got {x_dtype!r} != {y_dtype!r}.")
    if x_dtype not in _TRUE_QUOTIENT:
        raise TypeError(f"Invalid dtype {x_dtype!r} in {where}. Expected one of {list(_TRUE_QUOTIENT)}.")
    dtype = _TRUE_QUOTIENT[x_dtype]
    return (x, y) if dtype is None else (casting.cast(x, dtype), casting.cast(y, dtype))


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; whole numbers become float64 (small ones float32)."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        x, y = _cast_for_quotient(x, y, "__truediv__")
        return apply_op("RealDiv", scope, x=x, y=y)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 2: of whole numbers rounded down."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        fractions = x.dtype.is_floating or x.dtype.is_complex
        return apply_op("RealDiv" if fractions else "FloorDiv", scope, x=x, y=y)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 3."""
    if name is not None:
        return truediv(x, y, name)
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x, y.dtype.base_dtype if isinstance(y, Tensor) else None)
    result: Tensor = x / y
    return result


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, rounded down."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return apply_op("FloorDiv", scope, x=x, y=y)


def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, rounded down: the op FloorDiv itself."""
    return apply_op("FloorDiv", name, x=x, y=y)


def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y: the op RealDiv itself."""
    return apply_op("RealDiv", name, x=x, y=y)


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The whole part of x / y."""
    return apply_op("TruncateDiv", name, x=x, y=y)


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        if isinstance(y, Tensor) and not isinstance(x, Tensor):
            x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
        else:
            x = convert_to_tensor(x, name="x")
            y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        x, y = _cast_for_quotient(x, y, "tf.math.divide_no_nan")
        return apply_op("DivNoNan", scope, x=x, y=y)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        one = constant(1, x.dtype.base_dtype, name="one")
        return apply_op("DivNoNan", scope, x=one, y=x)


# -- remainders ------------------------------------------------------------------------------------------


class _Remainder(Op):
    """What the remainders share whose sign is that of x; TensorFlow has no gradient for them."""

    infer = shapes.broadcast

    def bind(node, xp):
        return _whole(xp.fmod, xp) if node["T"].is_integer else xp.fmod


@op("""Mod(x: T, y: T) -> (z: T)
       T: {int32, int64, half, half, bfloat16, float, double}""")
class Mod(_Remainder):
    """The remainder of x / y, with the sign of x."""


@op("""TruncateMod(x: T, y: T) -> (z: T)
       T: {int32, int64, bfloat16, half, float, double}""")
class TruncateMod(_Remainder):
    """The remainder of x / y, with the sign of x."""


@op("""FloorMod(x: T, y: T) -> (z: T)
       T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}""")
class FloorMod(Op):
    """The remainder of x / y, with the sign of y."""

    infer = shapes.broadcast

    def bind(node, xp):
        return _whole(xp.remainder, xp) if node["T"].is_integer else xp.remainder

    def grad(op, dz):
        x, y = op.inputs
        return reduce_to_inputs(x, y, dz, dz * unary.negative(floor_div(x, y)))


def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of x / y, with the sign of y, as Python's `%`."""
    return apply_op("FloorMod", name, x=x, y=y)


mod = floormod


def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of x / y, with the sign of x."""
    return apply_op("TruncateMod", name, x=x, y=y)

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
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.gradient_rules import no_slope, reduce_to_inputs
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import into
from dtflab.ops.math.functions import div_no_nan, divide, floor_div, realdiv
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
    cx, cy = math.conj(x), math.conj(y)
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
        x, y = math.conj(op.inputs[0]), math.conj(op.inputs[1])
        dx = div_no_nan(dz, y)
        dy = dz * div_no_nan(div_no_nan(-x, y), y)
        return reduce_to_inputs(x, y, dx, dy)


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
        return reduce_to_inputs(x, y, dz, dz * math.negative(floor_div(x, y)))

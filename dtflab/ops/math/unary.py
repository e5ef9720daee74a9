"""Element-wise ops of one input, a line or two each: the op, its kernel, its gradient, its function.

Stands for the unary part of `core/ops/math_ops.cc` and `core/kernels/cwise_op_*.cc`, `python/ops/math_ops.py`
and `math_grad.py`. Left out: Bessel, gamma and other special functions (Erf and Erfc are here).

Rule: gradients are TensorFlow's, op by op, so that the graphs are the same.
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops import shapes
from dtflab.ops.array_module import special_function
from dtflab.ops.arrays import casting, constant as constants
from dtflab.ops.math.elementwise import (
    Grad,
    UnaryFunction,
    from_input,
    from_output,
    no_slope,
    ufunc,
    unary,
)
from dtflab.ops.sparse.sparse_tensor import SparseTensor, of_values
from dtflab.ops.type_sets import FLOAT, FLOAT_COMPLEX, INTEGER, REAL_COMPLEX, SIGNED, SIGNED_COMPLEX

# -- gradient ops: what the backward pass of a function is made of, as one op -----------------------------


def _gradient_op(op_name: str, kernel: Callable[..., Any], grad: Grad, summary: str) -> Callable[..., Tensor]:
    """Register `op_name(y, dy) -> z`: `kernel(xp, y, dy)` is the gradient of the function that gave y."""
    members = {
        "__doc__": summary,
        "infer": shapes.unchanged,
        "bind": lambda node, xp: lambda y, dy: kernel(xp, y, dy),
        "grad": grad,
        "flops": lambda node, ins, outs: 3 * int(np.prod(outs[0].shape)),
    }
    op(f"{op_name}(y: T, dy: T) -> (z: T)\nT: {FLOAT_COMPLEX}")(type(op_name, (Op,), members))

    def function(y: Any, dy: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(op_name, name, y=y, dy=dy)
        return result

    function.__name__ = function.__qualname__ = op_name
    function.__doc__ = summary
    return function


def _second(rule: Callable[[Tensor, Tensor, Tensor], list[Any]]) -> Grad:
    """The gradient of a gradient op: `rule(y, dy, dz)`, with y conjugated where it is complex."""

    def grad(op: Any, dz: Tensor) -> list[Any]:
        with control_dependencies([dz]):
            return rule(casting.conj(op.inputs[0]), op.inputs[1], dz)

    return grad


def _c(y: Any) -> Any:
    return y.conj() if y.dtype.kind == "c" else y


tanh_grad: UnaryFunction = _gradient_op(
    "TanhGrad",
    lambda xp, y, dy: dy * (1 - xp.square(y)),
    _second(lambda y, dy, dz: [dz * -2.0 * casting.conj(dy) * y, tanh_grad(y, dz)]),
    "dy * (1 - y²), the gradient of y = tanh(x).",
)
sigmoid_grad: UnaryFunction = _gradient_op(
    "SigmoidGrad",
    lambda xp, y, dy: dy * y * (1 - y),
    _second(lambda y, dy, dz: _sigmoid_second(y, casting.conj(dy), dz)),
    "dy * y * (1 - y), the gradient of y = sigmoid(x).",
)
sqrt_grad: UnaryFunction = _gradient_op(
    "SqrtGrad",
    lambda xp, y, dy: dy * y.dtype.type(0.5) / _c(y),
    lambda op, dz: _sqrt_second(op, dz),
    "dy * 0.5 / y, the gradient of y = sqrt(x).",
)
rsqrt_grad: UnaryFunction = _gradient_op(
    "RsqrtGrad",
    lambda xp, y, dy: dy * y.dtype.type(-0.5) * _c(y) * xp.square(_c(y)),
    _second(lambda y, dy, dz: [-1.5 * casting.conj(dz) * dy * square(y), rsqrt_grad(y, dz)]),
    "dy * -0.5 * y³, the gradient of y = 1 / sqrt(x).",
)
reciprocal_grad: UnaryFunction = _gradient_op(
    "ReciprocalGrad",
    lambda xp, y, dy: -dy * xp.square(_c(y)),
    _second(lambda y, dy, dz: [casting.conj(dz) * -2.0 * dy * y, reciprocal_grad(y, dz)]),
    "-dy * y², the gradient of y = 1 / x.",
)
inv_grad: UnaryFunction = _gradient_op(
    "InvGrad",
    lambda xp, y, dy: -dy * xp.square(_c(y)),
    _second(lambda y, dy, dz: [casting.conj(dz) * -2.0 * dy * y, reciprocal_grad(y, dz)]),
    "ReciprocalGrad under its old name.",
)


def _sigmoid_second(y: Tensor, dy: Tensor, dz: Tensor) -> list[Any]:
    product = dz * dy
    return [product - 2.0 * product * y, sigmoid_grad(y, dz)]


def _sqrt_second(op: Any, dz: Tensor) -> list[Any]:
    with control_dependencies([dz]):
        quotient = dz / op.inputs[0]
        return [-casting.conj(quotient) * op.outputs[0], 0.5 * quotient]


# -- powers, exponentials, logarithms --------------------------------------------------------------------


def _square_grad(x: Tensor, dy: Tensor) -> Tensor:
    two = constant(2.0, x.dtype.base_dtype)
    return apply_op("Mul", x=dy, y=apply_op("Mul", x=x, y=two))


def _over(dy: Tensor, denominator: Tensor) -> Tensor:
    return dy * reciprocal(denominator)


def _rsqrt(node: Any, xp: Any) -> Callable[..., Any]:
    return lambda x: xp.reciprocal(xp.sqrt(x))


def _sigmoid(node: Any, xp: Any) -> Callable[..., Any]:
    def kernel(x: Any) -> Any:
        y = xp.exp(-x)  # inf for very negative x, and the result the right 0
        y += 1
        return xp.reciprocal(y)

    return kernel


square: UnaryFunction = unary("Square", REAL_COMPLEX, "square", from_input(_square_grad), "x²", sparse=True)
sqrt = unary(
    "Sqrt", FLOAT_COMPLEX, "sqrt", lambda op, dy: [sqrt_grad(op.outputs[0], dy)], "The square root.", sparse=True
)
rsqrt = unary("Rsqrt", FLOAT_COMPLEX, _rsqrt, lambda op, dy: [rsqrt_grad(op.outputs[0], dy)], "1 / sqrt(x)")
exp = unary("Exp", FLOAT_COMPLEX, "exp", from_output(lambda y, dy: dy * y), "e to the power of x.")
expm1 = unary("Expm1", FLOAT_COMPLEX, "expm1", from_input(lambda x, dy: _times_exp(x, dy)), "exp(x) - 1, exact near 0.")
log = unary("Log", FLOAT_COMPLEX, "log", from_input(lambda x, dy: _over(dy, x)), "The natural logarithm.")
log1p = unary("Log1p", FLOAT_COMPLEX, "log1p", from_input(lambda x, dy: _over(dy, 1 + x)), "log(1 + x), exact near 0.")
reciprocal = unary(
    "Reciprocal", SIGNED_COMPLEX, "reciprocal", lambda op, dy: [reciprocal_grad(op.outputs[0], dy)], "1 / x"
)
inv = unary("Inv", SIGNED_COMPLEX, "reciprocal", lambda op, dy: [reciprocal_grad(op.outputs[0], dy)], "1 / x")
tanh = unary(
    "Tanh", FLOAT_COMPLEX, "tanh", from_output(lambda y, dy: tanh_grad(y, dy)), "The hyperbolic tangent.", sparse=True
)
_sigmoid_op = unary(
    "Sigmoid", FLOAT_COMPLEX, _sigmoid, from_output(lambda y, dy: sigmoid_grad(y, dy)), "1 / (1 + exp(-x))"
)


def _times_exp(x: Tensor, dy: Tensor) -> Tensor:
    y = exp(x)
    return dy * y


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""
    with name_scope(name, "Sigmoid", [x]) as scope:
        return _sigmoid_op(convert_to_tensor(x, name="x"), name=scope)


# -- angles ----------------------------------------------------------------------------------------------


def _arc(sign: int) -> Callable[[Tensor, Tensor], Tensor]:
    """±dy / sqrt(1 - x²): the gradients of asin and acos."""

    def rule(x: Tensor, dy: Tensor) -> Tensor:
        squared = square(x)
        one = constant(1, dy.dtype.base_dtype)
        inverse = reciprocal(sqrt(apply_op("Sub", x=one, y=squared)))
        return (dy if sign > 0 else -dy) * inverse

    return rule


def _one_by(combine: str) -> Callable[[Tensor, Tensor], Tensor]:
    """dy / (1 ± x²): the gradients of atan and atanh."""

    def rule(x: Tensor, dy: Tensor) -> Tensor:
        squared = square(x)
        one = constant(1, dy.dtype.base_dtype)
        if combine == "Add":
            from dtflab.ops.math import binary as math

            return _over(dy, math.add(one, squared))
        return _over(dy, apply_op(combine, x=one, y=squared))

    return rule


def _tan_grad(x: Tensor, dy: Tensor) -> Tensor:
    return square(reciprocal(cos(x))) * dy


sin = unary(
    "Sin", FLOAT_COMPLEX, "sin", from_input(lambda x, dy: dy * cos(x)), "The sine of x in radians.", sparse=True
)
cos: UnaryFunction = unary(
    "Cos", FLOAT_COMPLEX, "cos", from_input(lambda x, dy: -dy * sin(x)), "The cosine of x in radians."
)
tan = unary("Tan", FLOAT_COMPLEX, "tan", from_input(_tan_grad), "The tangent of x in radians.", sparse=True)
asin = unary("Asin", FLOAT_COMPLEX, "arcsin", from_input(_arc(1)), "The angle whose sine is x.", sparse=True)
acos = unary("Acos", FLOAT_COMPLEX, "arccos", from_input(_arc(-1)), "The angle whose cosine is x.")
atan = unary("Atan", FLOAT_COMPLEX, "arctan", from_input(_one_by("Add")), "The angle whose tangent is x.", sparse=True)
sinh = unary("Sinh", FLOAT_COMPLEX, "sinh", from_input(lambda x, dy: dy * cosh(x)), "The hyperbolic sine.")
cosh: UnaryFunction = unary(
    "Cosh", FLOAT_COMPLEX, "cosh", from_input(lambda x, dy: dy * sinh(x)), "The hyperbolic cosine."
)
asinh = unary(
    "Asinh", FLOAT_COMPLEX, "arcsinh", from_output(lambda y, dy: dy / cosh(y)), "The inverse of sinh.", sparse=True
)
acosh = unary("Acosh", FLOAT_COMPLEX, "arccosh", from_output(lambda y, dy: dy / sinh(y)), "The inverse of cosh.")
atanh = unary("Atanh", FLOAT_COMPLEX, "arctanh", from_input(_one_by("Sub")), "The inverse of tanh.", sparse=True)


# -- signs, rounding, questions --------------------------------------------------------------------------


def _round(node: Any, xp: Any) -> Callable[..., Any]:
    return lambda x: x if x.dtype.kind in "iu" else xp.rint(x)  # rint makes integers float64


def _special(name: str) -> Callable[[Any, Any], Callable[..., Any]]:
    """A kernel out of a function of Python's math module, exact and slow; on a GPU out of CuPy's of that name."""
    vectorized = np.frompyfunc(getattr(scalar_math, name), 1, 1)

    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        if xp is np:
            return lambda x: np.asarray(vectorized(np.float64(x)), np.float64).astype(x.dtype)
        function = special_function(name)
        return lambda x: function(x).astype(x.dtype)

    return bind


def _erf_grad(sign: float) -> Grad:
    def grad(op: Any, dy: Tensor) -> list[Any]:
        factor = constant(sign * 2 / np.sqrt(np.pi), dy.dtype.base_dtype)
        with control_dependencies([dy]):
            x = casting.conj(op.inputs[0])
            return [dy * factor * exp(-square(x))]

    return grad


negative = unary("Neg", SIGNED_COMPLEX, "negative", lambda op, dy: [-dy], "-x", sparse=True)
_abs = unary("Abs", SIGNED, "absolute", lambda op, dy: [dy * sign(op.inputs[0])], "|x|")
_sign_op = unary(
    "Sign",
    SIGNED_COMPLEX,
    "sign",
    lambda op, dy: [constants.zeros_like(op.inputs[0])],
    "-1, 0 or 1, as x is.",
)
floor = unary("Floor", FLOAT, "floor", no_slope, "The largest whole number not above x.")
ceil = unary("Ceil", FLOAT, "ceil", no_slope, "The smallest whole number not below x.")
rint = unary("Rint", FLOAT, "rint", no_slope, "The whole number next to x, the even one of two.")
_round_op = unary("Round", SIGNED_COMPLEX, _round, no_slope, "The whole number next to x, the even one of two.")
is_nan = unary("IsNan", FLOAT, "isnan", None, "Where x is not a number.", result="bool")
is_inf = unary("IsInf", FLOAT, "isinf", None, "Where x is infinite.", result="bool")
is_finite = unary("IsFinite", FLOAT, "isfinite", None, "Where x is a number and finite.", result="bool")
erf = unary("Erf", FLOAT, _special("erf"), _erf_grad(1), "The error function.", sparse=True)
erfc = unary("Erfc", FLOAT, _special("erfc"), _erf_grad(-1), "1 - erf(x)")


def abs(x: Any, name: str | None = None) -> Any:
    """|x|, element by element; of complex numbers the magnitude."""
    if isinstance(x, SparseTensor):
        return of_values(abs, x, name, tried="Abs")
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return apply_op("ComplexAbs", scope, x=x, Tout=x.dtype.real_dtype)
        return _abs(x, name=scope)


def sign(x: Any, name: str | None = None) -> Any:
    """-1, 0 or 1, as x is negative, zero or positive; of complex numbers x / |x|."""
    if isinstance(x, SparseTensor):
        return of_values(sign, x, name)
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        magnitude = apply_op("ComplexAbs", x=x, Tout=x.dtype.real_dtype)
        return apply_op("DivNoNan", name, x=x, y=casting.cast(magnitude, x.dtype))
    return _sign_op(x, name=name)


def round(x: Any, name: str | None = None) -> Tensor:
    """The whole number next to x, the even one of two; integers are returned as they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else _round_op(x, name=name)


# -- logic -----------------------------------------------------------------------------------------------


@op("LogicalNot(x: bool) -> (y: bool)")
class LogicalNot(Op):
    """not x"""

    infer = shapes.unchanged
    bind = ufunc("logical_not")
    grad = no_gradient


def logical_not(x: Any, name: str | None = None) -> Tensor:
    """not x, element by element."""
    return apply_op("LogicalNot", name, x=x)


@op(f"""Invert(x: T) -> (y: T)
        T: {INTEGER}""")
class Invert(Op):
    """All bits of x, the other way round."""

    infer = shapes.unchanged
    bind = ufunc("invert")
    grad = no_gradient


def invert(x: Any, name: str | None = None) -> Tensor:
    """All bits of x, the other way round."""
    return apply_op("Invert", name, x=x)

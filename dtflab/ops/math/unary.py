"""Element-wise ops of one input as a table: types, kernel, gradient. Their functions are in `functions.py`.

Stands for the unary part of `core/ops/math_ops.cc` and `core/kernels/cwise_op_*.cc`, and `math_grad.py`. Bessel, gamma
and other special functions are in `special.py` (Erf and Erfc are here).

Rule: gradients are TensorFlow's, op by op, so that the graphs are the same.
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.array_module import special_function
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_output
from dtflab.ops.gradient_rules import Grad, from_input, from_output, no_slope
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import ufunc, unary
from dtflab.ops.type_sets import FLOAT, FLOAT_COMPLEX, INTEGER, REAL_COMPLEX, SIGNED, SIGNED_COMPLEX

# -- gradient ops: what the backward pass of a function is made of, as one op -----------------------------


def _second(rule: Callable[[Tensor, Tensor, Tensor], list[Any]]) -> Grad:
    """The gradient of a gradient op: `rule(y, dy, dz)`, with y conjugated where it is complex."""

    def grad(op: Operation, dz: Tensor) -> list[Any]:
        with control_dependencies([dz]):
            return rule(math.conj(op.inputs[0]), op.inputs[1], dz)

    return grad


def _tanh_second(y: Tensor, dy: Tensor, dz: Tensor) -> list[Any]:
    return [dz * -2.0 * math.conj(dy) * y, math.tanh_grad(y, dz)]


def _sigmoid_second(y: Tensor, dy: Tensor, dz: Tensor) -> list[Any]:
    product = dz * math.conj(dy)
    return [product - 2.0 * product * y, math.sigmoid_grad(y, dz)]


def _sqrt_second(op: Operation, dz: Tensor) -> list[Any]:
    with control_dependencies([dz]):
        quotient = dz / op.inputs[0]
        return [-math.conj(quotient) * op.outputs[0], 0.5 * quotient]


def _rsqrt_second(y: Tensor, dy: Tensor, dz: Tensor) -> list[Any]:
    return [-1.5 * math.conj(dz) * dy * math.square(y), math.rsqrt_grad(y, dz)]


def _reciprocal_second(y: Tensor, dy: Tensor, dz: Tensor) -> list[Any]:
    return [math.conj(dz) * -2.0 * dy * y, math.reciprocal_grad(y, dz)]


def _c(y: Any) -> Any:
    return y.conj() if y.dtype.kind == "c" else y


def _reciprocal_slope(xp: Any, y: Any, dy: Any) -> Any:
    return -dy * xp.square(_c(y))


_GRADIENT_OPS: dict[str, tuple[Callable[..., Any], Grad]] = {  # kernel(xp, y, dy), and the gradient of that
    "TanhGrad": (lambda xp, y, dy: dy * (1 - xp.square(y)), _second(_tanh_second)),
    "SigmoidGrad": (lambda xp, y, dy: dy * y * (1 - y), _second(_sigmoid_second)),
    "SqrtGrad": (lambda xp, y, dy: dy * y.dtype.type(0.5) / _c(y), _sqrt_second),
    "RsqrtGrad": (lambda xp, y, dy: dy * y.dtype.type(-0.5) * _c(y) * xp.square(_c(y)), _second(_rsqrt_second)),
    "ReciprocalGrad": (_reciprocal_slope, _second(_reciprocal_second)),
    "InvGrad": (_reciprocal_slope, _second(_reciprocal_second)),  # the old name of ReciprocalGrad
}


def _gradient_op(op_name: str, kernel: Callable[..., Any], grad: Grad) -> None:
    """Register `op_name(y, dy) -> z`."""
    members = {
        "infer": shapes.unchanged,
        "bind": lambda node, xp: lambda y, dy: kernel(xp, y, dy),
        "grad": grad,
        "flops": per_output(3),
    }
    op(f"{op_name}(y: T, dy: T) -> (z: T) where T: {FLOAT_COMPLEX}")(type(op_name, (Op,), members))


for _name, (_kernel, _grad) in _GRADIENT_OPS.items():
    _gradient_op(_name, _kernel, _grad)


# -- kernels and gradients that take more than a line ------------------------------------------------------


def _rsqrt(node: Node, xp: Any) -> Callable[..., Any]:
    return lambda x: xp.reciprocal(xp.sqrt(x))


def _sigmoid(node: Node, xp: Any) -> Callable[..., Any]:
    def kernel(x: Any) -> Any:
        y = -x
        out = y if y.ndim else None
        y = xp.exp(y, out=out)  # inf for very negative x, and the result the right 0
        y += 1
        return xp.reciprocal(y, out=out)

    return kernel


def _round(node: Node, xp: Any) -> Callable[..., Any]:
    return lambda x: x if x.dtype.kind in "iu" else xp.rint(x)  # rint makes integers float64


def _special(name: str) -> Callable[[Any, Any], Callable[..., Any]]:
    """A kernel out of a function of Python's math module, exact and slow; on a GPU out of CuPy's of that name."""
    vectorized = np.frompyfunc(getattr(scalar_math, name), 1, 1)

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        if xp is np:
            return lambda x: np.asarray(vectorized(np.float64(x)), np.float64).astype(x.dtype)
        function = special_function(name)
        return lambda x: function(x).astype(x.dtype)

    return bind


def _by(gradient: Callable[..., Tensor]) -> Grad:
    """The gradient that a gradient op gives from the output; it runs whenever its inputs are there."""
    return lambda op, dy: [gradient(op.outputs[0], dy)]


def _square_grad(x: Tensor, dy: Tensor) -> Tensor:
    return apply_op("Mul", x=dy, y=apply_op("Mul", x=x, y=constant(2.0, x.dtype.base_dtype)))


def _over(dy: Tensor, denominator: Tensor) -> Tensor:
    return dy * math.reciprocal(denominator)


def _times_exp(x: Tensor, dy: Tensor) -> Tensor:
    return dy * math.exp(x)


def _arc(sign: int) -> Callable[[Tensor, Tensor], Tensor]:
    """±dy / sqrt(1 - x²): the gradients of asin and acos."""

    def rule(x: Tensor, dy: Tensor) -> Tensor:
        squared = math.square(x)
        one = constant(1, dy.dtype.base_dtype)
        inverse = math.reciprocal(math.sqrt(math.subtract(one, squared)))
        return (dy if sign > 0 else -dy) * inverse

    return rule


def _one_by(combine: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """dy / (1 ± x²): the gradients of atan and atanh."""

    def rule(x: Tensor, dy: Tensor) -> Tensor:
        squared = math.square(x)
        one = constant(1, dy.dtype.base_dtype)
        return _over(dy, combine(one, squared))

    return rule


def _tan_grad(x: Tensor, dy: Tensor) -> Tensor:
    return math.square(math.reciprocal(math.cos(x))) * dy


def _erf_grad(sign: float) -> Grad:
    def grad(op: Operation, dy: Tensor) -> list[Any]:
        factor = constant(sign * 2 / np.sqrt(np.pi), dy.dtype.base_dtype)
        with control_dependencies([dy]):
            x = math.conj(op.inputs[0])
            return [dy * factor * math.exp(-math.square(x))]

    return grad


# -- the table: types, kernel, gradient, type of the result if it is another -------------------------------

_UNARY: dict[str, tuple[Any, ...]] = {
    "Square": (REAL_COMPLEX, "square", from_input(_square_grad)),
    "Sqrt": (FLOAT_COMPLEX, "sqrt", _by(math.sqrt_grad)),
    "Rsqrt": (FLOAT_COMPLEX, _rsqrt, _by(math.rsqrt_grad)),
    "Exp": (FLOAT_COMPLEX, "exp", from_output(lambda y, dy: dy * y)),
    "Expm1": (FLOAT_COMPLEX, "expm1", from_input(_times_exp)),
    "Log": (FLOAT_COMPLEX, "log", from_input(lambda x, dy: _over(dy, x))),
    "Log1p": (FLOAT_COMPLEX, "log1p", from_input(lambda x, dy: _over(dy, 1 + x))),
    "Reciprocal": (SIGNED_COMPLEX, "reciprocal", _by(math.reciprocal_grad)),
    "Inv": (SIGNED_COMPLEX, "reciprocal", _by(math.reciprocal_grad)),
    "Tanh": (FLOAT_COMPLEX, "tanh", from_output(math.tanh_grad)),
    "Sigmoid": (FLOAT_COMPLEX, _sigmoid, from_output(math.sigmoid_grad)),
    # angles
    "Sin": (FLOAT_COMPLEX, "sin", from_input(lambda x, dy: dy * math.cos(x))),
    "Cos": (FLOAT_COMPLEX, "cos", from_input(lambda x, dy: -dy * math.sin(x))),
    "Tan": (FLOAT_COMPLEX, "tan", from_input(_tan_grad)),
    "Asin": (FLOAT_COMPLEX, "arcsin", from_input(_arc(1))),
    "Acos": (FLOAT_COMPLEX, "arccos", from_input(_arc(-1))),
    "Atan": (FLOAT_COMPLEX, "arctan", from_input(_one_by(math.add))),
    "Sinh": (FLOAT_COMPLEX, "sinh", from_input(lambda x, dy: dy * math.cosh(x))),
    "Cosh": (FLOAT_COMPLEX, "cosh", from_input(lambda x, dy: dy * math.sinh(x))),
    "Asinh": (FLOAT_COMPLEX, "arcsinh", from_output(lambda y, dy: dy / math.cosh(y))),
    "Acosh": (FLOAT_COMPLEX, "arccosh", from_output(lambda y, dy: dy / math.sinh(y))),
    "Atanh": (FLOAT_COMPLEX, "arctanh", from_input(_one_by(math.subtract))),
    # signs, rounding, questions
    "Neg": (SIGNED_COMPLEX, "negative", lambda op, dy: [-dy]),
    "Abs": (SIGNED, "absolute", lambda op, dy: [dy * math.sign(op.inputs[0])]),
    "Sign": (SIGNED_COMPLEX, "sign", lambda op, dy: [arrays.zeros_like(op.inputs[0])]),
    "Floor": (FLOAT, "floor", no_slope),
    "Ceil": (FLOAT, "ceil", no_slope),
    "Rint": (FLOAT, "rint", no_slope),
    "Round": (SIGNED_COMPLEX, _round, no_slope),
    "IsNan": (FLOAT, "isnan", None, "bool"),
    "IsInf": (FLOAT, "isinf", None, "bool"),
    "IsFinite": (FLOAT, "isfinite", None, "bool"),
    "Erf": (FLOAT, _special("erf"), _erf_grad(1)),
    "Erfc": (FLOAT, _special("erfc"), _erf_grad(-1)),
    "Invert": (INTEGER, ufunc("invert"), no_gradient),
}

for _name, _row in _UNARY.items():
    unary(_name, *_row)

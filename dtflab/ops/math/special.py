"""Special functions as ops: gamma and its family, incomplete gamma and beta, zeta, Bessel, inverse error function.

Stands for their parts of `core/kernels/cwise_op_*.cc`, `betainc_op.cc`, `python/ops/math_ops.py`,
`special_math_ops.py`, `math_grad.py` and `random_grad.py`. Left out: `tf.math.special` (Dawson, Fresnel, …).

Rule: the numbers are made in float64 by `gamma_functions.py` and `approximations.py`, whatever the dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.gradient_rules import from_input, summed
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import approximations, functions as math, gamma_functions
from dtflab.ops.math.elementwise import binary, unary
from dtflab.ops.messages import invalid
from dtflab.ops.type_sets import FLOAT

_FLOPS = 100  # per element, roughly: they are series


def _in_double(function: Callable[..., Any]) -> Any:
    """A `bind` rule: `function(xp, …)` of float64s, in the inputs' dtype."""

    def bind(node: Node, xp: Any) -> Any:
        dtype = node["T"].as_numpy_dtype
        return lambda *xs: xp.asarray(function(xp, *(x.astype(np.float64) for x in xs))).astype(dtype)

    return bind


def _scaled_back(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda xp, x: function(xp, x) * xp.exp(xp.abs(x))


def _when_there(rule: Callable[[Any, Any], Any]) -> Any:
    """The gradient `rule(op, dy)`, of which nothing runs before `dy` is there."""

    def grad(op: Operation, dy: Any) -> list[Any]:
        with control_dependencies([dy]):
            return [rule(op, dy)]

    return grad


def _i1_grad(op: Operation, dy: Any) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    one = arrays.cast(1.0, x.dtype)
    return dy * indexing.where_v2(math.equal(x, 0.0), one, math.bessel_i0(x) - math.div(y, x))


def _i1e_grad(op: Operation, dy: Any) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    half = arrays.cast(0.5, x.dtype)
    slope = math.bessel_i0e(x) - y * (math.sign(x) + math.reciprocal(x))
    return dy * indexing.where_v2(math.equal(x, 0.0), half, slope)


def _erfinv_grad(op: Operation, dy: Any) -> list[Any]:
    factor = constant(np.sqrt(np.pi) / 2, dy.dtype)
    with control_dependencies([dy]):
        return [dy * factor * math.exp(math.square(op.outputs[0]))]


def _ndtri_grad(op: Operation, dy: Any) -> list[Any]:
    factor = constant(np.sqrt(2 * np.pi), dy.dtype)
    with control_dependencies([dy]):
        return [dy * factor * math.exp(math.square(op.outputs[0]) / 2.0)]


def _digamma_grad(x: Tensor, dy: Tensor) -> Tensor:
    return dy * math.polygamma(constant(1, x.dtype.base_dtype), x)


def _i0e_grad(op: Operation, dy: Any) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    return dy * (math.bessel_i1e(x) - math.sign(x) * y)


for _name, _function, _grad in (
    ("Lgamma", gamma_functions.lgamma, from_input(lambda x, dy: dy * math.digamma(x))),
    ("Digamma", gamma_functions.digamma, from_input(_digamma_grad)),
    ("Erfinv", approximations.erfinv, _erfinv_grad),
    ("Ndtri", approximations.ndtri, _ndtri_grad),
    ("BesselI0e", approximations.i0e, _when_there(_i0e_grad)),
    ("BesselI1e", approximations.i1e, _when_there(_i1e_grad)),
    ("BesselI0", _scaled_back(approximations.i0e), _when_there(lambda op, dy: dy * math.bessel_i1(op.inputs[0]))),
    ("BesselI1", _scaled_back(approximations.i1e), _when_there(_i1_grad)),
):
    unary(_name, FLOAT, _in_double(_function), _grad)


# -- of two and three arguments ---------------------------------------------------------------------------------------


def _sides(x: Tensor, y: Tensor) -> tuple[Any, Any, Any, Any]:
    """The shapes of x and y, and the axes along which each is repeated."""
    sx, sy = arrays.shape(x), arrays.shape(y)
    rx, ry = arrays.broadcast_gradient_args(sx, sy)
    return sx, sy, rx, ry


def _flops(node: Node, ins: Any, outs: Any) -> int:
    return _FLOPS * sum(elements(x) for x in ins)


def _igamma_grad(op: Operation, dy: Any) -> list[Any]:
    a, x = op.inputs
    sa, sx, ra, rx = _sides(a, x)
    with control_dependencies([dy]):
        by_a = apply_op("IgammaGradA", a=a, x=x)
        by_x = math.exp(-x + (a - 1) * math.log(x) - math.lgamma(a))
        return [summed(by_a * dy, ra, sa), summed(by_x * dy, rx, sx)]


def _igammac_grad(op: Operation, dy: Any) -> list[Any]:
    return [-g for g in _igamma_grad(op, dy)]


def _zeta_grad(op: Operation, dy: Any) -> list[Any]:
    x, q = op.inputs
    _, sq, _, rq = _sides(x, q)
    with control_dependencies([dy]):
        return [None, summed(-x * math.zeta(x + 1, q) * dy, rq, sq)]


def _polygamma_grad(op: Operation, dy: Any) -> list[Any]:
    n, x = op.inputs
    _, sx, _, rx = _sides(n, x)
    with control_dependencies([dy]):
        return [None, summed(math.polygamma(n + 1, x) * dy, rx, sx)]


def _next_after_grad(op: Operation, dy: Any) -> list[Any]:
    x1, x2 = op.inputs
    s1, s2, r1, r2 = _sides(x1, x2)
    with control_dependencies([dy]):
        ones, zeros = arrays.ones(s1, dtype=x1.dtype), arrays.zeros(s2, dtype=x2.dtype)
        return [summed(ones * dy, r1, s1), summed(zeros * dy, r2, s2)]


for _interface, _types, _kernel, _grad in (
    ("Igamma(a: T, x: T) -> (z: T)", FLOAT, _in_double(gamma_functions.igamma), _igamma_grad),
    ("Igammac(a: T, x: T) -> (z: T)", FLOAT, _in_double(gamma_functions.igammac), _igammac_grad),
    ("IgammaGradA(a: T, x: T) -> (z: T)", "{float, double}", _in_double(gamma_functions.igamma_grad_a), None),
    (
        "RandomGammaGrad(alpha: T, sample: T) -> (output: T)",
        "{float, double}",
        _in_double(gamma_functions.random_gamma_grad),
        None,
    ),
    ("Zeta(x: T, q: T) -> (z: T)", "{float, double}", _in_double(gamma_functions.zeta), _zeta_grad),
    ("Polygamma(a: T, x: T) -> (z: T)", "{float, double}", _in_double(gamma_functions.polygamma), _polygamma_grad),
    ("NextAfter(x1: T, x2: T) -> (output: T)", "{double, float} = float", "nextafter", _next_after_grad),
):
    binary(f"{_interface}\nT: {_types}", _kernel, _grad, flops=_flops)


@op("Betainc(a: T, b: T, x: T) -> (z: T) where T: {float, double}")
class Betainc(Op):
    """The regularized incomplete beta function; scalars are repeated."""

    flops = _flops

    def infer(op):
        several = [x.shape for x in op.inputs if x.shape.ndims != 0]
        shape = several[0] if several else TensorShape([])
        for other in several[1:]:
            shape = shape.merge_with(other)
        return [shape]

    def bind(node, xp):
        function = _in_double(gamma_functions.betainc)(node, xp)

        def kernel(a, b, x):
            if len({v.shape for v in (a, b, x) if v.shape}) > 1:
                raise invalid(f"Shapes of a, b and x are inconsistent: {a.shape}, {b.shape}, {x.shape}")
            return function(a, b, x)

        return kernel

    def grad(op, dy):
        a, b, x = op.inputs
        _, sx, _, rx = _sides(a, x)
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        log_density = math.xlog1py(b - 1, -x) + math.xlogy(a - 1, x)
        return [None, None, summed(math.exp(log_density - log_beta) * dy, rx, sx)]

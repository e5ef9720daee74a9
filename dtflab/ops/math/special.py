"""Special functions as ops: gamma and its family, incomplete gamma and beta, zeta, Bessel, inverse error function.

Stands for their parts of `core/kernels/cwise_op_*.cc`, `betainc_op.cc`, `python/ops/math_ops.py`,
`special_math_ops.py`, `math_grad.py` and `random_grad.py`. Left out: `tf.math.special` (Dawson, Fresnel, …).

Rule: the numbers are made in float64 by `gamma_functions.py`, `bessel.py` and `normal_quantile.py`, whatever the dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import casting, constant as constants, identity as array, repeating, reshaping
from dtflab.ops.math import bessel, division, gamma_functions, logic, normal_quantile, unary, zero_times
from dtflab.ops.math.elementwise import UnaryFunction, from_input, unary as register_unary
from dtflab.ops.messages import invalid
from dtflab.ops.reduce import reduction
from dtflab.ops.type_sets import FLOAT

_FLOPS = 100  # per element, roughly: they are series


def _in_double(function: Callable[..., Any]) -> Any:
    """A `bind` rule: `function(xp, …)` of float64s, in the inputs' dtype."""

    def bind(node: Any, xp: Any) -> Any:
        dtype = node["T"].as_numpy_dtype
        return lambda *xs: xp.asarray(function(xp, *(x.astype(np.float64) for x in xs))).astype(dtype)

    return bind


def _scaled_back(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda xp, x: function(xp, x) * xp.exp(xp.abs(x))


def _when_there(rule: Callable[[Any, Any], Any]) -> Any:
    """The gradient `rule(op, dy)`, of which nothing runs before `dy` is there."""

    def grad(op: Any, dy: Any) -> list[Any]:
        with control_dependencies([dy]):
            return [rule(op, dy)]

    return grad


def _i1_grad(op: Any, dy: Any) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    one = casting.cast(1.0, x.dtype)
    return dy * logic.where_v2(logic.equal(x, 0.0), one, bessel_i0(x) - division.div(y, x))


def _i1e_grad(op: Any, dy: Any) -> Tensor:
    x, y = op.inputs[0], op.outputs[0]
    half = casting.cast(0.5, x.dtype)
    slope = bessel_i0e(x) - y * (unary.sign(x) + unary.reciprocal(x))
    return dy * logic.where_v2(logic.equal(x, 0.0), half, slope)


def _erfinv_grad(op: Any, dy: Any) -> list[Any]:
    factor = constant(np.sqrt(np.pi) / 2, dy.dtype)
    with control_dependencies([dy]):
        return [dy * factor * unary.exp(unary.square(op.outputs[0]))]


def _ndtri_grad(op: Any, dy: Any) -> list[Any]:
    factor = constant(np.sqrt(2 * np.pi), dy.dtype)
    with control_dependencies([dy]):
        return [dy * factor * unary.exp(unary.square(op.outputs[0]) / 2.0)]


def _digamma_grad(x: Tensor, dy: Tensor) -> Tensor:
    return dy * polygamma(constant(1, x.dtype.base_dtype), x)


def _special(name: str, function: Any, grad: Any, summary: str) -> UnaryFunction:
    return register_unary(name, FLOAT, _in_double(function), grad, summary)


lgamma: UnaryFunction = _special(
    "Lgamma", gamma_functions.lgamma, from_input(lambda x, dy: dy * digamma(x)), "log |Γ(x)|"
)
digamma: UnaryFunction = _special(
    "Digamma", gamma_functions.digamma, from_input(_digamma_grad), "The derivative of lgamma."
)
_erfinv = _special("Erfinv", normal_quantile.erfinv, _erfinv_grad, "The inverse of erf.")
_ndtri = _special("Ndtri", normal_quantile.ndtri, _ndtri_grad, "The inverse of the normal distribution.")
_bessel_i0e = _special(
    "BesselI0e", bessel.i0e,
    _when_there(lambda op, dy: dy * (bessel_i1e(op.inputs[0]) - unary.sign(op.inputs[0]) * op.outputs[0])),
    "exp(-|x|) I₀(x)",
)  # fmt: skip
_bessel_i1e = _special("BesselI1e", bessel.i1e, _when_there(_i1e_grad), "exp(-|x|) I₁(x)")
_bessel_i0 = _special(
    "BesselI0", _scaled_back(bessel.i0e), _when_there(lambda op, dy: dy * bessel_i1(op.inputs[0])),
    "The modified Bessel function I₀.",
)  # fmt: skip
_bessel_i1 = _special("BesselI1", _scaled_back(bessel.i1e), _when_there(_i1_grad), "The modified Bessel function I₁.")


# -- of two and three arguments ---------------------------------------------------------------------------------------


def _sides(x: Tensor, y: Tensor) -> tuple[Any, Any, Any, Any]:
    """The shapes of x and y, and the axes along which each is repeated."""
    sx, sy = array.shape(x), array.shape(y)
    rx, ry = repeating.broadcast_gradient_args(sx, sy)
    return sx, sy, rx, ry


def _summed(dx: Tensor, axes: Any, shape: Any) -> Tensor:
    return reshaping.reshape(reduction.reduce_sum(dx, axes), shape)


class _Binary(Op):
    infer = staticmethod(shapes.broadcast)

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return _FLOPS * sum(elements(x) for x in ins)


def _igamma_grad(op: Any, dy: Any) -> list[Any]:
    a, x = op.inputs
    sa, sx, ra, rx = _sides(a, x)
    with control_dependencies([dy]):
        by_a = apply_op("IgammaGradA", a=a, x=x)
        by_x = unary.exp(-x + (a - 1) * unary.log(x) - lgamma(a))
        return [_summed(by_a * dy, ra, sa), _summed(by_x * dy, rx, sx)]


@op(f"Igamma(a: T, x: T) -> (z: T)\nT: {FLOAT}")
class Igamma(_Binary):
    """The lower incomplete gamma function, between 0 and 1."""

    bind = _in_double(gamma_functions.igamma)
    grad = _igamma_grad


@op(f"Igammac(a: T, x: T) -> (z: T)\nT: {FLOAT}")
class Igammac(_Binary):
    """1 - igamma, exact where that is small."""

    bind = _in_double(gamma_functions.igammac)

    def grad(op, dy):
        return [-g for g in _igamma_grad(op, dy)]


@op("IgammaGradA(a: T, x: T) -> (z: T)\nT: {float, double}")
class IgammaGradA(_Binary):
    """The derivative of igamma by a."""

    bind = _in_double(gamma_functions.igamma_grad_a)


@op("RandomGammaGrad(alpha: T, sample: T) -> (output: T)\nT: {float, double}")
class RandomGammaGrad(_Binary):
    """How gamma numbers move with alpha."""

    bind = _in_double(gamma_functions.random_gamma_grad)


@op("Zeta(x: T, q: T) -> (z: T)\nT: {float, double}")
class Zeta(_Binary):
    """Hurwitz's zeta function."""

    bind = _in_double(gamma_functions.zeta)

    def grad(op, dy):
        x, q = op.inputs
        _, sq, _, rq = _sides(x, q)
        with control_dependencies([dy]):
            return [None, _summed(-x * zeta(x + 1, q) * dy, rq, sq)]


@op("Polygamma(a: T, x: T) -> (z: T)\nT: {float, double}")
class Polygamma(_Binary):
    """The a-th derivative of digamma."""

    bind = _in_double(gamma_functions.polygamma)

    def grad(op, dy):
        n, x = op.inputs
        _, sx, _, rx = _sides(n, x)
        with control_dependencies([dy]):
            return [None, _summed(polygamma(n + 1, x) * dy, rx, sx)]


@op("Betainc(a: T, b: T, x: T) -> (z: T)\nT: {float, double}")
class Betainc(Op):
    """The regularised incomplete beta function; scalars are repeated."""

    flops = _Binary.flops

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
        log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
        log_density = zero_times.xlog1py(b - 1, -x) + zero_times.xlogy(a - 1, x)
        return [None, None, _summed(unary.exp(log_density - log_beta) * dy, rx, sx)]


@op("NextAfter(x1: T, x2: T) -> (output: T)\nT: {double, float} = float")
class NextAfter(_Binary):
    """The next number that the dtype has after x1 on the way to x2."""

    def bind(node, xp):
        return xp.nextafter

    def grad(op, dy):
        x1, x2 = op.inputs
        s1, s2, r1, r2 = _sides(x1, x2)
        with control_dependencies([dy]):
            ones, zeros = constants.ones(s1, dtype=x1.dtype), constants.zeros(s2, dtype=x2.dtype)
            return [_summed(ones * dy, r1, s1), _summed(zeros * dy, r2, s2)]


# -- functions --------------------------------------------------------------------------------------------------------


def _scoped(function: UnaryFunction, scope: str, what: str) -> UnaryFunction:
    """The function inside a name scope, as TensorFlow has it."""

    def scoped(x: Any, name: str | None = None) -> Tensor:
        with name_scope(name, scope, [x]):
            return function(x)

    scoped.__name__ = scoped.__qualname__ = scope
    scoped.__doc__ = what
    return scoped


erfinv: UnaryFunction = _scoped(_erfinv, "erfinv", "The number whose error function is x.")
ndtri: UnaryFunction = _scoped(_ndtri, "ndtri", "The number below which a normal number is with probability x.")
bessel_i0: UnaryFunction = _scoped(_bessel_i0, "bessel_i0", "The modified Bessel function I₀.")
bessel_i1: UnaryFunction = _scoped(_bessel_i1, "bessel_i1", "The modified Bessel function I₁.")
bessel_i0e: UnaryFunction = _scoped(_bessel_i0e, "bessel_i0e", "exp(-|x|) I₀(x)")
bessel_i1e: UnaryFunction = _scoped(_bessel_i1e, "bessel_i1e", "exp(-|x|) I₁(x)")


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The number whose complementary error function is x."""
    with name_scope(name, "erfcinv", [x]):
        x = convert_to_tensor(x, name="start")
        return -ndtri(0.5 * x) * np.sqrt(0.5)


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The lower incomplete gamma function of x over Γ(a)."""
    return apply_op("Igamma", name, a=a, x=x)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The upper incomplete gamma function of x over Γ(a)."""
    return apply_op("Igammac", name, a=a, x=x)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function, Σ (q + k)⁻ˣ."""
    return apply_op("Zeta", name, x=x, q=q)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The a-th derivative of digamma at x."""
    return apply_op("Polygamma", name, a=a, x=x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function I_x(a, b)."""
    return apply_op("Betainc", name, a=a, b=b, x=x)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next number that the dtype has after `x1` on the way to `x2`."""
    return apply_op("NextAfter", name, x1=x1, x2=x2)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """log |B(x)| over the last axis: the sum of lgamma less lgamma of the sum."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        logs = reduction.reduce_sum(lgamma(x), axis=[-1])
        return logs - lgamma(reduction.reduce_sum(x, axis=[-1]))

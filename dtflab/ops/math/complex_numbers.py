"""Complex numbers: from their parts, and to parts, magnitudes and angles.

Stands for `core/kernels/cwise_op_complex.cc` and its neighbours, and their part of `math_grad.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.convert import constant
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.gradient_rules import Grad, reduce_to_inputs
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import Bind, ufunc


@op("""Complex(real: T, imag: T) -> (out: Tout)
       T: {float, double} = float, Tout: {complex64, complex128} = complex64""")
class Complex(Op):
    """real + imag * 1j"""

    infer = shapes.broadcast

    def kernel(node, xp, real, imag):
        out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), node["Tout"].as_numpy_dtype)
        out.real[...], out.imag[...] = real, imag
        return out

    def grad(op, dy):
        x, y = op.inputs
        return reduce_to_inputs(x, y, math.real(dy), math.imag(dy))


def _zero(dy: Tensor) -> Tensor:
    return constant(0, dy.dtype.base_dtype)


def _real(node: Node, xp: Any) -> Callable[[Any], Any]:
    return lambda x: x.real


def _imag(node: Node, xp: Any) -> Callable[[Any], Any]:
    return lambda x: x.imag


def _real_grad(op: Operation, dy: Any) -> list[Any]:
    return [math.complex(dy, _zero(dy))]


def _imag_grad(op: Operation, dy: Any) -> list[Any]:
    return [math.complex(_zero(dy), dy)]


def _conj_grad(op: Operation, dy: Any) -> list[Any]:
    return [math.conj(dy)]


def _abs_grad(op: Operation, dy: Any) -> list[Any]:
    x, y = op.inputs[0], op.outputs[0]
    return [math.div_no_nan(math.complex(dy, arrays.zeros_like(dy)) * x, math.complex(y, arrays.zeros_like(y)))]


def _angle_grad(op: Operation, dy: Any) -> list[Any]:
    x = op.inputs[0]
    with control_dependencies([dy]):
        re, im = math.real(x), math.imag(x)
        z = math.reciprocal(math.complex(im, re))
        return [-math.complex(dy, _zero(dy)) * z]


def _unary(interface: str, kernel: Bind, grad: Grad, attrs: str, aliasing: bool = False) -> None:
    members = {"infer": shapes.unchanged, "bind": kernel, "grad": grad, "aliasing": aliasing}
    op(f"{interface}\n{attrs}")(type(interface.partition("(")[0], (Op,), members))


_CONJ = "T: {complex64, complex128, variant} = complex64"
_TO_REAL = "T: {complex64, complex128} = complex64\nTout: {float, double} = float"

_unary("Real(input: T) -> (output: Tout)", _real, _real_grad, _TO_REAL, aliasing=True)
_unary("Imag(input: T) -> (output: Tout)", _imag, _imag_grad, _TO_REAL, aliasing=True)
_unary("ComplexAbs(x: T) -> (y: Tout)", ufunc("absolute"), _abs_grad, _TO_REAL)
_unary("Angle(input: T) -> (output: Tout)", ufunc("angle"), _angle_grad, _TO_REAL)
_unary("Conj(input: T) -> (output: T)", ufunc("conjugate"), _conj_grad, _CONJ)

"""Complex numbers: from their parts, and to parts, magnitudes and angles.

Stands for `core/kernels/cwise_op_complex.cc` and its neighbours, and their part of `math_grad.py`.
"""

from __future__ import annotations

from dtflab.graph.convert import constant
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.gradient_rules import reduce_to_inputs
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import ufunc


@op("""Complex(real: T, imag: T) -> (out: Tout)
       T: {float, double} = float
       Tout: {complex64, complex128} = complex64""")
class Complex(Op):
    """real + imag * 1j"""

    infer = shapes.broadcast

    def bind(node, xp):
        dtype = node["Tout"].as_numpy_dtype

        def kernel(real, imag):
            out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), dtype)
            out.real[...], out.imag[...] = real, imag
            return out

        return kernel

    def grad(op, dy):
        x, y = op.inputs
        return reduce_to_inputs(x, y, math.real(dy), math.imag(dy))


def _constant_zero(dy: Tensor) -> Tensor:
    return constant(0, dy.dtype.base_dtype)


@op("""Real(input: T) -> (output: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class Real(Op):
    """The real parts."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x.real

    def grad(op, dy):
        return [math.complex(dy, _constant_zero(dy))]


@op("""Imag(input: T) -> (output: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class Imag(Op):
    """The imaginary parts."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x.imag

    def grad(op, dy):
        return [math.complex(_constant_zero(dy), dy)]


@op("""Conj(input: T) -> (output: T)
       T: {complex64, complex128, variant} = complex64""")
class Conj(Op):
    """The complex conjugates."""

    infer = shapes.unchanged
    bind = ufunc("conjugate")

    def grad(op, dy):
        return [math.conj(dy)]


@op("""ComplexAbs(x: T) -> (y: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class ComplexAbs(Op):
    """The magnitudes of complex numbers."""

    infer = shapes.unchanged
    bind = ufunc("absolute")

    def grad(op, dy):
        x, y = op.inputs[0], op.outputs[0]
        numerator = math.complex(dy, arrays.zeros_like(dy)) * x
        return [math.div_no_nan(numerator, math.complex(y, arrays.zeros_like(y)))]


@op("""Angle(input: T) -> (output: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class Angle(Op):
    """The angles of complex numbers, in radians."""

    infer = shapes.unchanged
    bind = ufunc("angle")

    def grad(op, dy):
        x = op.inputs[0]
        with control_dependencies([dy]):
            re, im = math.real(x), math.imag(x)
            z = math.reciprocal(math.complex(im, re))
            return [-math.complex(dy, _constant_zero(dy)) * z]

"""Activations and their gradient ops: Relu and its kin, Elu, Selu, Softplus, Softsign, LeakyRelu.

Stands for `kernels/relu_op_functor.h`, `softplus_op.h`, `softsign_op.h`, and their part of `nn_grad.py`.
Sigmoid and Tanh, ops of mathematics in TensorFlow, stand with these. Left out: quantized Relu.

Rule: a gradient op takes the activation's output where that is enough (Relu, Elu, Selu), else its input, as
in TensorFlow; so a value of the forward pass that no other op needs is freed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text

_REAL = "T: realnumbertype"
_RELU = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}"
_FLOAT = "T: {half, bfloat16, float, double}"
_TO = "(features: T) -> (activations: T)\n"
_BACK = "(gradients: T, features: T) -> (backprops: T)\n"
_BACK_FROM_OUTPUT = "(gradients: T, outputs: T) -> (backprops: T)\n"

Bind = Callable[[Any, Any], Callable[..., Any]]


def forward(compute: Callable[..., Any]) -> Bind:
    """A `bind` rule from `compute(xp, x, num)`, where `num(v)` is the number v in the dtype of x."""

    def bind(node: Any, xp: Any) -> Callable[[Any], Any]:
        num = np.dtype(node["T"].as_numpy_dtype).type
        return lambda x: compute(xp, x, num)

    return bind


def backward(compute: Callable[..., Any]) -> Bind:
    """A `bind` rule from `compute(xp, dy, x, num)`, for inputs of one shape."""

    def bind(node: Any, xp: Any) -> Callable[[Any, Any], Any]:
        num = np.dtype(node["T"].as_numpy_dtype).type

        def kernel(dy: Any, x: Any) -> Any:
            if dy.shape != x.shape:
                raise invalid(
                    f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                    f"Input 0: {shape_text(dy)} != input 1: {shape_text(x)}"
                )
            return compute(xp, dy, x, num)

        return kernel

    return bind


def _flops(count: int) -> Callable[..., int]:
    """That many operations per element."""
    return lambda node, ins, outs: count * elements(outs[0])


# -- cut off below zero -------------------------------------------------------------------------------


@op(f"Relu{_TO}T: {_RELU}")
class Relu(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        dtype = np.dtype(node["T"].as_numpy_dtype)

        def kernel(x, out=None):
            if not x.ndim:
                return xp.maximum(x, dtype.type(0))
            zeros = xp.zeros(x.shape, dtype)  # the larger of two arrays takes NumPy a third of the time of array and 0
            return xp.maximum(x, zeros, out=zeros if out is None else out)

        return kernel

    into = bind

    def grad(op, dy):
        return [apply_op("ReluGrad", gradients=dy, features=op.outputs[0])]


def _times(xp: Any, dy: Any, mask: Any) -> Any:
    """dy * mask, in the place of the mask."""
    return xp.multiply(dy, mask, out=mask) if mask.ndim else dy * mask


@op(f"ReluGrad{_BACK}{_REAL}")
class ReluGrad(Op):
    infer = shapes.merged
    bind = backward(lambda xp, dy, x, num: _times(xp, dy, (x > num(0)).astype(num)))  # as TensorFlow: inf * 0 is NaN

    def grad(op, dz):
        return _piecewise_linear(op, dz, "ReluGrad")


def _piecewise_linear(operation: Any, dz: Any, op_type: str, **attrs: Any) -> list[Tensor]:
    """The gradient of a gradient that depends on the features only through where their kinks are."""
    x = operation.inputs[1]
    return [apply_op(op_type, gradients=dz, features=x, **attrs), arrays.zeros_like(x)]


@op(f"Relu6{_TO}{_REAL}")
class Relu6(Op):
    infer = shapes.unchanged
    bind = forward(lambda xp, x, num: xp.minimum(xp.maximum(x, num(0)), num(6)))
    flops = _flops(2)

    def grad(op, dy):
        return [apply_op("Relu6Grad", gradients=dy, features=op.outputs[0])]


@op(f"Relu6Grad{_BACK}{_REAL}")
class Relu6Grad(Op):
    infer = shapes.merged
    bind = backward(lambda xp, dy, x, num: _times(xp, dy, ((x > num(0)) & (x < num(6))).astype(num)))
    flops = _flops(2)

    def grad(op, dz):
        return _piecewise_linear(op, dz, "Relu6Grad")


_LEAK = "alpha: float = 0.2\nT: {half, bfloat16, float, double} = float"


@op(f"LeakyRelu{_TO}{_LEAK}")
class LeakyRelu(Op):
    infer = shapes.unchanged
    flops = _flops(2)

    def bind(node, xp):
        alpha = np.dtype(node["T"].as_numpy_dtype).type(node["alpha"])
        return lambda x: xp.where(x > 0, x, x * alpha)

    def grad(op, dy):
        x, alpha = op.inputs[0], op.get_attr("alpha")
        return [apply_op("LeakyReluGrad", gradients=dy, features=x, alpha=alpha)]


@op(f"LeakyReluGrad{_BACK}{_LEAK}")
class LeakyReluGrad(Op):
    infer = shapes.merged
    flops = _flops(2)

    def bind(node, xp):
        alpha = node["alpha"]
        return backward(lambda xp, dy, x, num: xp.where(x > num(0), dy, dy * num(alpha)))(node, xp)

    def grad(op, dz):
        return _piecewise_linear(op, dz, "LeakyReluGrad", alpha=op.get_attr("alpha"))


# -- exponential below zero ---------------------------------------------------------------------------

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@op(f"Elu{_TO}{_FLOAT}")
class Elu(Op):
    infer = shapes.unchanged
    bind = forward(lambda xp, x, num: xp.where(x < num(0), xp.expm1(x), x))
    flops = _flops(2)

    def grad(op, dy):
        return [apply_op("EluGrad", gradients=dy, outputs=op.outputs[0])]


@op(f"EluGrad{_BACK_FROM_OUTPUT}{_FLOAT}")
class EluGrad(Op):
    infer = shapes.merged
    bind = backward(lambda xp, dy, y, num: xp.where(y < num(0), (y + num(1)) * dy, dy))
    flops = _flops(2)

    def grad(op, dz):
        return _exponential(op, dz, "EluGrad", 0)


@op(f"Selu{_TO}{_FLOAT}")
class Selu(Op):
    infer = shapes.unchanged
    bind = forward(lambda xp, x, num: xp.where(x < num(0), num(_SELU_SCALE_ALPHA) * xp.expm1(x), num(_SELU_SCALE) * x))
    flops = _flops(3)

    def grad(op, dy):
        return [apply_op("SeluGrad", gradients=dy, outputs=op.outputs[0])]


@op(f"SeluGrad{_BACK_FROM_OUTPUT}{_FLOAT}")
class SeluGrad(Op):
    infer = shapes.merged
    bind = backward(
        lambda xp, dy, y, num: xp.where(y < num(0), dy * (y + num(_SELU_SCALE_ALPHA)), dy * num(_SELU_SCALE))
    )
    flops = _flops(2)

    def grad(op, dz):
        return _exponential(op, dz, "SeluGrad", 0.0)


def _exponential(operation: Any, dz: Any, op_type: str, zero: Any) -> list[Tensor]:
    dy, y = operation.inputs
    again = apply_op(op_type, gradients=dz, outputs=y)
    return [again, indexing.where(math.less(y, zero), dz * dy, arrays.zeros_like(y))]


# -- smooth -------------------------------------------------------------------------------------------


@op(f"Softplus{_TO}{_FLOAT}")
class Softplus(Op):
    """log(1 + exp(x)), without overflow."""

    infer = shapes.unchanged
    bind = forward(lambda xp, x, num: xp.logaddexp(x, num(0)))
    flops = _flops(3)

    def grad(op, dy):
        return [dy * apply_op("Sigmoid", x=op.inputs[0])]


@op(f"SoftplusGrad{_BACK}{_FLOAT}")
class SoftplusGrad(Op):
    infer = shapes.merged
    bind = backward(lambda xp, dy, x, num: dy / (xp.exp(-x) + num(1)))
    flops = _flops(3)

    def grad(op, dz):
        dy, x = op.inputs
        with control_dependencies([dz]):
            ddy = apply_op("SoftplusGrad", gradients=dz, features=x)
            d2x = dz * dy / (apply_op("Exp", x=-x) + 2.0 + apply_op("Exp", x=x))
            return [ddy, d2x]


@op(f"Softsign{_TO}{_FLOAT}")
class Softsign(Op):
    """x / (1 + |x|)"""

    infer = shapes.unchanged
    bind = forward(lambda xp, x, num: x / (num(1) + xp.abs(x)))
    flops = _flops(3)

    def grad(op, dy):
        return [apply_op("SoftsignGrad", gradients=dy, features=op.inputs[0])]


@op(f"SoftsignGrad{_BACK}{_FLOAT}")
class SoftsignGrad(Op):
    infer = shapes.merged
    bind = backward(lambda xp, dy, x, num: dy / xp.square(num(1) + xp.abs(x)))
    flops = _flops(4)


# -- functions ----------------------------------------------------------------------------------------

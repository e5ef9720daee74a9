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
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_output
from dtflab.ops.gradient_rules import Grad
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import different_sizes

_REAL = "T: realnumbertype"
_FLOAT = "T: {half, bfloat16, float, double}"


def _forward(name: str, attrs: str, **members: Any) -> None:
    """Register `name(features) -> activations`."""
    interface = f"{name}(features: T) -> (activations: T) where {attrs}"
    op(interface)(type(name, (Op,), {"infer": shapes.unchanged} | members))


def _backward(name: str, given: str, attrs: str, **members: Any) -> None:
    """Register `name(gradients, given) -> backprops`, where `given` is `features` or `outputs`."""
    interface = f"{name}(gradients: T, {given}: T) -> (backprops: T) where {attrs}"
    op(interface)(type(name, (Op,), {"infer": shapes.merged} | members))


def _number(node: Node) -> Any:
    """A function that makes numbers of the node's dtype."""
    return np.dtype(node["T"].as_numpy_dtype).type


def _of_features(kernel: Callable[..., Any]) -> Any:
    """A `bind` rule from `kernel(xp, x, num)`, where `num(v)` is the number v in the dtype of x."""

    def bind(node: Node, xp: Any) -> Callable[[Any], Any]:
        num = _number(node)
        return lambda x: kernel(xp, x, num)

    return bind


def _of_gradients(kernel: Callable[..., Any]) -> Any:
    """A `bind` rule from `kernel(xp, dy, x, num)`, for inputs of one shape; an `into` rule if it takes `out`."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        num = _number(node)

        def checked(dy: Any, x: Any, **out: Any) -> Any:
            if dy.shape != x.shape:
                raise different_sizes(node, dy, 1, x)
            return kernel(xp, dy, x, num, **out)

        return checked

    return bind


# -- kernels ----------------------------------------------------------------------------------------------


def _relu(node: Node, xp: Any) -> Callable[..., Any]:
    num = _number(node)
    if xp is np and num in (np.float32, np.float64):  # NumPy's `maximum` with a scalar takes three times as long
        return lambda x, out=None: x.clip(num(0), num(np.inf), out=out)
    return lambda x, out=None: xp.maximum(x, num(0), out=out)


def _relu_back(xp: Any, dy: Any, x: Any, num: Any, out: Any = None) -> Any:
    """A product, since inf * 0 is NaN in TensorFlow, too."""
    return xp.multiply(dy, x > 0, out=out)


def _relu6(xp: Any, x: Any, num: Any) -> Any:
    return xp.minimum(xp.maximum(x, num(0)), num(6))


def _relu6_back(xp: Any, dy: Any, x: Any, num: Any, out: Any = None) -> Any:
    return xp.multiply(dy, (x > num(0)) & (x < num(6)), out=out)


def _leaky_relu(node: Node, xp: Any) -> Callable[..., Any]:
    alpha = _number(node)(node["alpha"])
    return lambda x: xp.where(x > 0, x, x * alpha)


def _leaky_relu_back(node: Node, xp: Any) -> Callable[..., Any]:
    return _of_gradients(lambda xp, dy, x, num: xp.where(x > num(0), dy, dy * num(node["alpha"])))(node, xp)


def _elu(xp: Any, x: Any, num: Any) -> Any:
    return xp.where(x < num(0), xp.expm1(x), x)


def _elu_back(xp: Any, dy: Any, y: Any, num: Any) -> Any:
    return xp.where(y < num(0), (y + num(1)) * dy, dy)


_SCALE = 1.0507009873554804934193349852946
_SCALE_ALPHA = 1.7580993408473768599402175208123


def _selu(xp: Any, x: Any, num: Any) -> Any:
    return xp.where(x < num(0), num(_SCALE_ALPHA) * xp.expm1(x), num(_SCALE) * x)


def _selu_back(xp: Any, dy: Any, y: Any, num: Any) -> Any:
    return xp.where(y < num(0), dy * (y + num(_SCALE_ALPHA)), dy * num(_SCALE))


def _softplus(xp: Any, x: Any, num: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return xp.logaddexp(x, num(0))


def _softplus_back(xp: Any, dy: Any, x: Any, num: Any) -> Any:
    return dy / (xp.exp(-x) + num(1))


def _softsign(xp: Any, x: Any, num: Any) -> Any:
    return x / (num(1) + xp.abs(x))


def _softsign_back(xp: Any, dy: Any, x: Any, num: Any) -> Any:
    return dy / xp.square(num(1) + xp.abs(x))


# -- gradients --------------------------------------------------------------------------------------------


def _by_features(op: Operation, dy: Tensor) -> list[Tensor]:
    """By the gradient op, from the features; with the slope of LeakyRelu."""
    slope = {"alpha": op.get_attr("alpha")} if op.type == "LeakyRelu" else {}
    return [apply_op(f"{op.type}Grad", gradients=dy, features=op.inputs[0], **slope)]


def _by_output(argument: str) -> Grad:
    """By the gradient op, from the output, under the name that it has there."""
    return lambda op, dy: [apply_op(f"{op.type}Grad", gradients=dy, **{argument: op.outputs[0]})]


def _softplus_grad(op: Operation, dy: Tensor) -> list[Tensor]:
    return [dy * apply_op("Sigmoid", x=op.inputs[0])]


def _piecewise_linear(op: Operation, dz: Tensor) -> list[Tensor]:
    """The gradients of a gradient op that depends on the features only through where their kinks are."""
    x = op.inputs[1]
    slope = {"alpha": op.get_attr("alpha")} if op.type == "LeakyReluGrad" else {}
    return [apply_op(op.type, gradients=dz, features=x, **slope), arrays.zeros_like(x)]


def _exponential(zero: float) -> Grad:
    """The gradients of a gradient op that is exponential below zero, written as TensorFlow writes them there."""

    def grad(op: Operation, dz: Tensor) -> list[Tensor]:
        dy, y = op.inputs
        again = apply_op(op.type, gradients=dz, outputs=y)
        return [again, indexing.where(math.less(y, zero), dz * dy, arrays.zeros_like(y))]

    return grad


def _softplus_second(op: Operation, dz: Tensor) -> list[Tensor]:
    dy, x = op.inputs
    with control_dependencies([dz]):
        ddy = apply_op("SoftplusGrad", gradients=dz, features=x)
        return [ddy, dz * dy / (apply_op("Exp", x=-x) + 2.0 + apply_op("Exp", x=x))]


# -- the ops: types, kernel, gradient, operations per element ----------------------------------------------

_RELU = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}"
_forward("Relu", _RELU, bind=_relu, into=_relu, grad=_by_output("features"))
_relu_grad = _of_gradients(_relu_back)
_backward("ReluGrad", "features", _REAL, bind=_relu_grad, into=_relu_grad, grad=_piecewise_linear)
_LEAK = "alpha: float = 0.2, T: {half, bfloat16, float, double} = float"
_forward("LeakyRelu", _LEAK, bind=_leaky_relu, grad=_by_features, flops=per_output(2))
_backward("LeakyReluGrad", "features", _LEAK, bind=_leaky_relu_back, grad=_piecewise_linear, flops=per_output(2))

for _name, _attrs, _kernel, _grad, _count in (
    ("Relu6", _REAL, _relu6, _by_output("features"), 2),
    ("Elu", _FLOAT, _elu, _by_output("outputs"), 2),
    ("Selu", _FLOAT, _selu, _by_output("outputs"), 3),
    ("Softplus", _FLOAT, _softplus, _softplus_grad, 3),
    ("Softsign", _FLOAT, _softsign, _by_features, 3),
):
    _forward(_name, _attrs, bind=_of_features(_kernel), grad=_grad, flops=per_output(_count))

for _name, _given, _attrs, _kernel, _second, _count in (
    ("Relu6Grad", "features", _REAL, _relu6_back, _piecewise_linear, 2),
    ("EluGrad", "outputs", _FLOAT, _elu_back, _exponential(0), 2),
    ("SeluGrad", "outputs", _FLOAT, _selu_back, _exponential(0.0), 2),
    ("SoftplusGrad", "features", _FLOAT, _softplus_back, _softplus_second, 3),
    ("SoftsignGrad", "features", _FLOAT, _softsign_back, None, 4),
):
    _backward(_name, _given, _attrs, bind=_of_gradients(_kernel), grad=_second, flops=per_output(_count))

"""Ops that no program writes: a TensorFlow master makes them out of others before it sends a graph.

Stands for `core/kernels/matmul_op_fused.cc`, `unary_ops_composition.cc`, some of `core/kernels/mkl/`, and what
`core/grappler/optimizers/remapper.cc` and `arithmetic_optimizer.cc` make of MLPs. Those of convolutions are
in `fused_conv.py`. Left out: quantized ones.

Rule: a fusion computes what its parts compute; one that is not known here says which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.op_registry import Op, elements, op
from dtflab.ops import shapes
from dtflab.ops.linalg.matmul import BatchMatMulV2, product, product_flops, product_shape


def activations(node: Any, xp: Any) -> dict[bytes, Callable[[Any], Any]]:
    """The functions that may be the last part of a fusion."""
    alpha = np.float32(node["leakyrelu_alpha"])
    erf = op_registry.get("Erf").bind(node, xp)
    return {
        b"Relu": lambda x: xp.maximum(x, x.dtype.type(0)),
        b"Relu6": lambda x: xp.minimum(xp.maximum(x, x.dtype.type(0)), x.dtype.type(6)),
        b"Elu": lambda x: xp.where(x < 0, xp.expm1(x), x),
        b"LeakyRelu": lambda x: xp.where(x < 0, x * x.dtype.type(alpha), x),
        b"Tanh": xp.tanh,
        b"Sigmoid": lambda x: xp.reciprocal(xp.exp(-x) + x.dtype.type(1)),
        b"GeluExact": lambda x: x * (erf(x * np.sqrt(0.5).astype(x.dtype)) + x.dtype.type(1)) * x.dtype.type(0.5),
        b"GeluApproximate": lambda x: x * (xp.tanh(_nearly_erf(x)) + x.dtype.type(1)) * x.dtype.type(0.5),
    }


def _fused_steps(node: Any, xp: Any) -> list[Callable[[Any], Any]]:
    """What follows the product and the added bias, one function each."""
    known = activations(node, xp)
    first, *rest = node["fused_ops"]
    if first != b"BiasAdd" or any(name not in known for name in rest):
        raise unknown(node)
    return [known[name] for name in rest]


def unknown(node: Any) -> errors.OpError:
    """The error of a fusion that has a part which is not known here."""
    text = ", ".join(name.decode() for name in node["fused_ops"])
    return errors.UnimplementedError.of(f"Fusion is not implemented: [{text}]")


def _nearly_erf(x: Any) -> Any:
    """What tanh makes nearly erf(x / √2) of."""
    return x.dtype.type(np.sqrt(2 / np.pi)) * (x + x.dtype.type(0.044715) * x * x * x)


class _Fused(Op):
    """What the fused products share: a product, a bias, and functions of the sum."""

    blas = True
    shards = True
    grad = None
    flops = product_flops

    def infer(op):
        return [product_shape(op)]

    def bind(node, xp, shard=None):
        multiply, steps = product(node, xp, shard), _fused_steps(node, xp)

        def kernel(a, b, bias, *rest):
            y = multiply(a, b)
            y += bias
            for step in steps:
                y = step(y)
            return y

        return kernel


@op("""_FusedMatMul(a: T, b: T, args: num_args * T) -> (product: T)
       transpose_a: bool = false
       transpose_b: bool = false
       T: {bfloat16, half, float}
       num_args: int >= 0
       fused_ops: list(string) = []
       epsilon: float = 0.0001
       leakyrelu_alpha: float = 0.2""")
class FusedMatMul(_Fused):
    """MatMul, BiasAdd and an activation in one op."""


@op("""_MklNativeFusedMatMul(a: T, b: T, args: num_args * T) -> (product: T)
       is_filter_const: bool = false
       transpose_a: bool = false
       transpose_b: bool = false
       T: {bfloat16, float, half}
       num_args: int >= 0
       fused_ops: list(string) = []
       epsilon: float = 0.0001
       leakyrelu_alpha: float = 0.2""")
class MklNativeFusedMatMul(_Fused):
    """The same, as TensorFlow names it where oneDNN does the work."""


@op("""_MklFusedBatchMatMulV2(x: T, y: T, args: num_args * T) -> (output: T)
       T: {bfloat16, float, half}
       adj_x: bool = false
       adj_y: bool = false
       num_args: int >= 0
       fused_ops: list(string) = []
       epsilon: float = 0.0001
       leakyrelu_alpha: float = 0.2""")
class MklFusedBatchMatMulV2(Op):
    """BatchMatMulV2, scaled by the first of `args`, with the second added."""

    blas = True
    shards = True

    def bind(node, xp, shard=None):
        multiply = BatchMatMulV2.bind(node, xp, shard)
        steps = {b"Mul": xp.multiply, b"Add": xp.add}
        if any(name not in steps for name in node["fused_ops"]):
            raise unknown(node)

        def kernel(x, y, *args):
            product = multiply(x, y)
            for name, arg in zip(node["fused_ops"], args, strict=True):
                product = steps[name](product, arg)
            return product

        return kernel

    def flops(node, ins, outs):
        return op_registry.get("BatchMatMulV2").flops(node, ins, outs)


@op("""_MklSwish(features: T) -> (activations: T)
       T: {float, bfloat16, half} = float""")
class MklSwish(Op):
    """x · sigmoid(x)."""

    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x / (xp.exp(-x) + x.dtype.type(1))


@op("""_MklFusedMish(features: T) -> (activations: T)
       T: {bfloat16, float, half}""")
class MklFusedMish(Op):
    """x · tanh(softplus(x))."""

    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x * xp.tanh(xp.logaddexp(x, x.dtype.type(0)))


@op("""_MklLayerNorm(x: T, scale: T, offset: T) -> (y: T)
       T: {float, bfloat16, half}
       epsilon: float = 0.001""")
class MklLayerNorm(Op):
    """The last axis with mean 0 and variance 1, scaled and moved."""

    def infer(op):
        return [op.inputs[0].shape]

    def bind(node, xp):
        def kernel(x, scale, offset):
            wide = x.astype(np.float32)
            centred = wide - wide.mean(-1, keepdims=True)
            deviation = xp.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(node["epsilon"]))
            return (centred / deviation * scale + offset).astype(x.dtype)

        return kernel


@op("""_UnaryOpsComposition(x: T) -> (y: T)
       T: {float, half, double}
       op_names: list(string)""")
class UnaryOpsComposition(Op):
    """One element-wise op after the other."""

    infer = shapes.unchanged

    def bind(node, xp):
        steps = [op_registry.get(name.decode()).bind(node, xp) for name in node["op_names"]]

        def kernel(x):
            for step in steps:
                x = step(x)
            return x

        return kernel

    def flops(node, ins, outs):
        return len(node["op_names"]) * elements(outs[0])

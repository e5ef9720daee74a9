"""Ops that no program writes: a TensorFlow master makes them out of others before it sends a graph.

Stands for `core/kernels/{matmul_op_fused,conv_ops_fused_impl,unary_ops_composition}*`, some of `core/kernels/mkl/`, and
what `core/grappler/optimizers/{remapper,arithmetic_optimizer}.cc` make of MLPs and CNNs; FusedBatchNormEx is in
`batch_norm.py`. Left out: quantized ones, those that only a GPU's master makes, padding as a part of a convolution.

Rule: a fusion computes what its parts compute; an unknown fusion raises UnimplementedError with its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.ops import shapes, windows

_FUSED = "\nfused_ops: list(string) = [], epsilon: float = 0.0001, leakyrelu_alpha: float = 0.2"


def _activations(node: Node, xp: Any) -> dict[bytes, Callable[[Any], Any]]:
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


def _nearly_erf(x: Any) -> Any:
    """The argument whose tanh is nearly erf(x / √2)."""
    return x.dtype.type(np.sqrt(2 / np.pi)) * (x + x.dtype.type(0.044715) * x * x * x)


def _unknown(node: Node) -> errors.OpError:
    text = ", ".join(name.decode() for name in node["fused_ops"])
    return errors.UnimplementedError.of(f"Fusion is not implemented: [{text}]")


class _Fused(Op):
    """The op `plain`, and then whatever `fused_ops` names."""

    grad = None
    plain: str

    @classmethod
    def infer(cls, op):
        return list(op_registry.get(cls.plain).infer(op))

    @classmethod
    def flops(cls, node, ins, outs):
        return op_registry.get(cls.plain).flops(node, ins[:2], outs)


# ---- products ----


class _FusedProduct(_Fused):
    """A product, a bias, and functions of the sum."""

    blas = shards = True
    plain = "MatMul"

    def bind(node, xp, shard=None):
        multiply, known = op_registry.get("MatMul").bind(node, xp, shard), _activations(node, xp)
        first, *rest = node["fused_ops"]
        if first != b"BiasAdd" or any(name not in known for name in rest):
            raise _unknown(node)

        def kernel(a, b, bias, *_):
            y = multiply(a, b)
            y += bias
            for name in rest:
                y = known[name](y)
            return y

        return kernel


@op(f"""_FusedMatMul(a: T, b: T, args: num_args * T) -> (product: T)
        transpose_a: bool = false, transpose_b: bool = false, T: {{bfloat16, half, float}}
        num_args: int >= 0{_FUSED}""")
class FusedMatMul(_FusedProduct):
    """MatMul, BiasAdd and an activation in one op."""


@op(f"""_MklNativeFusedMatMul(a: T, b: T, args: num_args * T) -> (product: T)
        is_filter_const: bool = false, transpose_a: bool = false, transpose_b: bool = false
        T: {{bfloat16, float, half}}, num_args: int >= 0{_FUSED}""")
class MklNativeFusedMatMul(_FusedProduct):
    """FusedMatMul as TensorFlow names it where oneDNN does the work."""


@op(f"""_MklFusedBatchMatMulV2(x: T, y: T, args: num_args * T) -> (output: T)
        T: {{bfloat16, float, half}}, adj_x: bool = false, adj_y: bool = false, num_args: int >= 0{_FUSED}""")
class MklFusedBatchMatMulV2(_Fused):
    """BatchMatMulV2, scaled by the first of `args`, with the second added."""

    blas = shards = True
    plain = "BatchMatMulV2"
    infer = Op.infer

    def bind(node, xp, shard=None):
        multiply = op_registry.get("BatchMatMulV2").bind(node, xp, shard)
        steps = {b"Mul": xp.multiply, b"Add": xp.add}
        if any(name not in steps for name in node["fused_ops"]):
            raise _unknown(node)

        def kernel(x, y, *args):
            product = multiply(x, y)
            for name, arg in zip(node["fused_ops"], args, strict=True):
                product = steps[name](product, arg)
            return product

        return kernel


# ---- convolutions ----


def _with_channels(node: Node, vector: Any, y: Any) -> Any:
    """A vector of one value per channel, in the shape that broadcasts over y."""
    return vector.reshape(-1, *[1] * (y.ndim - 2)) if windows.is_channels_first(node) else vector


def _normalized(node: Node, xp: Any, y: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    inverse = scale / xp.sqrt(variance + y.dtype.type(node["epsilon"]))
    return y * _with_channels(node, inverse, y) + _with_channels(node, offset - mean * inverse, y)


class _FusedConvolution(_Fused):
    """A convolution, and after it the steps of `fused_ops`, which take their arguments in turn."""

    @classmethod
    def bind(cls, node, xp, *shard):
        convolve = op_registry.get(cls.plain).bind(node, xp, *shard)
        known, names, sums = _activations(node, xp), node["fused_ops"], (b"BiasAdd", b"FusedBatchNorm", b"Add")
        if not names or any(name not in known and name not in sums for name in names) or node.attrs.get("padding_list"):
            raise _unknown(node)

        def kernel(x, w, *args):
            y, rest = convolve(x, w), iter(args)
            for name in names:
                if name == b"BiasAdd":
                    y = y + _with_channels(node, next(rest), y)
                elif name == b"Add":
                    y = y + next(rest)
                elif name == b"FusedBatchNorm":
                    y = _normalized(node, xp, y, next(rest), next(rest), next(rest), next(rest))
                else:
                    y = known[name](y)
            return y

        return kernel


@op(f"""_FusedConv2D(input: T, filter: T, args: TArgs, host_args: num_host_args * float) -> (output: T)
        T: {{half, float, double, int8, qint8}}, TArgs: list(type) >= 1, num_args: int >= 0
        num_host_args: int >= 0 = 0, strides: list(int), padding: {{'SAME', 'VALID', 'EXPLICIT'}}
        explicit_paddings: list(int) = [], data_format: {{'NHWC', 'NCHW', 'NCHW_VECT_C'}} = 'NHWC'
        filter_format: {{'HWIO', 'OIHW', 'OIHW_VECT_I'}} = 'HWIO', dilations: list(int) = [1, 1, 1, 1]
        use_cudnn_on_gpu: bool = true{_FUSED}""")
class FusedConv2D(_FusedConvolution):
    """Conv2D and a bias or a batch normalization, a sum, an activation."""

    blas = shards = True
    plain = "Conv2D"


@op(f"""_FusedConv3D(input: T, filter: T, args: num_args * T) -> (output: T)
        T: {{bfloat16, float, half}}, num_args: int >= 0, strides: list(int) >= 5, padding: {{'SAME', 'VALID'}}
        data_format: {{'NDHWC', 'NCDHW'}} = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1]
        padding_list: list(int) = []{_FUSED}""")
class FusedConv3D(_FusedConvolution):
    """Conv3D and what follows it."""

    blas = shards = True
    plain = "Conv3D"


@op(f"""_FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args * T) -> (output: T)
        T: {{half, bfloat16, float, double}}, num_args: int >= 0, strides: list(int), padding: {{'SAME', 'VALID'}}
        data_format: {{'NHWC', 'NCHW'}} = 'NHWC', dilations: list(int) = [1, 1, 1, 1]{_FUSED}""")
class FusedDepthwiseConv2dNative(_FusedConvolution):
    """DepthwiseConv2dNative and what follows it."""

    plain = "DepthwiseConv2dNative"


# ---- element by element ----


@op("_MklSwish(features: T) -> (activations: T) where T: {float, bfloat16, half} = float")
class MklSwish(Op):
    """x · sigmoid(x)."""

    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x / (xp.exp(-x) + x.dtype.type(1))


@op("_MklFusedMish(features: T) -> (activations: T) where T: {bfloat16, float, half}")
class MklFusedMish(Op):
    """x · tanh(softplus(x))."""

    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x * xp.tanh(xp.logaddexp(x, x.dtype.type(0)))


@op("_MklLayerNorm(x: T, scale: T, offset: T) -> (y: T) where T: {float, bfloat16, half}, epsilon: float = 0.001")
class MklLayerNorm(Op):
    """The last axis with mean 0 and variance 1, scaled and moved."""

    infer = shapes.unchanged

    def kernel(node, xp, x, scale, offset):
        wide = x.astype(np.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        deviation = xp.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(node["epsilon"]))
        return (centred / deviation * scale + offset).astype(x.dtype)


@op("_UnaryOpsComposition(x: T) -> (y: T) where T: {float, half, double}, op_names: list(string)")
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

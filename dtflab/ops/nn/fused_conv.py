"""Convolutions and batch normalizations that a TensorFlow master has made one op with what follows them.

Stands for `core/kernels/conv_ops_fused_impl.h` and what `core/grappler/optimizers/remapper.cc` makes of CNNs. Left out:
quantized ones, those that only a GPU's master makes, and padding that has become a part of a convolution.

Rule: as in `fused.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base.errors import UnimplementedError
from dtflab.graph import op_registry
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.nn import batch_norm, fused
from dtflab.ops.windows import windows

_FUSED = """
    fused_ops: list(string) = []
    epsilon: float = 0.0001
    leakyrelu_alpha: float = 0.2"""
_SUMS = (b"BiasAdd", b"FusedBatchNorm", b"Add")


def _with_channels(node: Any, vector: Any, y: Any) -> Any:
    """A value per channel so that it fits the channels of y."""
    return vector.reshape(-1, *[1] * (y.ndim - 2)) if windows.is_channels_first(node) else vector


def _normalized(node: Any, xp: Any, y: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    inverse = scale / xp.sqrt(variance + y.dtype.type(node["epsilon"]))
    return y * _with_channels(node, inverse, y) + _with_channels(node, offset - mean * inverse, y)


def _followed(node: Any, xp: Any, convolve: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The kernel `convolve`, and after it what `fused_ops` names, which takes its arguments in turn."""
    known, names = fused.activations(node, xp), node["fused_ops"]
    if not names or any(name not in known and name not in _SUMS for name in names) or node.attrs.get("padding_list"):
        raise fused.unknown(node)

    def kernel(x: Any, w: Any, *args: Any) -> Any:
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


class _Fused(Op):
    """What the fused convolutions share: the plain op, and something after it."""

    grad = None
    plain: str

    @classmethod
    def infer(cls, op: Any) -> list[TensorShape]:
        return list(op_registry.get(cls.plain).infer(op))

    @classmethod
    def bind(cls, node: Any, xp: Any, *shard: Any) -> Callable[..., Any]:
        return _followed(node, xp, op_registry.get(cls.plain).bind(node, xp, *shard))

    @classmethod
    def flops(cls, node: Any, ins: Any, outs: Any) -> int:
        return op_registry.get(cls.plain).flops(node, ins[:2], outs)


@op(f"""_FusedConv2D(input: T, filter: T, args: TArgs, host_args: num_host_args * float) -> (output: T)
        T: {{half, float, double, int8, qint8}}
        TArgs: list(type) >= 1
        num_args: int >= 0
        num_host_args: int >= 0 = 0
        strides: list(int)
        padding: {{'SAME', 'VALID', 'EXPLICIT'}}
        explicit_paddings: list(int) = []
        data_format: {{'NHWC', 'NCHW', 'NCHW_VECT_C'}} = 'NHWC'
        filter_format: {{'HWIO', 'OIHW', 'OIHW_VECT_I'}} = 'HWIO'
        dilations: list(int) = [1, 1, 1, 1]
        use_cudnn_on_gpu: bool = true{_FUSED}""")
class FusedConv2D(_Fused):
    """Conv2D and a bias or a batch normalization, a sum, an activation."""

    blas = True
    shards = True
    plain = "Conv2D"


@op(f"""_FusedConv3D(input: T, filter: T, args: num_args * T) -> (output: T)
        T: {{bfloat16, float, half}}
        num_args: int >= 0
        strides: list(int) >= 5
        padding: {{'SAME', 'VALID'}}
        data_format: {{'NDHWC', 'NCDHW'}} = 'NDHWC'
        dilations: list(int) = [1, 1, 1, 1, 1]
        padding_list: list(int) = []{_FUSED}""")
class FusedConv3D(_Fused):
    """The same for volumes."""

    blas = True
    shards = True
    plain = "Conv3D"


@op(f"""_FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args * T) -> (output: T)
        T: {{half, bfloat16, float, double}}
        num_args: int >= 0
        strides: list(int)
        padding: {{'SAME', 'VALID'}}
        data_format: {{'NHWC', 'NCHW'}} = 'NHWC'
        dilations: list(int) = [1, 1, 1, 1]{_FUSED}""")
class FusedDepthwiseConv2dNative(_Fused):
    """The same for depthwise convolutions."""

    plain = "DepthwiseConv2dNative"


@op("""_FusedBatchNormEx(x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T)
       -> (y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U)
       T: {half, float, bfloat16}
       U: {float}
       epsilon: float = 0.0001
       exponential_avg_factor: float = 1.0
       num_side_inputs: int >= 0 = 0
       activation_mode: string = 'Identity'
       data_format: {'NHWC', 'NCHW'} = 'NHWC'
       is_training: bool = true""")
class FusedBatchNormEx(Op):
    """FusedBatchNormV3, something added, and an activation."""

    grad = None

    def infer(operation):
        return op_registry.get("FusedBatchNormV3").infer(operation)

    def bind(node, xp):
        normalize = batch_norm.bind_forward(node, xp)
        last = {b"Identity": lambda y: y, b"Relu": lambda y: xp.maximum(y, y.dtype.type(0))}
        if node["activation_mode"] not in last:
            raise UnimplementedError.of(f"Fusion is not implemented: {node['activation_mode'].decode()}")
        activate = last[node["activation_mode"]]

        def kernel(x, scale, offset, mean, variance, *sides):
            y, *rest = normalize(x, scale, offset, mean, variance)
            for side in sides:
                y = y + side
            return [activate(y), *rest]

        return kernel

    def flops(node, ins, outs):
        return 10 * elements(ins[0])

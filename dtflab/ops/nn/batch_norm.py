"""Batch normalization in one op, and its gradients.

Stands for `core/kernels/fused_batch_norm_op.cc`, its part of `nn_grad.py` and `nn_fused_batch_norm_grad.py`;
`batch_normalization`, which is made of several ops, is in `moments.py`.

Rule: everything is done in float32, over a matrix with a row per place and a column per channel. The spaces that are
reserved for the gradient hold the mean and the variance; those of cuDNN are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.base.errors import UnimplementedError
from dtflab.graph.apply_op import apply_op
from dtflab.graph.gradients import gradients
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import windows
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_input
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce

_WAYS = """
    epsilon: float = 0.0001, exponential_avg_factor: float = 1.0, data_format: {'NHWC', 'NCHW'} = 'NHWC'
    is_training: bool = true"""
_GRAD_WAYS = "\nepsilon: float = 0.0001, data_format: {'NHWC', 'NCHW'} = 'NHWC', is_training: bool = true"
_ALL_FORMATS = "{'NHWC', 'NCHW', 'NDHWC', 'NCDHW'}"
_SHORT = "T: {half, bfloat16, float}"
_OUTPUTS = "batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U"
_BACK = "x_backprop: T, scale_backprop: U, offset_backprop: U"


# -- kernels --------------------------------------------------------------------------------------------------


def _rows(xp: Any, node: Node, x: Any) -> Any:
    """`x` as a matrix of float32: a row per place, a column per channel."""
    x = xp.moveaxis(x, 1, -1) if windows.is_channels_first(node) else x
    return x.reshape(-1, x.shape[-1]).astype(np.float32, copy=False)


def _unrolled(xp: Any, node: Node, rows: Any, like: Any) -> Any:
    """The matrix as an array of the shape and type of `like`."""
    if windows.is_channels_first(node):
        places = (like.shape[0], *like.shape[2:], like.shape[1])
        rows = xp.ascontiguousarray(xp.moveaxis(rows.reshape(places), -1, 1))
    return rows.reshape(like.shape).astype(like.dtype, copy=False)


def _check(node: Node, x: Any, **vectors: Any) -> None:
    """InvalidArgumentError unless `x` has its rank, and each vector an element per channel."""
    ndims = len(node["data_format"])
    if x.ndim not in (4, ndims):
        raise invalid(f"input must be {ndims}-dimensional{shape_text(x)}")
    channels = x.shape[1 if windows.is_channels_first(node) else -1]
    for name, vector in vectors.items():
        if vector.ndim != 1:
            raise invalid(f"{name} must be 1-dimensional{shape_text(vector)}")
        if len(vector) != channels:
            text = f"got {len(vector)} and {channels}"
            raise invalid(f"{name} must have the same number of elements as the channels of x, {text}")


def _bind_forward(node: Node, xp: Any) -> Callable[..., Any]:
    training, factor = node["is_training"], np.float32(node["exponential_avg_factor"])
    epsilon = np.float32(node["epsilon"])
    empty = [np.zeros(0, np.float32)] * (node.op not in ("FusedBatchNorm", "FusedBatchNormV2"))

    def kernel(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> list[Any]:
        old = {} if training and factor == 1 else {"mean": mean, "variance": variance}
        _check(node, x, scale=scale, offset=offset, **old)
        rows = _rows(xp, node, x)
        seen_mean, seen_variance = (rows.mean(0), rows.var(0)) if training else (mean, variance)
        inverse = scale / xp.sqrt(seen_variance + epsilon)
        y = (rows - seen_mean) * inverse + offset
        new = [seen_mean, seen_variance]
        if training:
            count = len(rows)
            new[1] = seen_variance * np.float32(count / max(count - 1, 1))
            if factor != 1:
                new = [before * (1 - factor) + now * factor for before, now in zip((mean, variance), new)]
        spaces = [xp.asarray(space) for space in empty]
        return [_unrolled(xp, node, y, x), *new, xp.array(seen_mean), xp.array(seen_variance), *spaces]

    return kernel


def _bind_gradient(node: Node, xp: Any) -> Callable[..., Any]:
    epsilon = np.float32(node["epsilon"])

    def kernel(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *space: Any) -> list[Any]:
        _check(node, x, scale=scale, mean=mean, variance=variance)
        if dy.shape != x.shape:
            text = f"x has {shape_text(x)}, y_backprop {shape_text(dy)}"
            raise invalid(f"x and y_backprop must have same shape, but {text}")
        rows, slopes = _rows(xp, node, x), _rows(xp, node, dy)
        centred, inverse = rows - mean, 1 / xp.sqrt(variance + epsilon)
        d_scale, d_offset = (slopes * centred).sum(0) * inverse, slopes.sum(0)
        if node["is_training"]:  # mean and variance follow from x, too
            count = np.float32(max(len(rows), 1))
            slopes = slopes - d_offset / count - centred * (d_scale * inverse / count)
        unused = [xp.zeros(0, np.float32)] * 2
        return [_unrolled(xp, node, slopes * (scale * inverse), dy), d_scale, d_offset, *unused]

    return kernel


# -- the ops --------------------------------------------------------------------------------------------------


def _shapes(op: Operation, tensors: int, vectors: int, outputs: int) -> list[TensorShape]:
    """The shape of the first input with the channels that any of the inputs knows; and of that many vectors of them.

    The inputs are that many tensors, and then that many vectors.
    """
    ndims = len(op.get_attr("data_format"))
    axis = 1 if windows.is_channels_first(op) else ndims - 1
    shapes = [t.shape.with_rank(ndims) for t in op.inputs[:tensors]]
    channels = shapes[0][axis]
    for shape in shapes[1:]:
        channels = channels.merge_with(shape[axis])
    for vector in op.inputs[tensors : tensors + vectors]:
        channels = channels.merge_with(vector.shape.with_rank(1)[0])
    dims = list(shapes[0])
    dims[axis] = channels
    return [TensorShape(dims), *[TensorShape([channels])] * outputs]


@op(f"""FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T) -> (y: T, {_OUTPUTS.replace("U", "T")})
        T: {{float}}{_WAYS}""",
    f"""FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U) -> (y: T, {_OUTPUTS})
        {_SHORT}, U: {{float}}{_WAYS}""",
    f"""FusedBatchNormV3(x: T, scale: U, offset: U, mean: U, variance: U) -> (y: T, {_OUTPUTS}, reserve_space_3: U)
        {_SHORT}, U: {{bfloat16, float}}{_WAYS.replace("{'NHWC', 'NCHW'}", _ALL_FORMATS)}""")  # fmt: skip
class FusedBatchNorm(Op):
    """Each channel with mean 0 and variance 1 over the batch, scaled and moved; or by the given mean and variance.

    V2 also takes the short floats; V3 also takes volumes, and has another space for cuDNN.
    """

    bind = _bind_forward
    flops = per_input(8)

    def infer(op: Operation) -> list[TensorShape]:
        rest = [TensorShape(None)] * (len(op.outputs) == 6)
        return [*_shapes(op, 1, 2 if op.get_attr("is_training") else 4, 4), *rest]

    def grad(op: Operation, dy: Any, *unused: Any) -> list[Any]:
        version = op.type.removeprefix("FusedBatchNorm")
        data_format, training = op.get_attr("data_format").decode(), op.get_attr("is_training")
        x, scale, _, mean, variance = op.inputs
        last = None if training or not windows.is_channels_first(op) else range(2, len(data_format))
        mean, variance = op.outputs[3:5] if training else (mean, variance)
        if last is not None:
            x, dy = (arrays.transpose(t, [0, *last, 1]) for t in (x, dy))
            data_format = data_format.replace("C", "") + "C"
        attrs = {"epsilon": op.get_attr("epsilon"), "data_format": data_format, "is_training": training}
        spaces = {"reserve_space_1": mean, "reserve_space_2": variance}
        if version == "V3":
            spaces["reserve_space_3"] = op.outputs[5]
        gradient = f"FusedBatchNormGrad{version}"
        dx, d_scale, d_offset, *_ = apply_op(gradient, y_backprop=dy, x=x, scale=scale, **spaces, **attrs)
        if last is not None:
            dx = arrays.transpose(dx, [0, len(last) + 1, *(i - 1 for i in last)])
        return [dx, d_scale, d_offset, None, None]


@op(f"""FusedBatchNormGrad(y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T)
        -> ({_BACK.replace("U", "T")}, reserve_space_3: T, reserve_space_4: T)
        T: {{float}}{_GRAD_WAYS}""",
    f"""FusedBatchNormGradV2(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U)
        -> ({_BACK}, reserve_space_3: U, reserve_space_4: U)
        {_SHORT}, U: {{float}}{_GRAD_WAYS}""",
    f"""FusedBatchNormGradV3(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U,
                             reserve_space_3: U) -> ({_BACK}, reserve_space_4: U, reserve_space_5: U)
        {_SHORT}, U: {{float}}{_GRAD_WAYS.replace("{'NHWC', 'NCHW'}", _ALL_FORMATS)}""")  # fmt: skip
class FusedBatchNormGrad(Op):
    """The gradients of batch normalization by x, scale and offset."""

    bind = _bind_gradient
    flops = per_input(11)

    def infer(op: Operation) -> list[TensorShape]:
        return [*_shapes(op, 2, 3, 2), TensorShape([0]), TensorShape([0])]

    def grad(op: Operation, *grads: Any) -> list[Any]:
        dy, x, scale = op.inputs[:3]
        ys = _written_out(op, *op.inputs[:5])
        found = gradients(ys, [dy, x, scale], list(grads[:3]), stop_gradients=[dy, x, scale])
        return [*found, *[None] * (len(op.inputs) - 3)]


def _written_out(
    op: Operation, dy: Tensor, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor
) -> Sequence[Tensor]:
    """The gradients as ops that can be differentiated once more."""
    dtype, first, ndims = x.dtype, windows.is_channels_first(op), len(op.get_attr("data_format"))
    axes = [i for i in range(ndims) if i != (1 if first else ndims - 1)]
    epsilon, training = op.get_attr("epsilon"), op.get_attr("is_training")
    if dtype.size == 2:
        x, dy = arrays.cast(x, "float32"), arrays.cast(dy, "float32")
    if first:
        shape = [1, arrays.size(scale), *[1] * (ndims - 2)]
        scale, mean, variance = (arrays.reshape(v, shape) for v in (scale, mean, variance))
    slopes = dy
    if training:
        mean = reduce.reduce_mean(x, axes, keepdims=first)
        square = math.squared_difference(x, apply_op("StopGradient", input=mean))
        variance = reduce.reduce_mean(square, axes, keepdims=first)
    inverse = math.rsqrt(variance + epsilon)
    centred = x - mean
    if training:
        shared = reduce.reduce_mean(dy * centred, axes, keepdims=first)
        slopes = dy - reduce.reduce_mean(dy, axes, keepdims=first)
        slopes -= math.reciprocal(variance + epsilon) * shared * centred
    d_scale = reduce.reduce_sum(dy * centred * inverse, axes)
    return arrays.cast(scale * inverse * slopes, dtype), d_scale, reduce.reduce_sum(dy, axes)


@op("""_FusedBatchNormEx(x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T)
       -> (y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U)
       T: {half, float, bfloat16}, U: {float}, epsilon: float = 0.0001, exponential_avg_factor: float = 1.0
       num_side_inputs: int >= 0 = 0, activation_mode: string = 'Identity', data_format: {'NHWC', 'NCHW'} = 'NHWC'
       is_training: bool = true""")
class FusedBatchNormEx(FusedBatchNorm):
    """FusedBatchNormV3, a sum and an activation. No program writes it: a TensorFlow master fuses them."""

    grad = None
    flops = per_input(10)

    def bind(node, xp):
        normalize = _bind_forward(node, xp)
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

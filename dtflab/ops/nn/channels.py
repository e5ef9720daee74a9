"""Ops on each channel: BiasAdd adds an element of a vector, LRN divides by the neighbours' squares.

Stands for `core/kernels/bias_op.cc`, `lrn_op.cc` and their parts of `nn_grad.py`.

Rule: unlike `+`, BiasAdd fits the bias to the channels, wherever `data_format` says they are, so its gradient is one op
that knows what to sum over. LRN's sums over neighbours are one product with a band matrix, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import accumulator
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import of_first
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce

_TYPES = "\nT: numbertype, data_format: {'NHWC', 'NCHW'} = 'NHWC'"


def _channel(node: Node, ndims: int) -> int:
    """The axis of the channels."""
    return 1 if node.attrs.get("data_format") == b"NCHW" else ndims - 1


def _bias_shape(operation: Any) -> list[TensorShape]:
    value, bias = operation.inputs[0].shape.with_rank_at_least(2), operation.inputs[1].shape.with_rank(1)
    if value.ndims is None:
        return [value]
    dims, axis = list(value.dims), _channel(operation, value.ndims)
    channels = dims[axis]
    if not channels.is_compatible_with(bias[0]):
        raise ValueError(f"Dimensions must be equal, but are {channels} and {bias[0]}")
    dims[axis] = channels.merge_with(bias[0])
    return [TensorShape(dims)]


class _BiasAdd(Op):
    infer = _bias_shape

    def bind(node: Node, xp: Any) -> Any:
        def add(value: Any, bias: Any, out: Any = None) -> Any:
            if value.ndim < 2:
                raise invalid(f"Input tensor must be at least 2D: {shape_text(value)}")
            if bias.ndim != 1:
                raise invalid(f"Biases must be 1D: {shape_text(bias)}")
            axis = _channel(node, value.ndim)
            if bias.shape[0] != value.shape[axis]:
                text = f"{shape_text(bias)} vs. {shape_text(value)}"
                raise invalid(f"Must provide as many biases as the last dimension of the input tensor: {text}")
            return xp.add(value, bias.reshape(bias.shape + (1,) * (value.ndim - 1 - axis)), out=out)

        return add

    into = bind


@op("BiasAdd(value: T, bias: T) -> (output: T)" + _TYPES)
class BiasAdd(_BiasAdd):
    def grad(op, dy):
        return [dy, apply_op("BiasAddGrad", out_backprop=dy, data_format=op.get_attr("data_format"))]


@op("BiasAddV1(value: T, bias: T) -> (output: T) where T: numbertype")
class BiasAddV1(_BiasAdd):
    def grad(op, dy):
        return [dy, reduce.reduce_sum(dy, arrays.range(arrays.rank(dy) - 1))]


@op("BiasAddGrad(out_backprop: T) -> (output: T)" + _TYPES)
class BiasAddGrad(Op):
    flops = of_first

    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(2)
        return [TensorShape([None if shape.ndims is None else shape[_channel(op, shape.ndims)]])]

    def kernel(node, xp, dy):
        if dy.ndim < 2:
            raise invalid(f"Input tensor must be at least 2D: {shape_text(dy)}")
        axis = _channel(node, dy.ndim)
        return accumulator(xp, "add")(dy, tuple(i for i in range(dy.ndim) if i != axis), dy.dtype, False)

    def grad(op, dz):
        """The sum's gradient: `dz` repeated along everything but the channels."""
        shape, bias_shape = arrays.shape(op.inputs[0]), arrays.shape(dz)
        if op.get_attr("data_format") == b"NCHW":
            ones = [arrays.ones_like(shape[:1]), bias_shape, arrays.ones_like(shape[2:])]
            repeats = [shape[:1], [1], shape[2:]]
        else:
            ones, repeats = [arrays.ones_like(shape[:-1]), bias_shape], [shape[:-1], [1]]
        expanded_shape, multiples = arrays.concat(ones, 0), arrays.concat(repeats, 0)
        return [arrays.tile(arrays.reshape(dz, expanded_shape), multiples)]


# ---- local response normalization ----


_ATTRS = """
    depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
    T: {half, bfloat16, float} = float"""


def _powers(node: Node, xp: Any) -> Callable[[Any], tuple[Any, Any]]:
    """A function of images: bias + alpha · (the squares of the neighbours, added up), and that to the power -beta."""
    bias, alpha, beta = (np.float32(node[name]) for name in ("bias", "alpha", "beta"))

    def powers(x: Any) -> tuple[Any, Any]:
        norm = bias + alpha * _of_neighbours(node, xp, x * x)
        return norm, norm**-beta

    return powers


def _of_neighbours(node: Node, xp: Any, x: Any) -> Any:
    """For each channel the sum of those that are not farther than `depth_radius` away."""
    channels = xp.arange(x.shape[-1])
    band = (xp.abs(channels[:, None] - channels) <= node["depth_radius"]).astype(np.float32)
    return xp.matmul(x.reshape(-1, x.shape[-1]), band).reshape(x.shape)


def _check(x: Any) -> None:
    if x.ndim != 4:
        raise invalid(f"in must be 4-dimensional, got shape {shape_text(x)}")


class _Normalization(Op):
    """Base of LRN and its gradient."""

    blas = True

    def infer(op: Operation) -> list[Any]:
        shape = op.inputs[0].shape.with_rank(4)
        for tensor in op.inputs[1:]:
            shape = shape.merge_with(tensor.shape.with_rank(4))
        return [shape]

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return (2 * node["depth_radius"] + 5) * elements(ins[0])


@op("LRN(input: T) -> (output: T)" + _ATTRS)
class LRN(_Normalization):
    """x / (bias + alpha · Σ x²) ** beta"""

    def bind(node, xp):
        powers = _powers(node, xp)

        def normalize(x):
            _check(x)
            wide = x.astype(np.float32, copy=False)
            return (wide * powers(wide)[1]).astype(x.dtype, copy=False)

        return normalize

    def grad(op, dy):
        attrs = {name: op.get_attr(name) for name in ("depth_radius", "bias", "alpha", "beta")}
        ends = {"input_image": op.inputs[0], "output_image": op.outputs[0]}
        return [apply_op("LRNGrad", input_grads=dy, **ends, **attrs)]


@op("LRNGrad(input_grads: T, input_image: T, output_image: T) -> (output: T)" + _ATTRS)
class LRNGrad(_Normalization):
    """The gradient of LRN: of each channel by itself, and of its neighbours by it."""

    grad = None

    def bind(node, xp):
        powers, factor = _powers(node, xp), np.float32(2 * node["alpha"] * node["beta"])

        def gradient(dy, x, y):
            _check(x)
            if not dy.shape == x.shape == y.shape:
                raise invalid("input_grads, input_image, and out_image should have the same shape")
            wide_dy, wide_x, wide_y = (a.astype(np.float32, copy=False) for a in (dy, x, y))
            norm, power = powers(wide_x)
            others = _of_neighbours(node, xp, wide_dy * wide_y / norm)
            return (wide_dy * power - factor * wide_x * others).astype(x.dtype, copy=False)

        return gradient

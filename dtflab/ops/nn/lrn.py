"""Local response normalization: each channel divided by what its neighbours say.

Stands for `core/kernels/lrn_op.cc`.

Rule: the sums over neighbouring channels are one product with a band matrix; short floats are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.ops.messages import invalid, shape_text

_ATTRS = """
    depth_radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5
    T: {half, bfloat16, float} = float"""


def _powers(node: Any, xp: Any) -> Callable[[Any], tuple[Any, Any]]:
    """A function of images: bias + alpha · (the squares of the neighbours, added up), and that to the power -beta."""
    bias, alpha, beta = (np.float32(node[name]) for name in ("bias", "alpha", "beta"))

    def powers(x: Any) -> tuple[Any, Any]:
        norm = bias + alpha * _of_neighbours(node, xp, x * x)
        return norm, norm**-beta

    return powers


def _of_neighbours(node: Any, xp: Any, x: Any) -> Any:
    """For each channel the sum of those that are not farther than `depth_radius` away."""
    channels = xp.arange(x.shape[-1])
    band = (xp.abs(channels[:, None] - channels) <= node["depth_radius"]).astype(np.float32)
    return xp.matmul(x.reshape(-1, x.shape[-1]), band).reshape(x.shape)


def _check(x: Any) -> None:
    if x.ndim != 4:
        raise invalid(f"in must be 4-dimensional, got shape {shape_text(x)}")


class _Normalization(Op):
    """What the two share."""

    blas = True

    def infer(op: Any) -> list[Any]:
        shape = op.inputs[0].shape.with_rank(4)
        for tensor in op.inputs[1:]:
            shape = shape.merge_with(tensor.shape.with_rank(4))
        return [shape]

    def flops(node: Any, ins: Any, outs: Any) -> int:
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
        return [apply_op("LRNGrad", None, input_grads=dy, **ends, **attrs)]


@op("LRNGrad(input_grads: T, input_image: T, output_image: T) -> (output: T)" + _ATTRS)
class LRNGrad(_Normalization):
    """Its gradient: of each channel by itself, and of its neighbours by it."""

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


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """input / (bias + alpha · Σ input²) ** beta, the sum over `depth_radius` channels to both sides.

    `input` is [batch, height, width, channels].
    """
    attrs = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
    return apply_op("LRN", name, input=input, **attrs)

"""Shape rules that many ops share; each takes an Operation and returns the shapes of its outputs.

Stands for `core/framework/common_shape_fns.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast


def unchanged(op: Operation) -> list[TensorShape]:
    """Every output has the shape of the first input."""
    return [op.inputs[0].shape] * len(op.outputs)


def like(index: int) -> Callable[[Any], list[TensorShape]]:
    """The rule of an op whose outputs have the shape of input `index`."""
    return lambda op: [op.inputs[index].shape] * len(op.outputs)


def given(index: int, rank: int | None = None) -> Callable[[Any], list[TensorShape]]:
    """The rule of an op whose output has the shape that input `index` says, of that rank."""
    return lambda op: [folded_shape(op.inputs[index]).with_rank(rank)]


def scalar(op: Operation) -> list[TensorShape]:
    """Every output is a scalar."""
    return [TensorShape([])] * len(op.outputs)


def handle(op: Operation) -> list[TensorShape]:
    """The output names a resource: a scalar handle, or a reference to two strings."""
    return [TensorShape([2] if op.outputs[0].dtype._is_ref_dtype else [])]


def none(op: Operation) -> list[TensorShape]:
    """The op has no output."""
    return []


def declared(op: Operation) -> list[TensorShape]:
    """The attribute `shape`."""
    return [op.attrs["shape"]]


def broadcast(op: Operation) -> list[TensorShape]:
    """NumPy broadcasting of the first two inputs; ValueError says which sizes do not fit."""
    return [infer_broadcast(op.inputs[0].shape, op.inputs[1].shape)]


def merged(op: Operation) -> list[TensorShape]:
    """All inputs have one shape, and so has each output."""
    shape = op.inputs[0].shape
    for tensor in op.inputs[1:]:
        shape = shape.merge_with(tensor.shape)
    return [shape] * len(op.outputs)


def fixed(*outputs: list[int | None], ranks: Sequence[int | None] = ()) -> Callable[[Any], list[TensorShape]]:
    """The rule of an op whose outputs have these shapes; its first inputs must have these ranks, None for any."""

    def rule(op: Operation) -> list[TensorShape]:
        for tensor, rank in zip(op.inputs, ranks, strict=False):
            tensor.shape.with_rank(rank)
        return [TensorShape(shape) for shape in outputs]

    return rule

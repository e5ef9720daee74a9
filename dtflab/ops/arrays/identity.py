"""Ops that pass a tensor on, and ops that give its shape.

Stands for `core/kernels/identity_op.cc`, `shape_ops.cc` and the matching part of `python/ops/array_ops.py`.

Rule: a shape that is known when the graph is built becomes a constant instead of an op, as in TensorFlow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text


class _PassOn(Op):
    """Base of the ops that pass their input on."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x

    flops = bytes = free

    def grad(op, dy):
        return [dy]


_PASSED_ON: dict[str, dict[str, Any]] = {
    "Identity": {},
    "Snapshot": {"grad": None},  # a TensorFlow master puts it where it removed arithmetic that changed nothing
    "GuaranteeConst": {"grad": None, "stateful": True},  # the program promises that it never changes; not used
    "StopGradient": {"grad": no_gradient},
}

for _name, _members in _PASSED_ON.items():
    op(f"{_name}(input: T) -> (output: T) where T: type")(type(_name, (_PassOn,), _members))


@op("PreventGradient(input: T) -> (output: T) where T: type, message: string = ''")
class PreventGradient(_PassOn):
    """The input; asking for a gradient through it is an error."""

    def grad(op, dy):
        raise LookupError(f"Gradient explicitly disabled. Reason: {op.get_attr('message')!r}")


@op("IdentityN(input: T) -> (output: T) where T: list(type) >= 1")
class IdentityN(Op):
    """The inputs, once all of them are there."""

    aliasing = True
    flops = bytes = free

    def infer(op):
        return [t.shape for t in op.inputs]

    def bind(node, xp):
        return lambda *xs: xs

    def grad(op, *dys):
        return list(dys)


# -- what shape a tensor has ----------------------------------------------------------------------------


@op("Shape(input: T) -> (output: out_type) where T: type, out_type: {int32, int64} = int32")
class Shape(Op):
    """The sizes of the input, as a vector."""

    flops = bytes = free
    grad = no_gradient

    def infer(op):
        return [TensorShape([op.inputs[0].shape.ndims])]

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda x: np.array(np.shape(x), dtype)


@op("ShapeN(input: N * T) -> (output: N * out_type) where N: int >= 1, T: type, out_type: {int32, int64} = int32")
class ShapeN(Op):
    """The shapes of several tensors."""

    flops = bytes = free
    grad = no_gradient

    def infer(op):
        return [TensorShape([t.shape.ndims]) for t in op.inputs]

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda *xs: [np.array(np.shape(x), dtype) for x in xs]


@op("Size(input: T) -> (output: out_type) where T: type, out_type: {int32, int64} = int32")
class Size(Op):
    """The number of elements."""

    infer = shapes.scalar
    flops = bytes = free
    grad = no_gradient

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda x: dtype(np.size(x))


@op("Rank(input: T) -> (output: int32) where T: type")
class Rank(Op):
    """The number of dimensions."""

    infer = shapes.scalar
    flops = bytes = free
    grad = no_gradient

    def bind(node, xp):
        return lambda x: np.int32(np.ndim(x))


@op("EnsureShape(input: T) -> (output: T) where shape: shape, T: type")
class EnsureShape(_PassOn):
    """The input, checked when it runs to have the given (partly known) shape."""

    checks = True

    def infer(op):
        return [op.attrs["shape"].merge_with(op.inputs[0].shape)]

    def bind(node, xp):
        expected = node["shape"]

        def kernel(x):
            if not expected.is_compatible_with(np.shape(x)):
                raise invalid(
                    f"Shape of tensor {node.inputs[0][0]} {shape_text(x)} is not compatible with expected "
                    f"shape {shape_text(expected)}."
                )
            return x

        return kernel

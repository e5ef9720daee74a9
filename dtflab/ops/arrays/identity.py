"""Handing a tensor on, and asking for its shape.

Stands for `core/kernels/identity_op.cc`, `shape_ops.cc` and the matching part of `python/ops/array_ops.py`.

Rule: what is known when the graph is built becomes a constant instead of an op, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.sparse.sparse_tensor import SparseTensor, is_sparse


class _PassOn(Op):
    """What the ops share that hand their input on."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x

    flops = bytes = free

    def grad(op, dy):
        return [dy]


@op("""Identity(input: T) -> (output: T)
       T: type""")
class Identity(_PassOn):
    """The input."""


@op("""Snapshot(input: T) -> (output: T)
       T: type""")
class Snapshot(_PassOn):
    """The input; a TensorFlow master puts it where it removed arithmetic that changed nothing."""

    grad = None


@op("""GuaranteeConst(input: T) -> (output: T)
       T: type""")
class GuaranteeConst(_PassOn):
    """The input, of which the program says that it never changes; nothing is made of that."""

    stateful = True
    grad = None


@op("""StopGradient(input: T) -> (output: T)
       T: type""")
class StopGradient(_PassOn):
    """The input, as a constant for the gradient."""

    grad = no_gradient


@op("""PreventGradient(input: T) -> (output: T)
       T: type
       message: string = ''""")
class PreventGradient(_PassOn):
    """The input; asking for a gradient through it is an error."""

    def grad(op, dy):
        raise LookupError(f"Gradient explicitly disabled. Reason: {op.get_attr('message')!r}")


@op("""IdentityN(input: T) -> (output: T)
       T: list(type) >= 1""")
class IdentityN(Op):
    """The inputs, all of them at once."""

    aliasing = True
    flops = bytes = free

    def infer(op):
        return [t.shape for t in op.inputs]

    def bind(node, xp):
        return lambda *xs: xs

    def grad(op, *dys):
        return list(dys)


def identity(input: Any, name: str | None = None) -> Any:
    """A new tensor (or IndexedSlices, SparseTensor) with the value of `input`."""
    if isinstance(input, IndexedSlices | SparseTensor):
        return input.map(identity)
    return apply_op("Identity", name, input=input)


def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """New tensors with the values of all of `input`."""
    return apply_op("IdentityN", name, input=input)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """`input`, which gradients do not flow through."""
    return apply_op("StopGradient", name, input=input)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """`input`, of which the program says that it never changes."""
    return apply_op("GuaranteeConst", name, input=input)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Tensor:
    """`input`; a gradient through it raises LookupError with `message`."""
    return apply_op("PreventGradient", name, input=input, message=message)


# -- what shape a tensor has ----------------------------------------------------------------------------


@op("""Shape(input: T) -> (output: out_type)
       T: type
       out_type: {int32, int64} = int32""")
class Shape(Op):
    """The sizes of the input, as a vector."""

    flops = bytes = free
    grad = no_gradient

    def infer(op):
        return [TensorShape([op.inputs[0].shape.ndims])]

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda x: np.array(np.shape(x), dtype)


@op("""ShapeN(input: N * T) -> (output: N * out_type)
       N: int >= 1
       T: type
       out_type: {int32, int64} = int32""")
class ShapeN(Op):
    """The shapes of several tensors."""

    flops = bytes = free
    grad = no_gradient

    def infer(op):
        return [TensorShape([t.shape.ndims]) for t in op.inputs]

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda *xs: [np.array(np.shape(x), dtype) for x in xs]


@op("""Size(input: T) -> (output: out_type)
       T: type
       out_type: {int32, int64} = int32""")
class Size(Op):
    """The number of elements."""

    infer = shapes.scalar
    flops = bytes = free
    grad = no_gradient

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda x: dtype(np.size(x))


@op("""Rank(input: T) -> (output: int32)
       T: type""")
class Rank(Op):
    """The number of dimensions."""

    infer = shapes.scalar
    flops = bytes = free
    grad = no_gradient

    def bind(node, xp):
        return lambda x: np.int32(np.ndim(x))


def shape(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The shape of `input` as a vector: a constant where it is known now."""
    return shape_internal(input, name, out_type=dtypes.int32 if out_type is None else out_type)


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = None) -> Tensor:
    """As `shape`; `optimize=False` always makes the op; without `out_type` the constant has a longer name."""
    with name_scope(name, "Shape", [input]) as scope:
        if is_sparse(input):
            return apply_op("Cast", None, x=input.dense_shape, DstT=out_type or dtypes.int32)
        input = convert_to_tensor(input)
        if optimize and input.shape.is_fully_defined():
            if out_type is None:
                return convert_to_tensor(input.shape)
            return constant(input.shape.as_list(), out_type, name=scope)
        return apply_op("Shape", scope, input=input, out_type=out_type or dtypes.int32)


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return apply_op("ShapeN", name, input=input, out_type=out_type)


def size(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of elements of `input`: a constant where it is known now."""
    out_type = dtypes.int32 if out_type is None else out_type
    with name_scope(name, "Size", [input]) as scope:
        if is_sparse(input):
            sizes = apply_op("Cast", None, x=input.dense_shape, DstT=out_type)
            return apply_op("Prod", scope, input=sizes, reduction_indices=0)
        input = convert_to_tensor(input)
        if input.shape.is_fully_defined():
            return constant(input.shape.num_elements(), out_type, name=scope)
        if input.shape.ndims and 0 in input.shape.as_list():
            return constant(0, out_type, name=scope)
        return apply_op("Size", scope, input=input, out_type=out_type)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of `input`: a constant where it is known now."""
    with name_scope(name, "Rank", [input]) as scope:
        if is_sparse(input):
            return apply_op("Size", scope, input=input.dense_shape)
        input = convert_to_tensor(input)
        if input.shape.ndims is not None:
            return constant(input.shape.ndims, dtypes.int32, name=scope)
        return apply_op("Rank", scope, input=input)


@op("""EnsureShape(input: T) -> (output: T)
       shape: shape
       T: type""")
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


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, with the static shape `shape`; the step fails if the value has another."""
    return apply_op("EnsureShape", name, input=x, shape=shape)


def convert_to_int_tensor(value: Any, name: str, dtype: Any = dtypes.int32) -> Tensor:
    """`value` as an integer tensor of `dtype`."""
    tensor = convert_to_tensor(value, name=name)
    if not tensor.dtype.is_integer:
        raise TypeError(
            f"Argument `tensor` (name: {name}) must be of type integer. Received {tensor} of dtype {tensor.dtype}"
        )
    return apply_op("Cast", x=tensor, DstT=dtype)  # even where it changes nothing, as in TensorFlow

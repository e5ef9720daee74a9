"""Ops that pass a tensor on, that give its shape, and that give it another dtype.

Stands for `core/kernels/{identity_op,shape_ops,cast_op,bitcast_op}.cc` and the matching part of
`python/ops/array_ops.py`. Left out: quantized types, and `Truncate` other than from float32 to bfloat16.

Rule: a shape that is known when the graph is built becomes a constant instead of an op, as in TensorFlow. A cast is
C's: fractions are cut off, what does not fit wraps, the imaginary part is dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays.functions import cast
from dtflab.ops.costs import FreeOp
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.type_sets import NUMBER


class PassOn(FreeOp):
    """Base of the ops that pass their input on."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x

    def grad(op, dy):
        return [dy]


_PASSED_ON: dict[str, dict[str, Any]] = {
    "Identity": {},
    "Snapshot": {"grad": None},  # a TensorFlow master puts it where it removed arithmetic that changed nothing
    "GuaranteeConst": {"grad": None, "stateful": True},  # the program promises that it never changes; not used
    "StopGradient": {"grad": no_gradient},
}

for _name, _members in _PASSED_ON.items():
    op(f"{_name}(input: T) -> (output: T) where T: type")(type(_name, (PassOn,), _members))


@op("PreventGradient(input: T) -> (output: T) where T: type, message: string = ''")
class PreventGradient(PassOn):
    """The input; asking for a gradient through it is an error."""

    def grad(op, dy):
        raise LookupError(f"Gradient explicitly disabled. Reason: {op.get_attr('message')!r}")


@op("IdentityN(input: T) -> (output: T) where T: list(type) >= 1")
class IdentityN(FreeOp):
    """The inputs, once all of them are there."""

    aliasing = True

    def infer(op):
        return [t.shape for t in op.inputs]

    def bind(node, xp):
        return lambda *xs: xs

    def grad(op, *dys):
        return list(dys)


# -- what shape a tensor has ----------------------------------------------------------------------------


@op("Shape(input: T) -> (output: out_type) where T: type, out_type: {int32, int64} = int32")
class Shape(FreeOp):
    """The sizes of the input, as a vector."""

    grad = no_gradient

    def infer(op):
        return [TensorShape([op.inputs[0].shape.ndims])]

    def bind(node, xp):
        dtype = node["out_type"].as_numpy_dtype
        return lambda x: np.array(np.shape(x), dtype)


@op("ShapeN(input: N * T) -> (output: N * out_type) where N: int >= 1, T: type, out_type: {int32, int64} = int32")
class ShapeN(FreeOp):
    """The shapes of several tensors."""

    grad = no_gradient

    def infer(op):
        return [TensorShape([t.shape.ndims]) for t in op.inputs]

    def kernel(node, xp, *xs):
        return [np.array(np.shape(x), node["out_type"].as_numpy_dtype) for x in xs]


@op("Size(input: T) -> (output: out_type) where T: type, out_type: {int32, int64} = int32")
class Size(FreeOp):
    """The number of elements."""

    infer = shapes.scalar
    grad = no_gradient

    def kernel(node, xp, x):
        return node["out_type"].as_numpy_dtype(np.size(x))


@op("Rank(input: T) -> (output: int32) where T: type")
class Rank(FreeOp):
    """The number of dimensions."""

    infer = shapes.scalar
    grad = no_gradient

    def bind(node, xp):
        return lambda x: np.int32(np.ndim(x))


@op("EnsureShape(input: T) -> (output: T) where shape: shape, T: type")
class EnsureShape(PassOn):
    """The input, checked when it runs to have the given (partly known) shape."""

    checks = True

    def infer(op):
        return [op.attrs["shape"].merge_with(op.inputs[0].shape)]

    def kernel(node, xp, x):
        expected = node["shape"]
        if not expected.is_compatible_with(np.shape(x)):
            text = f"is not compatible with expected shape {shape_text(expected)}."
            raise invalid(f"Shape of tensor {node.inputs[0][0]} {shape_text(x)} {text}")
        return x


# -- from one dtype to another ---------------------------------------------------------------------------


@op("Cast(x: SrcT) -> (y: DstT) where SrcT: type, DstT: type, Truncate: bool = false")
class Cast(Op):
    """x in another dtype."""

    aliasing = True  # where the dtype is the same
    infer = shapes.unchanged

    def bind(node, xp):
        source, target = node["SrcT"], node["DstT"]
        if dtypes.string in (source, target) and source != target:
            raise errors.UnimplementedError.of(f"Cast {dtype_text(source)} to {dtype_text(target)} is not supported")
        if source == target:
            return lambda x: x
        dtype = target.as_numpy_dtype
        if source.is_complex and not target.is_complex and not target.is_bool:
            return lambda x: x.real.astype(dtype)  # a complex array would warn
        if node["Truncate"] and (source, target) == (dtypes.float32, dtypes.bfloat16):
            return _cut_off
        return lambda x: x.astype(dtype)

    def grad(op, dy):
        source, target = op.inputs[0].dtype.base_dtype, dy.dtype.base_dtype
        return [cast(dy, source) if _has_fractions(source) and _has_fractions(target) else None]


def _cut_off(x: Any) -> Any:
    """A bfloat16 is the upper half of a float32; that of a NaN is the same for all of a sign."""
    upper = x.view(np.uint32) >> 16
    return np.where(np.isnan(x), upper & 0x8000 | 0x7FC0, upper).astype(np.uint16).view(dtypes.bfloat16.as_numpy_dtype)


def _has_fractions(dtype: dtypes.DType) -> bool:
    return dtype.is_floating or dtype.is_complex


@op(f"Bitcast(input: T) -> (output: type) where T: {NUMBER}, type: {NUMBER}")
class Bitcast(FreeOp):
    """The same bits, read as numbers of another dtype."""

    aliasing = True

    def infer(op):
        shape, source, target = op.inputs[0].shape, op.inputs[0].dtype.size, op.get_attr("type").size
        if source == target or shape.ndims is None:
            return [shape]
        if source > target:
            return [shape.concatenate([source // target])]
        if shape.ndims == 0 or shape[-1].value not in (None, target // source):
            last = shape[-1].value if shape.ndims else 1
            raise ValueError(
                f"Cannot bitcast from {op.inputs[0].dtype.as_datatype_enum} to {op.get_attr('type').as_datatype_enum} "
                f"due to shape. {last} does not match {target // source}"
            )
        return [shape[:-1]]

    def kernel(node, xp, x):
        source, target, dtype = node["T"].size, node["type"].size, node["type"].as_numpy_dtype
        shape = x.shape if source == target else (*x.shape, source // target) if source > target else x.shape[:-1]
        if source < target and (not x.ndim or x.shape[-1] != target // source):
            raise invalid(f"Cannot bitcast from {node['T'].as_datatype_enum} to {node['type'].as_datatype_enum}")
        return xp.ascontiguousarray(x).reshape(-1).view(dtype).reshape(shape)

"""From one dtype to another: Cast and Bitcast.

Stands for `core/kernels/cast_op.cc` and `bitcast_op.cc`.
Left out: quantized types, the `Truncate` mode.

Rule: a cast is C's: fractions are cut off, what does not fit wraps, the imaginary part is dropped.
"""

from __future__ import annotations

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, op
from dtflab.ops import shapes
from dtflab.ops.arrays.functions import cast
from dtflab.ops.costs import free
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.type_sets import NUMBER


@op("Cast(x: SrcT) -> (y: DstT) where SrcT: type, DstT: type, Truncate: bool = false")
class Cast(Op):
    """x in another dtype."""

    aliasing = True  # where the dtype is the same
    infer = shapes.unchanged

    def bind(node, xp):
        source, target = node["SrcT"], node["DstT"]
        if dtypes.string in (source, target) and source != target:
            message = f"Cast {dtype_text(source)} to {dtype_text(target)} is not supported"
            raise errors.UnimplementedError.of(message)
        if source == target:
            return lambda x: x
        dtype = target.as_numpy_dtype
        if source.is_complex and target.is_bool:
            return lambda x: x != 0
        if source.is_complex and not target.is_complex:
            return lambda x: x.real.astype(dtype)  # a complex array would warn
        return lambda x: x.astype(dtype)

    def grad(op, dy):
        source, target = op.inputs[0].dtype.base_dtype, dy.dtype.base_dtype
        return [cast(dy, source) if _has_fractions(source) and _has_fractions(target) else None]


def _has_fractions(dtype: dtypes.DType) -> bool:
    return dtype.is_floating or dtype.is_complex


@op(f"Bitcast(input: T) -> (output: type) where T: {NUMBER}, type: {NUMBER}")
class Bitcast(Op):
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

    def bind(node, xp):
        source, target, dtype = node["T"].size, node["type"].size, node["type"].as_numpy_dtype

        def kernel(x):
            shape = x.shape if source == target else (*x.shape, source // target) if source > target else x.shape[:-1]
            if source < target and (not x.ndim or x.shape[-1] != target // source):
                raise invalid(f"Cannot bitcast from {node['T'].as_datatype_enum} to {node['type'].as_datatype_enum}")
            return xp.ascontiguousarray(x).reshape(-1).view(dtype).reshape(shape)

        return kernel

    flops = bytes = free

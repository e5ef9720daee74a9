"""From one dtype to another: Cast, Bitcast, and the parts of complex numbers.

Stands for `core/kernels/cast_op.cc`, `bitcast_op.cc`, `cwise_op_complex.cc` and `cast` in `python/ops/math_ops.py`.
Left out: quantized types, the `Truncate` mode.

Rule: a cast is C's: fractions are cut off, what does not fit wraps, the imaginary part is dropped.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops import shapes
from dtflab.ops.arrays import constant as constants
from dtflab.ops.costs import free
from dtflab.ops.math import division, elementwise, logic, unary
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.sparse.sparse_tensor import SparseTensor
from dtflab.ops.type_sets import NUMBER

_DIFFERENTIABLE = {
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.complex64, dtypes.complex128
}  # fmt: skip


@op("""Cast(x: SrcT) -> (y: DstT)
       SrcT: type
       DstT: type
       Truncate: bool = false""")
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
        return [cast(dy, source) if {source, target} <= _DIFFERENTIABLE else None]


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`x` in another dtype; IndexedSlices and SparseTensors stay sparse."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    if (isinstance(x, Tensor) or hasattr(x, "handle")) and x.dtype == dtype:  # a resource variable is read later
        return x
    with name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, dtype, name=scope), x.indices, x.dense_shape)
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, cast(x.values, dtype, name=scope), x.dense_shape)
        x = convert_to_tensor(x, name="x")
        if x.dtype == dtype:
            return x
        return apply_op("Cast", scope, x=x, DstT=dtype)


def to_float(x: Any, name: str = "ToFloat") -> Any:
    """`x` as float32."""
    return cast(x, dtypes.float32, name=name)


def to_double(x: Any, name: str = "ToDouble") -> Any:
    """`x` as float64."""
    return cast(x, dtypes.float64, name=name)


def to_int32(x: Any, name: str = "ToInt32") -> Any:
    """`x` as int32."""
    return cast(x, dtypes.int32, name=name)


def to_int64(x: Any, name: str = "ToInt64") -> Any:
    """`x` as int64."""
    return cast(x, dtypes.int64, name=name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Any:
    """`x` as bfloat16."""
    return cast(x, dtypes.bfloat16, name=name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Any:
    """`x` as complex64."""
    return cast(x, dtypes.complex64, name=name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Any:
    """`x` as complex128."""
    return cast(x, dtypes.complex128, name=name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` in another dtype; what is too large or too small for that becomes its largest or smallest number."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        if value.dtype.is_complex and dtype.is_complex:
            limits = _complex_limits(value.dtype, dtype)
        else:
            value = real(value)
            limits = [_limit_inside(value.dtype, dtype, end) for end in ("min", "max")]
        if limits:
            low, high = (constant(limit, value.dtype) for limit in limits)
            value = apply_op("ClipByValue", "clamp", t=value, clip_value_min=low, clip_value_max=high)
        cast_: Tensor = cast(value, dtype, name=scope)
        return cast_


def _complex_limits(source: dtypes.DType, target: dtypes.DType) -> list[Any]:
    if source.real_dtype.max <= target.real_dtype.max:
        return []
    return [builtins.complex(end, end) for end in (target.real_dtype.min, target.real_dtype.max)]


def _limit_inside(source: dtypes.DType, target: dtypes.DType, end: str) -> Any:
    """The last number of `source` that `target` has, too: the end of one of them, or the number before it."""
    kind, narrower = source.as_numpy_dtype, max if end == "min" else min
    mine, other = getattr(source, end), getattr(target.real_dtype, end)
    limit = kind(narrower(float(mine), float(other)) if source.is_floating else narrower(mine, other))
    is_outside = float(limit) < float(other) if end == "min" else float(limit) > float(other)
    return np.nextafter(limit, kind(0), dtype=kind) if is_outside else limit


@op(f"""Bitcast(input: T) -> (output: type)
        T: {NUMBER}
        type: {NUMBER}""")
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


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bits of `input`, read as numbers of dtype `type`.

    If these are smaller, there is a new last dimension for the parts; if they are larger, the last one has the parts.
    """
    return apply_op("Bitcast", name, input=input, type=type)


# -- complex numbers ------------------------------------------------------------------------------------


@op("""Complex(real: T, imag: T) -> (out: Tout)
       T: {float, double} = float
       Tout: {complex64, complex128} = complex64""")
class Complex(Op):
    """real + imag * 1j"""

    infer = shapes.broadcast

    def bind(node, xp):
        dtype = node["Tout"].as_numpy_dtype

        def kernel(real, imag):
            out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), dtype)
            out.real[...], out.imag[...] = real, imag
            return out

        return kernel

    def grad(op, dy):
        x, y = op.inputs
        return elementwise.reduce_to_inputs(x, y, real(dy), imag(dy))


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """The complex numbers with these parts."""
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        if (
            real.dtype.base_dtype != imag.dtype.base_dtype
            or real.dtype.size not in (4, 8)
            or not real.dtype.is_floating
        ):
            raise TypeError(
                f"The `real` and `imag` components have incorrect types: {real.dtype.name} "
                f"{imag.dtype.name}. They must be consistent, and one of {[dtypes.float32, dtypes.float64]}"
            )
        out = dtypes.complex64 if real.dtype.size == 4 else dtypes.complex128
        return apply_op("Complex", scope, real=real, imag=imag, Tout=out)


def _constant_zero(dy: Tensor) -> Tensor:
    return constant(0, dy.dtype.base_dtype)


@op("""Real(input: T) -> (output: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class Real(Op):
    """The real parts."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x.real

    def grad(op, dy):
        return [complex(dy, _constant_zero(dy))]


@op("""Imag(input: T) -> (output: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class Imag(Op):
    """The imaginary parts."""

    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda x: x.imag

    def grad(op, dy):
        return [complex(_constant_zero(dy), dy)]


@op("""Conj(input: T) -> (output: T)
       T: {complex64, complex128, variant} = complex64""")
class Conj(Op):
    """The complex conjugates."""

    infer = shapes.unchanged
    bind = elementwise.ufunc("conjugate")

    def grad(op, dy):
        return [conj(dy)]


@op("""ComplexAbs(x: T) -> (y: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class ComplexAbs(Op):
    """The magnitudes of complex numbers."""

    infer = shapes.unchanged
    bind = elementwise.ufunc("absolute")

    def grad(op, dy):
        x, y = op.inputs[0], op.outputs[0]
        numerator = complex(dy, constants.zeros_like(dy)) * x
        return [division.div_no_nan(numerator, complex(y, constants.zeros_like(y)))]


@op("""Angle(input: T) -> (output: Tout)
       T: {complex64, complex128} = complex64
       Tout: {float, double} = float""")
class Angle(Op):
    """The angles of complex numbers, in radians."""

    infer = shapes.unchanged
    bind = elementwise.ufunc("angle")

    def grad(op, dy):
        x = op.inputs[0]
        with control_dependencies([dy]):
            re, im = real(x), imag(x)
            z = unary.reciprocal(complex(im, re))
            return [-complex(dy, _constant_zero(dy)) * z]


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part of numbers; real ones are returned as they are."""
    with name_scope(name, "Real", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Real", scope, input=input, Tout=input.dtype.real_dtype)
        if input.dtype.is_numeric:
            return input
        raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {input.dtype}")


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part of numbers; zeros for real ones."""
    with name_scope(name, "Imag", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Imag", scope, input=input, Tout=input.dtype.real_dtype)
        return constants.zeros_like(input)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of numbers in radians."""
    import numpy as np

    with name_scope(name, "Angle", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Angle", scope, input=input, Tout=input.dtype.real_dtype)
        return logic.where(input < 0, np.pi * constants.ones_like(input), constants.zeros_like(input))


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype == dtypes.variant:
            return apply_op("Conj", scope, input=x)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}.")

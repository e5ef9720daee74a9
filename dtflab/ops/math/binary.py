"""Element-wise arithmetic of two (or n) tensors, with NumPy's broadcasting.

Stands for the binary part of `core/ops/math_ops.cc`, `core/kernels/cwise_op_*.cc`, `aggregate_ops.cc`,
`python/ops/math_ops.py` and `math_grad.py`. Division stands in `division.py`.
Left out: special functions of two arguments.

Rule: both operands have one dtype, and so has the result; mixed ones are a TypeError when the graph is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices, convert_n_to_tensor_or_indexed_slices
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops import shapes
from dtflab.ops.arrays import casting, constant as constants, identity as array
from dtflab.ops.math import logic, unary
from dtflab.ops.math.elementwise import into, reduce_to_inputs, same_static_shapes, ufunc
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.type_sets import FLOAT, NUMBER_VARIANT, REAL, REAL_COMPLEX, SIGNED_COMPLEX


class _Sum(Op):
    """What Add and AddV2 share."""

    infer = shapes.broadcast
    bind = ufunc("add")
    into = into("add")

    def grad(op, dz):
        x, y = op.inputs
        return [dz, dz] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dz, dz)


@op("""Add(x: T, y: T) -> (z: T)
       T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}""")
class Add(_Sum):
    """x + y; strings are joined."""

    def bind(node, xp):
        if node["T"] != dtypes.string:
            return ufunc("add")(node, xp)
        return lambda x, y: np.asarray(np.add(x, y), object)


@op(f"""AddV2(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class AddV2(_Sum):
    """x + y"""


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y; strings are joined."""
    with name_scope(name, "Add", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        return apply_op("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", scope, x=x, y=y)


@op(f"""Sub(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class Sub(Op):
    """x - y"""

    infer = shapes.broadcast
    bind = ufunc("subtract")
    into = into("subtract")

    def grad(op, dz):
        x, y = op.inputs
        return [dz, -dz] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dz, -dz)


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x - y"""
    return apply_op("Sub", name, x=x, y=y)


@op(f"""Mul(x: T, y: T) -> (z: T)
        T: {REAL_COMPLEX}""")
class Mul(Op):
    """x * y"""

    infer = shapes.broadcast
    bind = ufunc("multiply")
    into = into("multiply")

    def grad(op, dz):
        x, y = op.inputs
        if same_static_shapes(x, y, dz) and dz.dtype in (dtypes.int32, dtypes.float32):
            return [multiply(dz, y), multiply(dz, x)]
        dx, dy = multiply(dz, casting.conj(y)), multiply(casting.conj(x), dz)
        return reduce_to_inputs(x, y, dx, dy)


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y"""
    return apply_op("Mul", name, x=x, y=y)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A number times a tensor or IndexedSlices."""
    scalar = convert_to_tensor(scalar, x.dtype.base_dtype, name="scalar")
    if scalar.shape.ndims != 0:
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(scalar, x.values, name), x.indices, x.dense_shape)
    return multiply(scalar, x, name)


# -- powers and extremes ---------------------------------------------------------------------------------


@op(f"""Pow(x: T, y: T) -> (z: T)
        T: {SIGNED_COMPLEX}""")
class Pow(Op):
    """x to the power of y"""

    infer = shapes.broadcast

    def bind(node, xp):
        if not node["T"].is_integer:
            return xp.power

        def kernel(x, y):
            if (y < 0).any():
                raise invalid("Integers to negative integer powers are not allowed")
            return xp.power(x, y)

        return kernel

    def grad(op, dz):
        x, y = op.inputs
        cx, cy = casting.conj(x), casting.conj(y)
        dx = dz * cy * pow(cx, cy - 1)
        mask = logic.not_equal(cx, 0) if x.dtype.is_complex else cx > 0
        safe_x = logic.where(mask, cx, constants.ones_like(x))  # so that no NaN arises where nobody looks
        log_x = logic.where(mask, unary.log(safe_x), constants.zeros_like(x))
        dy = dz * casting.conj(op.outputs[0]) * log_x
        return reduce_to_inputs(x, y, dx, dy)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x to the power of y"""
    with name_scope(name, "Pow", [x]) as scope:
        return apply_op("Pow", scope, x=x, y=y)


def _extreme_grad(op: Any, dz: Any, first_wins: Callable[..., Tensor]) -> list[Any]:
    x, y = op.inputs
    zeros = constants.zeros_like(dz)
    mask = first_wins(x, y)
    return reduce_to_inputs(x, y, logic.where_v2(mask, dz, zeros), logic.where_v2(mask, zeros, dz))


@op(f"""Maximum(x: T, y: T) -> (z: T)
        T: {REAL}""")
class Maximum(Op):
    """The larger of x and y."""

    infer = shapes.broadcast
    bind = ufunc("maximum")
    into = into("maximum")

    def grad(op, dz):
        return _extreme_grad(op, dz, logic.greater_equal)


@op(f"""Minimum(x: T, y: T) -> (z: T)
        T: {REAL}""")
class Minimum(Op):
    """The smaller of x and y."""

    infer = shapes.broadcast
    bind = ufunc("minimum")
    into = into("minimum")

    def grad(op, dz):
        return _extreme_grad(op, dz, logic.less_equal)


def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of x and y, element by element."""
    return apply_op("Maximum", name, x=x, y=y)


def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of x and y, element by element."""
    return apply_op("Minimum", name, x=x, y=y)


@op("""SquaredDifference(x: T, y: T) -> (z: T)
       T: {bfloat16, half, float, double, int32, int64, complex64, complex128}""")
class SquaredDifference(Op):
    """(x - y)²; of complex numbers the squared distance."""

    infer = shapes.broadcast

    def bind(node, xp):
        if node["T"].is_complex:
            return lambda x, y: (x - y) * xp.conjugate(x - y)
        return lambda x, y: xp.square(xp.subtract(x, y))

    def flops(node, ins, outs):
        return 2 * elements(outs[0])

    def grad(op, dz):
        x, y = op.inputs
        with control_dependencies([dz]):
            dx = scalar_mul(2.0, dz) * (x - y)
        return [dx, -dx] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dx, -dx)


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """(x - y)², element by element."""
    return apply_op("SquaredDifference", name, x=x, y=y)


@op(f"""Atan2(y: T, x: T) -> (z: T)
        T: {FLOAT}""")
class Atan2(Op):
    """The angle of the point (x, y), in radians."""

    infer = shapes.broadcast
    bind = ufunc("arctan2")

    def grad(op, dz):
        y, x = op.inputs
        with control_dependencies([dz]):
            scaled = dz / (unary.square(y) + unary.square(x))
            dy, dx = x * scaled, -y * scaled
            return reduce_to_inputs(y, x, dy, dx)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y), in radians."""
    return apply_op("Atan2", name, y=y, x=x)


# -- sums of many ----------------------------------------------------------------------------------------


@op(f"""AddN(inputs: N * T) -> (sum: T)
        N: int >= 1
        T: {NUMBER_VARIANT}""")
class AddN(Op):
    """The sum of tensors of one shape."""

    infer = shapes.merged
    aliasing = True  # a sum of one

    def bind(node, xp):
        def kernel(first, *rest):
            shape = first.shape
            for i, x in enumerate(rest):
                if x.shape != shape:
                    raise invalid(
                        f"Inputs to operation {node.name} of type AddN must have the same size and shape.  "
                        f"Input 0: {shape_text(shape)} != input {i + 1}: {shape_text(x)}"
                    )
            total = xp.add(first, rest[0])
            for x in rest[1:]:
                total += x
            return total

        def kernel_of_variants(first, *rest):
            for x in rest:
                first = first.plus(x, xp)
            return first

        if node["T"] == dtypes.variant:
            return kernel_of_variants
        return kernel if node["N"] > 1 else lambda x: x

    def flops(node, ins, outs):
        return (node["N"] - 1) * elements(outs[0])

    def grad(op, dsum):
        return [dsum] * len(op.inputs)


def add_n(inputs: Iterable[Any], name: str | None = None) -> Tensor:
    """The sum of tensors (or IndexedSlices) of one shape."""
    message = "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
    if not isinstance(inputs, Iterable) or not inputs:
        raise ValueError(message)
    values = convert_n_to_tensor_or_indexed_slices(inputs)
    if not all(isinstance(v, Tensor | IndexedSlices) for v in values):
        raise ValueError(message)
    if len(values) > 1:
        return apply_op("AddN", name, inputs=values)
    value = convert_to_tensor(values[0])
    return array.identity(value, name=name) if name else value


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """As `add_n`, for tensors only."""
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    tensors = [convert_to_tensor(x) for x in inputs]
    if any(t.dtype.base_dtype != tensors[0].dtype.base_dtype for t in tensors):
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    if tensor_dtype is not None and tensor_dtype != tensors[0].dtype:
        raise TypeError(
            f"The `tensor_dtype` argument is {tensor_dtype}, but `input` is of type {tensors[0].dtype}. "
            "These must be equal. Try casting the input to the desired type."
        )
    return add_n(tensors, name=name)


def polyval(coeffs: list[Any], x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, the highest power first, at `x`: Horner's rule."""
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    with name_scope(name, "polyval", [*coeffs, x]) as scope:
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return constants.zeros_like(x, name=scope)
        first, *rest = [convert_to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs)]
        result: Tensor = first
        for coefficient in rest:
            result = coefficient + result * x
        return result

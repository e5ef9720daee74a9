"""Element-wise ops of two inputs as a table: types, kernel, gradient; and the ops of n inputs and of bounds.

Stands for the binary part of `core/ops/math_ops.cc`, `core/kernels/cwise_op_*.cc`, `aggregate_ops.cc` and
`math_grad.py`. Division is in `division.py`, special functions of two arguments are in `special.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_output
from dtflab.ops.gradient_rules import Grad, reduce_to_inputs, same_static_shapes, summed
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import Bind, binary, into, ufunc
from dtflab.ops.messages import different_sizes, invalid, shape_text
from dtflab.ops.type_sets import FLOAT, NUMBER, NUMBER_VARIANT, REAL, REAL_COMPLEX, SIGNED_COMPLEX


def _sum_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    return [dz, dz] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dz, dz)


def _difference_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    return [dz, -dz] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dz, -dz)


def _product_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    if same_static_shapes(x, y, dz) and dz.dtype in (dtypes.int32, dtypes.float32):
        return [math.multiply(dz, y), math.multiply(dz, x)]
    dx, dy = math.multiply(dz, math.conj(y)), math.multiply(math.conj(x), dz)
    return reduce_to_inputs(x, y, dx, dy)


def _power_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    cx, cy = math.conj(x), math.conj(y)
    dx = dz * cy * math.pow(cx, cy - 1)
    mask = math.not_equal(cx, 0) if x.dtype.is_complex else cx > 0
    safe_x = indexing.where(mask, cx, arrays.ones_like(x))  # so that no NaN arises in an element that is not taken
    log_x = indexing.where(mask, math.log(safe_x), arrays.zeros_like(x))
    dy = dz * math.conj(op.outputs[0]) * log_x
    return reduce_to_inputs(x, y, dx, dy)


def _extreme_grad(first_wins: Callable[..., Tensor]) -> Grad:
    def grad(op: Operation, dz: Any) -> list[Any]:
        x, y = op.inputs
        zeros = arrays.zeros_like(dz)
        mask = first_wins(x, y)
        return reduce_to_inputs(x, y, indexing.where_v2(mask, dz, zeros), indexing.where_v2(mask, zeros, dz))

    return grad


def _atan2_grad(op: Operation, dz: Any) -> list[Any]:
    y, x = op.inputs
    with control_dependencies([dz]):
        scaled = dz / (math.square(y) + math.square(x))
        dy, dx = x * scaled, -y * scaled
        return reduce_to_inputs(y, x, dy, dx)


def _distance_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    with control_dependencies([dz]):
        dx = math.scalar_mul(2.0, dz) * (x - y)
    return [dx, -dx] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dx, -dx)


def _added(node: Node, xp: Any) -> Callable[..., Any]:
    """x + y; strings are joined."""
    return ufunc("add")(node, xp) if node["T"] != dtypes.string else lambda x, y: np.asarray(np.add(x, y), object)


def _power(node: Node, xp: Any) -> Callable[..., Any]:
    if not node["T"].is_integer:
        return xp.power

    def kernel(x: Any, y: Any) -> Any:
        if (y < 0).any():
            raise invalid("Integers to negative integer powers are not allowed")
        return xp.power(x, y)

    return kernel


def _distance(node: Node, xp: Any) -> Callable[..., Any]:
    """(x - y)²; of complex numbers the squared distance."""
    if node["T"].is_complex:
        return lambda x, y: (x - y) * xp.conjugate(x - y)
    return lambda x, y: xp.square(xp.subtract(x, y))


_ADDED = "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}"
_DISTANCES = "{bfloat16, half, float, double, int32, int64, complex64, complex128}"

_BINARY: dict[str, tuple[str, str | Bind, Grad, dict[str, Any]]] = {  # types, kernel, gradient, what else the class has
    "Add(x: T, y: T)": (_ADDED, _added, _sum_grad, {"into": into("add")}),
    "AddV2(x: T, y: T)": (REAL_COMPLEX, "add", _sum_grad, {"into": into("add")}),
    "Sub(x: T, y: T)": (REAL_COMPLEX, "subtract", _difference_grad, {"into": into("subtract")}),
    "Mul(x: T, y: T)": (REAL_COMPLEX, "multiply", _product_grad, {"into": into("multiply")}),
    "Pow(x: T, y: T)": (SIGNED_COMPLEX, _power, _power_grad, {}),
    "Maximum(x: T, y: T)": (REAL, "maximum", _extreme_grad(math.greater_equal), {"into": into("maximum")}),
    "Minimum(x: T, y: T)": (REAL, "minimum", _extreme_grad(math.less_equal), {"into": into("minimum")}),
    "SquaredDifference(x: T, y: T)": (_DISTANCES, _distance, _distance_grad, {"flops": per_output(2)}),
    "Atan2(y: T, x: T)": (FLOAT, "arctan2", _atan2_grad, {}),
}

for _inputs, (_types, _kernel, _grad, _members) in _BINARY.items():
    binary(f"{_inputs} -> (z: T)\nT: {_types}", _kernel, _grad, **_members)


# -- sums of many ----------------------------------------------------------------------------------------


@op(f"AddN(inputs: N * T) -> (sum: T) where N: int >= 1, T: {NUMBER_VARIANT}")
class AddN(Op):
    """The sum of tensors of one shape."""

    infer = shapes.merged
    aliasing = True  # a sum of one

    def bind(node, xp):
        def kernel(first, *rest):
            shape = first.shape
            for i, x in enumerate(rest):
                if x.shape != shape:
                    raise different_sizes(node, shape, i + 1, x)
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


# -- bounds --------------------------------------------------------------------------------


@op(f"ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T) where T: {NUMBER}")
class ClipByValue(Op):
    """t, but not below the minimum and not above the maximum."""

    infer = shapes.unchanged

    def bind(node, xp):
        parts = node["T"].is_complex  # each for itself

        def clip(t, low, high):
            return xp.maximum(xp.minimum(t, high), low)  # of bounds that cross, the lower one holds

        def kernel(t, low, high):
            for bound in (low, high):
                if bound.shape not in ((), t.shape):
                    text = f"shape of {shape_text(t)}, but got {shape_text(bound)}"
                    raise invalid(f"clip_value_min and clip_value_max must be either of size 1 or have the {text}")
            if not parts:
                return clip(t, low, high)
            out = xp.empty_like(t)
            out.real, out.imag = clip(t.real, low.real, high.real), clip(t.imag, low.imag, high.imag)
            return out

        return kernel

    flops = per_output(2)

    def grad(op, dy):
        t, low, high = op.inputs
        t_shape, low_shape, high_shape = (arrays.shape(x) for x in op.inputs)
        zeros = arrays.zeros(arrays.shape(dy), dy.dtype)
        below, above = math.less(t, low), math.greater(t, high)
        _, low_axes = arrays.broadcast_gradient_args(t_shape, low_shape)
        _, high_axes = arrays.broadcast_gradient_args(t_shape, high_shape)
        dt = indexing.where(math.logical_or(below, above), zeros, dy)
        dlow, dhigh = indexing.where(below, dy, zeros), indexing.where(above, dy, zeros)
        dlow = summed(dlow, low_axes, low_shape)
        return [dt, dlow, summed(dhigh, high_axes, high_shape)]

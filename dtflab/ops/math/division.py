"""Quotients and remainders, and what is 0 where one factor is: MulNoNan, Xdivy, Xlogy, Xlog1py.

Stands for `core/kernels/cwise_op_{div,floor_div,floor_mod,mod,xdivy,xlogy,xlog1py,mul}*.cc`, and their parts of
`python/ops/math_ops.py` and `math_grad.py`. The latter are for entropies and masks: there 0 · log 0 is meant to be 0.

Rule: whole numbers divide as in TensorFlow: by zero is an error; `FloorDiv` and `FloorMod` round down; `Div`,
`TruncateDiv`, `Mod` and `TruncateMod` towards zero. Elsewhere dividing by zero gives infinities, silently. A factor
wins over NaN if it is exactly zero; a NaN in its place stays NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.gradient_rules import Grad, no_slope, reduce_to_inputs, same_static_shapes, summed
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import Bind, binary, into
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.type_sets import FLOAT_COMPLEX, REAL_COMPLEX

Divide = Callable[[Any, Any], Any]


def _whole(divide: Divide) -> Divide:
    """A division of whole numbers that refuses zeros."""

    def kernel(x: Any, y: Any) -> Any:
        if not y.all() and x.size:
            raise invalid("Integer division by zero")
        return divide(x, y)

    return kernel


# -- kernels ---------------------------------------------------------------------------------------------


def _truncated(node: Node, xp: Any) -> Divide:
    """The whole part of x / y, rounded towards zero."""
    if node["T"].is_unsigned:
        return _whole(xp.floor_divide)
    if node["T"].is_integer:
        return _whole(lambda x, y: xp.floor_divide(x - xp.fmod(x, y), y))
    if node["T"].is_complex:
        return xp.divide
    return lambda x, y: xp.trunc(xp.divide(x, y))


def _divided(node: Node, xp: Any) -> Divide:
    """x / y; of whole numbers the whole part."""
    return _truncated(node, xp) if node["T"].is_integer else xp.divide


def _really_divided(node: Node, xp: Any) -> Divide:
    if node["T"].is_integer:
        raise errors.NotFoundError.of(f"RealDiv has no kernel for {dtype_text(node['T'])}: cast first.")
    return xp.divide if node["T"].is_complex else operator.truediv  # which is faster with scalars


def _floored(node: Node, xp: Any) -> Divide:
    if node["T"].is_integer:
        return _whole(xp.floor_divide)
    return lambda x, y: xp.floor(xp.divide(x, y))  # NumPy's own goes by the remainder: 1 // 0.1 is 9 there


def _divided_no_nan(node: Node, xp: Any) -> Divide:
    zero = node["T"].as_numpy_dtype(0)
    return lambda x, y: xp.where(y == zero, zero, xp.divide(x, y))


def _remainder(ufunc: str) -> Bind:
    """The remainder of x / y: `fmod` has the sign of x, `remainder` that of y."""

    def bind(node: Node, xp: Any) -> Divide:
        kernel = getattr(xp, ufunc)
        return _whole(kernel) if node["T"].is_integer else kernel

    return bind


# -- gradients -------------------------------------------------------------------------------------------


def _quotient_grad(divide: Callable[..., Tensor]) -> Grad:
    """dz / y and -dz * x / y²"""

    def grad(op: Operation, dz: Any) -> list[Any]:
        x, y = op.inputs
        cx, cy = math.conj(x), math.conj(y)
        dx = divide(dz, cy)
        dy = dz * divide(divide(-cx, cy), cy)
        return reduce_to_inputs(x, y, dx, dy)

    return grad


def _no_nan_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = math.conj(op.inputs[0]), math.conj(op.inputs[1])
    dx = math.div_no_nan(dz, y)
    dy = dz * math.div_no_nan(math.div_no_nan(-x, y), y)
    return reduce_to_inputs(x, y, dx, dy)


def _floor_mod_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    return reduce_to_inputs(x, y, dz, dz * math.negative(math.floor_div(x, y)))


# -- the table: types, kernel, gradient ------------------------------------------------------------------

_FLOOR_MOD = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}"

_DIVISIONS: dict[str, tuple[str, Bind, Grad | None]] = {
    "Div": (REAL_COMPLEX, _divided, _quotient_grad(math.divide)),
    "TruncateDiv": (REAL_COMPLEX, _truncated, no_slope),
    "FloorDiv": (REAL_COMPLEX, _floored, no_slope),
    "DivNoNan": ("{half, float, bfloat16, double, complex64, complex128}", _divided_no_nan, _no_nan_grad),
    "Mod": ("{int32, int64, half, half, bfloat16, float, double}", _remainder("fmod"), None),
    "TruncateMod": ("{int32, int64, bfloat16, half, float, double}", _remainder("fmod"), None),
    "FloorMod": (_FLOOR_MOD, _remainder("remainder"), _floor_mod_grad),
}

for _name, (_types, _kernel, _grad) in _DIVISIONS.items():
    binary(f"{_name}(x: T, y: T) -> (z: T) where T: {_types}", _kernel, _grad)
_REAL_DIV = f"RealDiv(x: T, y: T) -> (z: T) where T: {REAL_COMPLEX}"
binary(_REAL_DIV, _really_divided, _quotient_grad(math.realdiv), into=into("divide"))


# -- products and quotients that are 0 where one factor is -----------------------------------------------


def _product(node: Node, xp: Any) -> Callable[[Any, Any], Any]:
    zero = node["T"].as_numpy_dtype(0)
    return lambda x, y: xp.where(y == zero, zero, xp.multiply(x, y))


def _product_grad(op: Operation, dz: Any) -> list[Any]:
    x, y = op.inputs
    dx, dy = apply_op("MulNoNan", x=dz, y=y), apply_op("MulNoNan", x=x, y=dz)
    return [dx, dy] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dx, dy)


def _from_x(of_y: Callable[[Any, Any, Any], Any]) -> Bind:
    """The kernel `of_y(xp, x, y)`, x times a function of y, and 0 where x is 0."""

    def bind(node: Node, xp: Any) -> Callable[[Any, Any], Any]:
        zero = node["T"].as_numpy_dtype(0)
        return lambda x, y: xp.where(x == zero, zero, of_y(xp, x, y))

    return bind


def _from_x_grad(slopes: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> Grad:
    """The gradient whose factors are `slopes(x, there, y)`; `there` is 1 where x is not 0."""

    def grad(op: Operation, dz: Any) -> list[Any]:
        x, y = op.inputs
        x_shape, y_shape = arrays.shape(x), arrays.shape(y)
        x_axes, y_axes = arrays.broadcast_gradient_args(x_shape, y_shape)
        with control_dependencies([dz]):
            there = arrays.cast(math.not_equal(x, arrays.cast(0.0, x.dtype)), x.dtype)
            dx, dy = slopes(x, there, y)
            return [summed(dx * dz, x_axes, x_shape), summed(dy * dz, y_axes, y_shape)]

    return grad


def _of(op_type: str, x: Any, y: Any) -> Tensor:
    return apply_op(op_type, x=x, y=y)


def _xdivy_slopes(x: Tensor, there: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return _of("Xdivy", there, y), _of("Xdivy", math.negative(x), y**2)


def _xlogy_slopes(x: Tensor, there: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return _of("Xlogy", there, y), _of("Xdivy", x, y)


def _xlog1py_slopes(x: Tensor, there: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return _of("Xlog1py", there, y), _of("Xdivy", x, y + 1.0)


for _name, _kernel, _grad in (
    ("MulNoNan", _product, _product_grad),
    ("Xdivy", _from_x(lambda xp, x, y: xp.divide(x, y)), _from_x_grad(_xdivy_slopes)),
    ("Xlogy", _from_x(lambda xp, x, y: xp.multiply(x, xp.log(y))), _from_x_grad(_xlogy_slopes)),
    ("Xlog1py", _from_x(lambda xp, x, y: xp.multiply(x, xp.log1p(y))), _from_x_grad(_xlog1py_slopes)),
):
    binary(f"{_name}(x: T, y: T) -> (z: T) where T: {FLOAT_COMPLEX}", _kernel, _grad)

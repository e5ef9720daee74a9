"""Products and quotients that are 0 where one factor is, whatever the other is: MulNoNan, Xdivy, Xlogy, Xlog1py.

Stands for their part of `core/kernels/cwise_op*` (functors `xlogy_op`, `xdivy_op`, `mul_no_nan_op`), `math_ops.py` and
`math_grad.py`. They are for entropies and masks: there 0 · log 0 is meant to be 0, and is NaN in plain arithmetic.

Rule: what decides is exactly zero; a NaN in the deciding place stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.gradient_rules import Grad, reduce_to_inputs, same_static_shapes, summed
from dtflab.ops.math import functions as math
from dtflab.ops.math.elementwise import Bind, binary
from dtflab.ops.type_sets import FLOAT_COMPLEX


def _product(node: Any, xp: Any) -> Callable[[Any, Any], Any]:
    zero = node["T"].as_numpy_dtype(0)
    return lambda x, y: xp.where(y == zero, zero, xp.multiply(x, y))


def _product_grad(op: Any, dz: Any) -> list[Any]:
    x, y = op.inputs
    dx, dy = apply_op("MulNoNan", x=dz, y=y), apply_op("MulNoNan", x=x, y=dz)
    return [dx, dy] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dx, dy)


def _from_x(of_y: Callable[[Any, Any, Any], Any]) -> Bind:
    """The kernel `of_y(xp, x, y)`, x times a function of y, and 0 where x is 0."""

    def bind(node: Any, xp: Any) -> Callable[[Any, Any], Any]:
        zero = node["T"].as_numpy_dtype(0)
        return lambda x, y: xp.where(x == zero, zero, of_y(xp, x, y))

    return bind


def _from_x_grad(slopes: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> Grad:
    """The gradient whose factors are `slopes(x, there, y)`; `there` is 1 where x is not 0."""

    def grad(op: Any, dz: Any) -> list[Any]:
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


for _name, _kernel, _grad in (
    ("MulNoNan", _product, _product_grad),
    (
        "Xdivy",
        _from_x(lambda xp, x, y: xp.divide(x, y)),
        _from_x_grad(lambda x, there, y: (_of("Xdivy", there, y), _of("Xdivy", math.negative(x), y**2))),
    ),
    (
        "Xlogy",
        _from_x(lambda xp, x, y: xp.multiply(x, xp.log(y))),
        _from_x_grad(lambda x, there, y: (_of("Xlogy", there, y), _of("Xdivy", x, y))),
    ),
    (
        "Xlog1py",
        _from_x(lambda xp, x, y: xp.multiply(x, xp.log1p(y))),
        _from_x_grad(lambda x, there, y: (_of("Xlog1py", there, y), _of("Xdivy", x, y + 1.0))),
    ),
):
    binary(f"{_name}(x: T, y: T) -> (z: T) where T: {FLOAT_COMPLEX}", _kernel, _grad)

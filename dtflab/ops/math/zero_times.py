"""Products and quotients that are 0 where one factor is, whatever the other is: MulNoNan, Xdivy, Xlogy, Xlog1py.

Stands for their part of `core/kernels/cwise_op*` (functors `xlogy_op`, `xdivy_op`, `mul_no_nan_op`), `math_ops.py` and
`math_grad.py`. They are for entropies and masks: there 0 · log 0 is meant to be 0, and is NaN in plain arithmetic.

Rule: what decides is exactly zero; a NaN in the deciding place stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.gradient_rules import reduce_to_inputs, same_static_shapes, summed
from dtflab.ops.math import functions as math
from dtflab.ops.type_sets import FLOAT_COMPLEX


def _interface(name: str) -> str:
    return f"{name}(x: T, y: T) -> (z: T)\nT: {FLOAT_COMPLEX}"


@op(_interface("MulNoNan"))
class MulNoNan(Op):
    """x * y, and 0 where y is 0."""

    infer = shapes.broadcast

    def bind(node, xp):
        zero = node["T"].as_numpy_dtype(0)
        return lambda x, y: xp.where(y == zero, zero, xp.multiply(x, y))

    def grad(op, dz):
        x, y = op.inputs
        dx, dy = apply_op("MulNoNan", x=dz, y=y), apply_op("MulNoNan", x=x, y=dz)
        return [dx, dy] if same_static_shapes(x, y, dz) else reduce_to_inputs(x, y, dx, dy)


Slopes = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # (x, where x is not 0 as a number, y)


class _FromX(Op):
    """x times a function of y, and 0 where x is 0."""

    of_y: Callable[[Any, Any, Any], Any]
    slopes: Slopes
    infer = staticmethod(shapes.broadcast)

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any, Any], Any]:
        zero, of_y = node["T"].as_numpy_dtype(0), cls.of_y
        return lambda x, y: xp.where(x == zero, zero, of_y(xp, x, y))

    @classmethod
    def grad(cls, op: Any, dz: Any) -> list[Any]:
        x, y = op.inputs
        x_shape, y_shape = arrays.shape(x), arrays.shape(y)
        x_axes, y_axes = arrays.broadcast_gradient_args(x_shape, y_shape)
        with control_dependencies([dz]):
            there = arrays.cast(math.not_equal(x, arrays.cast(0.0, x.dtype)), x.dtype)
            dx, dy = cls.slopes(x, there, y)
            return [summed(dx * dz, x_axes, x_shape), summed(dy * dz, y_axes, y_shape)]


@op(_interface("Xdivy"))
class Xdivy(_FromX):
    """x / y, and 0 where x is 0."""

    of_y = staticmethod(lambda xp, x, y: xp.divide(x, y))
    slopes = staticmethod(lambda x, there, y: (_of("Xdivy", there, y), _of("Xdivy", math.negative(x), y**2)))


@op(_interface("Xlogy"))
class Xlogy(_FromX):
    """x · log(y), and 0 where x is 0."""

    of_y = staticmethod(lambda xp, x, y: xp.multiply(x, xp.log(y)))
    slopes = staticmethod(lambda x, there, y: (_of("Xlogy", there, y), _of("Xdivy", x, y)))


@op(_interface("Xlog1py"))
class Xlog1py(_FromX):
    """x · log(1 + y), and 0 where x is 0."""

    of_y = staticmethod(lambda xp, x, y: xp.multiply(x, xp.log1p(y)))
    slopes = staticmethod(lambda x, there, y: (_of("Xlog1py", there, y), _of("Xdivy", x, y + 1.0)))


def _of(op_type: str, x: Any, y: Any) -> Tensor:
    result: Tensor = apply_op(op_type, None, x=x, y=y)
    return result

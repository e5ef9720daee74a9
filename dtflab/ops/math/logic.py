"""Questions and choices: comparisons, logic, bits, `where`.

Stands for the comparisons in `core/ops/math_ops.cc`, `core/kernels/cwise_op_select.cc`, `where_op.cc`,
`bitwise_ops.cc` and their parts of `python/ops/math_ops.py`, `array_ops.py`, `math_grad.py`.
Left out: ApproximateEqual, bit shifts.

Rule: `==` on tensors asks whether they are the same tensor, as in TF1; `tf.equal` compares values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops import shapes
from dtflab.ops.arrays import constant as constants
from dtflab.ops.costs import of_inputs
from dtflab.ops.math import unary
from dtflab.ops.math.elementwise import reduce_to_inputs, ufunc
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.type_sets import INTEGER, NUMBER_BOOL

BinaryFunction = Callable[..., Tensor]


def _binary(interface: str, kernel: str, summary: str) -> BinaryFunction:
    """Register a broadcasting op without gradient and return its function `f(x, y, name=None)`."""
    op_name = interface.partition("(")[0]
    members = {"__doc__": summary, "infer": shapes.broadcast, "bind": ufunc(kernel), "grad": no_gradient}
    op(interface)(type(op_name, (Op,), members))

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(op_name, name, x=x, y=y)
        return result

    function.__name__ = function.__qualname__ = op_name
    function.__doc__ = summary
    return function


less = _binary("Less(x: T, y: T) -> (z: bool)\nT: realnumbertype", "less", "x < y")
less_equal = _binary("LessEqual(x: T, y: T) -> (z: bool)\nT: realnumbertype", "less_equal", "x <= y")
greater = _binary("Greater(x: T, y: T) -> (z: bool)\nT: realnumbertype", "greater", "x > y")
greater_equal = _binary("GreaterEqual(x: T, y: T) -> (z: bool)\nT: realnumbertype", "greater_equal", "x >= y")
logical_and = _binary("LogicalAnd(x: bool, y: bool) -> (z: bool)", "logical_and", "x and y")
logical_or = _binary("LogicalOr(x: bool, y: bool) -> (z: bool)", "logical_or", "x or y")
bitwise_and = _binary(f"BitwiseAnd(x: T, y: T) -> (z: T)\nT: {INTEGER}", "bitwise_and", "The bits set in x and y.")
bitwise_or = _binary(f"BitwiseOr(x: T, y: T) -> (z: T)\nT: {INTEGER}", "bitwise_or", "The bits set in x or y.")
bitwise_xor = _binary(f"BitwiseXor(x: T, y: T) -> (z: T)\nT: {INTEGER}", "bitwise_xor", "The bits that differ.")


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """x or y, but not both."""
    either = logical_or(x, y)
    return logical_and(either, unary.logical_not(logical_and(x, y)), name=name)


class _Equality(Op):
    """What Equal and NotEqual share: every dtype; shapes that do not fit may count as different."""

    grad = no_gradient

    def infer(op):
        x, y = op.inputs[0].shape, op.inputs[1].shape
        try:
            return [infer_broadcast(x, y)]
        except ValueError:
            if op.get_attr("incompatible_shape_error"):
                raise
            return [TensorShape([])]  # they are not equal, then


def _equality(ufunc_name: str, otherwise: bool) -> Callable[[Any, Any], Callable[..., Any]]:
    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        compare = getattr(np if node["T"] == dtypes.string else xp, ufunc_name)
        if node["incompatible_shape_error"]:
            return compare

        def kernel(x: Any, y: Any) -> Any:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return np.bool_(otherwise)
            return compare(x, y)

        return kernel

    return bind


@op("""Equal(x: T, y: T) -> (z: bool)
       T: type
       incompatible_shape_error: bool = true""")
class Equal(_Equality):
    """x == y"""

    bind = _equality("equal", otherwise=False)


@op("""NotEqual(x: T, y: T) -> (z: bool)
       T: type
       incompatible_shape_error: bool = true""")
class NotEqual(_Equality):
    """x != y"""

    bind = _equality("not_equal", otherwise=True)


def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x == y, element by element."""
    return apply_op("Equal", name, x=x, y=y)


def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x != y, element by element."""
    return apply_op("NotEqual", name, x=x, y=y)


# -- choices ---------------------------------------------------------------------------------------------


@op("""Select(condition: bool, t: T, e: T) -> (output: T)
       T: type""")
class Select(Op):
    """t where the condition holds, else e; a condition vector chooses whole rows."""

    def infer(op):
        condition, t, e = (x.shape for x in op.inputs)
        result = t.merge_with(e)
        if condition.ndims is None or condition.ndims == 0 or result.ndims is None:
            return [result]
        if condition.ndims == 1 and result.ndims != 1:
            if result.ndims == 0:
                raise ValueError(f"Shapes {condition} and {result} are not compatible")
            condition[0].merge_with(result[0])  # must fit, but as in TensorFlow it tells nothing of the result
            return [result]
        return [result.merge_with(condition)]

    def bind(node, xp):
        def kernel(condition, t, e):
            if t.shape != e.shape:
                text = f"{shape_text(t)} vs. {shape_text(e)}"
                raise invalid(f"'then' and 'else' must have the same size, but received: {text}")
            if condition.shape != t.shape and condition.ndim == 1 and t.ndim > 1 and len(condition) == len(t):
                condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
            elif condition.shape != t.shape and condition.ndim:
                raise invalid(
                    f"Inputs to operation {node.name} of type Select must have the same size and shape.  "
                    f"Input 0: {shape_text(condition)} != input 1: {shape_text(t)}"
                )
            return xp.where(condition, t, e)

        return kernel

    def grad(op, dy):
        condition, t, _ = op.inputs
        zeros = constants.zeros_like(t)
        return [None, where(condition, dy, zeros), where(condition, zeros, dy)]


@op("""SelectV2(condition: bool, t: T, e: T) -> (output: T)
       T: type""")
class SelectV2(Op):
    """t where the condition holds, else e, with broadcasting."""

    def infer(op):
        condition, t, e = (x.shape for x in op.inputs)
        return [infer_broadcast(condition, infer_broadcast(t, e))]

    bind = ufunc("where")

    def grad(op, dy):
        condition, t, e = op.inputs
        zeros = constants.zeros([], dy.dtype.base_dtype)
        dt = where_v2(condition, dy, zeros)
        de = where_v2(condition, zeros, dy)
        dt, _ = reduce_to_inputs(t, op.outputs[0], dt, None)
        de, _ = reduce_to_inputs(e, op.outputs[0], de, None)
        return [None, dt, de]


@op(f"""Where(input: T) -> (index: int64)
        T: {NUMBER_BOOL} = bool""")
class Where(Op):
    """The coordinates of the elements that are true, or not 0, one per row."""

    flops = of_inputs

    def infer(op):
        return [TensorShape([None, op.inputs[0].shape.ndims])]

    def bind(node, xp):
        return lambda x: xp.stack(xp.nonzero(x), axis=1) if np.ndim(x) else np.zeros((int(x != 0), 0), np.int64)


def _where(op_type: str, condition: Any, x: Any, y: Any, name: str | None) -> Tensor:
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, preferred_dtype=dtypes.bool, name="condition")
            return apply_op("Where", scope, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op(op_type, name, condition=condition, t=x, e=y)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where `condition` holds, else y, all of one shape; without both the coordinates of what is true."""
    return _where("Select", condition, x, y, name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """As `where`, with broadcasting."""
    return _where("SelectV2", condition, x, y, name)

"""Questions and choices: comparisons, logic, bits, and what `where` is made of.

Stands for the comparisons in `core/ops/math_ops.cc`, `core/kernels/cwise_op_select.cc`, `where_op.cc`,
`core/ops/bitwise_ops.cc` and their parts of `math_grad.py`. Left out: ApproximateEqual.

Rule: a shift by less than nothing, or by as many bits as there are, is one by the nearest that has a meaning in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import of_inputs
from dtflab.ops.gradient_rules import reduce_to_inputs
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math.elementwise import Bind, binary, ufunc
from dtflab.ops.messages import different_sizes, invalid, shape_text
from dtflab.ops.type_sets import INTEGER, NUMBER_BOOL


def _shift(function: str) -> Bind:
    def bind(node: Node, xp: Any) -> Any:
        shift, most = getattr(xp, function), node["T"].size * 8 - 1
        return lambda x, y: shift(x, xp.minimum(xp.maximum(y, y.dtype.type(0)), y.dtype.type(most)))

    return bind


_COMPARISONS = {"Less": "less", "LessEqual": "less_equal", "Greater": "greater", "GreaterEqual": "greater_equal"}

for _op, _kernel in _COMPARISONS.items():
    binary(f"{_op}(x: T, y: T) -> (z: bool) where T: realnumbertype", _kernel, no_gradient)
for _op, _kernel in {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}.items():
    binary(f"{_op}(x: bool, y: bool) -> (z: bool)", _kernel, no_gradient)
for _op, _kernel in {"BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor"}.items():
    binary(f"{_op}(x: T, y: T) -> (z: T) where T: {INTEGER}", _kernel, no_gradient)
for _op, _rule in {"LeftShift": _shift("left_shift"), "RightShift": _shift("right_shift")}.items():
    binary(f"{_op}(x: T, y: T) -> (z: T) where T: {INTEGER}", _rule, no_gradient)


@op("LogicalNot(x: bool) -> (y: bool)")
class LogicalNot(Op):
    """not x"""

    infer = shapes.unchanged
    bind = ufunc("logical_not")
    grad = no_gradient


@op(f"PopulationCount(x: T) -> (y: uint8) where T: {INTEGER}")
class PopulationCount(Op):
    """How many bits of each integer are set."""

    infer = shapes.unchanged
    grad = no_gradient

    def kernel(node, xp, x):
        bits = xp.unpackbits(xp.ascontiguousarray(x).reshape(-1).view(np.uint8))
        return bits.reshape((*x.shape, 8 * node["T"].size)).sum(-1, dtype=np.uint8)


class _Equality(Op):
    """Base of Equal and NotEqual: they take every dtype; shapes that do not fit may count as different."""

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
    def bind(node: Node, xp: Any) -> Callable[..., Any]:
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


for _name, _ufunc, _otherwise in (("Equal", "equal", False), ("NotEqual", "not_equal", True)):
    op(f"""{_name}(x: T, y: T) -> (z: bool)
           T: type
           incompatible_shape_error: bool = true""")(type(_name, (_Equality,), {"bind": _equality(_ufunc, _otherwise)}))


# -- choices --------------------------------------------------------------------------------


@op("Select(condition: bool, t: T, e: T) -> (output: T) where T: type")
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
            condition[0].merge_with(result[0])  # must fit, but as in TensorFlow it adds nothing to the result
            return [result]
        return [result.merge_with(condition)]

    def kernel(node, xp, condition, t, e):
        if t.shape != e.shape:
            text = f"{shape_text(t)} vs. {shape_text(e)}"
            raise invalid(f"'then' and 'else' must have the same size, but received: {text}")
        if condition.shape != t.shape and condition.ndim == 1 and t.ndim > 1 and len(condition) == len(t):
            condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
        elif condition.shape != t.shape and condition.ndim:
            raise different_sizes(node, condition, 1, t)
        return xp.where(condition, t, e)

    def grad(op, dy):
        condition, t, _ = op.inputs
        zeros = arrays.zeros_like(t)
        return [None, indexing.where(condition, dy, zeros), indexing.where(condition, zeros, dy)]


@op("SelectV2(condition: bool, t: T, e: T) -> (output: T) where T: type")
class SelectV2(Op):
    """t where the condition holds, else e, with broadcasting."""

    def infer(op):
        condition, t, e = (x.shape for x in op.inputs)
        return [infer_broadcast(condition, infer_broadcast(t, e))]

    bind = ufunc("where")

    def grad(op, dy):
        condition, t, e = op.inputs
        zeros = arrays.zeros([], dy.dtype.base_dtype)
        dt = indexing.where_v2(condition, dy, zeros)
        de = indexing.where_v2(condition, zeros, dy)
        dt, _ = reduce_to_inputs(t, op.outputs[0], dt, None)
        de, _ = reduce_to_inputs(e, op.outputs[0], de, None)
        return [None, dt, de]


@op(f"Where(input: T) -> (index: int64) where T: {NUMBER_BOOL} = bool")
class Where(Op):
    """The coordinates of the elements that are true, or not 0, one per row."""

    flops = of_inputs

    def infer(op):
        return [TensorShape([None, op.inputs[0].shape.ndims])]

    def bind(node, xp):
        return lambda x: xp.stack(xp.nonzero(x), axis=1) if np.ndim(x) else np.zeros((int(x != 0), 0), np.int64)

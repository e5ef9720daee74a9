"""One step of an optimizer as one op: ApplyGradientDescent for both variable families.

Stands for `core/ops/training_ops.cc` and `core/kernels/training_ops.cc`.

Rule: the variable is updated under its cell's lock, so two workers that apply at once both count; whether a
reader sees the old or the new value is decided by when it reads (`use_locking` changes nothing).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import resource
from dtflab.ops.cell import Cell
from dtflab.ops.messages import invalid, shape_text


def _check_scalar(value: Any, name: str) -> None:
    if value.ndim:
        raise invalid(f"{name} is not a scalar: {shape_text(value.shape)}")


def _descend(xp: Any) -> Callable[[Cell, Any, Any], None]:
    """var -= alpha * delta"""

    def apply(cell: Cell, alpha: Any, delta: Any) -> None:
        _check_scalar(alpha, "alpha")

        def compute(old: Any, out: Any) -> Any:
            if old.shape != delta.shape:
                raise invalid(
                    f"var and delta do not have the same shape{shape_text(old.shape)} {shape_text(delta.shape)}"
                )
            change = xp.multiply(delta, alpha)
            if change.ndim == 0:
                return xp.subtract(old, change)
            return xp.subtract(old, change, out=change if out is None else out)

        cell.update(compute)

    return apply


def _variable_shape(operation: Any) -> TensorShape:
    """The shape of the variable, input 0: a reference or a handle."""
    variable = operation.inputs[0]
    if variable.dtype._is_ref_dtype:
        return variable.shape
    known = resource.declared(variable)
    return known[0] if known else TensorShape(None)


def _check_descent(operation: Any) -> TensorShape:
    operation.inputs[1].shape.with_rank(0)
    return _variable_shape(operation).merge_with(operation.inputs[2].shape)


@op("""ApplyGradientDescent(var: Ref(T), alpha: T, delta: T) -> (out: Ref(T))
       T: numbertype
       use_locking: bool = false""")
class ApplyGradientDescent(Op):
    def infer(operation):
        return [_check_descent(operation)]

    def bind(node, xp):
        descend = _descend(xp)

        def apply(cell, alpha, delta):
            descend(cell, alpha, delta)
            return cell

        return apply

    def flops(node, ins, outs):
        return 2 * elements(ins[2])


@op("""ResourceApplyGradientDescent(var: resource, alpha: T, delta: T) -> ()
       T: numbertype
       use_locking: bool = false""")
class ResourceApplyGradientDescent(Op):
    stateful = True
    needs_ctx = True

    def infer(operation):
        _check_descent(operation)
        return []

    def bind(node, xp):
        descend = _descend(xp)
        return lambda ctx, handle, alpha, delta: descend(resource.find(ctx, handle), alpha, delta)

    def flops(node, ins, outs):
        return 2 * elements(ins[2])

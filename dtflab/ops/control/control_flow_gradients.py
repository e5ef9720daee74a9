"""The gradients of Switch, Merge and the frame ops.

Stands for `python/ops/control_flow_grad.py`.

Rule: the way back is the way forth in a mirror. A Merge's gradient is a Switch and a Switch's a Merge; what entered
a loop leaves the loop that computes the gradient, and what left enters. So the Merge that begins an iteration of the
gradient's loop comes from the Switch of the loop; it is gone through twice: first from the Exit, where the Merge is
made, and after the body from there, where the Merge gets its back edge. These functions need contexts, which are made
of the ops; so they come to the ops afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes, op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.gradients import GradientFunction
from dtflab.graph.indexed_slices import IndexedSlices, as_indexed_slices_list
from dtflab.graph.operation import Operation
from dtflab.graph.scopes import get_default_graph
from dtflab.ops.control import loop_sums
from dtflab.ops.control.control_flow import (
    enter,
    exit,
    merge,
    next_iteration,
    output_context,
    switch,
    switch_ref_or_tensor,
)
from dtflab.ops.control.control_flow_context import CondContext
from dtflab.ops.control.while_context import WhileContext


def _gradient_of(*op_types: str) -> Callable[[GradientFunction], GradientFunction]:
    def give(function: GradientFunction) -> GradientFunction:
        for op_type in op_types:
            op_registry.get(op_type).grad = staticmethod(function)
        return function

    return give


def _current() -> Any:
    """The context in which the gradient is built."""
    return get_default_graph()._blocks.control_flow_context


@_gradient_of("Switch", "RefSwitch")
def _of_switch(operation: Operation, *dys: Any) -> list[Any]:
    """Whichever side was used sends its gradient back through a Merge."""
    context = operation._control_flow_context
    if isinstance(context, WhileContext):
        return [_of_loop_switch(operation, *dys), None]
    if not isinstance(context, CondContext):
        pred = operation.inputs[1]
        return [merge([switch(dys[0], pred)[0], switch(dys[1], pred)[1]])[0], None]
    if dys[1 - context.branch] is not None:
        return [merge(dys, name="cond_grad")[0], None]
    if operation.inputs[0].dtype == dtypes.resource:  # of which there are no zeros
        return [merge([dys[context.branch]] * 2, name="cond_resource_grad")[0], None]
    return [None, None]


def _of_loop_switch(operation: Operation, from_exit: Any, from_body: Any) -> Any:
    merges = _current().grad_state.merges
    if operation not in merges:
        if from_exit is not None:
            merges[operation] = merge([from_exit, from_exit], name="b_switch")[0]
        return merges.get(operation)
    if from_body is not None:
        first = merges[operation]
        if isinstance(first, IndexedSlices):
            (from_body,) = as_indexed_slices_list([from_body])
        else:
            from_body = convert_to_tensor(from_body)
        for merged, value in zip(*(nest.leaves(grad, expand_composites=True) for grad in (first, from_body))):
            merged.op._update_input(1, next_iteration(value))
    return None


@_gradient_of("Merge", "RefMerge")
def _of_merge(operation: Operation, dy: Any, _: Any = None) -> list[Any]:
    """The gradient goes to the input that was taken."""
    context = output_context(operation.inputs[0].op)
    if isinstance(context, WhileContext):
        return switch_ref_or_tensor(dy, _current().pivot)
    if isinstance(context, CondContext):
        current = _current()
        state = None if current is None else current.GetWhileContext() and current.GetWhileContext().grad_state
        pred = context.pred if state is None else state.pred_of(context)
        return switch_ref_or_tensor(dy, pred, name="cond_grad")
    taken = [apply_op("Equal", None, x=operation.outputs[1], y=i) for i in range(len(operation.inputs))]
    return [switch_ref_or_tensor(dy, pred)[1] for pred in taken]


@_gradient_of("Exit", "RefExit")
def _of_exit(operation: Operation, dy: Any) -> Any:
    """The gradient enters the loop that goes back."""
    loop = _current()
    if not loop.back_prop:
        return None
    if operation._control_flow_context.grad_state is not None:
        raise TypeError("Second-order gradient for while loops not supported.")
    parts = list(nest.leaves(dy, expand_composites=True))
    loop._values.update(part.name for part in parts)
    with loop.entered():
        entered = [
            enter(part, loop.name, parallel_iterations=loop.parallel_iterations, name="b_exit" if part is dy else None)
            for part in parts
        ]
    loop.loop_enters += entered
    return nest.pack_sequence_as(dy, entered, expand_composites=True)


@_gradient_of("Enter", "RefEnter")
def _of_enter(operation: Operation, dy: Any) -> Any:
    """The gradient of a variable leaves the loop that goes back; that of a constant is summed up there."""
    loop = _current()
    if loop is None or not loop.back_prop or loop.grad_state is None:
        return dy
    if operation.attrs["is_constant"]:
        return loop_sums.summed(loop.grad_state, operation, dy)
    left = [exit(part) for part in nest.leaves(dy, expand_composites=True)]
    loop.loop_exits += left
    loop.ExitResult(left)
    return nest.pack_sequence_as(dy, left, expand_composites=True)


@_gradient_of("NextIteration", "RefNextIteration")
def _of_next_iteration(operation: Operation, dy: Any) -> Any:
    """The gradient as it is: the way back to the iteration before is made with the Switch."""
    return dy

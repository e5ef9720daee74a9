"""Order and choice, the ops: NoOp; Switch, Merge and the frame ops of loops, with their gradients.

Stands for `core/ops/control_flow_ops.cc`, `core/kernels/control_flow_ops.cc` and `python/ops/control_flow_grad.py`.
Left out: Abort.

Rules: the seven ops that decide what runs next have no kernel worth the name. The executor knows them by their class
attribute `control_flow` and moves their values, dead or alive, itself. Each has a twin for references.
The way back mirrors the way forth. A Merge's gradient is a Switch and a Switch's a Merge; what entered a loop leaves
the loop that computes the gradient, and what left enters. So the Merge that begins an iteration of the gradient's loop
comes from the Switch of the loop. The gradient passes that Switch twice: first from the Exit, where the Merge is made,
and after the body from there, where the Merge gets its back edge.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices, as_indexed_slices_list
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, get_default_graph
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control, loop_sums
from dtflab.ops.control.cond_context import CondContext
from dtflab.ops.control.functions import exit, merge, output_context, switch, switch_ref_or_tensor
from dtflab.ops.control.while_context import WhileContext
from dtflab.ops.costs import FreeOp


class _FlowOp(FreeOp):
    aliasing = True


class _Passed(_FlowOp):
    """Base of the ops that carry one value on."""

    infer = shapes.unchanged

    def bind(node: Node, xp: Any) -> Callable[[Any], Any]:
        return lambda value: value


def _with_twin(interface: str, base: type[Op], **twin: Any) -> None:
    """Register an op, and its twin for references: `<T>` means T in one, Ref(T) in the other, which has `twin`."""
    name = interface.partition("(")[0]
    op(re.sub("<(.*?)>", r"\1", interface))(type(name, (base,), {}))
    op("Ref" + re.sub("<(.*?)>", r"Ref(\1)", interface))(type(f"Ref{name}", (base,), twin))


def _current() -> Any:
    """The context in which the gradient is built."""
    return get_default_graph()._blocks.control_flow_context


# -- order ---------------------------------------------------------------------------------------------


@op("NoOp() -> ()")
class NoOp(FreeOp):
    infer = shapes.none

    def bind(node, xp):
        return lambda: None


@op("ControlTrigger() -> ()")
class ControlTrigger(NoOp):
    """A NoOp that runs even if its control inputs are dead: used by gradients of loops."""

    control_flow = "control_trigger"


@op("RefIdentity(input: Ref(T)) -> (output: Ref(T)) where T: type")
class RefIdentity(_Passed):
    """The same variable, not its value."""

    allows_uninitialized_input = True

    def grad(operation, dy):
        return [dy]


# -- choice --------------------------------------------------------------------------------------------


class _Switch(_FlowOp):
    control_flow = "switch"

    def infer(operation: Any) -> list[TensorShape]:
        operation.inputs[1].shape.with_rank(0)
        return [operation.inputs[0].shape] * 2

    @staticmethod
    def zeros(operation: Operation, index: int) -> Any:
        """The gradient of the side that the branch of `operation` does not use: zeros, made when it is alive."""
        output, context = operation.outputs[index], operation._control_flow_context
        if context is None:
            return apply_op("ZerosLike", "zeros_like", x=output)
        alive = switch(operation.inputs[0], context.pred)[1 - context.branch]
        pivot = apply_op("Identity", input=alive)
        if output.dtype == dtypes.resource:
            known = declared(output)
            if known is None:
                return None
            with control_dependencies([pivot]):
                return arrays.zeros(apply_op("VariableShape", input=alive), known[1])
        shape = apply_op("Shape", input=alive)
        with control_dependencies([pivot]):
            return arrays.zeros(shape, output.dtype)

    def grad(operation: Operation, *dys: Any) -> list[Any]:
        """The side that was used sends its gradient back through a Merge."""
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
            merged.op._update_input(1, control.next_iteration(value))
    return None


_SWITCH = "Switch(data: <T>, pred: bool) -> (output_false: <T>, output_true: <T>) where T: type"
_with_twin(_SWITCH, _Switch, allows_uninitialized_input=True)


class _Merge(_FlowOp):
    control_flow = "merge"

    def infer(operation: Any) -> list[TensorShape]:
        """The common shape of all inputs: the rank if they agree on it, and each dimension that they agree on."""
        first, *others = (t.shape for t in operation.inputs)
        common = first
        for shape in others:
            if common.ndims is None or shape.ndims != common.ndims:
                common = TensorShape(None)
                break
            common = TensorShape([a if a == b else None for a, b in zip(common.as_list(), shape.as_list())])
        return [common, TensorShape([])]

    def grad(operation: Operation, dy: Any, _: Any = None) -> list[Any]:
        """The gradient goes to the input that was taken."""
        context = output_context(operation.inputs[0].op)
        if isinstance(context, WhileContext):
            return switch_ref_or_tensor(dy, _current().pivot)
        if isinstance(context, CondContext):
            current = _current()
            state = None if current is None else current.GetWhileContext() and current.GetWhileContext().grad_state
            pred = context.pred if state is None else state.pred_of(context)
            return switch_ref_or_tensor(dy, pred, name="cond_grad")
        taken = [apply_op("Equal", x=operation.outputs[1], y=i) for i in range(len(operation.inputs))]
        return [switch_ref_or_tensor(dy, pred)[1] for pred in taken]


_with_twin("Merge(inputs: <N * T>) -> (output: <T>, value_index: int32) where T: type, N: int >= 1", _Merge)


# -- loops ---------------------------------------------------------------------------------------------


class _Enter(_Passed):
    control_flow = "enter"

    def infer(operation: Any) -> list[TensorShape]:
        """Only a loop constant surely keeps its shape; `while_loop` sets that of the others."""
        return [operation.inputs[0].shape if operation.get_attr("is_constant") else TensorShape(None)]

    def grad(operation: Operation, dy: Any) -> Any:
        """The gradient of a variable leaves the backward loop; that of a constant is summed up there."""
        loop = _current()
        if loop is None or not loop.back_prop or loop.grad_state is None:
            return dy
        if operation.attrs["is_constant"]:
            return loop_sums.summed(loop.grad_state, operation, dy)
        left = [exit(part) for part in nest.leaves(dy, expand_composites=True)]
        loop.loop_exits += left
        loop.ExitResult(left)
        return nest.pack_sequence_as(dy, left, expand_composites=True)


class _Exit(_Passed):
    control_flow = "exit"

    def grad(operation: Operation, dy: Any) -> Any:
        """The gradient enters the backward loop."""
        loop = _current()
        if not loop.back_prop:
            return None
        if operation._control_flow_context.grad_state is not None:
            raise TypeError("Second-order gradient for while loops not supported.")
        parts, count = list(nest.leaves(dy, expand_composites=True)), loop.parallel_iterations
        loop._values.update(part.name for part in parts)
        name = "b_exit" if isinstance(dy, Tensor) else None
        with loop.entered():
            entered = [control.enter(part, loop.name, parallel_iterations=count, name=name) for part in parts]
        loop.loop_enters += entered
        return nest.pack_sequence_as(dy, entered, expand_composites=True)


class _NextIteration(_Passed):
    control_flow = "next_iteration"

    def grad(operation: Operation, dy: Any) -> Any:
        """The gradient as it is: the way back to the iteration before is made with the Switch."""
        return dy


_FRAME = "frame_name: string, is_constant: bool = false, parallel_iterations: int = 10"
_with_twin(f"Enter(data: <T>) -> (output: <T>) where T: type, {_FRAME}", _Enter, infer=shapes.unchanged)
_with_twin("Exit(data: <T>) -> (output: <T>) where T: type", _Exit)
_with_twin("NextIteration(data: <T>) -> (output: <T>) where T: type", _NextIteration)


@op("LoopCond(input: bool) -> (output: bool)")
class LoopCond(_Passed):
    control_flow = "loop_cond"
    grad = no_gradient

    def infer(operation):
        return [operation.inputs[0].shape.with_rank(0)]

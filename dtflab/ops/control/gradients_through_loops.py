"""The while loops that a call of `gradients` goes through: which exits it waits for, and zeros for what was not used.

Stands for `python/ops/control_flow_state.py`, and for what WhileContext of `control_flow_ops.py` adds for gradients.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes, gradients
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.gradients import Gradient, Loops
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.static_value import declared
from dtflab.ops.arrays.functions import zeros, zeros_like
from dtflab.ops.control.backward_loop import BackwardLoop
from dtflab.ops.control.cond_context import CondContext
from dtflab.ops.control.control_flow_context import ControlFlowContext, loop_of_output
from dtflab.ops.control.functions import is_exit, is_switch, next_iteration, switch_ref_or_tensor
from dtflab.ops.control.loop_sums import shape_of, within
from dtflab.ops.control.while_context import WhileContext


class WhileLoops(Loops):
    """The while loops that a walk goes through."""

    def __init__(self) -> None:
        self.states: dict[Any, BackwardLoop] = {}

    def add(self, exit_op: Operation, between: dict[Operation, None]) -> None:
        """The walk goes through the loop that `exit_op` leaves; so it does through all exits of that loop."""
        context = exit_op._control_flow_context
        forward = None if context is None else context.GetWhileContext()
        if forward is None:
            raise ValueError(
                "Failed to call gradients on a while loop without properly serializing graph via MetaGraphDef: "
                f"'{exit_op.name}' leaves a loop of which this graph knows only the operations. Import a meta graph."
            )
        if forward in self.states:
            return
        around = forward.outer_context
        outer = None if around is None else self.states.get(around.GetWhileContext())
        state = self.states[forward] = BackwardLoop(forward, outer)
        between.update(dict.fromkeys(tensor.op for tensor in state.forward_exits))

    def _state(self, op: Operation, before: bool = False) -> BackwardLoop | None:
        """The loop that `op` is in; `before` it was left, if it is an Exit, that around."""
        context = op._control_flow_context
        loop = loop_of_output(op) if before else None if context is None else context.GetWhileContext()
        return self.states.get(loop)

    def entered(self, op: Operation, before: bool = False) -> contextlib.AbstractContextManager[None]:
        state = self._state(op, before)
        return within(None if state is None else state.grad_context)

    # -- exits ----------------------------------------------------------------------------------------------------

    def unused_exits(self, pending: dict[Operation, int], started: set[Operation]) -> list[Tensor]:
        found = []
        for state in self.states.values():
            for tensor in state.forward_exits:
                if pending.get(tensor.op):
                    continue
                state.exits_to_come -= 1
                if tensor.op not in started:
                    state.unused_exits.append(tensor)
                if state.exits_to_come == 0:
                    found += state.unused_exits
            for tensor in state.forward_context.loop_enters:
                pending[tensor.op] = pending.get(tensor.op) or 1
        return found

    def is_ready(self, op: Operation, awaited: int) -> bool:
        return awaited == 0 or (awaited > 0 and is_loop_switch(op))

    def released(self, tensor: Tensor, has_gradient: Callable[[Operation], bool]) -> tuple[list[Tensor], list[Tensor]]:
        if not is_exit(tensor.op):
            return [tensor], []
        state = self._state(tensor.op)
        assert state is not None
        state.deferred_exits.append(tensor)
        state.exits_to_come -= 1
        if state.exits_to_come:
            return [], []
        used = [t for t in state.deferred_exits if has_gradient(t.op)]
        state.unused_exits += [t for t in state.deferred_exits if t not in used]
        return used + state.unused_exits, state.unused_exits if used else []

    def zeros_for_exit(self, tensor: Tensor) -> Gradient:
        around = tensor.op._control_flow_context.outer_context
        state = None if around is None else self.states.get(around.GetWhileContext())
        if state is None:
            known = tensor.shape.is_fully_defined()
            return zeros(tensor.shape.as_list(), tensor.dtype) if known else zeros_like(tensor, optimize=False)
        if tensor.shape.is_fully_defined():
            with state.grad_context.entered():
                return zeros(tensor.shape.as_list(), tensor.dtype)
        with around.entered():
            shape = shape_of(tensor)
        stack = state.remember(shape)
        with state.grad_context.entered():
            return zeros(state.recall(stack, shape), tensor.dtype)

    # -- zeros ----------------------------------------------------------------------------------------------------

    def zeros(self, op: Operation, index: int) -> Gradient:
        if is_loop_switch(op):
            return None
        state = self._state(op)
        if state is None:
            return super().zeros(op, index)
        value = op.outputs[index]
        context = op._control_flow_context
        if value.shape.is_fully_defined():
            return _known_zeros(state, value, context if is_switch(op) else None)
        shape = _shape_of_untaken(op, context) if is_switch(op) else _shape_in(context, value)
        with state.grad_context.left():
            stack = state.remember(shape, dead_branch=is_switch(op))
        return zeros(state.recall(stack, shape, dead_branch=is_switch(op)), value.dtype)

    def finish(self) -> None:
        """A variable whose new value does not depend on its old one has no gradient before the last iteration."""
        for state in self.states.values():
            for merged in state.merges.values():
                values, *places = nest.leaves(merged, expand_composites=True)
                if values.op.inputs[0] is not values.op.inputs[1]:
                    continue
                values.op._update_input(1, _no_gradient_before(state.grad_context, values.op.inputs[0]))
                for part in places:  # of slices; their rows stay where they are (TensorFlow forgets these)
                    with state.grad_context.entered():
                        where = state.grad_context.constant_enter(part.op.inputs[0].op.inputs[0])
                        part.op._update_input(1, next_iteration(where))


def _no_gradient_before(loop: WhileContext, entered: Tensor) -> Tensor:
    if not entered.shape.is_fully_defined():
        with within(loop.outer_context):
            nothing = zeros(shape_of(entered.op.inputs[0]), entered.dtype)
        with loop.entered():
            return next_iteration(nothing)
    with loop.entered():
        return next_iteration(constant(0, entered.dtype, shape=entered.shape))


def _known_zeros(state: BackwardLoop, value: Tensor, branch: CondContext | None) -> Tensor:
    """Zeros in a shape that is known; of a Switch's other side, alive when that is."""
    if value.dtype == dtypes.resource:
        known = declared(value)
        result = zeros(apply_op("VariableShape", input=value), dtypes.float32 if known is None else known[1])
    else:
        result = constant(0, value.dtype, shape=value.shape)
    if branch is None:
        return result
    return switch_ref_or_tensor(result, state.history[branch.pred.name])[1 - branch.branch]


def _shape_in(context: ControlFlowContext, value: Tensor) -> Tensor:
    with context.entered():
        return shape_of(value)


def _shape_of_untaken(op: Operation, branch: CondContext) -> Tensor:
    """The shape of what a Switch gave, if its branch was not taken."""
    with within(branch.outer_context):
        untaken = switch_ref_or_tensor(op.inputs[0], branch.pred)[1 - branch.branch]
        shape = shape_of(untaken)
    untaken.op._control_flow_context = shape.op._control_flow_context = branch
    return shape


def is_loop_switch(op: Operation) -> bool:
    """Whether a loop variable goes to the body or leaves the loop there."""
    return is_switch(op) and isinstance(op._control_flow_context, WhileContext) and not _is_cond_switch(op)


def _is_cond_switch(op: Operation) -> bool:
    """Whether only branches of conditionals use what `op` gives."""
    for tensor in op.outputs:
        for consumer in tensor._consumers:
            context = consumer._control_flow_context
            if consumer.op_class.control_flow == "enter":
                context = context.outer_context
            if not isinstance(context, CondContext):
                return False
    return True


def _loops_between(between: dict[Operation, None], colocated: Callable[[Operation], Any]) -> Loops:
    """The loops that the walk goes through, which are given counters."""
    loops: WhileLoops | None = None
    todo = list(between)
    for op in todo:
        if is_exit(op):
            loops = loops or WhileLoops()
            known = len(between)
            with colocated(op):
                loops.add(op, between)
            todo += list(between)[known:]
    return loops or Loops()


gradients.loops_between = _loops_between

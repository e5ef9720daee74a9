"""Gradients of loops: the loop that goes back, and how the values of the loop that went forth come to it.

Stands for `python/ops/control_flow_state.py`, and for what WhileContext of `control_flow_ops.py` adds for gradients.

Theory of operation. The gradient of a loop is a loop that runs as often. So the loop is given a counter, which
becomes the counter of the loop that goes back and counts down there. A value of the body that the gradient needs was
another one in each iteration: all are pushed on a stack by the loop, and popped by the loop that goes back. What is the
same in all iterations (a loop constant) need not be kept; its gradient is the sum over the iterations.

Rule: pushes happen in the order of the iterations, and pops, too, though several iterations may be under way: an
iteration's counter waits for the pushes (`f_sync`) or pops (`b_sync`) of the one before.
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
from dtflab.graph.scopes import colocate_with, control_dependencies, get_default_graph
from dtflab.graph.static_value import constant_value, declared
from dtflab.ops.arrays.functions import zeros, zeros_like
from dtflab.ops.control.control_flow import (
    is_constant_enter,
    is_exit,
    is_switch,
    next_iteration,
    output_context,
    switch_ref_or_tensor,
)  # fmt: skip
from dtflab.ops.control.control_flow_context import CondContext, ControlFlowContext, loop_of_output
from dtflab.ops.control.loop_sums import count_down, count_up, shape_of, within
from dtflab.ops.control.while_context import WhileContext


class GradLoop:
    """One loop and the loop that goes back, while the latter is built."""

    def __init__(self, forward: WhileContext, outer: GradLoop | None) -> None:
        self.forward_context = forward
        self.outer = outer
        self.history: dict[str, Tensor] = {}  # name of a tensor of the loop → its value in the loop that goes back
        self.merges: dict[Operation, Any] = {}  # Switch of the loop → the Merge that is its gradient
        self.forward_exits = list(forward.loop_exits)
        self.exits_to_come = len(self.forward_exits)
        self.unused_exits: list[Tensor] = []
        self.deferred_exits: list[Tensor] = []
        self._forward_sync: Operation | None = None
        self._grad_sync: Operation | None = None
        with within(forward.outer_context if outer is None else outer.forward_context):
            count, self.forward_index = count_up(forward, outer)
        if outer is None:
            with within(forward.outer_context):
                self.grad_context = self._loop_back()
                self.grad_index = count_down(self.grad_context, count, None)
            return
        outer.forward_context._values.add(count.name)
        counts = outer.remember(count)
        with outer.grad_context.entered():
            self.grad_context = self._loop_back()
            self.grad_index = count_down(self.grad_context, outer.recall(counts, count), outer)

    def _loop_back(self) -> WhileContext:
        forth = self.forward_context
        return WhileContext(
            forth.maximum_iterations, forth.parallel_iterations, forth.back_prop, forth.swap_memory, forth.name, self
        )

    # -- in which order pushes and pops happen ------------------------------------------------------------------

    @property
    def forward_sync(self) -> Operation:
        """What the next iteration of the loop waits for."""
        if self._forward_sync is None:
            self._forward_sync = _sync("f_sync", self.forward_context, self.forward_index)
        return self._forward_sync

    @property
    def grad_sync(self) -> Operation:
        """What the next iteration of the loop that goes back waits for."""
        if self._grad_sync is None:
            self._grad_sync = _sync("b_sync", self.grad_context, self.grad_index)
        return self._grad_sync

    # -- values of the loop in the loop that goes back ------------------------------------------------------------

    def remember(self, value: Tensor, dead_branch: bool = False) -> Tensor:
        """Push what `value` is in each iteration of the loop; returns the stack.

        `dead_branch`: it stands for the branch of a conditional that was not taken.
        """
        called_in = get_default_graph()._blocks.control_flow_context
        next_index = self.forward_index.op.inputs[0].op
        with control_dependencies(None):
            with within(called_in), colocate_with(value):
                elements = value.dtype.base_dtype
                stack: Tensor = apply_op("StackV2", "f_acc", max_size=constant(-1, dtypes.int32), elem_type=elements)
            inside = self.forward_context.AddValue(stack)
            context = output_context(value.op)
            if context is self.forward_context:
                push = self._push(inside, value, context)
                self.forward_index.op._add_control_input(push)
            else:
                if not isinstance(context, CondContext):
                    raise TypeError(f"value_ctxt is not a CondContext: {context}")
                push = self._push(inside, value, context.outer_context if dead_branch else context)
                push._control_flow_context = context
                self.forward_sync._add_control_input(push)
            push._add_control_input(next_index)
        return stack

    def _push(self, stack: Tensor, value: Tensor, context: ControlFlowContext | None) -> Operation:
        with within(context):
            pushed: Tensor = apply_op(
                "StackPushV2", handle=stack, elem=value, swap_memory=self.forward_context.swap_memory
            )
        return pushed.op

    def recall(self, stack: Tensor, value: Tensor, dead_branch: bool = False) -> Tensor:
        """In the loop that goes back: what `value` was in the same iteration of the loop."""
        branch = _branch_around(value, stack.op._control_flow_context)
        with control_dependencies(None), self.grad_context.entered():
            if branch is not None:  # pop only if it was pushed
                side = 1 - branch.branch if dead_branch else branch.branch
                stack = switch_ref_or_tensor(stack, self._known_pred(branch))[side]
            popped: Tensor = apply_op("StackPopV2", handle=stack, elem_type=value.dtype.base_dtype)
            popped.set_shape(value.shape)
        if self.grad_context.parallel_iterations > 1:
            self.grad_sync._add_control_input(popped.op)
        return popped

    def _known_pred(self, branch: CondContext) -> Tensor:
        state: GradLoop | None = self
        while state is not None:
            if branch.pred.name in state.history:
                return state.history[branch.pred.name]
            state = state.outer
        return branch.pred

    def pred_of(self, branch: CondContext) -> Tensor:
        """What the predicate of a conditional in the loop was in the same iteration."""
        if branch.pred.name not in self.history:
            with self.grad_context.left():
                stack = self.remember(branch.pred)
            self.history[branch.pred.name] = self.recall(stack, branch.pred)
        return self.history[branch.pred.name]

    def real_value(self, value: Tensor) -> Tensor:
        """What stands for `value`, of the loop, in the loop that goes back, where this must be called."""
        if value.name not in self.history:
            self.history[value.name] = self._real_value(value)
        return self.history[value.name]

    def _real_value(self, value: Tensor) -> Tensor:
        state = self
        constant_enter = _constant_enter_before(value)
        while constant_enter is not None:
            value = constant_enter.inputs[0]
            if state.outer is None:  # it is from outside of all loops
                return self.grad_context.AddValue(value)
            state, constant_enter = state.outer, _constant_enter_before(value)
        if value.op.type == "Const":
            return constant(constant_value(value), value.dtype)
        with self.grad_context.left():
            stack = state.remember(value)
        recalled = state.recall(stack, value)
        return recalled if state is self else self.grad_context.AddValue(recalled)


def _sync(name: str, loop: WhileContext, index: Tensor) -> Operation:
    with control_dependencies(None):
        sync: Operation = apply_op("ControlTrigger", name)
    sync._control_flow_context = loop
    index.op._add_control_input(sync)
    return sync


def _branch_around(value: Tensor, outside: ControlFlowContext | None) -> CondContext | None:
    """The innermost branch of a conditional that `value` is in and that lies within the context `outside`."""
    context = value.op._control_flow_context
    while context is not None and context is not outside:
        if isinstance(context, CondContext):
            return context
        context = context.outer_context
    return None


def _constant_enter_before(value: Tensor) -> Operation | None:
    """Where `value` comes into its loop, if it is the same in all iterations."""
    op = value.op
    while op.type in ("Switch", "RefSwitch", "Identity", "RefIdentity"):
        op = op.inputs[0].op
    return op if is_constant_enter(op) else None


# -- all loops of a call of `gradients` ------------------------------------------------------------------------------


class LoopGradients(Loops):
    """The loops that a walk goes through."""

    def __init__(self) -> None:
        self.states: dict[Any, GradLoop] = {}

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
        state = self.states[forward] = GradLoop(forward, outer)
        between.update(dict.fromkeys(tensor.op for tensor in state.forward_exits))

    def _state(self, op: Operation, before: bool = False) -> GradLoop | None:
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


def _known_zeros(state: GradLoop, value: Tensor, branch: CondContext | None) -> Tensor:
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
    """What the walk has to mind; the loops that it goes through are given counters."""
    loops: LoopGradients | None = None
    todo = list(between)
    for op in todo:
        if is_exit(op):
            loops = loops or LoopGradients()
            known = len(between)
            with colocated(op):
                loops.add(op, between)
            todo += list(between)[known:]
    return loops or Loops()


gradients.loops_between = _loops_between

"""The loop that computes the gradient of a loop, and how it gets the values of the latter.

Stands for GradLoopState of `python/ops/control_flow_state.py`.

Theory of operation. The gradient of a loop is a loop that runs as often, the backward loop. So the loop is given a
counter, and the backward loop counts down from its last value. A value of the body that the gradient needs was
another one in each iteration: all are pushed on a stack by the loop, and popped by the backward loop. A value that is
the same in all iterations (a loop constant) need not be kept; its gradient is the sum over the iterations.

Rule: pushes happen in the order of the iterations, and pops, too, though several iterations may be under way: an
iteration's counter waits for the pushes (`f_sync`) or pops (`b_sync`) of the one before.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, get_default_graph
from dtflab.graph.static_value import constant_value
from dtflab.ops.control.cond_context import CondContext
from dtflab.ops.control.control_flow_context import ControlFlowContext
from dtflab.ops.control.functions import is_constant_enter, output_context, switch_ref_or_tensor
from dtflab.ops.control.loop_sums import count_down, count_up, within
from dtflab.ops.control.while_context import WhileContext


class BackwardLoop:
    """One loop and its backward loop, while the latter is built."""

    def __init__(self, forward: WhileContext, outer: BackwardLoop | None) -> None:
        self.forward_context = forward
        self.outer = outer
        self.history: dict[str, Tensor] = {}  # name of a tensor of the loop → its value in the backward loop
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
                self.grad_context = self._backward_context()
                self.grad_index = count_down(self.grad_context, count, None)
            return
        outer.forward_context._values.add(count.name)
        counts = outer.remember(count)
        with outer.grad_context.entered():
            self.grad_context = self._backward_context()
            self.grad_index = count_down(self.grad_context, outer.recall(counts, count), outer)

    def _backward_context(self) -> WhileContext:
        forth = self.forward_context
        return WhileContext(
            forth.maximum_iterations, forth.parallel_iterations, forth.back_prop, forth.swap_memory, forth.name, self
        )

    # -- in which order pushes and pops happen ------------------------------------------------------------------

    @property
    def forward_sync(self) -> Operation:
        """The operation that the loop's next iteration waits for."""
        if self._forward_sync is None:
            self._forward_sync = _sync("f_sync", self.forward_context, self.forward_index)
        return self._forward_sync

    @property
    def grad_sync(self) -> Operation:
        """The operation that the next iteration of the backward loop waits for."""
        if self._grad_sync is None:
            self._grad_sync = _sync("b_sync", self.grad_context, self.grad_index)
        return self._grad_sync

    # -- values of the loop in the backward loop ------------------------------------------------------------------

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
        """In the backward loop: what `value` was in the same iteration of the loop."""
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
        state: BackwardLoop | None = self
        while state is not None:
            if branch.pred.name in state.history:
                return state.history[branch.pred.name]
            state = state.outer
        return branch.pred

    def pred_of(self, branch: CondContext) -> Tensor:
        """The predicate of a conditional in the loop, as it was in the same iteration."""
        if branch.pred.name not in self.history:
            with self.grad_context.left():
                stack = self.remember(branch.pred)
            self.history[branch.pred.name] = self.recall(stack, branch.pred)
        return self.history[branch.pred.name]

    def real_value(self, value: Tensor) -> Tensor:
        """The tensor that replaces `value`, of the loop, in the backward loop; to be called there."""
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

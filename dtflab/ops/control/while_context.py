"""The context of a loop: the rules for every operation made in its condition or body.

Stands for WhileContext of `python/ops/control_flow_ops.py`; what it adds for gradients is in
`gradients_through_loops.py`.

Rule: a value comes in through an Enter node only. A value used inside but made outside is a loop constant, the same in
every iteration. An operation that depends on such constants alone, or on nothing, waits for the iteration's pivot;
otherwise it would run in an iteration that does not take place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph import proto_functions
from dtflab.graph.apply_op import apply_op
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, get_default_graph, prepend_scope, strip_scope
from dtflab.ops.control import control_flow_context
from dtflab.ops.control.control_flow_context import ControlFlowContext, loop_of_output
from dtflab.ops.control.functions import enter, is_constant_enter, is_enter, output_context
from dtflab.protos.control_flow_pb2 import ControlFlowContextDef, WhileContextDef

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_OF_A_SHAPE = ("Shape", "Size", "Rank")


class WhileContext(ControlFlowContext):
    """One loop. Its name is that of its frame."""

    def __init__(
        self,
        maximum_iterations: Tensor | None = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        grad_state: Any = None,
    ) -> None:
        if not isinstance(parallel_iterations, int) or parallel_iterations <= 0:
            raise ValueError(f"'parallel_iterations' must be a positive integer: {parallel_iterations}")
        super().__init__(name)
        self.maximum_iterations, self.parallel_iterations = maximum_iterations, parallel_iterations
        self.back_prop, self.swap_memory = back_prop, swap_memory
        self.grad_state = grad_state  # of a loop that computes gradients: how it hangs together with the other one
        self.pivot: Tensor | None = None  # the condition
        self.pivot_for_pred: Tensor | None = None  # what the condition, or the body, is made to wait for
        self.pivot_for_body: Tensor | None = None
        self.loop_enters: list[Tensor] = []
        self.loop_exits: list[Tensor] = []

    def GetWhileContext(self) -> WhileContext:
        return self

    def GetControlPivot(self) -> Tensor | None:
        return self.pivot_for_pred if self.pivot_for_body is None else self.pivot_for_body

    def may_use_values_of(self, loop: WhileContext) -> bool:
        """Whether the values in `loop` can be had here: it is around here, or the loop that this is the gradient of.

        While a gradient is built, operations of the forward loop are also made from this side.
        """
        if self.is_within(loop):
            return True
        mine, other = self.grad_state, loop.grad_state
        if mine is not None and (mine.forward_context.is_within(loop) or mine.forward_context is loop.outer_context):
            return True
        forward = None if other is None else other.forward_context
        if forward is not None and forward.grad_state is not None and forward.grad_state.forward_context is self:
            return True
        return forward is self

    def know_only(self, tensors: Sequence[Tensor]) -> None:
        """Take only `tensors` to be inside the loop."""
        self._values = {tensor.name for tensor in tensors}

    # -- what comes in --------------------------------------------------------------------------------------

    def AddValue(self, tensor: Tensor) -> Tensor:
        # A loop that is being imported may use what is in it already, but has not been seen yet.
        if tensor.name in self._values or tensor.op._control_flow_context is self:
            return self._external_values.get(tensor.name, tensor)
        self._values.add(tensor.name)
        inside = self._remembered(tensor)
        if inside is None:
            inside = self.constant_enter(tensor)
        self._external_values[tensor.name] = inside
        return inside

    def constant_enter(self, tensor: Tensor) -> Tensor:
        """`tensor`, from outside, as it is in every iteration."""
        outer = tensor if self.outer_context is None else self.outer_context.AddValue(tensor)
        inside = self.enter(outer, is_constant=True)
        self._fix_enters([inside])
        self._values.add(inside.name)
        return inside

    def enter(self, tensor: Tensor, is_constant: bool = False, use_input_shape: bool = True) -> Tensor:
        """`tensor` inside the loop, through an Enter that no block around decides on."""
        with control_dependencies(None):
            inside = enter(tensor, self.name, is_constant, self.parallel_iterations, use_input_shape)
        inside.graph.prevent_feeding(inside)
        return inside

    def _fix_enters(self, enters: Sequence[Tensor]) -> None:
        """Let the loop's Enters wait for the control inputs of blocks around the loop, but inside the next one."""
        graph = get_default_graph()
        for tensor in enters:
            controls = graph._control_inputs_for([tensor.op.inputs[0]])
            tensor.op._control_flow_context = self
            tensor.op._add_control_inputs([control for control in controls if self._waits_outside(control)])
            for block in graph._blocks.control_stack:
                block.made_inside.add(tensor.op)

    def _waits_outside(self, control: Operation) -> bool:
        """Whether what enters this loop may wait for `control`."""
        where, context = output_context(control), self.outer_context
        loop = None if context is None else context.GetWhileContext()
        while context is not where:
            if context is None or context is loop:
                return False
            context = context.outer_context
        return True

    def _remembered(self, tensor: Tensor) -> Tensor | None:
        """For the loop of a gradient that is being built: the value that a tensor of the forward loop had."""
        loop = _current_loop()
        if loop is None or loop.grad_state is None or loop_of_output(tensor.op) is not loop.grad_state.forward_context:
            return None
        return loop.grad_state.real_value(tensor)

    # -- what is made inside ----------------------------------------------------------------------------------

    def AddOp(self, op: Operation) -> None:
        """Take in `op`. A gradient's question about a forward value's shape is asked forward, so that less is kept."""
        loop = _current_loop()
        if op.type in _OF_A_SHAPE and loop is not None and loop.grad_state is not None:
            source = op.inputs[0].op
            context = source._control_flow_context
            if context is not None and context.GetWhileContext() is loop.grad_state.forward_context:
                op._control_flow_context = context
                context._take(op)
                return
        self._take(op)

    def _take(self, op: Operation) -> None:
        for i, tensor in enumerate(op.inputs):
            inside = self.AddValue(tensor)
            if inside is not tensor:
                op._update_input(i, inside)
        external = self._cut_external_controls(op)
        if self._runs_by_itself(op):
            pivot = self.GetControlPivot()
            assert pivot is not None
            op._add_control_input(pivot.op)
        self._values.update(tensor.name for tensor in op.outputs)
        if external:
            op._add_control_inputs(self._as_inputs(external))
        if self._hide(op):
            for tensor in op.outputs:
                op.graph.prevent_feeding(tensor)

    def _runs_by_itself(self, op: Operation) -> bool:
        """Whether nothing that `op` waits for belongs to an iteration."""
        if op.type in _CALLS:
            return True
        return not op.control_inputs and all(is_constant_enter(tensor.op) for tensor in op.inputs)

    def _as_inputs(self, controls: Sequence[Operation]) -> list[Operation]:
        """Stand-ins inside for operations outside that are to be waited for: their values come in."""
        with control_dependencies(None), self.entered():
            return [apply_op("Identity", input=control.outputs[0]).op for control in controls if control.outputs]

    # -- as messages ------------------------------------------------------------------------------------------

    def to_proto(self, export_scope: str | None = None) -> WhileContextDef | None:
        """This context as a message, its names without `export_scope`; None if it is not in that scope."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None

        def name(tensor: Tensor | None) -> str:
            return "" if tensor is None else strip_scope(tensor.name, export_scope)

        return WhileContextDef(
            context_name=strip_scope(self.name, export_scope),
            parallel_iterations=self.parallel_iterations,
            maximum_iterations_name=name(self.maximum_iterations),
            back_prop=self.back_prop,
            swap_memory=self.swap_memory,
            pivot_name=name(self.pivot),
            pivot_for_pred_name=name(self.pivot_for_pred),
            pivot_for_body_name=name(self.pivot_for_body),
            loop_exit_names=map(name, self.loop_exits),
            loop_enter_names=map(name, self.loop_enters),
            values_def=self._values_def(export_scope),
            nested_contexts=[c.to_control_flow_context_def(export_scope) for c in self._nested_contexts],
        )

    def to_control_flow_context_def(self, export_scope: str | None = None) -> ControlFlowContextDef:
        return ControlFlowContextDef(while_ctxt=self.to_proto(export_scope))

    @staticmethod
    def from_proto(context_def: WhileContextDef, import_scope: str | None = None) -> WhileContext:
        """The context that `to_proto` described, around operations of the default graph."""
        graph = get_default_graph()

        def tensor(name: str) -> Any:
            return graph.as_graph_element(prepend_scope(name, import_scope)) if name else None

        context = WhileContext.__new__(WhileContext)
        context.name = prepend_scope(context_def.context_name, import_scope)
        context.maximum_iterations = tensor(context_def.maximum_iterations_name)
        context.parallel_iterations = context_def.parallel_iterations
        context.back_prop, context.swap_memory = context_def.back_prop, context_def.swap_memory
        context.grad_state = None
        context.pivot = tensor(context_def.pivot_name)
        context.pivot_for_pred = tensor(context_def.pivot_for_pred_name)
        context.pivot_for_body = tensor(context_def.pivot_for_body_name)
        context.loop_exits = [tensor(name) for name in context_def.loop_exit_names]
        context.loop_enters = [tensor(name) for name in context_def.loop_enter_names]
        context._restore(context_def, import_scope)
        return context

    def _rename_frame(self) -> None:
        graph = get_default_graph()
        for name in self._values:
            op = graph.as_graph_element(name).op
            if is_enter(op):
                op._set_attr("frame_name", self.name.encode())


def _current_loop() -> WhileContext | None:
    """The loop that is being built."""
    context = get_default_graph()._blocks.control_flow_context
    return None if context is None else context.GetWhileContext()


control_flow_context._from_proto["while_ctxt"] = WhileContext.from_proto
proto_functions.register(GraphKeys.WHILE_CONTEXT, WhileContextDef, WhileContext.to_proto, WhileContext.from_proto)

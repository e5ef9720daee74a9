"""The context of a branch: the rules for every operation made inside a conditional.

Stands for CondContext of `python/ops/control_flow_ops.py`.

Rule: an operation of a branch must not run when the branch is not taken. One with inputs gets those from outside
through a Switch, whose other side is dead; one without inputs waits for the branch's pivot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph import proto_functions
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, get_default_graph, prepend_scope, strip_scope
from dtflab.ops.control import control_flow_context
from dtflab.ops.control.control_flow_context import ControlFlowContext
from dtflab.ops.control.functions import read_variable, switch_ref_or_tensor, with_dependencies
from dtflab.protos.control_flow_pb2 import CondContextDef, ControlFlowContextDef


class CondContext(ControlFlowContext):
    """One branch of a conditional: number 1 is taken if `pred` is true, number 0 if it is false."""

    def __init__(self, pred: Tensor, pivot: Tensor, branch: int, name: str = "cond_text") -> None:
        super().__init__(name)
        self.pred = pred  # what decides
        self.pivot = pivot  # alive only if the branch is taken
        self.branch = branch
        self._values.update((pred.name, pivot.name))
        self._external_values[pred.name] = pred
        pivot.op._control_flow_context = self

    def GetControlPivot(self) -> Tensor:
        return self.pivot

    def AddValue(self, tensor: Tensor) -> Tensor:
        if tensor.name in self._values:
            return self._external_values.get(tensor.name, tensor)
        outer = self._from_outside(tensor)
        with control_dependencies(None):
            inside = self._switched(outer)
        inside.graph.prevent_fetching(inside.op)
        inside.op._control_flow_context = self
        self._see([inside])
        self._external_values[tensor.name] = inside
        return inside

    def _switched(self, tensor: Tensor) -> Tensor:
        return switch_ref_or_tensor(tensor, self.pred)[self.branch]

    def AddOp(self, op: Operation) -> None:
        self._take(op)

    def _take(self, op: Operation) -> None:
        for i, tensor in enumerate(op.inputs):
            # The back edge of a loop that is being imported comes from inside, but has not been seen yet.
            inside = tensor if tensor.op.type == "NextIteration" else self.AddValue(tensor)
            if inside is not tensor:
                op._update_input(i, inside)
        self._cut_external_controls(op)
        if not op.inputs and not any(self._contains(control) for control in op.control_inputs):
            op._add_control_input(self.pivot.op)
        self._see(op.outputs)
        self._hide(op)

    def build(self, branch_function: Callable[[], Any], called: str) -> tuple[Any, Any]:
        """Make the branch; returns the function's result, and the tensors that leave the branch in its place."""
        with self.entered():
            returned = branch_function()
            if returned is None:
                raise ValueError(f"'{called}' must have a return value.")
            returned = nest.map_structure(read_variable, returned)
            results = nest.map_structure(self._output, returned, expand_composites=True)
            self.ExitResult(nest.flatten(results, expand_composites=True))
        return returned, results

    def _output(self, value: Any) -> Tensor:
        """The branch's output for `value`: an operation is represented by the pivot, after it."""
        if isinstance(value, Operation):
            return with_dependencies([value], self.pivot)
        tensor = convert_to_tensor(value)
        if tensor.name not in self._values:  # a branch like `lambda: x`
            self._external_values[tensor.name] = self._switched(self._from_outside(tensor))
        return self._external_values.get(tensor.name, tensor)

    # -- as messages --------------------------------------------------------------------------------------

    def to_proto(self, export_scope: str | None = None) -> CondContextDef | None:
        """This context as a message, its names without `export_scope`; None if it is not in that scope."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        return CondContextDef(
            context_name=strip_scope(self.name, export_scope),
            pred_name=strip_scope(self.pred.name, export_scope),
            pivot_name=strip_scope(self.pivot.name, export_scope),
            branch=self.branch,
            values_def=self._values_def(export_scope),
            nested_contexts=[c.to_control_flow_context_def(export_scope) for c in self._nested_contexts],
        )

    def to_control_flow_context_def(self, export_scope: str | None = None) -> ControlFlowContextDef:
        return ControlFlowContextDef(cond_ctxt=self.to_proto(export_scope))

    @staticmethod
    def from_proto(context_def: CondContextDef, import_scope: str | None = None) -> CondContext:
        """The context that `to_proto` described, around operations of the default graph."""
        graph = get_default_graph()
        context = CondContext.__new__(CondContext)
        context.name = prepend_scope(context_def.context_name, import_scope)
        context.pred = graph.as_graph_element(prepend_scope(context_def.pred_name, import_scope))
        context.pivot = graph.as_graph_element(prepend_scope(context_def.pivot_name, import_scope))
        context.branch = context_def.branch
        context._restore(context_def, import_scope)
        return context


control_flow_context._from_proto["cond_ctxt"] = CondContext.from_proto
proto_functions.register(GraphKeys.COND_CONTEXT, CondContextDef, CondContext.to_proto, CondContext.from_proto)

"""Contexts: what branches and loops have in common, regions of a graph with a rule for what runs in them.

Stands for ControlFlowContext of `python/ops/control_flow_ops.py`. Its kinds are in `cond_context.py` and
`while_context.py`. Left out: the context of XLA.

Rule: the graph calls `AddOp` of its current context for each operation that it makes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import get_default_graph, prepend_scope, strip_scope
from dtflab.ops.control.functions import is_enter, is_exit, is_switch, output_context
from dtflab.protos.control_flow_pb2 import ControlFlowContextDef, ValuesDef


class ControlFlowContext:
    """A region of the graph with one rule for what runs in it; regions nest."""

    def __init__(self, name: str) -> None:
        graph = get_default_graph()
        self.name = graph.unique_name(name)
        self._values: set[str] = set()  # names of tensors that may be used inside as they are
        self._external_values: dict[str, Tensor] = {}  # name of a tensor from outside → its replacement inside
        self._join_outer_context()

    def _join_outer_context(self) -> None:
        self._nested_contexts: list[ControlFlowContext] = []
        self._entered_from: list[ControlFlowContext | None] = []
        # The context in which this one is made.
        self.outer_context: ControlFlowContext | None = get_default_graph()._blocks.control_flow_context
        if self.outer_context is not None:
            self.outer_context._nested_contexts.append(self)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Operations made inside belong to this context."""
        graph = get_default_graph()
        self._entered_from.append(graph._blocks.control_flow_context)
        graph._blocks.control_flow_context = self
        try:
            yield
        finally:
            graph._blocks.control_flow_context = self._entered_from.pop()

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """Operations made inside belong to the context from which this one was entered."""
        graph = get_default_graph()
        graph._blocks.control_flow_context = self._entered_from.pop()
        try:
            yield
        finally:
            self._entered_from.append(graph._blocks.control_flow_context)
            graph._blocks.control_flow_context = self

    # -- where this is ------------------------------------------------------------------------------------

    def GetWhileContext(self) -> Any:
        """The innermost loop that this is (in), or None."""
        return None if self.outer_context is None else self.outer_context.GetWhileContext()

    def GetControlPivot(self) -> Tensor | None:
        """A tensor that is alive whenever operations of this context run."""
        return None

    def is_within(self, other: ControlFlowContext | None) -> bool:
        """Whether this is `other` or lies inside it; every context lies in None, which is outside of all."""
        context: ControlFlowContext | None = self
        while context is not other and context is not None:
            context = context.outer_context
        return context is other

    # -- what is made inside ------------------------------------------------------------------------------

    def AddOp(self, op: Operation) -> None:
        """Make the new operation `op` obey the rule of this context."""
        raise NotImplementedError

    def AddValue(self, tensor: Tensor) -> Tensor:
        """The replacement of `tensor` inside."""
        raise NotImplementedError

    def to_control_flow_context_def(self, export_scope: str | None = None) -> ControlFlowContextDef:
        """This context as one of the nested ones of a message."""
        raise NotImplementedError

    def ExitResult(self, tensors: list[Tensor]) -> None:
        """Tensors made here may be used in the context around."""
        if self.outer_context is not None:
            self.outer_context._values.update(t.name for t in tensors)

    @staticmethod
    def check_use(source: Operation, user: Operation) -> None:
        """ValueError if `user` can't take what `source` gives because that is in a loop which `user` is not in."""
        loop = loop_of_output(source)
        if loop is None or output_context(source) is user._control_flow_context:
            return
        around = user._control_flow_context and user._control_flow_context.GetWhileContext()
        if around is None:
            if not (is_enter(user) or is_switch(user)):
                raise ValueError(
                    f"Cannot use '{source.name}' as input to '{user.name}' because '{source.name}' is in a while loop."
                )
        elif not around.may_use_values_of(loop):
            raise ValueError(
                f"Cannot use '{source.name}' as input to '{user.name}' because they are in different while loops."
            )

    def _contains(self, op: Operation) -> bool:
        context = op._control_flow_context
        return context is not None and context.is_within(self)

    def _cut_external_controls(self, op: Operation) -> list[Operation]:
        """Take from `op` the control inputs that come from outside of the loop around it; returns those."""
        loop = self.GetWhileContext()
        external = [
            control for control in op.control_inputs if loop is not None and loop_of_output(control) is not loop
        ]
        if external:
            internal = [control for control in op.control_inputs if control not in external]
            op._remove_all_control_inputs()
            op._add_control_inputs(internal)
        return external

    def _hide(self, op: Operation) -> bool:
        """Whether a step can't fetch the outputs of `op`: only an Exit of the outermost loop leaves it."""
        hidden = self.outer_context is not None or not is_exit(op)
        if hidden:
            op.graph.prevent_fetching(op)
        return hidden

    def _see(self, tensors: list[Tensor]) -> None:
        """Note tensors made inside: this context and all around it may use them as they are."""
        context: ControlFlowContext | None = self
        while context is not None:
            context._values.update(t.name for t in tensors)
            context = context.outer_context

    def _from_outside(self, tensor: Tensor) -> Tensor:
        """The replacement of `tensor` in the context around."""
        self._values.add(tensor.name)
        if self.outer_context is None:
            return tensor
        outer = self.outer_context.AddValue(tensor)
        self._values.add(outer.name)
        self._external_values[outer.name] = outer
        return outer

    # -- as messages --------------------------------------------------------------------------------------

    def _values_def(self, export_scope: str | None) -> ValuesDef:
        external = self._external_values.items()
        return ValuesDef(
            values=[strip_scope(name, export_scope) for name in sorted(self._values)],
            external_values={strip_scope(k, export_scope): strip_scope(v.name, export_scope) for k, v in external},
        )

    def _restore(self, context_def: Any, import_scope: str | None) -> None:
        """Take in what a message says of values and nested contexts."""
        graph, values_def = get_default_graph(), context_def.values_def
        self._join_outer_context()
        self._values = {prepend_scope(name, import_scope) for name in values_def.values}
        self._external_values = {
            prepend_scope(name, import_scope): graph.as_graph_element(prepend_scope(value, import_scope))
            for name, value in values_def.external_values.items()
        }
        for name in self._values - self._external_values.keys():
            graph.as_graph_element(name.partition(":")[0])._control_flow_context = self
        if import_scope:
            self._rename_frame()
        with self.entered():
            for nested in context_def.nested_contexts:
                from_control_flow_context_def(nested, import_scope)

    def _rename_frame(self) -> None:
        """Name the frame of an imported loop as its context is named now; a branch has no frame."""


def loop_of_output(op: Operation) -> Any:
    """The loop in which the outputs of `op` are, or None."""
    context = output_context(op)
    return None if context is None else context.GetWhileContext()


FromProto = Callable[[Any, str | None], ControlFlowContext]
_from_proto: dict[str, FromProto] = {}  # field of the message → reader, entered by each kind


def from_control_flow_context_def(message: ControlFlowContextDef, import_scope: str | None = None) -> Any:
    """The context, of whichever kind, that `to_control_flow_context_def` described."""
    kind = message.WhichOneof("ctxt")
    if kind is None:
        raise NotImplementedError(f"Unknown ControlFlowContextDef field: {kind}")
    return _from_proto[kind](getattr(message, kind), import_scope)

"""Plan: what a partition's nodes take of the processor under them, worked out once for all steps.

Rule: a node's time depends on its op and on the shapes of what goes in and comes out. Those of texts, whose sizes are
in their values, are asked for each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.graph import device_spec, op_registry
from dtflab.graph.dtypes import string
from dtflab.graph.node import Node
from dtflab.hardware import costs
from dtflab.ops.cell import Cell
from dtflab.runtime.executor import ASYNC, CONTROL_FLOW, MANY_OUTPUTS, Executor

if TYPE_CHECKING:
    from dtflab.virtual.world import Slots


class Plan:
    """The nodes of an executor on `processor`; `in_thread` are those that may sleep: functions of the program."""

    def __init__(self, executor: Executor, processor: Slots) -> None:
        self.processor = processor
        self.device = executor.device.name
        claim = getattr(executor.device, "claim", None)
        self.tell_busy: Callable[[float], Any] | None = claim and claim.busy  # of a GPU: seconds of work, for smi
        self.task = device_spec.task_name(self.device)
        self.names = [node.name for node in executor.nodes]
        self.takes_time = [
            not (item.mode & (ASYNC | CONTROL_FLOW) or costs.is_free(op_registry.get(node.op)))
            for item, node in zip(executor.items, executor.nodes, strict=True)
        ]
        self.in_thread = [op_registry.get(node.op).calls_program for node in executor.nodes]
        self.nodes = executor.nodes
        self._many = [bool(item.mode & MANY_OUTPUTS) for item in executor.items]
        self._has_texts = [_has_texts(node) for node in executor.nodes]
        self._known: dict[tuple[Any, ...], float] = {}  # (node, shapes…) → seconds

    def seconds(self, n: int, args: Sequence[Any], value: Any) -> float:
        """How long node `n` takes, as planned, to make `value` (or each of its values) out of `args`."""
        outs = value if self._many[n] else (value,)
        if self._has_texts[n]:
            return self._worked_out(n, args, outs)
        key: list[Any] = [n]
        for x in (*args, *outs):
            if isinstance(x, Cell):
                x = x.value
            key.append(getattr(x, "shape", None))
        shapes = tuple(key)
        found = self._known.get(shapes)
        if found is None:
            found = self._known[shapes] = self._worked_out(n, args, outs)
        return found

    def _worked_out(self, n: int, args: Sequence[Any], outs: Sequence[Any]) -> float:
        node = self.nodes[n]
        ins = args[len(args) - len(node.inputs) :]  # a step's context may come first
        cost = costs.of_node(node, _sized(ins), _sized(outs[: len(node.output_types)]))
        return costs.seconds(cost, self.processor.hardware, costs.dtype_of(node))


def _has_texts(node: Node) -> bool:
    op_def = op_registry.get(node.op).op_def
    return any(dtype.base_dtype == string for dtype in (*op_def.input_types(node.attrs), *node.output_types))


def _sized(values: Sequence[Any]) -> list[Any]:
    """The sizes of values; a handle, which has none, counts as a scalar."""
    return [x if hasattr(x, "shape") else costs.HANDLE for x in values]

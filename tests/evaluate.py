"""The shortest runtime there is: values of tensors of a graph without state, by their kernels, in order of need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtflab.graph.operation import Operation, Tensor


def evaluate(tensors: Sequence[Tensor], feeds: Mapping[Tensor, Any] | None = None) -> list[Any]:
    """The values of `tensors`, given the values of some others."""
    values: dict[Tensor, Any] = dict(feeds or {})
    for op in _in_order([t.op for t in tensors if t not in values], values):
        with np.errstate(all="ignore"):
            results = kernel(op)(*(values[t] for t in op.inputs))
        values.update((t, v) for t, v in zip(op.outputs, as_outputs(op, results), strict=True) if t not in values)
    return [values[t] for t in tensors]


def kernel(op: Operation) -> Any:
    return op.op_class.bind(op.node(), np)


def as_outputs(op: Operation, results: Any) -> list[Any]:
    """A kernel's results, as one value per output."""
    args = op.op_def.outputs
    if not args:
        return []
    return [results] if len(args) == 1 and not args[0].is_list else list(results)


def _in_order(roots: list[Operation], known: Mapping[Tensor, Any]) -> list[Operation]:
    """The operations behind `roots`, producers first. No recursion: graphs are deeper than Python's stack."""
    order: dict[Operation, None] = {}
    todo = [(op, False) for op in reversed(roots)]
    while todo:
        op, producers_done = todo.pop()
        if op in order:
            continue
        if producers_done:
            order[op] = None
        else:
            todo.append((op, True))
            todo += [(t.op, False) for t in op.inputs if t not in known and t.op not in order]
    return list(order)

"""The ops of a graph and the edges between them, as pictures need them.

Ops are read from anything that has them: a Graph, a GraphDef, Nodes, or fetches, which stand for all that they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dtflab.base.nest import leaves
from dtflab.graph.device_spec import merge
from dtflab.graph.graph import Graph
from dtflab.graph.node import line_text

Kind = str  # 'data', 'control' or 'transfer'


class Op(NamedTuple):
    """A node as pictures need it."""

    name: str
    op: str
    inputs: list[tuple[str, int]]
    controls: list[str]
    device: str
    line: str
    why: str = ""  # the placer's reason for the device, if it is known


class Edge(NamedTuple):
    """One tensor, or one control dependency (whose tensor is `^name`), between two ops."""

    source: str
    target: str
    tensor: str
    kind: Kind


def ops_of(what: Any = None, placement: Mapping[str, str] | None = None) -> list[Op]:
    """The ops of a graph, in its order; ValueError if there are none."""
    if what is None:
        from dtflab.graph.scopes import get_default_graph

        what = get_default_graph()
    where = placement or {}
    found = [op._replace(device=where.get(op.name, op.device)) for op in _ops(what)]
    if not found:
        raise ValueError("The graph is empty. Add operations to it first, or pass the graph that has them.")
    return found


def graph_of(what: Any) -> Any:
    """The graph that fetches belong to, for facts that a part of it does not show; else what was given."""
    found = {part.graph for part in leaves(what) if isinstance(getattr(part, "graph", None), Graph)}
    return found.pop() if len(found) == 1 else what


def fetched(what: Any) -> list[Any]:
    """The operations behind fetches; none if it is a graph, or what stands for a whole one."""
    return [] if what is None or graph_of(what) is what else [_operation(part) for part in _flat(what)]


def edges_of(ops: Iterable[Op]) -> list[Edge]:
    """Every edge between the given ops, without duplicates."""
    device = {op.name: op.device for op in ops}
    edges: dict[Edge, None] = {}
    for op in ops:
        for name, index in op.inputs:
            if name in device:
                kind = "transfer" if _differ(device[name], op.device) else "data"
                edges[Edge(name, op.name, f"{name}:{index}", kind)] = None
        for name in op.controls:
            if name in device:
                edges[Edge(name, op.name, f"^{name}", "control")] = None
    return list(edges)


def _differ(device: str, other: str) -> bool:
    """Whether these are surely two devices: `/job:ps` and `/job:ps/task:0` may be one."""
    if not device or not other or device == other:
        return False
    try:
        merge(device, other)
    except ValueError:
        return True
    return False


def _ops(what: Any) -> list[Op]:
    if hasattr(what, "get_operations"):
        return [_from_operation(op) for op in what.get_operations()]
    if hasattr(what, "node") and hasattr(what, "versions"):
        return [_from_node_def(node) for node in what.node]
    parts = list(_flat(what))
    if parts and all(hasattr(part, "output_types") for part in parts):
        return [_from_node(node) for node in parts]
    return _closure([_operation(part) for part in parts])


def _flat(what: Any) -> Iterable[Any]:
    if isinstance(what, Mapping):
        what = what.values()
    elif isinstance(what, str | bytes) or not hasattr(what, "__iter__") or hasattr(what, "op"):
        what = [] if what is None else (what,)
        yield from what
        return
    for part in what:
        yield from _flat(part)


def _operation(fetch: Any) -> Any:
    """The operation behind a fetch: a tensor's, a variable's, itself, or the one that a string names."""
    if isinstance(fetch, str):
        from dtflab.graph.scopes import get_default_graph

        fetch = get_default_graph().as_graph_element(fetch)
    op = fetch if hasattr(fetch, "control_inputs") else getattr(fetch, "op", None)
    if op is None or not hasattr(op, "control_inputs"):
        raise TypeError(f"Pass a graph, nodes or fetches, not a value of type {type(fetch).__name__}.")
    return op


def _closure(fetched: Iterable[Any]) -> list[Op]:
    """Everything that the operations need, producers before consumers where the graph has no loop."""
    found: dict[Any, Op] = {}
    seen: set[Any] = set()
    todo: list[tuple[Any, bool]] = [(op, False) for op in reversed(list(fetched))]
    while todo:
        op, complete = todo.pop()
        if complete:
            found[op] = _from_operation(op)
        elif op not in seen:
            seen.add(op)
            todo.append((op, True))
            before = [*(t.op for t in op.inputs), *op.control_inputs]
            todo += [(b, False) for b in reversed(before) if b not in seen]
    return list(found.values())


def _from_operation(op: Any) -> Op:
    inputs = [(t.op.name, t.value_index) for t in op.inputs]
    line = line_text(getattr(op, "line", None))
    return Op(op.name, op.type, inputs, [c.name for c in op.control_inputs], op.device or "", line)


def _from_node(node: Any) -> Op:
    return Op(node.name, node.op, list(node.inputs), list(node.controls), node.device, line_text(node.line))


def _from_node_def(node: Any) -> Op:
    inputs = [(text.partition(":")[0], int(text.partition(":")[2] or 0)) for text in node.input if text[0] != "^"]
    return Op(node.name, node.op, inputs, [text[1:] for text in node.input if text[0] == "^"], node.device, "")

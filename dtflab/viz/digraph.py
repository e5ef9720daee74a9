"""The graph as a networkx DiGraph, with what is known of where and when each op runs.

The one form of the data that pictures, the critical path, and a student's own analysis share. Ops are read from
anything that has them: a Graph, a GraphDef, Nodes, or fetches, which stand for all that they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.graph.device_spec import merge
from dtflab.graph.node import line_text
from dtflab.viz.data import step_trace as trace

if TYPE_CHECKING:
    import networkx

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


def digraph(graph: Any = None, placement: Mapping[str, str] | None = None, step_stats: Any = None) -> networkx.DiGraph:
    """A networkx DiGraph of ops.

    `graph` is a Graph (default: the default graph), a GraphDef, a list of Nodes, or fetches: tensors and operations,
    however nested, which stand for themselves and all that they depend on. `step_stats` is a RunMetadata or StepStats.
    `placement` maps names of ops to devices. An op that it doesn't name is where the trace says that it ran, and one
    that the trace doesn't name (a fed placeholder, control flow) has the device that the program asked for, or ''.

    Node attributes: op, device, scope, line, and from the trace start_us, end_us, bytes (None where not traced).
    Edge attributes: tensor (or `a:0, a:1`), kind ('data', 'control' or 'transfer': data between two devices),
    bytes (of that tensor; None if unknown).
    """
    import networkx

    ran, sent = _measured(step_stats)
    ops = ops_of(graph, {**{name: event.device for name, event in ran.items()}, **(placement or {})})
    found = networkx.DiGraph()
    for op in ops:
        event = ran.get(op.name)
        start, end, size = (event.start, event.end, event.bytes) if event else (None, None, None)
        found.add_node(
            op.name, op=op.op, device=op.device, scope=op.name.rpartition("/")[0], line=op.line,
            start_us=start, end_us=end, bytes=size,
        )  # fmt: skip
    device = {op.name: op.device for op in ops}
    for edge in edges_of(ops):
        size = None if edge.kind == "control" else _size(edge, ran, sent.get((edge.source, device[edge.target])))
        _add_edge(found, edge, size)
    return found


def _size(edge: Edge, ran: Mapping[str, trace.Event], sent: int | None) -> int | None:
    """Bytes of the tensor: as its producer's trace says, or, without one (a Switch has none), what was `sent`."""
    outputs = ran[edge.source].outputs if edge.source in ran else {}
    return outputs.get(int(edge.tensor.rpartition(":")[2]), sent)


def _add_edge(graph: networkx.DiGraph, edge: Edge, size: int | None) -> None:
    """Add what `edge` carries; of two tensors between the same ops both are named and their bytes summed."""
    known = graph.get_edge_data(edge.source, edge.target)
    if known is None or known["kind"] == "control":
        graph.add_edge(edge.source, edge.target, tensor=edge.tensor, kind=edge.kind, bytes=size)
    elif edge.kind != "control":
        known["tensor"] += f", {edge.tensor}"
        known["bytes"] = None if size is None or known["bytes"] is None else known["bytes"] + size


def critical_path(graph: networkx.DiGraph) -> list[str]:
    """The ops that made the traced step as long as it was, first to last.

    From the op that ended last, backwards, always to the input that ended last: nothing else kept the op waiting but
    its device. ValueError for a graph without times.
    """
    end = {name: data["end_us"] for name, data in graph.nodes(data=True) if data["end_us"] is not None}
    if not end:
        raise ValueError("the graph has no times: give digraph() the step_stats of a traced step")
    path = [max(end, key=lambda name: end[name])]
    while True:
        before = [p for p in graph.predecessors(path[-1]) if p in end and p not in path]
        if not before:
            return path[::-1]
        path.append(max(before, key=lambda name: end[name]))


# -- reading ops ---------------------------------------------------------------------------------------------


def ops_of(what: Any = None, placement: Mapping[str, str] | None = None) -> list[Op]:
    """The ops of a graph, in its order; ValueError if there are none."""
    if what is None:
        from dtflab.graph.scopes import get_default_graph

        what = get_default_graph()
    where = placement or {}
    found = [op._replace(device=where.get(op.name, op.device)) for op in _ops(what)]
    if not found:
        raise ValueError("there are no operations to draw: the graph is empty")
    return found


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
        raise TypeError(f"a graph, nodes or fetches are needed, not {type(fetch).__name__}: {fetch!r}")
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


def _measured(step_stats: Any) -> tuple[dict[str, trace.Event], dict[tuple[str, str], int]]:
    """Events by op; bytes by (op, device) that one output of the op was sent to: which one, no trace says."""
    if step_stats is None:
        return {}, {}
    read = trace.read(step_stats)
    sent = {(t.producer, t.device): t.bytes for t in read.transfers}
    return {event.name: event for event in read.events}, sent

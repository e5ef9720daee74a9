"""The graph as a networkx DiGraph, with what is known of where and when each op runs.

The one form of the data that pictures, the critical path, and a student's own analysis share. `data/graph_ops.py`
reads the ops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dtflab.graph.graph import Graph
from dtflab.graph.scopes import get_default_graph
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.runtime.session import BaseSession, open_sessions
from dtflab.viz.data import step_trace as trace
from dtflab.viz.data.graph_ops import Edge, edges_of, fetched, graph_of, ops_of
from dtflab.viz.data.story import asked, placement_of, static_bytes

if TYPE_CHECKING:
    import networkx


def digraph(
    graph: Any = None, placement: Mapping[str, str] | BaseSession | Any = None, step_stats: Any = None
) -> networkx.DiGraph:
    """A networkx DiGraph of ops.

    `graph` is a Graph (default: the default graph), a GraphDef, a list of Nodes, or fetches: tensors and operations,
    however nested, which stand for themselves and all that they depend on. `step_stats` is a RunMetadata or StepStats,
    which may also come second. `placement` maps names of ops to devices. An op that it doesn't name is where the trace
    says that it ran, and one that the trace doesn't name (a fed placeholder, control flow) has the device that the
    program asked for, or ''.
    Pass a session instead of both for the devices that it put its ops on, and its newest trace, `sess.trace(fetches)`;
    without one, the first step that ran the fetches. (A session traces those of its first 20 kinds of steps, but not
    where its master or a task is in another process: there `sess.trace(fetches)` gives times.) Without both, it is the
    newest session of that graph that has traced a step, or else has run one.

    The name of the DiGraph, which `print` shows, says whether a step was timed.

    Node attributes: op, device, scope, line, start_us and end_us (None where not traced), and bytes (of all outputs).
    Edge attributes: tensor (or `a:0, a:1`), kind ('data', 'control' or 'transfer': data between two devices),
    bytes (of that tensor). Bytes are those of the trace; where it has none, those that the shapes in the graph tell;
    else None.
    """
    import networkx

    if not isinstance(placement, Mapping | BaseSession | None):
        placement, step_stats = None, placement  # digraph(fetches, trace)
    if isinstance(placement, BaseSession):
        step_stats = _trace_of(placement, graph) if step_stats is None else step_stats
        graph, placement = asked(graph, placement)
    elif placement is None and step_stats is None:
        placement, step_stats = _newest(graph)
    ran, sent = _measured(step_stats)
    sizes = _Sizes(graph)
    ops = ops_of(graph, {**{name: event.device for name, event in ran.items()}, **(placement or {})})
    found = networkx.DiGraph(name="times of a step" if ran else "no step was timed: sess.trace(fetches) gives times")
    for op in ops:
        event = ran.get(op.name)
        start, end, size = (event.start, event.end, event.bytes) if event else (None, None, sizes.of_op(op.name))
        found.add_node(
            op.name, op=op.op, device=op.device, scope=op.name.rpartition("/")[0], line=op.line,
            start_us=start, end_us=end, bytes=size,
        )  # fmt: skip
    device = {op.name: op.device for op in ops}
    for edge in edges_of(ops):
        size = None if edge.kind == "control" else _size(edge, ran, sent.get((edge.source, device[edge.target])))
        known = size is not None or edge.kind == "control"
        _add_edge(found, edge, size if known else sizes.of_tensor(edge.tensor))
    return found


def _newest(what: Any) -> tuple[Mapping[str, str] | None, Any]:
    """Where the newest session that has traced a step of this graph has its ops, and the trace; else one that ran."""
    graph = get_default_graph() if what is None else graph_of(what)
    sessions = [session for session in reversed(open_sessions()) if session.graph is graph and session.handle]
    newest = next((each for each in sessions if each.last_trace is not None), sessions[0] if sessions else None)
    return (None, None) if newest is None else (placement_of(newest), _trace_of(newest, what))


def _trace_of(session: BaseSession, what: Any) -> Any:
    """The newest step that was traced; without one, the first step of the newest kind that ran all fetches, if any."""
    if session.last_trace is not None:
        return session.last_trace
    names = {op.name for op in fetched(what)}
    with contextlib.suppress(NotImplementedError):  # in another process
        for kind in reversed([*session.master_session().signatures.values()]):
            if kind.first is not None and kind.first.wanted and names <= {node.name for node in kind.nodes}:
                kind.first.write(found := StepStats())
                return found
    return None


class _Sizes:
    """Bytes as shapes tell them; of a GraphDef and of Nodes, which have no shapes, None."""

    def __init__(self, what: Any) -> None:
        graph = get_default_graph() if what is None else graph_of(what)
        self._graph = graph if isinstance(graph, Graph) else None

    def of_op(self, name: str) -> int | None:
        if self._graph is None:
            return None
        sizes = [static_bytes(tensor) for tensor in self._graph.get_operation_by_name(name).outputs]
        return None if None in sizes else sum(filter(None, sizes))

    def of_tensor(self, name: str) -> int | None:
        return None if self._graph is None else static_bytes(self._graph.get_tensor_by_name(name))


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
        raise ValueError("The graph has no times. Trace a step and pass it: digraph(graph, step_stats=run_metadata).")
    path = [max(end, key=lambda name: end[name])]
    while True:
        before = [p for p in graph.predecessors(path[-1]) if p in end and p not in path]
        if not before:
            return path[::-1]
        path.append(max(before, key=lambda name: end[name]))


def _measured(step_stats: Any) -> tuple[dict[str, trace.Event], dict[tuple[str, str], int]]:
    """Events by op; bytes by (op, device) that one output of the op was sent to: which one, no trace says."""
    if step_stats is None:
        return {}, {}
    read = trace.read(step_stats)
    sent = {(t.producer, t.device): t.bytes for t in read.transfers}
    return {event.name: event for event in read.events}, sent

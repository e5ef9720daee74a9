"""Graphs that came over the wire: GraphDef → Nodes, checked before anything is done with them.

Stands for the checks in `core/graph/graph_constructor.cc`. Programs in this process are checked while they
are written; what arrives may have been written by anything.

Rule: an error names the node and what is wrong with it, in TensorFlow's words.
"""

from __future__ import annotations

import graphlib
import re
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import NamedTuple

from dtflab.base import errors
from dtflab.base.limits import beyond, limits
from dtflab.graph import device_spec, op_registry
from dtflab.graph.graph_def import nodes_from_proto
from dtflab.graph.inlining import inline
from dtflab.graph.node import Node
from dtflab.protos.graph_pb2 import GraphDef

_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*\Z")  # TensorFlow's for graphs between master and worker
_invalid = errors.InvalidArgumentError.of


class Graph(NamedTuple):
    """The nodes of a GraphDef, and what is run: these, with what their calls of functions become."""

    nodes: list[Node]
    inlined: list[Node]


def graph_of(graph_def: GraphDef, going: Callable[[], object], known: dict[str, Node] | None = None) -> Graph:
    """The graph in a message, which adds to `known` nodes; InvalidArgumentError if it can't be run.

    ResourceExhaustedError for more than `limits` allow. `going` is called now and then, and ends the work by an error.
    """
    most = limits.graph_nodes - len(known or ())
    if len(graph_def.node) > most:
        what = f"The graph of a session has {len(known or ()) + len(graph_def.node)} nodes, from {{{{node %s}}}} on"
        raise errors.ResourceExhaustedError.of(beyond("graph_nodes", what % graph_def.node[max(most, 0)].name))
    nodes = _checked(nodes_from_proto(graph_def, going), known)
    going()
    inlined = inline(nodes, going)
    if inlined != nodes:  # bodies of functions are read one node at a time
        _checked(inlined, known)
    for node in inlined:
        _check_device(node)
    return Graph(nodes, inlined)


def _check_device(node: Node) -> None:
    try:
        device_spec.parse(node.device)
    except ValueError as error:
        raise _invalid(f"Node '{node.name}': {error}") from None


def _checked(nodes: list[Node], known: dict[str, Node] | None) -> list[Node]:
    """The same nodes, whose names, edges and order are right."""
    graph: MutableMapping[str, Node] = ChainMap({}, known) if known else {}
    for node in nodes:
        if not _NAME.match(node.name):
            raise _invalid(f"Illegal op name '{node.name}'")
        if known and node.name in known:
            why = "which was created by a previous call to Create or Extend in this session."
            raise _invalid(f"GraphDef argument to Extend includes node '{node.name}', {why}")
        if node.name in graph:
            raise _invalid(f"Node '{node.name}' is not unique")
        graph[node.name] = node
    for node in nodes:
        _check_edges(node, graph)
    _check_order(nodes, graph)
    return nodes


def _check_edges(node: Node, graph: Mapping[str, Node]) -> None:
    for name in node.controls:
        if name not in graph:
            raise _invalid(f"Node '{node.name}': Unknown input node '^{name}'")
    expected = op_registry.get(node.op).op_def.input_types(node.attrs)
    if len(node.inputs) != len(expected):  # of what a call became: the call and its function do not fit
        raise _invalid(f"Node '{node.name}': expected {len(expected)} inputs, but there are {len(node.inputs)}")
    for i, ((name, index), wanted) in enumerate(zip(node.inputs, expected, strict=True)):
        source = graph.get(name)
        if source is None:
            text = name if index == 0 else f"{name}:{index}"
            raise _invalid(f"Node '{node.name}': Unknown input node '{text}'")
        if index >= len(source.output_types):
            raise _invalid(
                f"Node '{node.name}': Connecting to invalid output {index} of source node {name} which has "
                f"{len(source.output_types)} outputs."
            )
        given = source.output_types[index]
        if not wanted.is_compatible_with(given):
            raise _invalid(
                f"Input {i} of node {node.name} was passed {given.name} from {name}:{index} incompatible "
                f"with expected {wanted.name}."
            )


def _check_order(nodes: Sequence[Node], graph: Mapping[str, Node]) -> None:
    """Only a NextIteration may lead back, to the Merge of its loop."""
    sources: dict[str, list[str]] = {}
    for node in nodes:
        before = [*node.controls, *(name for name, _ in node.inputs)]
        if node.op in ("Merge", "RefMerge"):
            before = [name for name in before if "NextIteration" not in graph[name].op]
        sources[node.name] = before
    try:
        graphlib.TopologicalSorter(sources).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1][1:]
        raise _invalid(f"{len(cycle)} nodes in a cycle: {', '.join(cycle[:5])}") from None

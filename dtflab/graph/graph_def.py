"""Lists of Nodes and Graphs ⇄ GraphDef.

Stands for the output half of `core/graph/graph_constructor.cc`; the input half for a client's graph is `importer.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dtflab.graph.function import Library, library_of
from dtflab.graph.node import Node
from dtflab.graph.node_def import invalid, read_nodes, write_node
from dtflab.protos.graph_pb2 import GraphDef

if TYPE_CHECKING:
    from dtflab.graph.graph import Graph

# What TensorFlow 2.21 writes into GraphDef.versions; servers refuse graphs of a future that they do not know.
GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0


# -- writing --------------------------------------------------------------------------------------------------


def nodes_to_proto(nodes: Sequence[Node], functions: Library | None = None) -> GraphDef:
    """The GraphDef of `nodes`, with the functions that they call and those of a library, if any."""
    graph_def = GraphDef()
    for node in nodes:
        write_node(node, graph_def.node.add())
    graph_def.versions.producer = GRAPH_DEF_VERSION
    library = library_of(nodes)
    if functions is not None:
        library.merge(functions)
    if len(library):
        graph_def.library.CopyFrom(library.to_proto())
    return graph_def


def graph_to_proto(graph: Graph, from_version: int = 0, add_shapes: bool = False) -> GraphDef:
    """The GraphDef of the operations made since `graph.version` was `from_version`.

    `add_shapes` notes the static shapes of the outputs in the attribute `_output_shapes`.
    """
    ops = graph.get_operations()[from_version:]
    nodes = [op.node() for op in ops]
    if add_shapes:
        for op, node in zip(ops, nodes, strict=True):
            if op.outputs:
                node.attrs["_output_shapes"] = [t.shape for t in op.outputs]
    return nodes_to_proto(nodes, graph.functions)


# -- reading --------------------------------------------------------------------------------------------------


def nodes_from_proto(graph_def: GraphDef, going: Callable[[], object] = bool) -> list[Node]:
    """The nodes of a GraphDef, in its order. InvalidArgumentError or NotFoundError names the node that is wrong.

    `going` is called before each node, and ends the work by an error.
    """
    versions = graph_def.versions
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise invalid(
            f"GraphDef min consumer version {versions.min_consumer} above current version {GRAPH_DEF_VERSION} "
            "for dtflab. The program that wrote it says that older readers must not use it."
        )
    return read_nodes(graph_def.node, Library(graph_def.library), going)

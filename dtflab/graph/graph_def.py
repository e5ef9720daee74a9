"""Node ⇄ NodeDef, lists of Nodes and Graphs ⇄ GraphDef.

Stands for `core/framework/node_def_util.cc` and the output half of `core/graph/graph_constructor.cc`; the input
half for a client's graph is `importer.py`.

Rule: what is read from a GraphDef is complete (defaults filled, output types resolved) and checked against the
op's interface; attributes that the interface does not have are kept and written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.graph import attr_value, op_registry
from dtflab.graph.dtypes import DType, dtype_text
from dtflab.graph.function_attr import bound
from dtflab.graph.node import Edge, Node
from dtflab.graph.op_registry import OpDef
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.node_def_pb2 import NodeDef

if TYPE_CHECKING:
    from dtflab.graph.function import Library
    from dtflab.graph.graph import Graph

# What TensorFlow 2.21 writes into GraphDef.versions; servers refuse graphs of a future that they do not know.
GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0


# -- writing --------------------------------------------------------------------------------------------------


def node_to_proto(node: Node) -> NodeDef:
    """The NodeDef message of `node`."""
    message = NodeDef()
    _write_node(node, message)
    return message


def _write_node(node: Node, message: NodeDef) -> None:
    message.name = node.name
    message.op = node.op
    message.device = node.device
    message.input.extend(name if index == 0 else f"{name}:{index}" for name, index in node.inputs)
    message.input.extend(f"^{name}" for name in sorted(node.controls))
    declared = op_registry.get(node.op).op_def.attrs
    for name, value in node.attrs.items():
        attr = declared.get(name)
        attr_value.write(message.attr[name], value, attr.type if attr is not None else None)


def nodes_to_proto(nodes: Sequence[Node], functions: Library | None = None) -> GraphDef:
    """The GraphDef of `nodes`, with the functions that they call and those of a library, if any."""
    from dtflab.graph.function import library_of

    graph_def = GraphDef()
    for node in nodes:
        _write_node(node, graph_def.node.add())
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


def nodes_from_proto(graph_def: GraphDef) -> list[Node]:
    """The nodes of a GraphDef, in its order. InvalidArgumentError or NotFoundError names the node that is wrong."""
    versions = graph_def.versions
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise _invalid(
            f"GraphDef min consumer version {versions.min_consumer} above current version {GRAPH_DEF_VERSION} "
            "for dtflab. The program that wrote it says that older readers must not use it."
        )
    from dtflab.graph.function import Library

    return read_nodes(graph_def.node, Library(graph_def.library))


def read_nodes(messages: Iterable[NodeDef], library: Library) -> list[Node]:
    """The nodes of a graph or of a function, whose lists of outputs are bounded together, too."""
    nodes: list[Node] = []
    outputs = 0
    for message in messages:
        node = node_from_proto(message, library)
        nodes.append(node)
        outputs += max(len(node.output_types) - 1, 0)
        if outputs > op_registry.MOST_TENSORS:
            raise _invalid(f"Number of outputs is too big: that of all nodes until {{{{node {message.name}}}}}")
    return nodes


def node_from_proto(message: NodeDef, library: Library | None = None) -> Node:
    """The Node of one NodeDef, whose functions are in `library`."""
    if library is not None and message.op in library:
        message = library.as_call(message)
    op_def = op_registry.get(message.op).op_def
    try:
        declared = op_def.attrs
        attrs = {name: attr_value.read(value, declared.get(name)) for name, value in message.attr.items()}
        attrs = op_def.with_defaults(attrs)
        if library is not None:
            attrs = {name: bound(value, library) for name, value in attrs.items()}
        outputs = op_def.output_types(attrs)
    except (ValueError, TypeError) as error:
        raise _invalid(f"{error}; NodeDef: {{{{node {message.name}}}}}; {_signature(op_def)}") from None
    inputs, controls = _read_inputs(message)
    count = sum(arg.count(attrs) for arg in op_def.inputs)
    if len(inputs) != count:
        wanted = ", ".join(map(dtype_text, op_def.input_types(attrs))) if count <= _SHOWN else f"{count} tensors"
        raise _invalid(
            f"NodeDef expected inputs '{wanted}' do not match {len(inputs)} inputs specified; {_signature(op_def)}; "
            f"NodeDef: {{{{node {message.name}}}}}"
        )
    return Node(message.name, message.op, inputs, controls, message.device, attrs, outputs)


_SHOWN = 1000  # expected inputs in an error


def _read_inputs(message: NodeDef) -> tuple[list[Edge], list[str]]:
    inputs: list[Edge] = []
    controls: list[str] = []
    for text in message.input:
        if text.startswith("^"):
            controls.append(text[1:])
        elif controls:
            raise _invalid(f"Node '{message.name}': Control dependencies must come after regular dependencies")
        else:
            name, colon, index = text.rpartition(":")
            inputs.append((name, int(index)) if colon and index.isdigit() else (text, 0))
    return inputs, controls


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError.of(message)


def _signature(op_def: OpDef) -> str:
    """`Op<name=Identity; signature=input:T -> output:T>`, as TensorFlow's messages show an op."""

    def side(args: Iterable[Any]) -> str:
        return ", ".join(f"{a.name}:{_type_text(a)}" for a in args)

    return f"Op<name={op_def.name}; signature={side(op_def.inputs)} -> {side(op_def.outputs)}>"


def _type_text(arg: Any) -> str:
    name = arg.type_list_attr or arg.type_attr or (arg.type.name if isinstance(arg.type, DType) else "?")
    text = f"{arg.number_attr}*{name}" if arg.number_attr else name
    return f"Ref({text})" if arg.is_ref else text

"""tf.graph_util: cutting a GraphDef down to what a result needs, and freezing its variables.

Stands for `python/framework/graph_util_impl.py` and the session half of `convert_to_constants.py`.
Left out: graphs with functions, which stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.importer import import_graph_def
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_proto import make_tensor_proto
from dtflab.graph.tensor_shape import TensorShape
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.node_def_pb2 import NodeDef
from dtflab.runtime.session import BaseSession

__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "import_graph_def", "must_run_on_cpu",
    "remove_training_nodes", "tensor_shape_from_node_def_name",
]  # fmt: skip

_VARIABLE_OPS = (
    "Assign", "AssignAdd", "AssignSub", "Queue", "ScatterAdd", "ScatterSub", "ScatterUpdate", "TruncatedNormal",
    "Variable", "VariableV2",
)  # fmt: skip


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """True for an operation (or NodeDef) whose kernel needs its tensors in the memory of the host."""
    node = node.node_def if isinstance(node, Operation) else node
    if pin_variables_on_cpu and node.op in _VARIABLE_OPS:
        return True
    host = {"Const": "dtype", "DynamicStitch": "T", "ParallelDynamicStitch": "T", "Cast": "SrcT"}
    if node.op not in host:
        return False
    found = node.attr[host[node.op]].type
    return bool(found == dtypes.int32 or (node.op == "Const" and found == dtypes.string))


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of a tensor; of the first output if only the operation is named."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape


def extract_sub_graph(graph_def: Any, dest_nodes: Iterable[str]) -> GraphDef:
    """The nodes that `dest_nodes` need, in their order; AssertionError for a name that is not there."""
    _check_graph_def(graph_def)
    if isinstance(dest_nodes, str):
        raise TypeError(f"dest_nodes must be an iterable of strings, but got type {type(dest_nodes)}.")
    nodes = {node.name: node for node in graph_def.node}
    todo = list(dest_nodes)
    for name in todo:
        assert name in nodes, f"{name} is not in graph"
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo += [_node_name(text) for text in nodes[name].input] + _colocated(nodes[name])
    return GraphDef(
        node=[node for node in graph_def.node if node.name in needed],
        library=graph_def.library,
        versions=graph_def.versions,
    )


def _check_graph_def(graph_def: Any) -> None:
    if not isinstance(graph_def, GraphDef):
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, but got type {type(graph_def)}.")


def _node_name(text: str) -> str:
    """The node that an input comes from."""
    return text.removeprefix("^").partition(":")[0]


def _colocated(node: Any) -> list[str]:
    """The nodes with which `node` must be colocated."""
    groups = node.attr["_class"].list.s if "_class" in node.attr else []
    return [group.decode().removeprefix("loc:@") for group in groups]


# -- nodes that only training needs -------------------------------------------------------------------------


def remove_training_nodes(input_graph: Any, protected_nodes: Sequence[str] | None = None) -> GraphDef:
    """The graph without CheckNumerics, Identity and StopGradient, but for `protected_nodes`.

    An Identity stays if something waits for it, if it waits for something, or if something stands next to it.
    """
    protected = set(protected_nodes or ())
    checks = {n.name for n in input_graph.node if n.op == "CheckNumerics" and n.name not in protected}
    kept = [_with_inputs(n, (i for i in n.input if i.removeprefix("^") not in checks))
            for n in input_graph.node if n.name not in checks]  # fmt: skip
    sources = _sources_of_spliced(kept, protected)

    def resolved(name: str) -> str:
        while name.removeprefix("^") in sources:
            name = sources[name.removeprefix("^")]
        return name

    return GraphDef(node=[_with_inputs(n, map(resolved, n.input)) for n in kept if n.name not in sources])


def _with_inputs(node: Any, inputs: Iterable[str]) -> NodeDef:
    changed = NodeDef()
    changed.CopyFrom(node)
    changed.input[:] = list(inputs)
    return changed


def _sources_of_spliced(nodes: Sequence[Any], protected: set[str]) -> dict[str, str]:
    """Nodes that hand on their input as it is and can be left out, with that input."""
    awaited = {name.removeprefix("^") for node in nodes for name in node.input if name.startswith("^")}
    stays = protected | awaited | {name for node in nodes for name in _colocated(node)}
    return {
        node.name: node.input[0]
        for node in nodes
        if node.op in ("Identity", "StopGradient") and node.name not in stays
        and not any(name.startswith("^") for name in node.input)
    }  # fmt: skip


# -- freezing -----------------------------------------------------------------------------------------------


def convert_variables_to_constants(
    sess: BaseSession,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> GraphDef:
    """The part of the graph that `output_node_names` need, with variables replaced by their values in `sess`.

    Only those of the white list, if there is one, and not those of the black list.
    """
    frozen = extract_sub_graph(input_graph_def, output_node_names)
    chosen = {
        node.name: f"{node.name}/Read/ReadVariableOp:0" if node.op == "VarHandleOp" else f"{node.name}:0"
        for node in frozen.node
        if node.op in ("Variable", "VariableV2", "VarHandleOp")
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and (variable_names_blacklist is None or node.name not in variable_names_blacklist)
    }
    values = sess.run(chosen) if chosen else {}
    nodes = {node.name: node for node in frozen.node}
    consumers = _consumers(frozen)
    for name, value in values.items():
        dtype = nodes[name].attr["dtype"].type
        _replace(nodes[name], "Const", [], dtype=dtype, value=make_tensor_proto(value, dtype, np.shape(value)))
        for consumer in _reached(name, consumers):
            _freeze_consumer(frozen, consumer, dtype)
    return frozen


def _consumers(graph_def: Any) -> dict[str, list[Any]]:
    reads = ((name, node) for node in graph_def.node for name in node.input if not name.startswith("^"))
    return grouped((_node_name(name), node) for name, node in reads)


_HANDING_ON = ("Enter", "Exit", "Identity", "NextIteration", "Switch")


def _reached(name: str, consumers: dict[str, list[Any]]) -> Iterator[Any]:
    """The nodes that a variable reaches, through those that hand it on."""
    todo, seen = [name], {name}
    while todo:
        for node in consumers.get(todo.pop(), ()):
            if node.name not in seen:
                seen.add(node.name)
                if node.op in _HANDING_ON:
                    todo.append(node.name)
                yield node


def _freeze_consumer(graph_def: GraphDef, node: Any, dtype: int) -> None:
    """Let a node take the value where it took the variable."""
    if node.op in _HANDING_ON:
        node.attr["T"].type = dtype
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"]
    elif node.op == "ReadVariableOp":
        _replace(node, "Identity", node.input[:1], T=dtype)
    elif node.op == "ResourceGatherNd":
        _replace(node, "GatherNd", node.input[:2], Tparams=dtype, Tindices=node.attr["Tindices"].type)
    elif node.op == "ResourceGather":
        if node.attr["batch_dims"].i:
            raise ValueError(f"batch_dims must be 0 to freeze, but node {node.name} has {node.attr['batch_dims'].i}.")
        axis, indices = f"{node.name}/axis", node.attr["Tindices"].type
        zero = make_tensor_proto(0, indices, ())
        _replace(graph_def.node.add(name=axis), "Const", [], dtype=indices, value=zero)
        _replace(node, "GatherV2", [*node.input[:2], axis], Tparams=dtype, Tindices=indices, Taxis=indices)


def _replace(node: Any, op: str, inputs: Sequence[str], **attrs: Any) -> None:
    """Make another node of `node`, of which only the name and where it stands next to stay."""
    inputs = list(inputs)
    changed = NodeDef(name=node.name, op=op, input=inputs)
    if op != "Const" and "_class" in node.attr:
        changed.attr["_class"].CopyFrom(node.attr["_class"])
    for name, value in attrs.items():
        if isinstance(value, int):
            changed.attr[name].type = value  # type: ignore[assignment]  # an enum field takes any number
        else:
            changed.attr[name].tensor.CopyFrom(value)
    node.CopyFrom(changed)


__getattr__ = _missing_in("tf.graph_util", globals())

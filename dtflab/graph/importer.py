"""import_graph_def: the nodes of a GraphDef become operations of the default graph.

Stands for `python/framework/importer.py` and the input half of `core/graph/graph_constructor.cc`.

Rule: everything that the GraphDef alone can get wrong is found before the first operation is made. Operations
are made in topological order, the smallest position first, so that names come out as in TensorFlow; only the
edge from a loop's NextIteration back to its Merge is added afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.base import errors
from dtflab.base.malformed import said
from dtflab.graph import graph_def as graph_defs, node_def, op_registry
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.device_spec import DeviceSpec
from dtflab.graph.dtypes import dtype_text
from dtflab.graph.function import Library
from dtflab.graph.graph import VALID_OP_NAME, Graph, infer_shapes
from dtflab.graph.loops import MERGES, topological
from dtflab.graph.node import Edge, Node, parse_edge
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import get_default_graph, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.protos.graph_pb2 import GraphDef


def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Add the nodes of `graph_def` to the default graph, their names prefixed with `name` (default "import").

    `input_map` replaces tensors (`"x:0"`) and control inputs (`"^x"`) of the GraphDef by others. Returns the
    tensors and operations that `return_elements` names. Raises ValueError for a GraphDef that does not hold
    together or lacks a name, NotFoundError for an op that does not exist.
    """
    message = _as_graph_def(graph_def)
    mapping = _checked_map(input_map)
    wanted = _checked_names(return_elements)
    if producer_op_list is not None:
        _remove_default_attrs(message, producer_op_list)
    with name_scope(name, "import", list(mapping.values())) as scope:
        mapping = _to_tensors(mapping, name)
    try:
        nodes = graph_defs.nodes_from_proto(message)
        return _Import(get_default_graph(), nodes, scope, mapping).run(message, wanted)
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None


# -- the arguments --------------------------------------------------------------------------------------------


def _as_graph_def(graph_def: Any) -> GraphDef:
    """A copy of the argument, which may be TensorFlow's own message, too."""
    if getattr(getattr(graph_def, "DESCRIPTOR", None), "name", None) != "GraphDef":
        raise TypeError("Argument `graph_def` must be a GraphDef proto.")
    return GraphDef.FromString(graph_def.SerializeToString())


def _checked_map(input_map: Any) -> dict[str, Any]:
    if input_map is None:
        return {}
    if not isinstance(input_map, dict):
        raise TypeError(f"Argument `input_map` must be a dictionary. Obtained {type(input_map).__name__}")
    if not all(isinstance(key, str | bytes) for key in input_map):
        raise TypeError(f"All keys for argument `input_map` must be strings. Obtained keys: {list(input_map)}")
    return {_text(key): value for key, value in input_map.items()}


def _checked_names(names: Any) -> list[str] | None:
    if names is None:
        return None
    if not all(isinstance(name, str | bytes) for name in names):
        raise TypeError(f"Argument `return_elements` must be a list of strings. Obtained {names}.")
    return [_text(name) for name in names]


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode()


def _to_tensors(mapping: dict[str, Any], name: str | None) -> dict[str, Any]:
    if all(isinstance(value, Tensor | Operation) for value in mapping.values()):
        return mapping
    if name == "":
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values. "
            "Try calling tf.convert_to_tensor() on `input_map` values before calling tf.import_graph_def()."
        )
    with name_scope("_inputs"):
        return {k: v if isinstance(v, Operation) else convert_to_tensor(v) for k, v in mapping.items()}


def _remove_default_attrs(message: GraphDef, producer_op_list: Any) -> None:
    """Drop attributes that dtflab does not know where the writer says that they have their default value."""
    producer = {op.name: {attr.name: attr for attr in op.attr} for op in producer_op_list.op}
    known = set(op_registry.names())
    for node in message.node:
        if node.op not in known or node.op not in producer:
            continue
        for key in list(node.attr):
            attr = producer[node.op].get(key)
            if key in op_registry.get(node.op).op_def.attrs or attr is None or not attr.HasField("default_value"):
                continue
            if node.attr[key].SerializeToString(deterministic=True) == attr.default_value.SerializeToString(
                deterministic=True
            ):
                del node.attr[key]


def _tensor_edge(name: str) -> Edge:
    """`x:1` or `x` as an edge."""
    edge = parse_edge(name)
    if ":" in edge[0]:
        raise ValueError(
            f"Cannot convert {name!r} to a tensor name. Second component of the name following the `:` should be "
            f"an int. Got {name.partition(':')[2]}."
        )
    return edge


# -- the import -----------------------------------------------------------------------------------------------


class _Import:
    """One call: nodes on one side, operations made so far on the other."""

    def __init__(self, graph: Graph, nodes: list[Node], scope: str, mapping: dict[str, Any]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.scope = scope
        self.by_name = _unique(nodes)
        self.tensors = {_tensor_edge(k): v for k, v in mapping.items() if not k.startswith("^")}
        self.controls = {k[1:]: _operation(v) for k, v in mapping.items() if k.startswith("^")}
        self.used: set[Any] = set()  # keys of the two maps that something asked for
        self.ops: dict[str, Operation] = {}
        self.names = self._unique_names()

    def run(self, message: GraphDef, wanted: list[str] | None) -> list[Any] | None:
        self._check_edges()
        order = topological(self.nodes, self.tensors)
        elements = None if wanted is None else [self._check_wanted(name) for name in wanted]
        with self.graph._lock:
            for node in order:
                try:
                    self._make(node)
                except (TypeError, LookupError, ArithmeticError, AttributeError) as error:
                    raise ValueError(f"{said(error)}; NodeDef: {{{{node {node.name}}}}}") from error
            self._close_loops()
            for op in self.ops.values():
                self.graph._enter_context(op)
                self._place(op)
        self.graph.functions.merge(Library(message.library))
        self._check_map_used()
        return None if elements is None else [self._element(e) for e in elements]

    def _unique_names(self) -> dict[str, str]:
        """The new name of each node: under the prefix, with a number where an operation or its scope has the name."""
        taken = {name[:end] for name in self.graph._ops for end in _ends(name)}
        names = {}
        for node in self.nodes:
            name, count = self.scope + node.name, 0
            while name in taken or (count and name in self.by_name):
                count += 1
                name = f"{self.scope}{node.name}_{count}"
            names[node.name] = name
        return names

    def _check_edges(self) -> None:
        for node in self.nodes:
            if not VALID_OP_NAME.match(node.name):
                raise node_def.invalid(f"Node '{node.name}': Node name contains invalid characters")
            for edge in node.inputs:
                if edge not in self.tensors:
                    self._check_edge(node, *edge)
            for name in node.controls:
                if name not in self.by_name and name not in self.controls:
                    raise node_def.invalid(f"Node '{node.name}': Unknown input node '^{name}'")
            for name in node.colocated_with():
                if name not in self.by_name:
                    raise node_def.invalid(f"Node '{node.name}' expects to be colocated with unknown node '{name}'")

    def _check_edge(self, node: Node, name: str, index: int) -> None:
        source = self.by_name.get(name)
        if source is None:
            text = name if index == 0 else f"{name}:{index}"
            raise node_def.invalid(f"Node '{node.name}': Unknown input node '{text}'")
        if index >= len(source.output_types):
            raise node_def.invalid(
                f"Node '{node.name}': Connecting to invalid output {index} of source node {name} "
                f"which has {len(source.output_types)} outputs."
            )

    def _check_wanted(self, name: str) -> str | Edge:
        if ":" not in name:
            if name not in self.by_name:
                raise ValueError(f"Requested return node '{name}' not found in graph def")
            return name
        edge = _tensor_edge(name)
        if edge in self.tensors:
            return edge
        if edge[0] not in self.by_name:
            raise ValueError(f"Requested return tensor '{name}' not found in graph def")
        count = len(self.by_name[edge[0]].output_types)
        if edge[1] >= count:
            raise ValueError(f"Invalid return output {edge[1]} of node '{edge[0]}', which has {count} output(s)")
        return edge

    def _make(self, node: Node) -> None:
        """Add the operation of `node`, whose producers exist."""
        inputs = [self._input(edge) for edge in node.inputs]
        loops = None in inputs
        if loops:  # a Merge: its back edge comes when the NextIteration exists
            first = next(t for t in inputs if t is not None)
            inputs = [first if t is None else t for t in inputs]
        self._check_types(node, inputs)
        attrs = dict(node.attrs)
        shapes = attrs.pop("_output_shapes", None)
        if "_class" in attrs:
            attrs["_class"] = [self._renamed_class(c) for c in attrs["_class"]]
        op = self.graph._import_op(op_registry.get(node.op), self.names[node.name], inputs, attrs, node.device)
        # All blocks around the import count, also where an input waits already: so does TensorFlow here.
        around = [control for block in self.graph._blocks.control_stack for control in block.ops]
        op.control_inputs = list(dict.fromkeys([*map(self._control, node.controls), *around]))
        self.ops[node.name] = op
        if loops:
            op.outputs[1]._shape = TensorShape([])
        else:
            infer_shapes(op)
        self._merge_shapes(op, shapes)

    def _input(self, edge: Edge) -> Any:
        if edge in self.tensors:
            self.used.add(edge)
            return self.tensors[edge]
        op = self.ops.get(edge[0])
        return None if op is None else op.outputs[edge[1]]

    def _control(self, name: str) -> Operation:
        if name in self.controls:
            self.used.add(name)
            return self.controls[name]
        return self.ops[name]

    def _renamed_class(self, group: bytes) -> bytes:
        if not group.startswith(b"loc:@"):
            return group
        return b"loc:@" + self.names[group[5:].decode()].encode()

    def _check_types(self, node: Node, inputs: Sequence[Any]) -> None:
        expected = op_registry.get(node.op).op_def.input_types(node.attrs)
        for i, (tensor, wanted) in enumerate(zip(inputs, expected, strict=True)):
            if not wanted.is_compatible_with(tensor.dtype):
                raise ValueError(
                    f"Input {i} of node {self.names[node.name]} was passed {dtype_text(tensor.dtype)} from "
                    f"{tensor.name} incompatible with expected {dtype_text(wanted)}."
                )

    def _merge_shapes(self, op: Operation, shapes: Any) -> None:
        if not isinstance(shapes, list) or len(shapes) != len(op.outputs):
            return
        for i, (tensor, shape) in enumerate(zip(op.outputs, shapes, strict=True)):
            try:
                tensor.set_shape(shape)
            except ValueError as error:
                raise ValueError(
                    f"Node '{op.name}' has an _output_shapes attribute inconsistent with the GraphDef for output "
                    f"#{i}: {error}"
                ) from None

    def _close_loops(self) -> None:
        for node in self.nodes:
            if node.op in MERGES:
                for i, edge in enumerate(node.inputs):
                    tensor = self._input(edge)
                    if tensor is not None and self.ops[node.name].inputs[i] is not tensor:
                        self.ops[node.name]._update_input(i, tensor)

    def _place(self, op: Operation) -> None:
        """The device that blocks around the import give to the op, or the one of the op that it joins."""
        others = [c[5:].decode() for c in op.attrs.get("_class", ()) if c.startswith(b"loc:@")]
        others = [name for name in others if name != op.name]
        if others:
            joined = (self.graph._ops.get(name) for name in others)
            device = next((other.device for other in joined if other is not None and other.device), "")
            op.device = DeviceSpec.from_string(device).to_string()
        else:
            self.graph._blocks.devices.apply(op)

    def _check_map_used(self) -> None:
        """A key that nothing uses is an error only if the GraphDef does not have it."""
        missing = [f"{n}:{i}" for n, i in self.tensors if not self._has(n, i) and (n, i) not in self.used]
        missing += [f"^{name}" for name in self.controls if name not in self.by_name and name not in self.used]
        if missing:
            raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(missing)}]")

    def _has(self, name: str, index: int) -> bool:
        node = self.by_name.get(name)
        return node is not None and index < len(node.output_types)

    def _element(self, element: str | Edge) -> Any:
        if isinstance(element, str):
            return self.ops[element]
        self.used.add(element)
        mapped = self.tensors.get(element)
        return mapped if mapped is not None else self.ops[element[0]].outputs[element[1]]


def _operation(value: Any) -> Operation:
    return value.op if isinstance(value, Tensor) else value


def _ends(name: str) -> list[int]:
    """Where the name of an operation, and those of the scopes that it is in, end."""
    return [*(i for i, character in enumerate(name) if character == "/"), len(name)]


def _unique(nodes: list[Node]) -> dict[str, Node]:
    by_name: dict[str, Node] = {}
    for node in nodes:
        if node.name in by_name:
            raise node_def.invalid(f"Node '{node.name}' is not unique")
        by_name[node.name] = node
    return by_name

"""Functions: pieces of graph with arguments, and the libraries that they travel in.

Stands for `core/framework/function.cc` (FunctionLibraryDefinition, InstantiateFunction) and
`core/framework/graph_to_functiondef.cc`. Left out: gradients by SymbolicGradient; `resource_arg_unique_id`.

Rules: a Function never changes. Its arguments and results are `_Arg` and `_Retval` nodes, as the feeds and fetches of
a step are, so a body runs like any partition. A library keeps messages and reads a function when somebody calls it:
what a graph merely carries along may use ops that dtflab does not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph import attr_value, node_def, op_registry
from dtflab.graph.dtypes import DType
from dtflab.graph.function_attr import FunctionAttr, functions_in
from dtflab.graph.node import Edge, Node, make_node, parse_edge
from dtflab.protos.function_pb2 import FunctionDef, FunctionDefLibrary, GradientDef
from dtflab.protos.node_def_pb2 import NodeDef

NamedType = tuple[str, DType]


@dataclasses.dataclass(frozen=True, eq=False)
class Function:
    """A body of nodes; `controls` are the nodes that must have run when a call is over, also if no result needs them.

    `library` has the definition of this function and of those that it calls.
    """

    name: str
    arguments: Sequence[NamedType]
    results: Sequence[NamedType]
    nodes: Sequence[Node]
    controls: Sequence[str]
    attrs: Mapping[str, Any]
    library: Library

    @property
    def definition(self) -> FunctionDef:
        """The FunctionDef message."""
        return self.library.definition(self.name)

    def as_attr(self) -> FunctionAttr:
        """The value of an attribute of type `func` that calls this function."""
        return FunctionAttr(self.name, {}, self.library)

    def __repr__(self) -> str:
        def side(items: Sequence[NamedType]) -> str:
            return ", ".join(f"{name}: {dtype.name}" for name, dtype in items)

        return f"<function {self.name}({side(self.arguments)}) -> ({side(self.results)})>"


def make_function(
    name: str, nodes: Sequence[Node], results: Sequence[str], controls: Sequence[str], attrs: Mapping[str, Any]
) -> Function:
    """The function of a traced body, whose `_Retval` nodes are named `results` in its signature."""
    ends = sorted((n for n in nodes if n.op in ("_Arg", "_Retval")), key=lambda n: n.attrs["index"])
    arguments = [(node.name, node.output_types[0]) for node in ends if node.op == "_Arg"]
    types = [node.attrs["T"] for node in ends if node.op == "_Retval"]
    library = Library()
    for called in _functions_of(nodes):
        assert called.library is not None, called
        library.merge(called.library.closure([called.name]))
    function = Function(name, arguments, list(zip(results, types, strict=True)), nodes, controls, attrs, library)
    library.add(_definition_of(function))
    library._read[name, ""] = function
    return function


def _functions_of(nodes: Iterable[Node]) -> Iterator[FunctionAttr]:
    """The functions that attributes of these nodes name."""
    return (called for node in nodes for attr in node.attrs.values() for called in functions_in(attr))


class Library:
    """Functions by name."""

    def __init__(self, message: Any = None) -> None:
        """Empty, or with what a FunctionDefLibrary has."""
        self.was_read = message is not None  # its functions are not the program's own: `limits` hold for them
        self._definitions: dict[str, FunctionDef] = {}
        self._gradients: dict[str, str] = {}  # function → the one that computes its gradient
        self._read: dict[tuple[str, str], Function] = {}  # (name, its attributes) → the function
        if message is not None:
            for definition in message.function:
                self.add(definition)
            self._gradients.update({g.function_name: g.gradient_func for g in message.gradient})

    def __contains__(self, name: object) -> bool:
        return name in self._definitions

    def __len__(self) -> int:
        return len(self._definitions)

    def names(self) -> list[str]:
        return list(self._definitions)

    def definition(self, name: str) -> FunctionDef:
        return self._definitions[name]

    def add(self, definition: FunctionDef) -> None:
        """Take a definition; InvalidArgumentError if there is another one of that name."""
        name = definition.signature.name
        known = self._definitions.setdefault(name, definition)
        if known is not definition and _bytes(known) != _bytes(definition):
            raise errors.InvalidArgumentError.of(
                f"Cannot add function '{name}' because a different function with the same name exists."
            )

    def merge(self, other: Library) -> None:
        """Take all that `other` has."""
        for definition in other._definitions.values():
            self.add(definition)
        self.was_read |= other.was_read
        self._gradients.update(other._gradients)
        self._read.update(other._read)

    def closure(self, names: Iterable[str]) -> Library:
        """The functions of those names, and all that they call."""
        found, todo = Library(), list(names)
        found.was_read = self.was_read
        while todo:
            name = todo.pop()
            definition = self._definitions.get(name)
            if definition is None or name in found:
                continue
            found.add(definition)
            todo += _names_in(definition)
            if name in self._gradients:
                found._gradients[name] = self._gradients[name]
                todo.append(self._gradients[name])
        found._read.update({key: function for key, function in self._read.items() if key[0] in found})
        return found

    def function(self, name: str, attrs: Mapping[str, Any]) -> Function:
        """The function of that name with its placeholders for attributes filled in."""
        key = name, attr_value.summary_of_all({n: v for n, v in attrs.items() if not n.startswith("_")})
        if key not in self._read:
            self._read[key] = _Reader(self, self._definitions[name], attrs).function()
        return self._read[key]

    def to_proto(self) -> FunctionDefLibrary:
        """The FunctionDefLibrary message."""
        gradients = [GradientDef(function_name=f, gradient_func=g) for f, g in self._gradients.items()]
        return FunctionDefLibrary(function=self._definitions.values(), gradient=gradients)

    def as_call(self, message: NodeDef) -> NodeDef:
        """A node whose op is the name of a function, as TensorFlow had it once, as a call by op."""
        signature = self._definitions[message.op].signature
        call = NodeDef(name=message.name, input=message.input, device=message.device)
        call.op = "StatefulPartitionedCall" if signature.is_stateful else "PartitionedCall"
        call.attr["f"].func.name = message.op
        for name, value in message.attr.items():
            (call.attr if name.startswith("_") else call.attr["f"].func.attr)[name].CopyFrom(value)
        function = attr_value.function_from_proto(call.attr["f"].func)
        values = _attr_values(self._definitions[message.op], function.attrs)
        for attr, arguments in (("Tin", signature.input_arg), ("Tout", signature.output_arg)):
            types = [dtype for _, dtype in _flat(arguments, values)]
            attr_value.write(call.attr[attr], types, "list(type)")
        return call


def library_of(nodes: Iterable[Node]) -> Library:
    """The functions that `nodes` name, and all that these call: what must travel with them."""
    library = Library()
    for called in _functions_of(nodes):
        if called.library is not None and called.name not in library:
            library.merge(called.library.closure([called.name]))
    return library


def _bytes(definition: FunctionDef) -> bytes:
    return definition.SerializeToString(deterministic=True)


def _names_in(definition: FunctionDef) -> list[str]:
    """The names of functions, and of ops that may be functions, in a body that need not be readable."""
    names = []
    for node in definition.node_def:
        names.append(node.op)
        for value in node.attr.values():
            called = [value.func] if value.HasField("func") else list(value.list.func)
            names += [f.name for attr in called for f in functions_in(attr_value.function_from_proto(attr))]
    return names


# -- message → Function ---------------------------------------------------------------------------------------


def _attr_values(definition: FunctionDef, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The AttrValue of each attribute in a function's signature."""
    values = {}
    for attr in definition.signature.attr:
        if attr.name not in attrs and not attr.HasField("default_value"):
            raise node_def.invalid(f"Attr {attr.name} is not found from call of function {definition.signature.name}")
        values[attr.name] = type(attr.default_value)()
        if attr.name in attrs:
            attr_value.write(values[attr.name], attrs[attr.name], attr.type)
        else:
            values[attr.name].CopyFrom(attr.default_value)
    return values


def _flat(arguments: Iterable[Any], values: Mapping[str, Any]) -> list[NamedType]:
    """One entry per tensor: an argument that is a list becomes `name_0`, `name_1`, …"""
    found: list[NamedType] = []
    for arg in arguments:
        if arg.type_list_attr:
            types = list(values[arg.type_list_attr].list.type)
        else:
            one = values[arg.type_attr].type if arg.type_attr else arg.type
            try:
                types = op_registry.repeated(one, values[arg.number_attr].i) if arg.number_attr else [one]
            except ValueError as error:
                raise errors.InvalidArgumentError.of(f"{error}; argument {arg.name} of a function") from None
        single = not (arg.type_list_attr or arg.number_attr)
        found += [(arg.name if single else f"{arg.name}_{i}", DType(t)) for i, t in enumerate(types)]
    return found


class _Reader:
    """One FunctionDef with values for its attributes."""

    def __init__(self, library: Library, definition: FunctionDef, attrs: Mapping[str, Any]) -> None:
        self.library = library
        self.definition = definition
        self.values = _attr_values(definition, attrs)
        self.arguments = _flat(definition.signature.input_arg, self.values)
        self.nodes: dict[str, Node] = {}

    def function(self) -> Function:
        """The function; an error names it and the node that is wrong."""
        definition, name = self.definition, self.definition.signature.name
        results = _flat(definition.signature.output_arg, self.values)
        try:
            nodes = node_def.read_nodes(map(self._filled, definition.node_def), self.library)
            self.nodes = {node.name: node for node in nodes}
            body = [node.replace(inputs=[self._edge(edge) for edge in node.inputs]) for node in nodes]
            ends = [self._result(i, *result) for i, result in enumerate(results)]
        except errors.OpError as error:
            raise type(error).of(f"{error.message}, in function {name}") from None
        attrs = {key: attr_value.read(value) for key, value in definition.attr.items()}
        controls = list(definition.control_ret.values())
        everything = [*self._argument_nodes(), *body, *ends]
        return Function(name, self.arguments, results, everything, controls, attrs, self.library)

    def _argument_nodes(self) -> list[Node]:
        notes = self.definition.arg_attr
        return [
            make_node(name, "_Arg", T=dtype, index=i, **self._notes(notes[i].attr if i in notes else {}))
            for i, (name, dtype) in enumerate(self.arguments)
        ]

    @staticmethod
    def _notes(message: Mapping[str, Any]) -> dict[str, Any]:
        return {name: attr_value.read(value) for name, value in message.items() if name.startswith("_")}

    def _filled(self, message: NodeDef) -> NodeDef:
        """A node of the body with the values of the function's attributes in place of their names."""
        filled = NodeDef.FromString(message.SerializeToString())
        for value in filled.attr.values():
            self._fill(value)
        return filled

    def _fill(self, value: Any) -> None:
        if value.WhichOneof("value") == "placeholder":
            if value.placeholder not in self.values:
                raise node_def.invalid(f"Attr {value.placeholder} is not in the signature")
            value.CopyFrom(self.values[value.placeholder])
        elif value.WhichOneof("value") in ("func", "list"):
            for function in [value.func] if value.HasField("func") else value.list.func:
                for inner in function.attr.values():
                    self._fill(inner)

    def _edge(self, edge: Edge) -> Edge:
        """`argument` or `node:output:index` as an edge; `edge` has the last number split off."""
        text, index = edge
        name, colon, output = text.partition(":")
        if colon and name in self.nodes:
            return name, self._start(self.nodes[name], output) + index
        known = {argument for argument, _ in self.arguments}
        for argument in (text, f"{text}_{index}"):  # the second is one of a list
            if argument in known:
                return argument, 0
        raise node_def.invalid(f"input {text} is not found")

    def _start(self, node: Node, output: str) -> int:
        """The number of the first tensor of that output."""
        start = 0
        for arg in op_registry.get(node.op).op_def.outputs:
            if arg.name == output:
                return start
            start += len(arg.types(node.attrs))
        called = node.attrs.get("f")
        names = [name for name, _ in called.function.results] if isinstance(called, FunctionAttr) else []
        if output in names:  # of a call by the function's name
            return names.index(output)
        raise node_def.invalid(f"node '{node.name}' has no output {output}")

    def _result(self, index: int, name: str, dtype: DType) -> Node:
        text = self.definition.ret.get(name)
        if text is None:
            raise node_def.invalid(f"return {name} missing")
        edge = self._edge(parse_edge(text))
        taken = {*self.nodes, *(argument for argument, _ in self.arguments)}
        label = f"{name}_RetVal"
        while label in taken:
            label += "_"
        return make_node(label, "_Retval", [edge], T=dtype, index=index)


# -- Function → message ---------------------------------------------------------------------------------------


def _definition_of(function: Function) -> FunctionDef:
    definition = FunctionDef()
    signature = definition.signature
    signature.name = function.name
    for name, dtype in function.arguments:
        signature.input_arg.add(name=name, type=dtype.as_datatype_enum)
    for name, dtype in function.results:
        signature.output_arg.add(name=name, type=dtype.as_datatype_enum)
    body = {node.name: node for node in function.nodes}
    signature.is_stateful = any(_is_stateful(node) for node in function.nodes)
    signature.control_output.extend(function.controls)
    definition.control_ret.update({name: name for name in function.controls})
    for name, value in function.attrs.items():
        attr_value.write(definition.attr[name], value)
    for node in function.nodes:
        if node.op == "_Arg":
            _write_notes(definition, node)
        elif node.op == "_Retval":
            name, _ = function.results[node.attrs["index"]]
            definition.ret[name] = _text(node.inputs[0], body)
        else:
            definition.node_def.append(_body_node(node, body))
    return definition


def _write_notes(definition: FunctionDef, argument: Node) -> None:
    notes = {name: value for name, value in argument.attrs.items() if name.startswith("_")}
    for name, value in notes.items():
        attr_value.write(definition.arg_attr[argument.attrs["index"]].attr[name], value)


def _body_node(node: Node, body: Mapping[str, Node]) -> NodeDef:
    message = node_def.node_to_proto(node)
    del message.input[:]
    message.input.extend(
        [*(_text(edge, body) for edge in node.inputs), *(f"^{name}" for name in sorted(node.controls))]
    )
    return message


def _text(edge: Edge, body: Mapping[str, Node]) -> str:
    """An edge as a body has it: `argument`, or `node:output:index`."""
    node, index = body[edge[0]], edge[1]
    if node.op == "_Arg":
        return node.name
    for arg in op_registry.get(node.op).op_def.outputs:
        count = len(arg.types(node.attrs))
        if index < count:
            return f"{node.name}:{arg.name}:{index}"
        index -= count
    raise node_def.invalid(f"node '{node.name}' has no output {edge[1]}")


def _is_stateful(node: Node) -> bool:
    return node.op not in ("_Arg", "_Retval") and op_registry.get(node.op).stateful

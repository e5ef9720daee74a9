"""Node ⇄ NodeDef.

Stands for `core/framework/node_def_util.cc`.

Rule: what is read is complete (defaults filled, output types resolved) and checked against the op's interface;
attributes that the interface does not have are kept and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.base.limits import beyond, limits
from dtflab.base.malformed import MALFORMED, said
from dtflab.graph import attr_value, op_registry
from dtflab.graph.dtypes import DType, dtype_text
from dtflab.graph.function_attr import bound
from dtflab.graph.node import Edge, Node, parse_edge
from dtflab.graph.op_registry import OpDef
from dtflab.protos.node_def_pb2 import NodeDef

if TYPE_CHECKING:
    from dtflab.graph.function import Library


def node_to_proto(node: Node) -> NodeDef:
    """The NodeDef message of `node`."""
    message = NodeDef()
    write_node(node, message)
    return message


def write_node(node: Node, message: NodeDef) -> None:
    message.name = node.name
    message.op = node.op
    message.device = node.device
    message.input.extend(name if index == 0 else f"{name}:{index}" for name, index in node.inputs)
    message.input.extend(f"^{name}" for name in sorted(node.controls))
    declared = op_registry.get(node.op).op_def.attrs
    for name, value in node.attrs.items():
        attr = declared.get(name)
        attr_value.write(message.attr[name], value, attr.type if attr is not None else None)


def read_nodes(messages: Iterable[NodeDef], library: Library, going: Callable[[], object] = bool) -> list[Node]:
    """The nodes of a graph or of a function, whose lists and constants are bounded together, too.

    `going` is called before each: it raises an error once nobody waits for the nodes any more.
    """
    nodes: list[Node] = []
    outputs = listed = expanded = 0
    for message in messages:
        going()
        node = node_from_proto(message, library)
        nodes.append(node)
        outputs += max(len(node.output_types) - 1, 0)
        listed += attr_value.listed(node.attrs)
        expanded += attr_value.expanded(node.attrs, message.attr)
        if outputs > limits.list_length:
            what = f"Number of outputs is too big: that of all nodes until {{{{node {message.name}}}}}"
            raise invalid(beyond("list_length", what))
        if listed > limits.list_length:
            what = f"Lists in attributes have {listed} elements, those of all nodes until {{{{node {message.name}}}}}"
            raise invalid(beyond("list_length", what))
        if expanded > limits.expanded_bytes:
            what = f"Constants expand to {expanded} bytes, those of all nodes until {{{{node {message.name}}}}}"
            raise invalid(beyond("expanded_bytes", what))
    return nodes


def node_from_proto(message: NodeDef, library: Library | None = None) -> Node:
    """The Node of one NodeDef, whose functions are in `library`. InvalidArgumentError names a node that is wrong."""
    message, op_def = _resolved(message, library)
    try:
        declared = op_def.attrs
        attrs = {name: attr_value.read(value, declared.get(name)) for name, value in message.attr.items()}
        attrs = op_def.with_defaults(attrs)
        if library is not None:
            attrs = {name: bound(value, library) for name, value in attrs.items()}
        outputs = op_def.output_types(attrs)
        if "_class" in attrs:
            _check_class(attrs["_class"])
    except MALFORMED as error:
        raise invalid(f"{said(error)}; NodeDef: {{{{node {message.name}}}}}; {_signature(op_def)}") from error
    inputs, controls = _read_inputs(message)
    count = sum(arg.count(attrs) for arg in op_def.inputs)
    if len(inputs) != count:
        wanted = ", ".join(map(dtype_text, op_def.input_types(attrs))) if count <= _SHOWN else f"{count} tensors"
        raise invalid(
            f"NodeDef expected inputs '{wanted}' do not match {len(inputs)} inputs specified; {_signature(op_def)}; "
            f"NodeDef: {{{{node {message.name}}}}}"
        )
    return Node(message.name, message.op, inputs, controls, message.device, attrs, outputs)


def _resolved(message: NodeDef, library: Library | None) -> tuple[NodeDef, OpDef]:
    """The message, as a call if its op is the name of a function, and the interface of its op."""
    try:
        if library is not None and message.op in library:
            message = library.as_call(message)
        return message, op_registry.get(message.op).op_def
    except errors.OpError as error:
        raise type(error).of(f"{error.message}; NodeDef: {{{{node {message.name}}}}}") from None
    except MALFORMED as error:
        text = f"{said(error)}; NodeDef: {{{{node {message.name}}}}}, a call of function {message.op}"
        raise invalid(text) from error


def _check_class(groups: Any) -> None:
    """ValueError unless this is a list of names, as which all stages read it."""
    if not isinstance(groups, list) or not all(isinstance(group, bytes) for group in groups):
        raise ValueError("AttrValue '_class' is not a list of names")
    for group in groups:
        group.decode()


_SHOWN = 1000  # expected inputs in an error


def _read_inputs(message: NodeDef) -> tuple[list[Edge], list[str]]:
    inputs: list[Edge] = []
    controls: list[str] = []
    for text in message.input:
        if text.startswith("^"):
            controls.append(text[1:])
        elif controls:
            raise invalid(f"Node '{message.name}': Control dependencies must come after regular dependencies")
        else:
            inputs.append(parse_edge(text))
    return inputs, controls


def invalid(message: str) -> errors.InvalidArgumentError:
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

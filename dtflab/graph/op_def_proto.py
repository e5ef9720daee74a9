"""The interface of an op as an OpDef message, for programs that read a graph without knowing its ops.

Stands for the OpDefs that `core/framework/op.cc` registers. Left out: descriptions, and whether an op is commutative
or an aggregate, which nothing here asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtflab.graph import attr_value, op_registry
from dtflab.graph.op_registry import ArgDef, AttrDef
from dtflab.protos.op_def_pb2 import OpDef, OpList


def op_list(names: Iterable[str]) -> OpList:
    """The interfaces of the ops of these names, sorted; names of no op are left out."""
    known = set(op_registry.names())
    return OpList(op=[op_def_proto(name) for name in sorted(set(names)) if name in known])


def op_def_proto(name: str) -> OpDef:
    """The interface of an op."""
    op_class = op_registry.get(name)
    message = OpDef(
        name=name, is_stateful=op_class.stateful, allows_uninitialized_input=op_class.allows_uninitialized_input
    )
    message.input_arg.extend(map(_arg, op_class.op_def.inputs))
    message.output_arg.extend(map(_arg, op_class.op_def.outputs))
    message.attr.extend(map(_attr, op_class.op_def.attrs.values()))
    return message


def _arg(arg: ArgDef) -> Any:
    fields: dict[str, Any] = {"type_attr": arg.type_attr, "number_attr": arg.number_attr, "is_ref": arg.is_ref}
    message = OpDef.ArgDef(name=arg.name, type_list_attr=arg.type_list_attr, **fields)
    if arg.type is not None:
        message.type = arg.type.as_datatype_enum  # type: ignore[assignment]  # an enum field takes any number
    return message


def _attr(attr: AttrDef) -> Any:
    message = OpDef.AttrDef(name=attr.name, type=attr.type)
    if attr.has_default:
        attr_value.write(message.default_value, attr.default, attr.type)
    if attr.minimum is not None:
        message.has_minimum, message.minimum = True, attr.minimum
    if attr.allowed is not None:
        kind = attr.type.removeprefix("list(").removesuffix(")")
        attr_value.write(message.allowed_values, attr.allowed, f"list({kind})")
    return message

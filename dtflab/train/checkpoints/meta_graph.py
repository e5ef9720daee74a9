"""Meta graphs: a graph with its collections and its saver, as one message.

Stands for the exporting half of `python/framework/meta_graph.py`; meta_graph_import.py is the other one.
Left out: debug information.

Rule: what TensorFlow exports can be imported here, and the other way round. Collections of objects travel as messages
(graph/proto_functions.py), those of tensors and operations as names, those of plain values as they are.
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Sequence
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage

from dtflab.base import tf_logging as logging
from dtflab.files.graph_io import write_graph
from dtflab.graph import attr_value, op_registry, proto_functions
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.op_def_proto import op_def_proto, op_list
from dtflab.graph.scopes import get_default_graph, strip_scope
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.meta_graph_pb2 import MetaGraphDef

TENSORFLOW_VERSION = "2.21.0"  # whose meta graphs these are; older readers know by it what to expect

UNBOUND_INPUTS = "unbound_inputs"  # the collection of inputs that were cut off
_UNBOUND = "$unbound_inputs_"

SAVE_AND_RESTORE_OPS = (
    "SaveV2", "Save", "SaveSlice", "LegacySave", "LegacySaveSlice",
    "RestoreV2", "Restore", "RestoreSlice", "LegacyRestore", "LegacyRestoreSlice",
)  # fmt: skip


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> MetaGraphDef:
    """The graph (or `graph_def`), its collections and a saver as a MetaGraphDef; also written to `filename`.

    Args:
      filename: where to write it, as text if `as_text`.
      meta_info_def: what to say about it (tags, version).
      graph_def: instead of the one of `graph`, which is the default graph if None.
      saver_def: the saver that goes with it.
      collection_list: keys of the collections to export, all if None.
      export_scope: export this name scope only; what it needs from outside becomes an "unbound input".
      clear_devices: leave out where operations stand.
      clear_extraneous_savers: leave out the operations of all other savers.
      strip_default_attrs: leave out attributes that have their default value.
      save_debug_info: has no effect.
    """
    kwargs |= {"meta_info_def": meta_info_def, "saver_def": saver_def, "collection_list": collection_list}
    kwargs |= {"clear_devices": clear_devices, "clear_extraneous_savers": clear_extraneous_savers}
    kwargs |= {"strip_default_attrs": strip_default_attrs}
    return export_scoped_meta_graph(filename, graph_def, graph, export_scope, as_text, **kwargs)[0]


def export_scoped_meta_graph(
    filename: str | None = None,
    graph_def: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str = UNBOUND_INPUTS,
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> tuple[MetaGraphDef, dict[str, Any]]:
    """`export_meta_graph`, and the exported variables by their names inside `export_scope`."""
    graph = graph or get_default_graph()
    check_type(graph_def, "graph_def", "GraphDef")
    graph_def = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    excluded: Collection[str] = ()
    if export_scope or clear_extraneous_savers or clear_devices:
        if clear_extraneous_savers:
            excluded = _extraneous_saver_nodes(graph_def, saver_def)
        graph_def, unbound = _cut_out(graph_def, export_scope, excluded, clear_devices)
        if unbound_inputs_col_name:
            graph.clear_collection(unbound_inputs_col_name)
            for name in unbound:
                graph.add_to_collection(unbound_inputs_col_name, name)
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=export_scope)
    exported = [v for v in variables if _is_included(v.name, export_scope, excluded)]
    kwargs |= {"graph_def": graph_def, "saver_def": saver_def, "graph": graph, "export_scope": export_scope}
    kwargs |= {"clear_extraneous_savers": clear_extraneous_savers, "strip_default_attrs": strip_default_attrs}
    meta_graph_def = create_meta_graph_def(exclude_nodes=excluded, **kwargs)
    if filename:
        write_graph(meta_graph_def, os.path.dirname(filename), os.path.basename(filename), as_text=as_text)
    return meta_graph_def, {strip_scope(v.name, export_scope): v for v in exported}


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Collection[str] = (),
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> MetaGraphDef:
    """The message, of parts that are ready."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph. Received type: {type(graph)}.")
    check_type(meta_info_def, "meta_info_def", "MetaInfoDef")
    check_type(graph_def, "graph_def", "GraphDef")
    check_type(saver_def, "saver_def", "SaverDef")
    graph = graph or get_default_graph()
    message = MetaGraphDef()
    info = message.meta_info_def
    if meta_info_def is not None:
        info.CopyFrom(meta_info_def)
    info.tensorflow_version, info.tensorflow_git_version = TENSORFLOW_VERSION, "dtflab"
    message.graph_def.CopyFrom(graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def)
    if not info.stripped_op_list.op:
        info.stripped_op_list.CopyFrom(stripped_op_list_for_graph(message.graph_def))
    if strip_default_attrs:
        _strip_default_attrs(message)
    if saver_def is not None:
        message.saver_def.CopyFrom(saver_def)
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        savers = proto_functions.find(key) if clear_extraneous_savers and key == GraphKeys.SAVERS else None
        items = None if savers is None else [savers.from_proto(saver_def)]
        add_collection_def(message, key, graph, export_scope, exclude_nodes, items)
    return message


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The interfaces of the ops that a GraphDef uses, those inside its functions too."""
    functions = {function.signature.name: function for function in graph_def.library.function}
    used: set[str] = set()
    todo = [node.op for node in graph_def.node]
    while todo:
        op = todo.pop()
        if op not in used and op in functions:
            todo += [node.op for node in functions[op].node_def]
        used.add(op)
    return op_list(used - functions.keys())


def check_type(value: Any, argument: str, message: str) -> None:
    if value is not None and getattr(getattr(value, "DESCRIPTOR", None), "name", None) != message:
        raise TypeError(f"{argument} must be of type {message}. Received type: {type(value)}.")


def _is_included(name: str, export_scope: str | None, excluded: Collection[str]) -> bool:
    if name in excluded:
        return False
    return not export_scope or name.startswith((_UNBOUND, export_scope))


def _cut_out(
    graph_def: Any, export_scope: str | None, excluded: Collection[str], clear_devices: bool
) -> tuple[GraphDef, list[str]]:
    """The nodes of a scope under their names inside it, and the inputs that are not among them."""
    part = GraphDef(versions=graph_def.versions, library=graph_def.library)
    unbound: list[str] = []
    for node in graph_def.node:
        if _is_included(node.name, export_scope, excluded):
            added = part.node.add()
            added.CopyFrom(node)
            if export_scope:
                unbound += _move_out(added, export_scope)
            if clear_devices:
                added.device = ""
    return part, unbound


def _move_out(node: Any, scope: str) -> list[str]:
    """Rename a node to what it is inside `scope`; returns its inputs from outside, as they are called then."""
    unbound = []
    for i, name in enumerate(node.input):
        if name.lstrip("^").startswith(scope):
            node.input[i] = strip_scope(name, scope)
        else:
            node.input[i] = f"{'^' * name.startswith('^')}{_UNBOUND}{name.removeprefix('^')}"
            unbound.append(node.input[i])
    node.name = strip_scope(node.name, scope)
    if "_class" in node.attr:
        groups = [group.decode() for group in node.attr["_class"].list.s]
        inside = [group for group in groups if group.removeprefix("loc:@").startswith(scope)]
        node.attr["_class"].list.s[:] = [strip_scope(group, scope).encode() for group in inside]
    if node.op in ("Enter", "RefEnter"):
        node.attr["frame_name"].s = strip_scope(node.attr["frame_name"].s.decode(), scope).encode()
    return unbound


def _scope_of(name: str) -> str:
    """The scope in which a node or tensor stands, with its slash."""
    return f"{name.lstrip('^').partition(':')[0].rpartition('/')[0]}/"


def _extraneous_saver_nodes(graph_def: Any, saver_def: Any) -> set[str]:
    """The nodes in the scopes of savers other than that of `saver_def`."""
    retained = set()
    if saver_def is not None:
        retained = {_scope_of(saver_def.save_tensor_name), _scope_of(saver_def.restore_op_name)}
    scopes = {_scope_of(node.name) for node in graph_def.node if node.op in SAVE_AND_RESTORE_OPS} - retained
    return {node.name for node in graph_def.node if node.name.startswith(tuple(scopes))}


def _strip_default_attrs(message: MetaGraphDef) -> None:
    defaults: dict[str, dict[str, bytes]] = {}
    known = set(op_registry.names())
    bodies = [function.node_def for function in message.graph_def.library.function]
    for node in [*message.graph_def.node, *(node for body in bodies for node in body)]:
        if node.op not in known:
            continue
        if node.op not in defaults:
            attrs = (a for a in op_def_proto(node.op).attr if a.HasField("default_value"))
            defaults[node.op] = {a.name: a.default_value.SerializeToString(deterministic=True) for a in attrs}
        for name in list(node.attr):
            if node.attr[name].SerializeToString(deterministic=True) == defaults[node.op].get(name):
                del node.attr[name]
    message.meta_info_def.stripped_default_attrs = True


def add_default_attrs(graph_def: Any) -> None:
    """Give the nodes of a GraphDef the attributes that were left out because they have their default value."""
    known = set(op_registry.names())
    for node in graph_def.node:
        for attr in op_registry.get(node.op).op_def.attrs.values() if node.op in known else ():
            if attr.has_default and attr.name not in node.attr:
                attr_value.write(node.attr[attr.name], attr.default, attr.type)


# -- collections --------------------------------------------------------------------------------------------


def add_collection_def(
    meta_graph_def: Any,
    key: Any,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Collection[str] = (),
    override_contents: Sequence[Any] | None = None,
) -> None:
    """Add a collection to the message; one that can't travel is left out with a warning."""
    if not isinstance(key, str | bytes):
        logging.warning("Only collections with string type keys will be serialized. This key has %s", type(key))
        return
    items = (graph or get_default_graph()).get_collection(key) if override_contents is None else override_contents
    items = [item for item in items if _is_included(_name_of(item), export_scope, exclude_nodes)]
    if not items:
        return
    try:
        kind, values = _collection_values(key, items, export_scope)
        collection = meta_graph_def.collection_def[key]
        if values:  # else of no kind, as in TensorFlow
            getattr(collection, kind).value.extend(values)
    except (AttributeError, TypeError, ValueError) as error:
        logging.warning(
            "Issue encountered when serializing %s.\nType is unsupported, or the types of the items don't match "
            "field type in CollectionDef. Note this is a warning and probably safe to ignore.\n%s",
            key,
            error,
        )
        if key in meta_graph_def.collection_def:
            del meta_graph_def.collection_def[key]


def _name_of(item: Any) -> str:
    """The name that decides if an item belongs to a scope: text is a name, an item without one is in every scope."""
    return item if isinstance(item, str) else getattr(item, "name", _UNBOUND)


def _collection_values(key: Any, items: Sequence[Any], scope: str | None) -> tuple[str, list[Any]]:
    functions = proto_functions.find(key)
    if functions is not None:
        messages = [functions.to_proto(item, export_scope=scope) for item in items]
        return "bytes_list", [m.SerializeToString(deterministic=True) for m in messages if m is not None]
    kind = _kind_of(items[0])
    if kind == "node_list":
        named = [item for item in items if not scope or item.name.startswith(scope)]
        return kind, [strip_scope(item.name, scope) for item in named]
    if kind == "bytes_list":
        return kind, [item.encode() if isinstance(item, str) else item for item in items]
    return kind, list(items)


def _kind_of(item: Any) -> str:
    for kinds, field in (((str, bytes), "bytes_list"), (int, "int64_list"), (float, "float_list"),
                         (AnyMessage, "any_list")):  # fmt: skip
        if isinstance(item, kinds):
            return field
    return "node_list"

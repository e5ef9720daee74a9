"""Importing meta graphs: a message becomes operations, collections and a saver.

Stands for the importing half of `python/framework/meta_graph.py`, and `import_meta_graph` of
`python/training/saver.py`. Left out: graphs of another byte order.

Rule: collections come back as what they were: objects by the functions that are registered for their key, names as
the tensors and operations that they name, plain values as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from dtflab.base import tf_logging as logging
from dtflab.base.malformed import MALFORMED, said
from dtflab.files import gfile
from dtflab.graph import importer, proto_functions
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import get_default_graph, prepend_scope, strip_scope
from dtflab.ops.training.variable_saveables import all_saveable_objects
from dtflab.protos.meta_graph_pb2 import MetaGraphDef
from dtflab.train.checkpoints.meta_graph import UNBOUND_INPUTS, check_type, export_scoped_meta_graph
from dtflab.train.checkpoints.saver import Saver


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Add a graph and its collections to the default graph; returns its saver, None if it has no variables.

    Args:
      meta_graph_or_file: a MetaGraphDef, or a file with one, as bytes or as text.
      clear_devices: forget where operations stood.
      import_scope: name scope to put them into.
      **kwargs: `graph` to add them to instead; `input_map` replaces tensors; `restore_collections_predicate` says of
        a key whether to take it.
    """
    message = _as_meta_graph_def(meta_graph_or_file)
    try:
        return _imported(message, clear_devices, import_scope, **kwargs)
    except (ValueError, LookupError, ArithmeticError, AttributeError) as error:
        if isinstance(meta_graph_or_file, Message):
            raise
        raise ValueError(f"{said(error)}; in file {meta_graph_or_file}") from error


def _imported(message: MetaGraphDef, clear_devices: bool, import_scope: str | None, **kwargs: Any) -> Saver | None:
    """The saver of a graph that is added."""
    variables, _ = import_scoped_meta_graph_with_return_elements(
        message, clear_devices, import_scope=import_scope, **kwargs
    )
    if message.HasField("saver_def"):
        scope = import_scope
        if variables:
            name, variable = next(iter(variables.items()))
            scope = variable.name[: -len(name)]
        return Saver(saver_def=message.saver_def, name=scope)
    if all_saveable_objects(scope=import_scope):
        return Saver()
    logging.info("Saver not created because there are no variables in the graph to restore")
    return None


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = UNBOUND_INPUTS,
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
) -> dict[str, Any]:
    """Add a meta graph to `graph`; returns its global variables by their names in the file."""
    about_collections = unbound_inputs_col_name, restore_collections_predicate
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, graph, import_scope, input_map, *about_collections
    )[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = UNBOUND_INPUTS,
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Sequence[str] | None = None,
) -> tuple[dict[str, Any], list[Any] | None]:
    """`import_scoped_meta_graph`, and the tensors and operations that `return_elements` names."""
    message = _as_meta_graph_def(meta_graph_or_file)
    if unbound_inputs_col_name:
        _check_bound(message, unbound_inputs_col_name, input_map)
    graph = graph or get_default_graph()
    with graph.as_default():
        info = message.meta_info_def
        if clear_devices:
            for node in message.graph_def.node:
                node.device = ""
        scope = graph.unique_name(import_scope or "", mark_as_used=False)
        elements = importer.import_graph_def(
            message.graph_def,
            name=import_scope or scope,
            input_map=input_map,
            producer_op_list=info.stripped_op_list if info.HasField("stripped_op_list") else None,
            return_elements=return_elements,
        )
        wanted = [
            k for k in message.collection_def if k != unbound_inputs_col_name and restore_collections_predicate(k)
        ]
        _Collections(graph, scope, _variables_say_trainable(info.tensorflow_version)).add(message, wanted)
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope)
    return {strip_scope(v.name, scope): v for v in variables}, elements


def _as_meta_graph_def(meta_graph_or_file: Any) -> MetaGraphDef:
    """A copy of the argument, which may be TensorFlow's own message, too."""
    if isinstance(meta_graph_or_file, Message):
        check_type(meta_graph_or_file, "meta_graph_or_file", "MetaGraphDef")
        return MetaGraphDef.FromString(meta_graph_or_file.SerializeToString())
    return read_meta_graph_file(meta_graph_or_file)


def read_meta_graph_file(filename: str) -> MetaGraphDef:
    """The MetaGraphDef in a file, as bytes or as text; OSError if it is not there or is neither."""
    if not gfile.exists(filename):
        raise OSError(f"File does not exist. Received: {filename}.")
    with gfile.GFile(filename, "rb") as file:
        data = file.read()
    try:
        return MetaGraphDef.FromString(data)
    except DecodeError:
        pass  # then it is text
    try:
        message: MetaGraphDef = text_format.Parse(data.decode(), MetaGraphDef())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise OSError(f"Cannot parse file {filename}: {error}.") from None
    return message


def _check_bound(message: MetaGraphDef, key: str, input_map: dict[str, Any] | None) -> None:
    if key not in message.collection_def:
        return
    names = [name.decode() for name in message.collection_def[key].bytes_list.value]
    if names and sorted(names) != sorted(input_map or ()):
        raise ValueError(
            f"Graph contains unbound inputs: {','.join(names)}. Must provide these inputs through input_map."
        )


def _variables_say_trainable(version: str) -> bool:
    """Before 1.9 only the collections knew which variables are trainable."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= (1, 9)


class _Collections:
    """Puts the collections of a meta graph into a graph that has its operations, under `scope`."""

    def __init__(self, graph: Graph, scope: str, variables_say_trainable: bool) -> None:
        self.graph = graph
        self.scope = scope
        self.variables_say_trainable = variables_say_trainable
        self.variables: dict[bytes, Any] = {}  # one object for a variable that is in several collections

    def add(self, message: MetaGraphDef, keys: Iterable[str]) -> None:
        """Trainable variables first, so that old files, which don't say it otherwise, show which are."""
        for key in sorted(keys, key=lambda key: (key != GraphKeys.TRAINABLE_VARIABLES, key)):
            collection = message.collection_def[key]
            kind = collection.WhichOneof("kind")
            if kind is None:
                logging.error("Cannot identify data type for collection %s. Skipping.", key)
                continue
            for value in getattr(collection, kind).value:
                try:
                    item = self._item(key, kind, value)
                except MALFORMED as error:
                    raise ValueError(f"Collection {key!r} holds what can't be read: {said(error)}") from error
                self.graph.add_to_collection(key, item)

    def _item(self, key: str, kind: str, value: Any) -> Any:
        functions = proto_functions.find(key)
        if functions is not None and kind == "bytes_list":
            if key in GraphKeys._VARIABLE_COLLECTIONS:
                return self._variable(key, functions, value)
            return functions.from_proto(functions.proto_type.FromString(value), import_scope=self.scope)
        if kind == "node_list":
            return self.graph.as_graph_element(prepend_scope(value, self.scope))
        if kind == "bytes_list":
            return _scoped(value, self.scope)
        return int(value) if kind == "int64_list" else value

    def _variable(self, key: str, functions: proto_functions.ProtoFunctions, value: bytes) -> Any:
        if value not in self.variables:
            proto = functions.proto_type.FromString(value)
            if not self.variables_say_trainable:
                proto.trainable = key == GraphKeys.TRAINABLE_VARIABLES
            self.variables[value] = functions.from_proto(proto, import_scope=self.scope)
        return self.variables[value]


def _scoped(value: bytes, scope: str) -> Any:
    """Text may be the name of something; TensorFlow takes it for one, and gives bytes back only without a scope."""
    return prepend_scope(value.decode(), scope) if scope else value


def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Any]:
    """Copy what is in one name scope into another one; returns the copied variables."""
    from_graph, to_graph = from_graph or get_default_graph(), to_graph or get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError(
            "'from_scope' and 'to_scope' need to be different when performing copy in the same graph. "
            f"Received: from_scope: {from_scope}, to_scope: {to_scope}."
        )
    message, _ = export_scoped_meta_graph(export_scope=from_scope, graph=from_graph)
    return import_scoped_meta_graph(message, graph=to_graph, import_scope=to_scope)

"""Saved models: a directory with graphs, their variables and signatures, which others load and run.

Stands for `python/saved_model/{builder_impl,loader_impl,simple_save,main_op_impl}.py`.
Left out: the SavedModels that TensorFlow 2 writes (functions and objects), split files, debug information.

    saved_model.pb            a SavedModel: meta graphs, told apart by their tags
    variables/variables.*     one checkpoint for all of them
    assets/                   files that the graph reads, named by constants

Rule: TensorFlow loads what is written here, and what its TF1 builder writes is loaded here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import text_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from dtflab.base import tf_logging as logging
from dtflab.files import gfile
from dtflab.files.graph_io import write_graph
from dtflab.graph import dtypes
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, control_dependencies, get_collection
from dtflab.graph.static_value import constant_value
from dtflab.ops.control import functions as control
from dtflab.ops.tables import functions as lookup
from dtflab.ops.training.variable_saveables import all_saveable_objects
from dtflab.ops.variables import functions as variables
from dtflab.protos.meta_graph_pb2 import AssetFileDef, MetaGraphDef
from dtflab.protos.saved_model_pb2 import SavedModel
from dtflab.runtime.session import BaseSession
from dtflab.train.checkpoints.meta_graph import add_default_attrs
from dtflab.train.checkpoints.meta_graph_import import import_meta_graph
from dtflab.train.checkpoints.saver import Saver
from dtflab.train.checkpoints.signatures import DEFAULT_SERVING_SIGNATURE_DEF_KEY, predict_signature_def

SAVED_MODEL_SCHEMA_VERSION = 1
SAVED_MODEL_FILENAME_PB = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT = "saved_model.pbtxt"
VARIABLES_DIRECTORY = "variables"
VARIABLES_FILENAME = "variables"
ASSETS_DIRECTORY = "assets"
ASSETS_KEY = "saved_model_assets"  # collections of the graph
MAIN_OP_KEY = "saved_model_main_op"
LEGACY_INIT_OP_KEY = "legacy_init_op"
INIT_OP_SIGNATURE_KEY = "__saved_model_init_op"  # signatures that nobody may give
TRAIN_OP_SIGNATURE_KEY = "__saved_model_train_op"
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"  # usual tags

_ASSET_URL = "type.googleapis.com/tensorflow.AssetFileDef"  # the name that TensorFlow asks for


class SavedModelBuilder:
    """Writes a saved model to a directory that is new or empty.

    >>> builder = tf.saved_model.Builder(path)
    >>> builder.add_meta_graph_and_variables(sess, [tf.saved_model.SERVING], {"serving_default": signature})
    >>> builder.save()
    """

    def __init__(self, export_dir: str) -> None:
        self._export_dir = export_dir
        self._saved_model = SavedModel(saved_model_schema_version=SAVED_MODEL_SCHEMA_VERSION)
        self._has_saved_variables = False
        if gfile.exists(export_dir) and gfile.listdir(export_dir):
            raise AssertionError(
                f"Export directory {export_dir} already exists, and isn't empty. Please choose a different export "
                "directory, or delete all the contents of the specified directory."
            )
        gfile.makedirs(export_dir)

    def add_meta_graph_and_variables(
        self,
        sess: BaseSession,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Save the variables of `sess`, and the default graph as the first meta graph.

        Args:
          tags: what tells this meta graph from others.
          signature_def_map: name → SignatureDef.
          assets_collection: constants with the paths of files that belong to the model.
          main_op, legacy_init_op: run when the model is loaded, after the variables are restored.
          clear_devices: forget where operations stand.
          saver: saves the variables; a new one for all of them if None.
        """
        if self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. "
                "Please invoke `add_meta_graph()` instead."
            )
        _check_signatures(signature_def_map or {})
        self._add_collections(assets_collection, legacy_init_op if main_op is None else main_op)
        gfile.makedirs(os.path.join(self._export_dir, VARIABLES_DIRECTORY))
        saver = saver or _saver_of_everything()
        saver.save(sess, _variables_path(self._export_dir), write_meta_graph=False, write_state=False)
        self._add(saver, tags, signature_def_map, clear_devices=clear_devices, strip_default_attrs=strip_default_attrs)
        self._has_saved_variables = True

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Add the default graph as another meta graph of the variables that are saved already."""
        if not self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. "
                "Please invoke `add_meta_graph_and_variables()` first."
            )
        _check_signatures(signature_def_map or {})
        self._add_collections(assets_collection, legacy_init_op if main_op is None else main_op)
        saver = saver or _saver_of_everything()
        self._add(saver, tags, signature_def_map, clear_devices=clear_devices, strip_default_attrs=strip_default_attrs)

    def save(
        self,
        as_text: bool = False,
        experimental_image_format: bool = False,
        experimental_image_writer_options: Any = None,
    ) -> bytes:
        """Write the graphs; returns the path of the file, as bytes like TensorFlow. The last two arguments are void."""
        name = SAVED_MODEL_FILENAME_PBTXT if as_text else SAVED_MODEL_FILENAME_PB
        path = write_graph(self._saved_model, self._export_dir, name, as_text)
        logging.info("SavedModel written to: %s", path)
        return path.encode()

    def _add(self, saver: Saver, tags: Sequence[str], signatures: Mapping[str, Any] | None, **options: Any) -> None:
        message = saver.export_meta_graph(**options)
        message.meta_info_def.tags.extend(tags)
        for key, signature in (signatures or {}).items():
            message.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.append(message)

    def _add_collections(self, assets: Sequence[Tensor] | None, main_op: Operation | None) -> None:
        for name, path, tensor in _named_assets(assets or ()):
            self._copy_asset(path, name)
            asset = AssetFileDef(filename=name)
            asset.tensor_info.name = tensor.name
            add_to_collection(ASSETS_KEY, AnyMessage(type_url=_ASSET_URL, value=asset.SerializeToString()))
        if main_op is None:
            return
        if not isinstance(main_op, Operation):
            raise TypeError(f"Expected {main_op} to be an Operation but got type {type(main_op)} instead.")
        for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
            if get_collection(key):
                raise ValueError(f"Graph already contains one or more main ops under the collection {key}.")
        add_to_collection(MAIN_OP_KEY, main_op)

    def _copy_asset(self, path: str, name: str) -> None:
        folder = os.path.join(self._export_dir, ASSETS_DIRECTORY)
        gfile.makedirs(folder)
        if gfile.exists(path):
            gfile.copy(path, os.path.join(folder, name), overwrite=True)
        else:  # no error, as in TensorFlow
            logging.warning("The asset %s does not exist; the saved model goes without it.", path)


def _saver_of_everything() -> Saver:
    return Saver(all_saveable_objects(), sharded=True, allow_empty=True)


def _variables_path(export_dir: str) -> str:
    return os.path.join(export_dir, VARIABLES_DIRECTORY, VARIABLES_FILENAME)


def _check_signatures(signatures: Mapping[str, Any]) -> None:
    for signature in signatures.values():
        for info in [*signature.inputs.values(), *signature.outputs.values()]:
            missing = "" if info.dtype else "the dtype field"
            if info.WhichOneof("encoding") is None:
                missing = "one of the 'encoding' fields (e.g., name or coo_sparse)"
            if missing:
                used = f"Invalid `tensor_info`: {info}. All TensorInfo protos used in the SignatureDefs"
                raise AssertionError(f"{used} must have {missing} set.")
    for key, what in ((INIT_OP_SIGNATURE_KEY, "initialization"), (TRAIN_OP_SIGNATURE_KEY, "the train op")):
        if key in signatures:
            raise KeyError(f'SignatureDef map key "{key}" is reserved for {what}. Please use a different key.')


def _named_assets(assets: Sequence[Tensor]) -> list[tuple[str, str, Tensor]]:
    """Each asset with the name that it gets and its path; different files of one name get numbers."""
    paths: dict[str, str] = {}
    found = []
    for tensor in assets:
        path = _asset_path(tensor)
        name = base = os.path.basename(path)
        count = 0
        while paths.setdefault(name, path) != path:
            count += 1
            name = f"{base}_{count}"
        found.append((name, path, tensor))
    return found


def _asset_path(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Asset path tensor {tensor} must be a Tensor.")
    if tensor.op.type != "Const":
        raise TypeError(f"Asset path tensor {tensor} must be of type constant.Has type {tensor.op.type} instead.")
    if tensor.dtype != dtypes.string:
        raise TypeError(f"Asset path tensor {tensor}` must be of dtype string.Has type {tensor.dtype} instead.")
    value = constant_value(tensor)
    if value.size != 1:
        raise TypeError(f"Asset path tensor {tensor} must be a scalar.")
    return os.fsdecode(value.item())


# -- the short ways -----------------------------------------------------------------------------------------


def simple_save(
    session: BaseSession,
    export_dir: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Save the default graph and its variables for serving: `inputs` and `outputs` are tensors by name."""
    builder = SavedModelBuilder(export_dir)
    signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    assets = get_collection(GraphKeys.ASSET_FILEPATHS)
    builder.add_meta_graph_and_variables(
        session, [SERVING], signatures, assets, main_op=legacy_init_op, clear_devices=True
    )
    builder.save()


def main_op() -> Operation:
    """An operation that initializes everything: global and local variables, tables."""
    return control.group(
        variables.global_variables_initializer(), variables.local_variables_initializer(), lookup.tables_initializer()
    )


def main_op_with_restore(restore_op_name: Any) -> Operation:
    """`main_op`, then the operation that restores."""
    with control_dependencies([main_op()]):
        return control.group(restore_op_name)


# -- loading ------------------------------------------------------------------------------------------------


def contains_saved_model(export_dir: Any) -> bool:
    """Whether there is a saved model in a directory."""
    return any(gfile.exists(os.path.join(export_dir, n)) for n in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT))


def load(
    sess: BaseSession, tags: Sequence[str], export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Load the meta graph with exactly these tags into the graph and session of `sess`; returns the MetaGraphDef.

    Its nodes have all their attributes, also those that were left out because they have their default value.
    Raises OSError if there is no saved model, RuntimeError if none has these tags.
    """
    export_dir = os.fsdecode(export_dir)
    message = _with_tags(parse_saved_model(export_dir), tags)
    with sess.graph.as_default():
        saver = import_meta_graph(message, import_scope=import_scope, **saver_kwargs)
        if saver is not None:
            saver.restore(sess, _variables_path(export_dir))
        _run_main_op(sess, message, export_dir, import_scope)
    add_default_attrs(message.graph_def)
    return message


def parse_saved_model(export_dir: str) -> SavedModel:
    """The message in a directory; OSError if it is not there or can't be parsed."""
    for name, parse in ((SAVED_MODEL_FILENAME_PB, SavedModel.FromString), (SAVED_MODEL_FILENAME_PBTXT, _from_text)):
        path = os.path.join(export_dir, name)
        if gfile.exists(path):
            with gfile.GFile(path, "rb") as file:
                try:
                    return parse(file.read())
                except (DecodeError, text_format.ParseError) as error:
                    raise OSError(f"Cannot parse file {path}: {error}.") from None
    raise OSError(
        f"SavedModel file does not exist at: {export_dir}/{{{SAVED_MODEL_FILENAME_PBTXT}|{SAVED_MODEL_FILENAME_PB}}}"
    )


def _from_text(data: bytes) -> SavedModel:
    return text_format.Parse(data.decode(), SavedModel())


def _with_tags(saved_model: SavedModel, tags: Sequence[str]) -> MetaGraphDef:
    available = [set(message.meta_info_def.tags) for message in saved_model.meta_graphs]
    if set(tags) not in available:
        raise RuntimeError(
            f"MetaGraphDef associated with tags {str(tags).strip('[]')} could not be found in SavedModel, with "
            f"available tags '{available}'."
        )
    return saved_model.meta_graphs[available.index(set(tags))]


def _run_main_op(sess: BaseSession, message: MetaGraphDef, export_dir: str, import_scope: str | None) -> None:
    """Run what initializes the model, with the constants that name assets fed with where they are now."""
    key = next((key for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY) if key in message.collection_def), None)
    if key is None:
        return
    count = len(message.collection_def[key].node_list.value)
    if count != 1:
        raise RuntimeError(f"Expected exactly one SavedModel init op. Found {count}.")
    feeds = {}
    for packed in message.collection_def[ASSETS_KEY].any_list.value if ASSETS_KEY in message.collection_def else ():
        asset = AssetFileDef.FromString(packed.value)
        name = f"{import_scope}/{asset.tensor_info.name}" if import_scope else asset.tensor_info.name
        feeds[name] = os.path.join(export_dir, ASSETS_DIRECTORY, asset.filename)
    sess.run(get_collection(key)[-1], feeds)

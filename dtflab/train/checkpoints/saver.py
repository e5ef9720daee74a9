"""Saver: writes the variables of a session to checkpoints and takes them back.

Stands for `Saver` of `python/training/saver.py`. Left out: eager mode, restoring the object-based checkpoints of
TensorFlow 2's `tf.train.Checkpoint`, metrics.

Rule: all work is done by operations of the graph (saver_builder.py), on the tasks that hold the variables; this module
only keeps account of the checkpoints: which there are, and which are old enough to be deleted.
"""

from __future__ import annotations

import numbers
import os.path
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.base import errors, tf_logging as logging
from dtflab.files import gfile
from dtflab.graph import proto_functions
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import add_to_collection, get_collection, get_default_graph, prepend_scope, strip_scope
from dtflab.machine.clock import CURRENT
from dtflab.ops.training.variable_saveables import all_saveable_objects
from dtflab.protos.saver_pb2 import SaverDef
from dtflab.runtime.session import BaseSession
from dtflab.train import training_util
from dtflab.train.checkpoints import checkpoint_management, meta_graph
from dtflab.train.checkpoints.saver_builder import BaseSaverBuilder, BulkSaverBuilder

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder", "Saver", "collected_saver", "get_saver_or_default"]

_NAMES = ("filename_tensor_name", "save_tensor_name", "restore_op_name")


class Saver:
    """Saves and restores variables.

    >>> saver = tf.train.Saver()
    >>> path = saver.save(sess, "/tmp/train/model", global_step=step)   # /tmp/train/model-100
    >>> saver.restore(sess, tf.train.latest_checkpoint("/tmp/train"))

    Args:
      var_list: list of variables, or dict of name in the checkpoint → variable; all global ones if None.
      reshape: take back values of another shape, if they have as many elements.
      sharded: write one file per device that holds variables, each by its own task.
      max_to_keep: how many checkpoints stay; None or 0: all.
      keep_checkpoint_every_n_hours: one in that many hours stays for good.
      name: scope of the operations.
      restore_sequentially: has no effect, as in TensorFlow.
      saver_def: describes operations that are in the graph already, instead of making some.
      builder: makes the operations; a BaseSaverBuilder.
      defer_build: make the operations when `build()` is called, so that later variables are seen.
      allow_empty: a graph without variables is not an error; saving then writes a meta graph only.
      write_version: format of checkpoints: SaverDef.V2 or, as before TensorFlow 1.0, SaverDef.V1.
      pad_step_number: write step numbers with 8 digits.
      save_relative_paths: let the file `checkpoint` name paths relative to its own directory.
      filename: the prefix to save to, unless another one is fed.

    Raises:
      TypeError: `var_list` is neither list nor dict.
      ValueError: there are no variables, a name is there twice, or `defer_build` was given with a `var_list`.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. "
                "Either set defer_build=False or var_list=None."
            )
        self._var_list = var_list
        self._options: dict[str, Any] = {"reshape": reshape, "sharded": sharded, "name": name, "filename": filename}
        self._options |= {"max_to_keep": max_to_keep, "restore_sequentially": restore_sequentially}
        self._options |= {"keep_checkpoint_every_n_hours": keep_checkpoint_every_n_hours}
        self.saver_def = saver_def
        self._builder = builder
        self._is_built = False
        self._is_empty = False
        self._allow_empty = allow_empty
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._last_checkpoints: list[tuple[str, float]] = []
        self._to_be_deleted: list[tuple[str, float]] = []
        if not defer_build:
            self.build()
        if self.saver_def:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def build(self) -> None:
        """Make the operations, unless they have been made."""
        if self._is_built:
            return
        self._is_built = True
        if not self.saver_def:
            self._var_list = all_saveable_objects() if self._var_list is None else self._var_list
            if not self._var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_empty = True
                return
            self._builder = self._builder or BulkSaverBuilder(self._write_version)
            self.saver_def = self._builder.build(self._var_list, **self._options)
        elif scope := self._options["name"]:
            for field in _NAMES:
                setattr(self.saver_def, field, prepend_scope(getattr(self.saver_def, field), scope))
        self._check_saver_def()
        self._next_checkpoint_time = CURRENT.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    def _check_saver_def(self) -> None:
        if getattr(getattr(self.saver_def, "DESCRIPTOR", None), "name", "") != "SaverDef":
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {self.saver_def}")
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(self.saver_def, field):
                raise ValueError(f"saver_def must specify the {field}: {self.saver_def}")

    # -- saving and restoring

    def save(
        self,
        sess: BaseSession,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Write a checkpoint `save_path`, or `save_path-<global_step>`; returns its prefix, None if it is empty.

        Args:
          sess: the session whose variables are saved.
          save_path: prefix of the files; its directory must exist, or its parent must.
          global_step: number, or a tensor or variable that holds it.
          latest_filename: the file that lists the checkpoints of the directory, "checkpoint" by default.
          meta_graph_suffix, write_meta_graph: also write the graph to `<prefix>.meta`.
          write_state: also update `latest_filename`, and delete checkpoints that are too old.
          strip_default_attrs: leave attributes that have their default value out of the meta graph.
          save_debug_info: has no effect.
        """
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        latest_filename = "checkpoint" if latest_filename is None else latest_filename
        save_path = os.fsdecode(save_path)
        prefix = self._prefix(sess, save_path, global_step, latest_filename)
        if not isinstance(sess, BaseSession):
            raise TypeError(f"'sess' must be a Session; {sess}")
        if not self._is_empty:
            prefix = self._write(sess, save_path, prefix)
            if write_state:
                self._record(save_path, prefix, latest_filename, meta_graph_suffix)
        if write_meta_graph:
            path = checkpoint_management.meta_graph_filename(prefix, meta_graph_suffix)
            with sess.graph.as_default():
                self.export_meta_graph(path, strip_default_attrs=strip_default_attrs)
        return None if self._is_empty else prefix

    def _prefix(self, sess: BaseSession, save_path: str, global_step: Any, latest_filename: str) -> str:
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        if global_step is None:
            if os.path.basename(save_path) == latest_filename and not self._options["sharded"]:
                # The two would be one file, or a directory would hide it.
                raise ValueError(f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{save_path}'")
            return save_path
        if not isinstance(global_step, numbers.Integral):
            global_step = training_util.global_step(sess, global_step)
        return f"{save_path}-{global_step:0{8 if self._pad_step_number else 0}d}"

    def _write(self, sess: BaseSession, save_path: str, prefix: str) -> str:
        try:
            written = sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: prefix})
        except (errors.FailedPreconditionError, errors.NotFoundError):
            if not gfile.isdir(os.path.dirname(save_path) or "."):
                raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from None
            raise
        return os.fsdecode(written)

    def _record(self, save_path: str, prefix: str, latest_filename: str, meta_graph_suffix: str) -> None:
        """Record a new checkpoint, in `latest_filename` too, and delete those beyond `max_to_keep`."""
        if self.saver_def.max_to_keep:
            self._last_checkpoints = [item for item in self._last_checkpoints if item[0] != prefix]
            self._last_checkpoints.append((prefix, CURRENT.time()))
            if len(self._last_checkpoints) > self.saver_def.max_to_keep:
                self._to_be_deleted.append(self._last_checkpoints.pop(0))
        checkpoint_management.update_checkpoint_state_internal(
            os.path.dirname(save_path), prefix, self.last_checkpoints, latest_filename, self._save_relative_paths
        )
        if self._to_be_deleted:
            self._delete(*self._to_be_deleted.pop(0), meta_graph_suffix)

    def _delete(self, prefix: str, written: float, meta_graph_suffix: str) -> None:
        """Delete a checkpoint, unless it is the one that stays for these hours."""
        if written > self._next_checkpoint_time:
            self._next_checkpoint_time += self.saver_def.keep_checkpoint_every_n_hours * 3600
            return
        try:
            checkpoint_management.remove_checkpoint(prefix, self.saver_def.version, meta_graph_suffix)
        except errors.OpError as error:  # a training does not end because of an old file
            logging.warning("Ignoring: %s", error)

    def restore(self, sess: BaseSession, save_path: Any) -> None:
        """Set the variables to the values in the checkpoint `save_path`; they need not be initialized.

        Raises ValueError if there is no such checkpoint, NotFoundError if a variable is not in it,
        InvalidArgumentError if one has another shape or dtype there, DataLossError if it is damaged.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        prefix = os.fsdecode(save_path)
        if not checkpoint_management.checkpoint_exists(prefix):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {prefix}{_with_steps(prefix)}")
        logging.info("Restoring parameters from %s", prefix)
        try:
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: prefix})
        except errors.NotFoundError as error:
            raise _explained(error, "a Variable name or other graph key that is missing") from None
        except errors.InvalidArgumentError as error:
            raise _explained(error, "a mismatch between the current graph and the graph") from None

    # -- what has been saved

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that have not been deleted, oldest first."""
        return [prefix for prefix, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Set the list of checkpoints. They count as recent: `keep_checkpoint_every_n_hours` keeps them."""
        assert isinstance(last_checkpoints, list)
        self._last_checkpoints = [(prefix, np.inf) for prefix in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Set the list of checkpoints with the times when they were written, in seconds since 1970."""
        assert isinstance(last_checkpoints_with_time, list)
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Go on with the checkpoints of an earlier run, as far as they exist."""
        written = {path: checkpoint_management.get_checkpoint_mtimes([path]) for path in checkpoint_paths}
        self.set_last_checkpoints_with_time([(path, time) for path, times in written.items() for time in times])

    # -- as a message

    def as_saver_def(self) -> Any:
        """The SaverDef: names of the operations, and the options that they do not show."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaverDef with names as they are inside `export_scope`; None if the operations are not in there."""
        if export_scope is None:
            return self.saver_def
        if not all(getattr(self.saver_def, field).startswith(export_scope) for field in _NAMES):
            return None
        copy = SaverDef()
        copy.CopyFrom(self.saver_def)
        for field in _NAMES:
            setattr(copy, field, strip_scope(getattr(copy, field), export_scope))
        return copy

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """The saver that a SaverDef describes; its operations must be in the default graph, under `import_scope`."""
        return Saver(saver_def=saver_def, name=import_scope)

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The default graph, its collections and this saver as a MetaGraphDef; also written to `filename`, if given."""
        graph_def = get_default_graph().as_graph_def(add_shapes=True)
        what: dict[str, Any] = {"graph_def": graph_def, "saver_def": self.saver_def, "collection_list": collection_list}
        what |= {"clear_devices": clear_devices, "clear_extraneous_savers": clear_extraneous_savers}
        what |= {"export_scope": export_scope, "strip_default_attrs": strip_default_attrs}
        return meta_graph.export_meta_graph(filename, as_text=as_text, **what)


def _with_steps(prefix: str) -> str:
    """A line with the newest checkpoints that were saved as `prefix` with a global_step; nothing without any."""
    found = checkpoint_management.checkpoints_of(prefix)[-5:]
    if not found:
        return ""
    return (
        f"\nSaved with a global_step, its name ends in the number of that step: {', '.join(found)}. Restore one of "
        "them, or tf.train.latest_checkpoint(folder)."
    )


def _explained(error: errors.OpError, cause: str) -> errors.OpError:
    return type(error)(
        error.node_def,
        error.op,
        f"Restoring from checkpoint failed. This is most likely due to {cause} from the checkpoint. Please ensure "
        f"that you have not altered the graph expected based on the checkpoint. Original error:\n\n{error.message}",
    )


def collected_saver() -> Saver | None:
    """The saver in the collection of savers, or None. RuntimeError if there are several."""
    savers = get_collection(GraphKeys.SAVERS)
    if len(savers) > 1:
        raise RuntimeError(
            f"More than one item in collection {GraphKeys.SAVERS}. "
            "Please indicate which one to use by passing it to the constructor."
        )
    return savers[0] if savers else None


def get_saver_or_default() -> Saver:
    """The saver in the collection of savers, or a new one there that saves everything, sharded.

    RuntimeError if there are several.
    """
    saver = collected_saver()
    if saver is None:
        saver = Saver(sharded=True, allow_empty=True)
        add_to_collection(GraphKeys.SAVERS, saver)
    return saver


proto_functions.register(GraphKeys.SAVERS, SaverDef, Saver.to_proto, Saver.from_proto)

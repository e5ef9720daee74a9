"""Looking into checkpoints, and initializing variables from them.

Stands for `python/training/checkpoint_utils.py` and `py_checkpoint_reader.py`. Left out: object-based checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import tf_logging as logging
from dtflab.files import gfile
from dtflab.files.checkpoint_reader import CheckpointReader
from dtflab.graph.scopes import device
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.training.variable_saveables import saveables_of
from dtflab.ops.variables.get_variable import _get_default_variable_store
from dtflab.ops.variables.variable import Variable
from dtflab.train.checkpoints import checkpoint_management
from dtflab.train.checkpoints.saver_builder import restore_v2

# TensorFlow's module of this name has them, too.
checkpoints_iterator = checkpoint_management.checkpoints_iterator
wait_for_new_checkpoint = checkpoint_management.wait_for_new_checkpoint


def NewCheckpointReader(filepattern: Any) -> CheckpointReader:
    """A reader of the checkpoint with this prefix. NotFoundError if there is none, DataLossError if it is damaged."""
    return CheckpointReader(os.fsdecode(filepattern))


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one in a directory; ValueError if there is none there."""
    prefix = _prefix(ckpt_dir_or_file)
    if prefix is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {ckpt_dir_or_file}")
    return NewCheckpointReader(prefix)


def load_variable(ckpt_dir_or_file: Any, name: str) -> np.ndarray[Any, Any]:
    """The value of a variable in a checkpoint."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Names and shapes of the variables in a checkpoint, sorted."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def _prefix(ckpt_dir_or_file: Any) -> str | None:
    path = os.fsdecode(ckpt_dir_or_file)
    return checkpoint_management.latest_checkpoint(path) if gfile.isdir(path) else path


# -- initializing from a checkpoint -------------------------------------------------------------------------


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """Let the initializers of variables read a checkpoint, from now on.

    Args:
      ckpt_dir_or_file: the prefix of a checkpoint, or a directory, whose latest one is taken.
      assignment_map: dict or pairs: name in the checkpoint → variable, list of the parts of one, or name of one;
        or scope in the checkpoint (`"model/"`, `"/"` for all) → scope of variables here.

    Raises ValueError if a name is not in the checkpoint, or the shapes differ.
    """
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    pairs = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    assignment = _Assignment(_prefix(ckpt_dir_or_file), ckpt_dir_or_file, shapes)
    for saved_name, target in sorted(pairs, key=lambda pair: pair[0]):
        if (variable := _find(target)) is not None:
            assignment.one(saved_name, variable)
        else:
            assignment.scope(saved_name, target)


def _store() -> dict[str, Any]:
    """The variables that `get_variable` made in the default graph, by name."""
    return _get_default_variable_store()._vars


def _find(target: Any) -> Any:
    """The variable, or the list of the parts of one, that `target` is or names; None if it names neither."""
    if isinstance(target, Variable):
        return target
    if isinstance(target, list) and all(isinstance(part, Variable) for part in target):
        return target
    store = _store()
    return store.get(target) or _parts(store, target)


def _parts(store: dict[str, Any], name: str) -> list[Any] | None:
    parts: list[Any] = []
    while (part := store.get(f"{name}/part_{len(parts)}")) is not None:
        parts.append(part)
    return parts or None


class _Assignment(NamedTuple):
    """Variables are set to read from one checkpoint."""

    prefix: str | None
    source: Any  # as the program gave it
    shapes: dict[str, list[int]]

    def one(self, saved_name: str, variable: Any) -> None:
        if saved_name not in self.shapes:
            raise ValueError(f"Tensor {saved_name} is not found in {self.source} checkpoint {self.shapes}")
        if isinstance(variable, Variable) and not variable.shape.is_compatible_with(self.shapes[saved_name]):
            raise ValueError(
                f"Shape of variable {variable.name} ({variable.shape}) doesn't match with shape of tensor {saved_name} "
                f"({self.shapes[saved_name]}) from checkpoint reader."
            )
        self._initialize(variable, saved_name)

    def scope(self, saved_scope: str, target: str) -> None:
        """Every variable under the scope `target` from the like-named one under `saved_scope`."""
        scope = target.rpartition("/")[0]
        if not saved_scope.endswith("/"):
            raise ValueError(
                f"Assignment map with scope only name {scope} should map to scope only {saved_scope}. "
                "Should be 'scope/': 'other_scope/'."
            )
        store = _store()
        inside = {name.partition("/part_")[0] for name in store if not scope or name.startswith(f"{scope}/")}
        for name in sorted(inside):
            rest = name[len(scope) + (target != "/") :]
            saved_name = (rest if saved_scope == "/" else saved_scope + rest).removesuffix("/")
            if saved_name not in self.shapes:
                raise ValueError(
                    f"Tensor {saved_name} ({name[len(scope) + 1 :]} in {saved_scope}) is not found in {self.source} "
                    "checkpoint"
                )
            self._initialize(store.get(name) or _parts(store, name), saved_name)

    def _initialize(self, variable: Any, saved_name: str) -> None:
        if isinstance(variable, list):
            names = {part._save_slice_info.full_name for part in variable}
            if len(names) > 1:
                raise ValueError(f"Slices must all be from the same tensor: {' != '.join(sorted(names))}")
            for part in variable:
                self._initialize_one(part, saved_name, part._save_slice_info.spec)
        else:
            self._initialize_one(variable, saved_name, "")

    def _initialize_one(self, variable: Any, saved_name: str, slice_spec: str) -> None:
        """Put a read of the checkpoint in the place of the variable's initial value."""
        with device(variable.device), device("/cpu:0"):
            value = restore_v2(
                self.prefix, [saved_name], [slice_spec], [variable.dtype.base_dtype], name="checkpoint_initializer"
            )[0]
            (saveable,) = saveables_of([variable])
        variable.initializer = saveable.restore([value], None)
        value.set_shape(TensorShape(variable.shape))
        variable.initial_value = value
        logging.debug("Initialize variable %s from checkpoint %s with %s", variable.name, self.source, saved_name)

"""The operations of a saver: what they are and where they stand.

Stands for `BaseSaverBuilder` and `BulkSaverBuilder` of `python/training/saver.py`.

A saver of one shard is one SaveV2, one RestoreV2, and an Assign per variable. A sharded one has them per device that
holds variables: each task saves its own, into `<prefix>_temp/part-0000i-of-0000n`, and the last one merges all.

Rule: node for node TensorFlow's. A program may subclass BaseSaverBuilder to save in another way.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.device_spec import canonical_name
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, device, get_default_graph, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.functions import group, with_dependencies
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.saveable import SaveableObject, SaveSpec
from dtflab.ops.text import functions as strings
from dtflab.ops.training.variable_saveables import (
    ReferenceVariableSaveable,
    ResourceVariableSaveable,
    saveables_of,
    set_cpu0,
)
from dtflab.ops.variables.partitioned_variables import PartitionedVariable
from dtflab.protos.saver_pb2 import SaverDef

Saveable = SaveableObject  # its name outside of the class that has it as an attribute
PerDevice = list[tuple[str, list[Saveable]]]


class BaseSaverBuilder:
    """Builds the operations of a saver, one RestoreV2 per saveable; subclasses may do it otherwise."""

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject
    VariableSaveable = ReferenceVariableSaveable
    ResourceVariableSaveable = ResourceVariableSaveable

    def __init__(self, write_version: Any = SaverDef.V2) -> None:
        self._write_version = write_version

    # What a subclass may override.

    def save_op(self, filename_tensor: Tensor, saveables: Sequence[Saveable]) -> Operation:
        """The operation that saves `saveables` under the prefix `filename_tensor`."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names, values, slices = zip(*((spec.name, spec.tensor, spec.slice_spec) for spec in specs), strict=True)
        if self._write_version == SaverDef.V2:
            return apply_op(
                "SaveV2", prefix=filename_tensor, tensor_names=names, shape_and_slices=slices, tensors=values
            )
        if self._write_version == SaverDef.V1:
            return _save_v1(filename_tensor, names, values, slices)
        raise RuntimeError(f"Unexpected write_version: {self._write_version}")

    def bulk_restore(
        self, filename_tensor: Tensor, saveables: Sequence[Saveable], preferred_shard: int, restore_sequentially: Any
    ) -> list[Tensor]:
        """The tensors read for all `saveables`, in their order."""
        tensors: list[Tensor] = []
        for saveable in saveables:
            with device(set_cpu0(saveable.device) if saveable.device else None):
                tensors += self.restore_op(filename_tensor, saveable, preferred_shard)
        return tensors

    def restore_op(self, filename_tensor: Tensor, saveable: Saveable, preferred_shard: int) -> list[Tensor]:
        """The tensors read for one saveable."""
        return [restore_v2(filename_tensor, [spec.name], [spec.slice_spec], [spec.dtype])[0] for spec in saveable.specs]

    def sharded_filename(self, filename_tensor: Tensor, shard: int, num_shards: Tensor) -> Tensor:
        """The prefix of one shard."""
        return apply_op("ShardedFilename", basename=filename_tensor, shard=shard, num_shards=num_shards)

    # The whole.

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str = "model",
    ) -> SaverDef:
        """Add the operations to the graph; the SaverDef names them.

        `restore_sequentially` changes nothing, as in TensorFlow: one operation reads all.
        """
        saveables = saveables_of(names_to_saveables)
        with name_scope(name, "save", [saveable.op for saveable in saveables]):
            file = arrays.placeholder_with_default(filename or "model", shape=(), name="filename")
            file = arrays.placeholder_with_default(file, shape=(), name="Const")
            if sharded:
                per_device = _group_by_devices(saveables)
                save = self._add_sharded_save_ops(file, per_device)
                restore = self._add_sharded_restore_ops(file, per_device, restore_sequentially, reshape)
            else:
                save = self._add_save_ops(file, saveables)
                restore = self._add_restore_ops(file, saveables, restore_sequentially, reshape)
        _finish_partitioned_variables()
        return SaverDef(
            filename_tensor_name=file.name,
            save_tensor_name=save.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )

    def _add_save_ops(self, filename_tensor: Tensor, saveables: Sequence[Saveable]) -> Tensor:
        return with_dependencies([self.save_op(filename_tensor, saveables)], filename_tensor)

    def _add_sharded_save_ops(self, prefix: Tensor, per_device: PerDevice) -> Tensor:
        if self._write_version != SaverDef.V2:
            return self._add_sharded_v1_save_ops(prefix, per_device)
        with device("CPU"):
            suffix = indexing.where(
                strings.regex_full_match(prefix, "^s3://.*"),
                constant(".part"),
                constant(os.path.normpath("_temp/part")),
            )
            temporary = strings.string_join([prefix, suffix])
        num_shards = constant(len(per_device), name="num_shards")
        prefixes, saves = [], []
        for shard, (where, saveables) in enumerate(per_device):
            with device(set_cpu0(where)):
                prefixes.append(self.sharded_filename(temporary, shard, num_shards))
                saves.append(self._add_save_ops(prefixes[-1], saveables))
        with control_dependencies([save.op for save in saves]), device(set_cpu0(per_device[-1][0])):
            merge = apply_op(
                "MergeV2Checkpoints", checkpoint_prefixes=prefixes, destination_prefix=prefix, delete_old_dirs=True
            )
            with control_dependencies([merge]):
                whole: Tensor = arrays.identity(prefix)
        return whole

    def _add_sharded_v1_save_ops(self, filename_tensor: Tensor, per_device: PerDevice) -> Tensor:
        num_shards = constant(len(per_device), name="num_shards")
        saves = []
        for shard, (where, saveables) in enumerate(per_device):
            with device(where):
                saves.append(self._add_save_ops(self.sharded_filename(filename_tensor, shard, num_shards), saveables))
        with control_dependencies([save.op for save in saves]):
            return apply_op("ShardedFilespec", basename=filename_tensor, num_shards=num_shards)

    def _add_restore_ops(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[Saveable],
        restore_sequentially: bool,
        reshape: bool,
        preferred_shard: int = -1,
        name: str = "restore_all",
    ) -> Operation:
        tensors = iter(self.bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially))
        restored = []
        for saveable in saveables:
            shapes = [_shape_to_restore(spec.tensor) for spec in saveable.specs] if reshape else None
            restored.append(saveable.restore([next(tensors) for _ in saveable.specs], shapes))
        return group(*restored, name=name)

    def _add_sharded_restore_ops(
        self, filename_tensor: Tensor, per_device: PerDevice, restore_sequentially: bool, reshape: bool
    ) -> Operation:
        restores = []
        for shard, (where, saveables) in enumerate(per_device):
            with device(where):
                restores.append(
                    self._add_restore_ops(
                        filename_tensor, saveables, restore_sequentially, reshape, shard, name="restore_shard"
                    )
                )
        return group(*restores, name="restore_all")


class BulkSaverBuilder(BaseSaverBuilder):
    """The usual builder: one RestoreV2 reads everything."""

    def bulk_restore(
        self, filename_tensor: Tensor, saveables: Sequence[Saveable], preferred_shard: int, restore_sequentially: Any
    ) -> list[Tensor]:
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names, slices, dtypes = ([getattr(s, what) for s in specs] for what in ("name", "slice_spec", "dtype"))
        with device("cpu:0"):
            return restore_v2(filename_tensor, names, slices, dtypes)


def restore_v2(
    prefix: Any, tensor_names: Sequence[str], shape_and_slices: Sequence[str], dtypes: Sequence[Any], name: Any = None
) -> list[Tensor]:
    """The tensors that a checkpoint has under `tensor_names`, or slices of them."""
    return apply_op(
        "RestoreV2", name, prefix=prefix, tensor_names=tensor_names, shape_and_slices=shape_and_slices, dtypes=dtypes
    )


def _save_v1(filename: Tensor, names: Sequence[str], tensors: Sequence[Any], slices: Sequence[str]) -> Operation:
    """Write a checkpoint in the format before TensorFlow 1.0."""
    return apply_op("SaveSlices", "save", filename=filename, tensor_names=names, shapes_and_slices=slices, data=tensors)


def _shape_to_restore(variable: Any) -> Any:
    shape = variable.get_shape()
    return shape if shape.is_fully_defined() else arrays.shape(variable)


def _group_by_devices(saveables: Sequence[Saveable]) -> PerDevice:
    per_device: dict[str, list[Saveable]] = {}
    for saveable in saveables:
        devices = {canonical_name(spec.device) for spec in saveable.specs}
        if len(devices) != 1:
            raise ValueError(f"All tensors of a saveable object must be on the same device: {saveable.name}")
        per_device.setdefault(devices.pop(), []).append(saveable)
    return sorted(per_device.items(), key=lambda item: item[0])


def _finish_partitioned_variables() -> None:
    """Join the parts of each partitioned variable now: a meta graph needs the tensor, and after this none is made."""
    graph = get_default_graph()
    for key in graph.get_all_collection_keys():
        for item in graph.get_collection(key):
            if isinstance(item, PartitionedVariable) and item.name not in graph._ops:
                item.as_tensor()

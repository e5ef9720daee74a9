"""Checkpoints of TensorFlow before 1.0 (V1): tables that hold the tensors themselves.

Stands for `core/util/{tensor_slice_writer,tensor_slice_reader,saved_tensor_slice_util}.cc`. Left out: caches of
readers, a preferred shard.

A file is one table: under the empty key the list of its tensors, then a SavedTensorSlices with the elements of each
slice. A sharded checkpoint is several such files, which are named together by a pattern.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.closing import Closing
from dtflab.files.atomic import make_parent, replacing
from dtflab.files.bundle_writer import as_array
from dtflab.files.env import DEFAULT, Env
from dtflab.files.paths import intact, local, reported
from dtflab.files.table import Table, write_table
from dtflab.files.tensor_slice import SavedTensor, TensorSlice, assemble
from dtflab.graph import dtypes
from dtflab.graph.tensor_proto import list_values, listed_values
from dtflab.graph.tensor_shape import TensorShape
from dtflab.protos.saved_tensor_slice_pb2 import SavedSliceMeta, SavedTensorSlices

Array = np.ndarray[Any, Any]
Part = tuple[str, tuple[int, ...], TensorSlice, Any]  # name, shape of the whole, which slice, its value

_lost = errors.DataLossError.of
META_KEY = b""
VERSION = 1
_INTEGERS = {dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16}
_FLOATS = {dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128}
_DTYPES = _INTEGERS | _FLOATS | {dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.bool, dtypes.string}


def write_v1(path: str, parts: Sequence[Part], env: Env = DEFAULT) -> None:
    """Write a checkpoint of one file. Raises UnimplementedError for dtypes that the format does not have."""
    path = env.prefix(path)
    make_parent(path)
    everything = SavedTensorSlices()
    everything.meta.versions.producer = VERSION
    records: dict[bytes, bytes] = {}
    metas: dict[str, Any] = {}
    for name, shape, block, value in parts:
        array = as_array(value)
        if name not in metas:
            metas[name] = everything.meta.tensor.add()
        _note(metas[name], name, shape, block, array)
        records[block.key(name)] = _record(name, block, array).SerializeToString()
    records[META_KEY] = everything.SerializeToString()
    with replacing(path) as file:
        write_table(file, sorted(records.items()))


def _note(meta: Any, name: str, shape: tuple[int, ...], block: TensorSlice, array: Array) -> None:
    """Add a slice of a tensor, which must agree with the earlier ones."""
    dtype = dtypes.as_dtype(array.dtype)
    if dtype not in _DTYPES:
        hint = "the V2 format has it (write_version=V2)"
        raise errors.UnimplementedError.of(f"Saving data type {dtype.name} not yet supported; {hint}")
    described = SavedSliceMeta(name=name)
    described.shape.CopyFrom(TensorShape(shape).as_proto())
    described.type = dtype.as_datatype_enum  # type: ignore[assignment]  # an enum field takes any number
    if meta.name and (meta.shape, meta.type) != (described.shape, described.type):
        what = f"{name}: {list(shape)} {dtype.name}"
        raise errors.InternalError.of(f"Mismatching shapes or types of the slices of {what}")
    described.slice.extend([*meta.slice, block.to_proto()])
    meta.CopyFrom(described)


def _record(name: str, block: TensorSlice, array: Array) -> Any:
    record = SavedTensorSlices()
    record.data.name = name
    record.data.slice.CopyFrom(block.to_proto())
    record.data.data.SetInParent()
    list_values(record.data.data, array, dtypes.as_dtype(array.dtype))
    return record


class V1Reader(Closing):
    """Reads the files of `env` that a pattern names; a context manager."""

    def __init__(self, file_pattern: str, env: Env = DEFAULT) -> None:
        self.file_pattern = file_pattern
        self._stack = contextlib.ExitStack()
        self._tensors: dict[str, SavedTensor] = {}
        self._tables: list[Table] = []
        paths = env.glob([local(file_pattern)])
        if not paths:
            raise errors.NotFoundError.of(
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {file_pattern}"
            )
        with contextlib.ExitStack() as stack:
            for path in paths:
                self._add(path, _open_table(path, env, stack))
            self._stack = stack.pop_all()

    def _add(self, path: str, table: Table) -> None:
        with intact(path):
            record = _parsed(table.get(META_KEY), path)
            for meta in record.meta.tensor:
                found = SavedTensor.from_protos(meta.type, meta.shape, meta.slice)
                known = self._tensors.setdefault(meta.name, found)
                if known is not found:
                    known.slices.extend(found.slices)
        self._tables.append(table)

    def close(self) -> None:
        self._stack.close()

    def tensors(self) -> Iterator[tuple[str, SavedTensor]]:
        """The names of the tensors, sorted, with their descriptions."""
        yield from sorted(self._tensors.items())

    def find(self, name: str) -> SavedTensor | None:
        """The description of the tensor of that name, or None."""
        return self._tensors.get(name)

    def read(self, name: str) -> Array:
        """The value of a tensor, its slices put together."""
        return self.read_slice(name, TensorSlice.full(len(self._tensors[name].shape)))

    def read_slice(self, name: str, block: TensorSlice) -> Array:
        """A block of a tensor, which may have been saved in other blocks."""
        saved = self._tensors[name]
        with intact(self.file_pattern):
            return assemble(name, saved, block, lambda part: self._read(name, saved, part))

    def _read(self, name: str, saved: SavedTensor, block: TensorSlice) -> Array:
        found = (table.get(block.key(name)) for table in self._tables)
        record = _parsed(next((value for value in found if value is not None), None), self.file_pattern)
        values = listed_values(record.data.data, saved.dtype)
        shape = block.shape_in(saved.shape)
        if values.size != (size := math.prod(shape)):
            raise _lost(f"{self.file_pattern}: {values.size} elements of {name}, but shape {list(shape)} needs {size}")
        return values.reshape(shape)


def _open_table(path: str, env: Env, stack: contextlib.ExitStack) -> Table:
    path = env.path(path)  # else an error of its own, that it may not be opened
    try:
        with intact(path), reported(path):
            return Table(stack.enter_context(env.open(path)))
    except errors.OpError as error:
        raise _lost(
            f"Unable to open table file {path}: {error.message}: perhaps your file is in a different file format and "
            "you need to use a different restore operator?"
        ) from None


def _parsed(data: bytes | None, path: str) -> Any:
    try:
        if data is not None:
            return SavedTensorSlices.FromString(data)
    except DecodeError:
        pass  # said below
    raise _lost(f"Failed to find the saved tensor slices at the beginning of the checkpoint file: {path}")

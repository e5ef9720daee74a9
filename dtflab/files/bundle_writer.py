"""Writing tensor bundles: a checkpoint of one shard, and one made of several.

Stands for `BundleWriter` and `MergeBundles` of `core/util/tensor_bundle/tensor_bundle.cc`; bundle.py says what a bundle
is. A sharded save writes a bundle per task, and `merge_bundles` makes one of them without touching the data.

Rules: the files are byte for byte TensorFlow's, and an index is created after all files that it lists. If a writer that
replaces a checkpoint is killed at any moment, the old or the new one remains, complete:

1. the new files are written under temporary names;
2. the new data files take side names, which contain a hash of the new index (`side_mark`);
3. the new index replaces the old one: from now on the new checkpoint is valid;
4. the data files take their own names, in place of the old ones.

A reader prefers a data file under the side name of its index. So before 3 it finds the old data, after 3 the new.
(TensorFlow's reader does not: killed between 3 and 4, or at that place in its own writer, it finds two halves.) The
folder is locked from 2 to 4, so that two writers take turns.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.base.varint import put_varint
from dtflab.files.atomic import held, make_parent, new_file, remove_leftovers_in
from dtflab.files.bundle import HEADER_KEY, VERSION, Array, BundleReader, data_path, index_path, side_mark
from dtflab.files.crc import crc32c, mask
from dtflab.files.env import DEFAULT, Env
from dtflab.files.paths import reported
from dtflab.files.table import write_table
from dtflab.files.tensor_slice import TensorSlice
from dtflab.graph import dtypes
from dtflab.graph.tensor_shape import TensorShape
from dtflab.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

_invalid = errors.InvalidArgumentError.of


class BundleWriter:
    """Writes a checkpoint of one shard among the files of `env`; a context manager.

    It finishes the checkpoint at its end unless there was an error.

    >>> with BundleWriter("/tmp/model") as writer:
    ...     writer.add("weights", array)
    """

    def __init__(self, prefix: str, env: Env = DEFAULT) -> None:
        self._prefix = env.prefix(prefix)
        self._entries: dict[bytes, BundleEntryProto] = {}
        self._offset = 0

    def __enter__(self) -> BundleWriter:
        make_parent(self._prefix)
        with contextlib.ExitStack() as stack:
            stack.callback(_remove_empty_temp, os.path.dirname(self._prefix))
            self._file = stack.enter_context(new_file(data_path(self._prefix, 0, 1)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None:
            self._stack.__exit__(*error)  # which reports an error of the file system as TensorFlow's
            return
        with self._stack:
            self._file.close()
            _publish(self._prefix, [self._file.name], self._entries)

    def add(self, name: str, value: Any) -> None:
        """Add a whole tensor."""
        if not name:
            raise _invalid("A tensor without a name can't be saved.")
        self._add(name.encode(), value)

    def add_slice(self, name: str, shape: Sequence[int], block: TensorSlice, value: Any) -> None:
        """Add a block of a tensor of `shape`."""
        if block.is_full(shape):
            self.add(name, value)
            return
        array = as_array(value)
        whole = self._entries.setdefault(name.encode(), BundleEntryProto())
        whole.dtype = dtypes.as_dtype(array.dtype).as_datatype_enum  # type: ignore[assignment]  # any number
        whole.shape.CopyFrom(TensorShape(shape).as_proto())
        whole.slices.append(block.to_proto())
        self._add(block.key(name), array)

    def _add(self, key: bytes, value: Any) -> None:
        array = as_array(value)
        if key in self._entries:
            raise _invalid(f"Adding duplicate key: {key.decode(errors='replace')}")
        entry = self._entries[key] = BundleEntryProto(offset=self._offset)
        entry.dtype = dtypes.as_dtype(array.dtype).as_datatype_enum  # type: ignore[assignment]
        entry.shape.CopyFrom(TensorShape(array.shape).as_proto())
        pieces, crc = _string_pieces(array) if array.dtype == object else _plain_pieces(array)
        for piece in pieces:
            entry.size += self._file.write(piece)
        entry.crc32c = mask(crc)
        self._offset += entry.size


def _remove_empty_temp(folder: str) -> None:
    """Remove the folder of a sharded save's parts if its last writer failed, so that nothing is in it."""
    if folder.endswith("_temp"):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def as_array(value: Any) -> Array:
    """A value of the runtime as an array; text is one of objects."""
    if isinstance(value, bytes | str):
        array = np.empty((), object)
        array[()] = value
        return array
    return np.asarray(value)


def _plain_pieces(array: Array) -> tuple[list[Any], int]:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return [raw.data], crc32c(raw)  # type: ignore[arg-type]  # an array is bytes, too


def _string_pieces(array: Array) -> tuple[list[bytes], int]:
    """The lengths, a checksum of them, and the strings."""
    strings = [item.encode() if isinstance(item, str) else item for item in array.flat]
    crc = crc32c(np.array([len(s) for s in strings], "<u4").tobytes())
    checksum = mask(crc).to_bytes(4, "little")
    lengths, text = b"".join(put_varint(len(s)) for s in strings), b"".join(strings)
    return [lengths, checksum, text], crc32c(text, crc32c(checksum, crc))


def _publish(prefix: str, data: Sequence[str], entries: dict[bytes, BundleEntryProto]) -> None:
    """Make complete data files the checkpoint of that prefix."""
    header = BundleHeaderProto(num_shards=len(data))
    header.version.producer = VERSION
    everything: dict[bytes, Any] = {HEADER_KEY: header, **entries}
    index, shards = index_path(prefix), [data_path(prefix, shard, len(data)) for shard in range(len(data))]
    with new_file(index) as file:
        write_table(file, ((key, message.SerializeToString()) for key, message in sorted(everything.items())))
        file.close()
        moves = [*zip(data, shards, strict=True), (file.name, index)]
        with held(index) as is_locked:
            if os.path.exists(index):
                with open(file.name, "rb") as complete:
                    mark = side_mark(complete)
                sides = [shard + mark for shard in shards]
                moves = [*zip(data, sides), (file.name, index), *zip(sides, shards)]
            for old, new in moves:
                with reported(old):
                    os.replace(old, new)
            if is_locked:
                remove_leftovers_in(os.path.dirname(prefix), wanted=_belongs_to_an_index)


def _belongs_to_an_index(path: str) -> bool:
    """Whether a file has the side name that its checkpoint's index gives it: its writer was killed between 3 and 4."""
    prefix = path.rpartition(".data-")[0]
    try:
        with open(index_path(prefix), "rb") as index:
            return path.endswith(side_mark(index))
    except FileNotFoundError:
        return False


# -- merging ------------------------------------------------------------------------------------------------


def merge_bundles(
    prefixes: Iterable[str], destination: str, allow_missing_files: bool = False, env: Env = DEFAULT
) -> None:
    """Make one checkpoint of several: their data files are renamed, their indices become one."""
    destination = env.prefix(destination)
    entries: dict[bytes, BundleEntryProto] = {}
    make_parent(destination)
    data: list[str] = []
    indices: list[str] = []
    for prefix in map(env.prefix, prefixes):
        if not os.path.exists(index_path(prefix)):
            if allow_missing_files:
                continue
            raise _invalid(f"allow_missing_files was set to false and {prefix} did not exist.")
        with BundleReader(prefix, env) as reader:
            for key, entry in reader.entries():
                entry.shard_id += len(data)
                _merge_entry(entries, key, entry, prefix)
            data += map(reader.data_file, range(reader.num_shards))
        indices.append(index_path(prefix))
    if not indices:
        raise _invalid("At least one prefix checkpoint file must exist, but none existed.")
    _publish(destination, data, entries)
    for path in indices:
        with reported(path):
            os.remove(path)


def _merge_entry(entries: dict[bytes, BundleEntryProto], key: bytes, entry: BundleEntryProto, prefix: str) -> None:
    known = entries.setdefault(key, entry)
    if known is entry:
        return
    name = key.decode(errors="replace")
    if not known.slices or not entry.slices:
        raise _invalid(f"Duplicate tensor keyed by {name} encountered, when merging prefix: {prefix}")
    if (known.dtype, known.shape) != (entry.dtype, entry.shape):
        raise _invalid(f"Slices of {name} disagree on its dtype or shape, when merging prefix: {prefix}")
    known.slices.extend(entry.slices)

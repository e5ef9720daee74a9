"""Reading tensor bundles, the checkpoints of TensorFlow since 1.0 (V2).

Stands for `BundleReader` of `core/util/tensor_bundle/tensor_bundle.cc`. Left out: variants and handles, alignment,
compressed indices. They are written in `bundle_writer.py`.

`prefix.data-00000-of-00002` and its like hold the elements of tensors, one after the other; `prefix.index` is a table:
the name of each tensor → a BundleEntryProto, which says where; and the empty key → a BundleHeaderProto. A partitioned
tensor has an entry that lists its slices, and each slice has an entry under an encoded name.

Rule: everything that is read is checked, so that damaged bytes never become a value.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.closing import Closing
from dtflab.base.varint import get_varint
from dtflab.files.atomic import MARK
from dtflab.files.crc import crc32c, unmask
from dtflab.files.env import DEFAULT, Env
from dtflab.files.paths import intact, reported
from dtflab.files.table import Table
from dtflab.files.tensor_slice import SavedTensor, TensorSlice, assemble
from dtflab.graph import dtypes
from dtflab.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

Array = np.ndarray[Any, Any]

_lost = errors.DataLossError.of
HEADER_KEY = b""
VERSION = 1  # of the format


def index_path(prefix: str) -> str:
    """The file that lists the tensors of a checkpoint."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, num_shards: int) -> str:
    """The file with the elements of one shard."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


ENDING = r"\.(index|data-\d{5}-of-\d{5})"  # of the names of files


def side_mark(index: BinaryIO) -> str:
    """The suffix of the data files of this index until they replace earlier ones."""
    import hashlib  # with OpenSSL: `import dtflab` need not wait for it

    index.seek(0)
    return f"{MARK}{hashlib.sha256(index.read()).hexdigest()[:16]}"


class _Found(NamedTuple):
    """An entry of the index, and the tensor that it describes."""

    entry: Any
    tensor: SavedTensor


class BundleReader(Closing):
    """Reads a checkpoint among the files of `env`; a context manager.

    Raises NotFoundError if it does not exist, DataLossError if it is damaged.
    """

    def __init__(self, prefix: str, env: Env = DEFAULT) -> None:
        self._env, self._prefix = env, env.prefix(prefix)
        self._stack = contextlib.ExitStack()
        self._shards: dict[int, tuple[BinaryIO, int]] = {}  # files and their sizes
        self._latest: tuple[bytes, _Found | None] = HEADER_KEY, None
        path = index_path(self._prefix)
        with intact(path), reported(path), contextlib.ExitStack() as stack:
            self._index = stack.enter_context(env.open(path))
            self._table = Table(self._index)
            header = _parsed(BundleHeaderProto, HEADER_KEY, self._table.get(HEADER_KEY), path)
            self._stack = stack.pop_all()
        self.num_shards: int = header.num_shards
        self._swap = (header.endianness == BundleHeaderProto.BIG) != (sys.byteorder == "big")
        self._check_version(header.version)

    def _check_version(self, version: Any) -> None:
        if version.min_consumer > VERSION:
            self._stack.close()
            raise errors.InvalidArgumentError.of(
                f"Checkpoint min consumer version {version.min_consumer} above current version {VERSION} for "
                f"dtflab. The program that wrote {self._prefix} says that older readers must not use it."
            )

    def close(self) -> None:
        self._stack.close()

    def entries(self) -> Iterator[tuple[bytes, Any]]:
        """The keys of tensors and slices, sorted, with their BundleEntryProtos."""
        path = index_path(self._prefix)
        with intact(path):
            for key, value in self._table.items():
                if key != HEADER_KEY:
                    yield key, _parsed(BundleEntryProto, key, value, path)

    def tensors(self) -> Iterator[tuple[str, SavedTensor]]:
        """The names of the tensors, sorted, with their descriptions."""
        with intact(index_path(self._prefix)):
            for key, entry in self.entries():
                if not key.startswith(b"\0"):  # else a slice
                    yield key.decode(), _saved(entry)

    def find(self, name: str) -> SavedTensor | None:
        """The description of the tensor of that name, or None."""
        found = self._find(name.encode())
        return None if found is None else found.tensor

    def _find(self, key: bytes) -> _Found | None:
        """The entry of a key; the latest is cached, since a look-up is followed by a read."""
        if key != self._latest[0]:
            with intact(path := index_path(self._prefix)):
                value = self._table.get(key) if key != HEADER_KEY else None
                entry = None if value is None else _parsed(BundleEntryProto, key, value, path)
                self._latest = key, None if entry is None else _Found(entry, _saved(entry))
        return self._latest[1]

    def read(self, name: str) -> Array:
        """The value of a tensor, its slices put together."""
        return self.read_slice(name, TensorSlice.full(len(self._found(name).tensor.shape)))

    def read_slice(self, name: str, block: TensorSlice) -> Array:
        """A block of a tensor, which may have been saved in other blocks."""
        found = self._found(name)
        with intact(self._prefix):
            if found.tensor.slices:
                return self._assemble(name, found.tensor, block)
            value: Array = self._read(found)[(*block.cut(), ...)]  # type: ignore[arg-type]  # a scalar stays an array
        return value

    def _found(self, name: str) -> _Found:
        found = self._find(name.encode())
        if found is None:
            raise errors.NotFoundError.of(f"Key {name} not found in checkpoint")
        return found

    def _assemble(self, name: str, tensor: SavedTensor, wanted: TensorSlice) -> Array:
        def read(block: TensorSlice) -> Array:
            found = self._find(block.key(name))
            if found is None:
                raise _lost(f"Slice {block.text()} of {name} is listed but not there")
            return self._read(found)

        return assemble(name, tensor, wanted, read)

    def _read(self, found: _Found) -> Array:
        entry, (dtype, shape, _) = found
        if not 0 <= entry.shard_id < self.num_shards:
            raise _lost(f"Shard {entry.shard_id} of {self.num_shards} does not exist")
        raw = self._read_bytes(entry)
        if dtype == dtypes.string:
            return self._strings(raw, entry, shape)
        self._check(entry, crc32c(raw))  # type: ignore[arg-type]  # an array is bytes, too
        if raw.nbytes != dtype.size * math.prod(shape):
            raise _lost(f"Invalid size in bundle entry: {raw.nbytes} bytes for {dtype.name} {list(shape)}")
        array: Array = raw.view(dtype.as_numpy_dtype).reshape(shape)
        return array.byteswap() if self._swap else array

    def _read_bytes(self, entry: Any) -> Array:
        file, size = self._shard(entry.shard_id)
        with reported(file.name):
            if entry.offset < 0 or not 0 <= entry.size <= size - entry.offset:
                raise errors.OutOfRangeError.of(f"{file.name}: read less bytes than requested")
            raw = np.empty(entry.size, np.uint8)
            file.seek(entry.offset)
            file.readinto(raw.data)  # type: ignore[attr-defined]  # BinaryIO does not declare readinto
        return raw

    def data_file(self, shard: int) -> str:
        """The path of a shard: its own name, unless its writer has not renamed it yet, or was killed before."""
        path = data_path(self._prefix, shard, self.num_shards)
        return path + self._mark if os.path.exists(path + self._mark) else path

    @functools.cached_property
    def _mark(self) -> str:
        return side_mark(self._index)

    def _shard(self, shard: int) -> tuple[BinaryIO, int]:
        if shard not in self._shards:
            try:
                file = self._env.open(self.data_file(shard))  # it stays open as long as the reader
            except errors.NotFoundError:  # the writer has renamed it meanwhile
                file = self._env.open(data_path(self._prefix, shard, self.num_shards))
            self._shards[shard] = self._stack.enter_context(file), os.fstat(file.fileno()).st_size
        return self._shards[shard]

    def _strings(self, raw: Array, entry: Any, shape: tuple[int, ...]) -> Array:
        data, position, lengths = raw.tobytes(), 0, []
        try:
            for _ in range(math.prod(shape)):
                length, position = get_varint(data, position)
                lengths.append(length)
        except ValueError:
            raise _lost("Invalid string lengths in bundle entry") from None
        order = ">u4" if self._swap else "<u4"
        crc, checksum = crc32c(np.array(lengths, order).tobytes()), data[position : position + 4]
        if unmask(int.from_bytes(checksum, "big" if self._swap else "little")) != crc:
            raise _lost(f"The length checksum does not match: expected {crc} for {len(lengths)} strings")
        position += 4
        self._check(entry, crc32c(data[position:], crc32c(checksum, crc)))
        found = np.empty(shape, object)
        for i, length in enumerate(lengths):
            found.flat[i] = data[position : position + length]
            position += length
        return found

    def _check(self, entry: Any, crc: int) -> None:
        if unmask(entry.crc32c) != crc:
            where = f"TensorBundle at {self._prefix} shard {entry.shard_id} ({entry.size} bytes)"
            crcs = f"stored {unmask(entry.crc32c):08x} vs. calculated on the restored bytes {crc:08x}"
            raise _lost(f"{where}: Checksum does not match: {crcs}")


def _saved(entry: Any) -> SavedTensor:
    return SavedTensor.from_protos(entry.dtype, entry.shape, entry.slices)


def _parsed(kind: type[Any], key: bytes, value: bytes | None, path: str) -> Any:
    if value is None:
        raise _lost(f"Unable to read file ({path}). It has no header entry.")
    try:
        return kind.FromString(value)
    except DecodeError:
        name = key.decode(errors="replace")
        raise _lost(f"Unable to read file ({path}). Entry for key {name} not parseable.") from None

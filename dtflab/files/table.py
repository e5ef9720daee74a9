"""Tables: sorted keys and their values in one file, as LevelDB lays them out.

Stands for `tsl/lib/io/{table,table_builder,block,block_builder,format}.cc`.
Left out: filters, a cache of blocks; snappy blocks are refused (TensorFlow writes none into checkpoints).

A file is data blocks, an empty "metaindex" block, the index block (last key of each block → where it lies), and a
footer of 48 bytes. A block is entries and the offsets of its restarts, followed by a byte for its compression and a
checksum. An entry drops what its key has in common with the one before, except at every 16th, a restart.

Rule: written files are byte for byte TensorFlow's; bytes are checked before they are used.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from dtflab.base import errors
from dtflab.base.varint import get_varint, put_varint
from dtflab.files.crc import masked_crc32c

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER_SIZE = 48
_TRAILER = struct.Struct("<BI")
_BLOCK_SIZE = 262144  # bytes, after which a block is closed
_RESTARTS = 16  # entries from one restart to the next
_PLAIN = 0  # compression of a block
_lost = errors.DataLossError.of


class TableWriter:
    """Writes a table; keys must come sorted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._block = _Block(_RESTARTS)
        self._index = _Block(1)
        self._last = b""
        self._closed: tuple[bytes, bytes] | None = None  # last key and handle of a block, not yet in the index

    def add(self, key: bytes, value: bytes) -> None:
        if self._closed is not None:
            last, handle = self._closed
            self._index.add(_between(last, key), handle)
            self._closed = None
        self._block.add(key, value)
        self._last = key
        if self._block.size >= _BLOCK_SIZE:
            self._close_block()

    def finish(self) -> None:
        """Write what is pending, the index and the footer."""
        self._close_block()
        metaindex = self._write(_Block(_RESTARTS))
        if self._closed is not None:
            last, handle = self._closed
            self._index.add(_after(last), handle)
        footer = metaindex + self._write(self._index)
        self._file.write(footer.ljust(_FOOTER_SIZE - len(_MAGIC), b"\0") + _MAGIC)

    def _close_block(self) -> None:
        if self._block.count:
            self._closed = self._last, self._write(self._block)
            self._block = _Block(_RESTARTS)

    def _write(self, block: _Block) -> bytes:
        """Write a block; returns where it lies, as a handle."""
        body = block.finish()
        self._file.write(body)
        self._file.write(_TRAILER.pack(_PLAIN, masked_crc32c(body + bytes([_PLAIN]))))
        handle = put_varint(self._offset) + put_varint(len(body))
        self._offset += len(body) + _TRAILER.size
        return handle


class _Block:
    """A block in the making."""

    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self._parts = bytearray()
        self._restarts = [0]
        self._last = b""
        self.count = 0

    @property
    def size(self) -> int:
        return len(self._parts) + 4 * (len(self._restarts) + 1)

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.count % self._interval:
            shared = _common(self._last, key)
        elif self.count:
            self._restarts.append(len(self._parts))
        self._parts += put_varint(shared) + put_varint(len(key) - shared) + put_varint(len(value))
        self._parts += key[shared:] + value
        self._last = key
        self.count += 1

    def finish(self) -> bytes:
        numbers = [*self._restarts, len(self._restarts)]
        return bytes(self._parts) + struct.pack(f"<{len(numbers)}I", *numbers)


def _common(a: bytes, b: bytes) -> int:
    """Length of the common beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _between(last: bytes, following: bytes) -> bytes:
    """A short key that is not below `last` and is below `following`."""
    i = _common(last, following)
    if i < min(len(last), len(following)) and last[i] + 1 < following[i]:
        return last[:i] + bytes([last[i] + 1])
    return last


def _after(last: bytes) -> bytes:
    """A short key that is not below `last`."""
    i = len(last) - len(last.lstrip(b"\xff"))
    return last[:i] + bytes([last[i] + 1]) if i < len(last) else last


# -- reading ------------------------------------------------------------------------------------------------


class Table:
    """A table in a file that stays open. Raises DataLossError if its bytes are damaged."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        if self._size < _FOOTER_SIZE:
            raise _lost("file is too short to be an sstable")
        file.seek(self._size - _FOOTER_SIZE)
        footer = file.read(_FOOTER_SIZE)
        if not footer.endswith(_MAGIC):
            raise _lost("not an sstable (bad magic number)")
        _, position = _handle(footer, 0)
        where, _ = _handle(footer, position)
        self._index = list(_entries(self._read_block(where)))
        self._latest: tuple[bytes, list[tuple[bytes, bytes]]] = b"", []  # handle and content of a block

    def items(self, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in order, from the first key that is not below `start`."""
        for i in range(bisect.bisect_left(self._index, (start,)), len(self._index)):
            entries = self._block(self._index[i][1])
            for j in range(bisect.bisect_left(entries, (start,)), len(entries)):
                yield entries[j]

    def _block(self, handle: bytes) -> list[tuple[bytes, bytes]]:
        """The entries of a block; the latest block is cached, since neighbours are read together."""
        if self._latest[0] != handle:
            self._latest = handle, list(_entries(self._read_block(_handle(handle, 0)[0])))
        return self._latest[1]

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`, or None."""
        found = next(self.items(key), None)
        return found[1] if found is not None and found[0] == key else None

    def _read_block(self, handle: tuple[int, int]) -> bytes:
        offset, size = handle
        self._file.seek(min(offset, self._size))
        body = self._file.read(min(size + _TRAILER.size, self._size))
        if len(body) != size + _TRAILER.size:
            raise _lost("truncated block read")
        compression, crc = _TRAILER.unpack_from(body, size)
        if masked_crc32c(body[: size + 1]) != crc:
            raise _lost("block checksum mismatch")
        if compression != _PLAIN:
            raise errors.UnimplementedError.of("A compressed block can't be read (TensorFlow writes none).")
        return body[:size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    try:
        (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
        end = len(block) - 4 * (restarts + 1)
        if end < 0:
            raise ValueError("more restarts than bytes")
        position, key = 0, b""
        while position < end:
            shared, position = get_varint(block, position)
            fresh, position = get_varint(block, position)
            size, position = get_varint(block, position)
            if shared > len(key) or position + fresh + size > end:
                raise ValueError("an entry is cut off")
            key = key[:shared] + block[position : position + fresh]
            position += fresh + size
            yield key, block[position - size : position]
    except (ValueError, struct.error) as error:
        raise _lost(f"bad entry in block: {error}") from None


def _handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Offset and size of a block, and where they end."""
    try:
        offset, position = get_varint(data, position)
        size, position = get_varint(data, position)
    except ValueError:
        raise _lost("bad block handle") from None
    return (offset, size), position


def write_table(file: BinaryIO, items: Iterable[tuple[bytes, bytes]]) -> None:
    """Write sorted keys and their values as a table."""
    writer = TableWriter(file)
    for key, value in items:
        writer.add(key, value)
    writer.finish()

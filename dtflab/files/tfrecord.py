"""TFRecord files: a sequence of byte strings, each with its length and checksums of both.

Stands for `core/lib/io/record_reader.cc`, `record_writer.cc` and `python/lib/io/tf_record.py`. Left out: Snappy.

    uint64  length                 little-endian
    uint32  masked CRC-32C of the length
    byte    data[length]
    uint32  masked CRC-32C of the data
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from dtflab.base import errors, tf_logging as logging
from dtflab.base.closing import Closing
from dtflab.files.compression import WINDOW_BITS, InflatingFile
from dtflab.files.crc import crc32c, mask
from dtflab.files.env import DEFAULT, Env
from dtflab.files.paths import intact, local, reported

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_PIECE = 1 << 28  # bytes of a record that are read at once


class TFRecordCompressionType:
    """How the records of a file are compressed; plain numbers, as in TensorFlow."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


@dataclass(repr=False, eq=False)
class TFRecordOptions:
    """How to write, or read, a file of records: the compression and zlib's parameters; None for zlib's defaults.

    `input_buffer_size` and `output_buffer_size` are accepted and have no effect.
    """

    compression_type_map: ClassVar = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }
    compression_type: Any = None
    flush_mode: int | None = None
    input_buffer_size: int | None = None
    output_buffer_size: int | None = None
    window_bits: int | None = None
    compression_level: int | None = None
    compression_method: int | None = None
    mem_level: int | None = None
    compression_strategy: int | None = None

    def __post_init__(self) -> None:
        self.get_compression_type_string(self.compression_type)

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """'', 'ZLIB' or 'GZIP' of a TFRecordOptions, a TFRecordCompressionType or a string; else raises ValueError."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return str(options)
        raise ValueError(f'Not a valid compression_type: "{options}"')

    def compressor(self) -> Any:
        """The compressor of the records, or None."""
        kind = self.get_compression_type_string(self.compression_type)
        if not kind:
            return None

        def given(value: int | None, default: int) -> int:
            return default if value is None else value

        bits = given(self.window_bits, zlib.MAX_WBITS)
        return zlib.compressobj(
            given(self.compression_level, zlib.Z_DEFAULT_COMPRESSION),
            given(self.compression_method, zlib.DEFLATED),
            bits + 16 if kind == "GZIP" and 0 < bits <= zlib.MAX_WBITS else bits,
            given(self.mem_level, zlib.DEF_MEM_LEVEL),
            given(self.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
        )


class TFRecordWriter(Closing):
    """Writes records to a new file.

    >>> with tf.python_io.TFRecordWriter(path) as writer:
    ...     writer.write(example.SerializeToString())
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        """Create the file `path`. `options` is a TFRecordOptions, a TFRecordCompressionType or 'GZIP' or 'ZLIB'."""
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(compression_type=options)
        self._compressor = options.compressor()
        self._flush_mode = options.flush_mode
        self._path = path
        self._file: BinaryIO | None = None
        with reported(path):
            self._file = open(local(path), "wb")  # noqa: SIM115 - `close` closes it

    def write(self, record: bytes | str) -> None:
        """Append a record; text is written as UTF-8. FailedPreconditionError after `close`."""
        if not isinstance(record, bytes | str):
            raise TypeError(f"A record must be bytes or a string, not {record!r} of type {type(record).__name__}.")
        data = record.encode() if isinstance(record, str) else record
        length = struct.pack("<Q", len(data))
        self._write(length + _FOOTER.pack(mask(crc32c(length))) + data + _FOOTER.pack(mask(crc32c(data))))

    def _write(self, data: bytes) -> None:
        file = self._opened()
        if self._compressor is not None:
            data = self._compressor.compress(data)
            if self._flush_mode:
                data += self._compressor.flush(self._flush_mode)
        with reported(self._path):
            file.write(data)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise errors.FailedPreconditionError.of("Writer is closed.")
        return self._file

    def flush(self) -> None:
        """Let other processes see what has been written."""
        file = self._opened()
        with reported(self._path):
            if self._compressor is not None:
                file.write(self._compressor.flush(zlib.Z_PARTIAL_FLUSH))
            file.flush()

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            file, self._file = self._file, None
            with reported(self._path), file:
                if self._compressor is not None:
                    file.write(self._compressor.flush())

    def __del__(self) -> None:
        if getattr(self, "_file", None) is None:
            return
        try:
            self.close()
        except errors.OpError as error:  # nobody can catch it here
            logging.warning("The last records of a writer that was not closed are lost: %s", error.message)


class RecordReader:
    """The records of a file, one after another. After a damaged record, each call raises its error again."""

    def __init__(self, path: Any, compression: str = "", env: Env = DEFAULT) -> None:
        """Open the file; `compression` is '', 'ZLIB' or 'GZIP'."""
        self.offset = 0  # of the next record, uncompressed
        self._path = path
        self._damage: errors.DataLossError | None = None
        self._file: Any = env.open_for(self, path, 1 << 18)
        if compression:
            self._file = InflatingFile(self._file, WINDOW_BITS[compression])

    def read(self) -> bytes | None:
        """The next record; None at the end. DataLossError for a damaged one, or for half of one."""
        if self._damage is not None:
            raise self._damage
        try:
            with intact(self._path):
                return self._read()
        except errors.DataLossError as error:
            self._damage = error
            raise

    def _read(self) -> bytes | None:
        read, offset = self._file.read, self.offset
        header = read(12)
        if len(header) < 12:
            return None  # as TensorFlow, which treats a partial header as the end
        length, check = _HEADER.unpack(header)
        if mask(crc32c(header[:8])) != check:
            hint = " (Is this even a TFRecord file?)" if offset == 0 else ""
            raise errors.DataLossError.of(f"corrupted record at {offset}{hint}")
        rest = read(min(length + 4, _PIECE))
        while _PIECE <= len(rest) < length + 4 and (more := read(min(length + 4 - len(rest), _PIECE))):
            rest += more  # piece by piece: no memory is taken for a length alone
        if len(rest) < length + 4:
            raise errors.DataLossError.of(f"truncated record at {offset}' failed with Read less bytes than requested")
        data: bytes = rest[:-4]
        if mask(crc32c(data)) != _FOOTER.unpack(rest[-4:])[0]:
            raise errors.DataLossError.of(f"corrupted record at {offset + 12}")
        self.offset = offset + length + 16
        return data

    def read_at(self, offset: int) -> bytes | None:
        """The record that begins at `offset` of a file that is not compressed; None at the end."""
        self._file.seek(offset)
        self.offset = offset
        with intact(self._path):
            return self._read()

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        record = self.read()
        if record is None:
            raise StopIteration
        return record


class RandomRecordReader:
    """The records of a file that is not compressed, at offsets that the caller knows."""

    def __init__(self, path: Any) -> None:
        self._reader = RecordReader(path)

    def read(self, offset: int) -> tuple[bytes, int]:
        """The record at `offset`, and the offset of the next one; IndexError at the end, DataLossError elsewhere."""
        record = self._reader.read_at(offset)
        if record is None:
            raise IndexError(f"Out of range at reading offset {offset}")
        return record, self._reader.offset

    def close(self) -> None:
        self._reader.close()


def tf_record_random_reader(path: Any) -> RandomRecordReader:
    """A reader that can go to any record of the file."""
    return RandomRecordReader(path)


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file. `options` is a TFRecordOptions, a TFRecordCompressionType or 'GZIP' or 'ZLIB'."""
    return RecordReader(path, TFRecordOptions.get_compression_type_string(options))

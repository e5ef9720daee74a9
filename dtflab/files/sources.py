"""Sources: the records of one unit of work of a reader, a file for example, each with a key.

Stands for `text_line_reader_op.cc`, `fixed_length_record_reader_op.cc`, `tf_record_reader_op.cc`,
`whole_file_read_ops.cc` and `identity_reader_op.cc` in `core/kernels`. Left out: LMDB.

Rule: a source knows one file. The order of files is up to `ops/queues/shared_reader.py`.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import Any, BinaryIO

from dtflab.base import errors
from dtflab.files.compression import WINDOW_BITS, InflatingFile, inflating
from dtflab.files.env import DEFAULT, Env
from dtflab.files.paths import reported
from dtflab.files.tfrecord import RecordReader

Record = tuple[bytes, bytes]  # key, value


class Source:
    """The records of one unit of work, whose name is `work`; a file of `env`, if it is one."""

    def __init__(self, work: bytes, env: Env = DEFAULT) -> None:
        self.work, self._env = work, env
        self.ended = False  # no records are left
        self._file: Any = None

    def next(self) -> Record | None:
        """The next record; None at the end."""
        raise NotImplementedError

    def next_many(self, count: int) -> tuple[list[bytes], list[bytes]]:
        """Keys and values of the next `count` records, or of as many as are left."""
        records: list[Record] = []
        while len(records) < count and not self.ended:
            record = self.next()
            if record is not None:
                records.append(record)
        return [key for key, _ in records], [value for _, value in records]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> BinaryIO:
        return self._env.open_for(self, os.fsdecode(self.work), 1 << 17)


class Lines(Source):
    r"""The lines of a text, without `\n` or `\r\n`; keys are `file:number`, from 1, counting what is skipped."""

    def __init__(self, work: bytes, skip_header_lines: int = 0, compression: str = "", env: Env = DEFAULT) -> None:
        super().__init__(work, env)
        file = self._open()
        self._file = inflating(file, WINDOW_BITS[compression]) if compression else file
        self._number = len(list(islice(self._file, skip_header_lines)))

    def next(self) -> Record | None:
        line = self._file.readline()
        if not line:
            self.ended = True
            return None
        self._number += 1
        return b"%b:%d" % (self.work, self._number), line.removesuffix(b"\n").removesuffix(b"\r")

    def next_many(self, count: int) -> tuple[list[bytes], list[bytes]]:
        lines = list(islice(self._file, count))
        self.ended = len(lines) < count
        text = b"".join(lines)
        values = text.split(b"\n")
        if not text or text.endswith(b"\n"):
            values.pop()
        if b"\r" in text:
            values = [value.removesuffix(b"\r") for value in values]
        first, self._number = self._number + 1, self._number + len(lines)
        return _numbered(self.work, first, len(lines)), values


_ENDS = [b"%03d" % n for n in range(1000)]


def _numbered(work: bytes, first: int, count: int) -> list[bytes]:
    """`work:first` and so on; a thousand numbers at a time differ only in their ends."""
    keys = [b"%b:%d" % (work, n) for n in range(first, min(first + count, 1000))]
    while len(keys) < count:
        thousand, place = divmod(first + len(keys), 1000)
        before = b"%b:%d" % (work, thousand)
        keys += [before + end for end in _ENDS[place : place + count - len(keys)]]
    return keys


class FixedLengthRecords(Source):
    """Stretches of `record_bytes`, each `hop_bytes` after the one before, between a header and a footer.

    Keys are `file:number`, from 0. `encoding` is '', 'GZIP' or 'ZLIB'.
    """

    def __init__(
        self, work: bytes, record: int, header: int, footer: int, hop: int, encoding: str, env: Env = DEFAULT
    ) -> None:
        super().__init__(work, env)
        self._record, self._hop = record, hop or record
        self._number = 0
        file = self._open()
        self._file = InflatingFile(file, WINDOW_BITS[encoding]) if encoding in WINDOW_BITS else file
        if len(self._file.read(header)) < header:
            raise errors.OutOfRangeError.of("reached end of file")
        self._footer = footer
        self._ahead = b""  # read, and not yet passed

    def next(self) -> Record | None:
        wanted = self._record + self._footer
        self._ahead += self._file.read(max(wanted - len(self._ahead), 0))
        if len(self._ahead) < wanted:
            self.ended = True
            return None
        value = self._ahead[: self._record]
        key = b"%b:%d" % (self.work, self._number)
        self._number += 1
        if self._hop > len(self._ahead):
            self._file.read(self._hop - len(self._ahead))
        self._ahead = self._ahead[self._hop :]
        return key, value


class Records(Source):
    """The records of a TFRecord file; keys are `file:offset`, in bytes before compression."""

    def __init__(self, work: bytes, compression: str = "", env: Env = DEFAULT) -> None:
        super().__init__(work, env)
        self._file = RecordReader(os.fsdecode(work), compression, env)

    def next(self) -> Record | None:
        offset = self._file.offset
        value = self._file.read()
        if value is None:
            self.ended = True
            return None
        return b"%b:%d" % (self.work, offset), value


class WholeFile(Source):
    """One record: the file's name and its contents."""

    def next(self) -> Record | None:
        self.ended = True
        with self._open() as file, reported(os.fsdecode(self.work)):
            return self.work, file.read()


class Itself(Source):
    """One record: the unit of work is key and value."""

    def next(self) -> Record | None:
        self.ended = True
        return self.work, self.work

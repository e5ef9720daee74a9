"""Readers as programs use them: objects that turn file names from a queue into records.

Stands for the readers in `python/ops/io_ops.py`. Left out: LMDBReader. The reading is done in `ops/queues/reader.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.files.tfrecord import TFRecordOptions
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.operation import Operation, Tensor


class ReaderBase:
    """Reads records, as (key, value) pairs of strings, out of units of work, which are mostly files.

    >>> names = tf.train.string_input_producer(["a.csv", "b.csv"])
    >>> key, line = tf.TextLineReader().read(names)

    Each run of `key` or `line` reads one more record. When a file ends, the next name is taken out of the queue, and
    waited for if there is none; when the queue is closed and empty, a read is an OutOfRangeError. Several reads of one
    reader, in one or many threads, share its place in the file.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        """The reader behind the handle `reader_ref`."""
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle of the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether `serialize_state` and `restore_state` work for this kind of reader."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record: (key, value), two string scalars. `queue` holds names, one string per element."""
        return self._apply("ReaderRead", name, queue_handle=_handle(queue))

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """The next records: (keys, values), two vectors of strings, of `num_records` or fewer at the end of a file."""
        return self._apply("ReaderReadUpTo", name, queue_handle=_handle(queue), num_records=num_records)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records have been read: int64."""
        return self._apply("ReaderNumRecordsProduced", name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files have been read to their ends: int64."""
        return self._apply("ReaderNumWorkUnitsCompleted", name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state of the reader as a string; an UnimplementedError for readers that stop within files."""
        return self._apply("ReaderSerializeState", name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Go back to what `serialize_state` gave."""
        return self._apply("ReaderRestoreState", name, state=state)

    def reset(self, name: str | None = None) -> Operation:
        """Forget the file that is being read, and start counting again."""
        return self._apply("ReaderReset", name)

    def _apply(self, op_type: str, name: str | None, **arguments: Any) -> Any:
        family = "V2" if self._reader_ref.dtype == dtypes.resource else ""
        return apply_op(op_type + family, name, reader_handle=self._reader_ref, **arguments)


def _handle(queue: Any) -> Tensor:
    handle: Tensor = queue if isinstance(queue, Tensor) else queue.queue_ref
    return handle


class WholeFileReader(ReaderBase):
    """Each file is one record: its name and what is in it."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("WholeFileReaderV2", name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Each line is a record, without its end; the key is `file:number of the line`."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        """`skip_header_lines` at the start of every file are no records."""
        super().__init__(apply_op("TextLineReaderV2", name, skip_header_lines=skip_header_lines))


class FixedLengthRecordReader(ReaderBase):
    """Records of `record_bytes`, each `hop_bytes` after the one before; the key is `file:number of the record`."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        """The records lie between a header and a footer. `encoding` is None, 'GZIP' or 'ZLIB'."""
        handle = apply_op(
            "FixedLengthRecordReaderV2", name, record_bytes=record_bytes, header_bytes=header_bytes,
            footer_bytes=footer_bytes, hop_bytes=hop_bytes, encoding=encoding,
        )  # fmt: skip
        super().__init__(handle)


class TFRecordReader(ReaderBase):
    """The records of TFRecord files; the key is `file:offset`."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        """`options` says how the files are compressed: a `tf.python_io.TFRecordOptions`."""
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(apply_op("TFRecordReaderV2", name, compression_type=compression))


class IdentityReader(ReaderBase):
    """Each name in the queue is itself a record: key and value are the name."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("IdentityReaderV2", name), supports_serialize=True)

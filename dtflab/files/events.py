"""Event files, which TensorBoard reads: records of `Event` messages, the first of which is a header.

Stands for `core/util/events_writer.cc` and `python/summary/summary_iterator.py`.

Rule: a writer never writes into a file that was there before. (TensorFlow does when two begin in one second.)
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from dtflab.base import errors, tf_logging
from dtflab.files.paths import intact, local
from dtflab.files.tfrecord import TFRecordWriter, tf_record_iterator
from dtflab.protos.event_pb2 import Event, SourceMetadata

_VERSION = "brain.Event:2"


class EventsWriter:
    """Writes `<prefix>.out.tfevents.<seconds since 1970>.<host><suffix>`, a file that the first event makes."""

    def __init__(self, prefix: str) -> None:
        self._prefix = local(prefix)
        self._suffix = ""
        self._path = ""
        self._records: TFRecordWriter | None = None

    def InitWithSuffix(self, suffix: str) -> None:
        """Make the file now, its name ending in `suffix`."""
        self._suffix = suffix
        self._opened()

    def FileName(self) -> str:
        """The path of the file."""
        self._opened()
        return self._path

    def WriteEvent(self, event: Any) -> None:
        """Append a message. If the folder was deleted, the message is lost and a warning is logged."""
        try:
            records = self._opened()
        except errors.NotFoundError as error:
            tf_logging.error("Write failed because file could not be opened: %s", error.message)
            return
        records.write(event.SerializeToString())

    def Flush(self) -> None:
        """Let readers see all events so far."""
        if self._records is not None:
            self._records.flush()

    def Close(self) -> None:
        """Finish the file; another event would make a new one."""
        if self._records is not None:
            self._records.close()
            self._records = None

    def _opened(self) -> TFRecordWriter:
        if self._records is not None and not os.path.exists(self._path):
            tf_logging.error("The events file %s has disappeared.", self._path)
            self.Close()
        if self._records is None:
            seconds = int(time.time())
            while os.path.exists(path := self._path_of(seconds)):
                seconds += 1
            self._path, self._records = path, TFRecordWriter(path)
            source = SourceMetadata(writer="dtflab.files.events")
            first = Event(wall_time=seconds, file_version=_VERSION, source_metadata=source)
            self._records.write(first.SerializeToString())
            self._records.flush()
        return self._records

    def _path_of(self, seconds: int) -> str:
        return f"{self._prefix}.out.tfevents.{seconds:010d}.{socket.gethostname()}{self._suffix}"


def summary_iterator(path: str) -> Iterator[Any]:
    """The Event messages of a file. Raises NotFoundError if it does not exist, DataLossError if it is damaged."""
    return map(partial(_event, path), tf_record_iterator(path))


def _event(path: str, record: bytes) -> Any:
    with intact(path):
        return Event.FromString(record)

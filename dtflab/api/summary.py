"""tf.summary: what a program shows in TensorBoard."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.summaries.functions import (
    audio,
    get_summary_description,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)
from dtflab.protos.event_pb2 import Event, SessionLog, TaggedRunMetadata
from dtflab.protos.summary_pb2 import Summary, SummaryDescription
from dtflab.train.summaries.summary_writer import FileWriter, FileWriterCache


def __getattr__(name: str) -> Any:
    raise _missing("tf.summary", name, globals())

"""tf.io: files, records, and what is read out of them."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing import missing as _missing
from dtflab.files import gfile
from dtflab.files.graph_io import write_graph
from dtflab.files.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
from dtflab.ops.csv import decode_csv
from dtflab.ops.decoding import decode_raw
from dtflab.ops.encoding import decode_base64, decode_compressed, encode_base64
from dtflab.ops.features import FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature
from dtflab.ops.file_ops import matching_files, read_file, write_file
from dtflab.ops.image import decode_png, encode_png
from dtflab.ops.parsing import (
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from dtflab.ops.queues import (
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)
from dtflab.ops.serializing import decode_json_example, parse_tensor, serialize_tensor
from dtflab.ops.sparse_messages import deserialize_many_sparse, serialize_many_sparse, serialize_sparse
from dtflab.train.input import match_filenames_once


def __getattr__(name: str) -> Any:
    raise _missing("tf.io", name, globals())

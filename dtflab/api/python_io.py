"""tf.python_io: files of records, under TF1's name."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.files.tfrecord import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator


def __getattr__(name: str) -> Any:
    raise _missing("tf.python_io", name, globals())

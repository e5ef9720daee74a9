"""tf.python_io: files of records, under TF1's name."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.files.tfrecord import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator

__getattr__ = _missing_in("tf.python_io", globals())

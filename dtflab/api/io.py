"""tf.io: files, records, and what is read out of them."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.files import gfile
from dtflab.files.graph_io import write_graph
from dtflab.files.tfrecord import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator
from dtflab.ops.examples.functions import FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature
from dtflab.ops.examples.functions import decode_json_example, parse_example, parse_sequence_example
from dtflab.ops.examples.functions import parse_single_example, parse_single_sequence_example, parse_tensor
from dtflab.ops.examples.functions import serialize_tensor
from dtflab.ops.images.functions import decode_png, encode_png
from dtflab.ops.queues.functions import PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue
from dtflab.ops.sparse.functions import deserialize_many_sparse, serialize_many_sparse, serialize_sparse
from dtflab.ops.text.functions import decode_base64, decode_compressed, decode_csv, decode_raw, encode_base64
from dtflab.ops.text.functions import matching_files, read_file, write_file
from dtflab.train.input.producers import match_filenames_once

__getattr__ = _missing_in("tf.io", globals())

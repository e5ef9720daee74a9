"""tf.summary: what a program shows in TensorBoard."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.summaries.functions import audio, get_summary_description, histogram, image, merge, merge_all, scalar
from dtflab.ops.summaries.functions import tensor_summary, text
from dtflab.protos.event_pb2 import Event, SessionLog, TaggedRunMetadata
from dtflab.protos.summary_pb2 import Summary, SummaryDescription
from dtflab.train.summaries.summary_writer import FileWriter, FileWriterCache

__getattr__ = _missing_in("tf.summary", globals())

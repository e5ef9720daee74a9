"""tf.queue: queues by the names of later TensorFlow 1 versions."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.queues.functions import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue

__getattr__ = _missing_in("tf.queue", globals())

"""tf.queue: queues by the names of later TensorFlow 1 versions."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.queues.functions import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue


def __getattr__(name: str) -> Any:
    raise _missing("tf.queue", name, globals())

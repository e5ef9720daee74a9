"""tf.manip: shapes and places, by the names that TF1 also has there."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.arrays.functions import batch_to_space_nd, reshape, reverse, space_to_batch_nd, tile
from dtflab.ops.indexing.functions import gather_nd, roll, scatter_nd


def __getattr__(name: str) -> Any:
    raise _missing("tf.manip", name, globals())

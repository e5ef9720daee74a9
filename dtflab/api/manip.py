"""tf.manip: shapes and places, by the names that TF1 also has there."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.arrays.arranging import roll
from dtflab.ops.arrays.gathering import gather_nd, scatter_nd
from dtflab.ops.arrays.repeating import reverse, tile
from dtflab.ops.arrays.reshaping import reshape
from dtflab.ops.arrays.space_batch import batch_to_space_nd, space_to_batch_nd


def __getattr__(name: str) -> Any:
    raise _missing("tf.manip", name, globals())

"""tf.sets: sets in the last dimension of dense or sparse tensors."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.reduce.functions import (
    set_difference,
    set_difference as difference,
    set_intersection,
    set_intersection as intersection,
    set_size,
    set_size as size,
    set_union,
    set_union as union,
)


def __getattr__(name: str) -> Any:
    raise _missing("tf.sets", name, globals())

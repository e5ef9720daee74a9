"""tf.dtypes: the dtypes, and what turns values from one into another."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.graph import dtypes as _dtypes
from dtflab.graph.dtypes import *  # noqa: F403
from dtflab.ops.arrays.functions import cast
from dtflab.ops.math.functions import complex, saturate_cast


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and hasattr(_dtypes, name):
        return getattr(_dtypes, name)
    raise _missing("tf.dtypes", name, globals())

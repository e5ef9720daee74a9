"""tf.bitwise: integers bit by bit."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.math.functions import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift


def __getattr__(name: str) -> Any:
    raise _missing("tf.bitwise", name, globals())

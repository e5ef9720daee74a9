"""tf.bitwise: integers bit by bit."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.math.bitwise import left_shift, right_shift
from dtflab.ops.math.logic import bitwise_and, bitwise_or, bitwise_xor
from dtflab.ops.math.unary import invert


def __getattr__(name: str) -> Any:
    raise _missing("tf.bitwise", name, globals())

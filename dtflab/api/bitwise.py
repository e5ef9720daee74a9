"""tf.bitwise: integers bit by bit."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing import missing as _missing
from dtflab.ops.bitwise import left_shift, right_shift
from dtflab.ops.logic import bitwise_and, bitwise_or, bitwise_xor
from dtflab.ops.unary import invert


def __getattr__(name: str) -> Any:
    raise _missing("tf.bitwise", name, globals())

"""For `test_leaf_*.py`: what a call gives on either side, in a form that can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

OURS_OR_THEIRS = re.compile(r"DeviceSpecV[12]|<class '(dtflab|tensorflow)[\w.]*\.(\w+)'>| object at 0x\w+")


def outcome(call: Callable[[], Any]) -> tuple[str, str]:
    """(type, text) of the value or of the exception, module paths and addresses taken out."""
    try:
        value = call()
    except Exception as error:
        value = error
    text = f"raises {value}" if isinstance(value, Exception) else repr(value)
    text = text.replace("''could not", "'' could not")  # TF forgot a blank
    return type(value).__name__, OURS_OR_THEIRS.sub("", text)

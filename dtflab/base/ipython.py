"""The shell of IPython, if there is one. Nothing here imports it: who has no notebook need not have it."""

from __future__ import annotations

import sys
from typing import Any


def current_shell() -> Any:
    """IPython's shell, in a terminal or in a kernel; None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None

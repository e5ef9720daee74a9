"""Errors of Python's own classes that this package raises, as short as its OpErrors: a wrong shape, a closed session.

IPython lets one extension look at the errors of cells before it shows them.
"""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any

from dtflab.base import error_report


def load(shell: Any) -> None:
    """Show the errors of cells so from now on."""
    shell.set_custom_exc((Exception, KeyboardInterrupt), _show)


def unload(shell: Any) -> None:
    """Leave errors to IPython again."""
    shell.set_custom_exc((), None)


def _show(
    shell: Any, kind: type[BaseException], error: Any, trace: TracebackType, tb_offset: int | None = None
) -> None:
    if not hasattr(error, "_render_traceback_") and error_report.is_ours(error):
        error._render_traceback_ = functools.partial(error_report.render, error)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)

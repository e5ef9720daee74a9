"""Errors of Python's own classes, as short as this package's OpErrors: a wrong shape, a worker's ValueError.

IPython lets one extension look at the errors of cells before it shows them.
"""

from __future__ import annotations

import functools
import re
import traceback
from types import TracebackType
from typing import Any

from IPython.core.error import UsageError

from dtflab.base import error_report
from dtflab.base.suggestions import did_you_mean, near
from dtflab.notebook import task_cell

_NO_MAGIC = re.compile(r"magic(?: function)? `%%?dtf_(\w+)` not found\.$")


def load(shell: Any) -> None:
    """Show the errors of cells so from now on."""
    shell.set_custom_exc((Exception, KeyboardInterrupt), _show)


def unload(shell: Any) -> None:
    """Leave errors to IPython again."""
    shell.set_custom_exc((), None)


def _show(
    shell: Any, kind: type[BaseException], error: Any, trace: TracebackType, tb_offset: int | None = None
) -> None:
    _suggest(shell, error)
    if not hasattr(error, "_render_traceback_") and error_report.is_ours(error):
        error._render_traceback_ = functools.partial(error_report.render, error)
    if isinstance(error, UsageError):
        label = "UsageError: "
        shell.show_usage_error(error_report.wrapped(f"{label}{error}").removeprefix(label))
        return
    error.__traceback__ = begins = _in_cell(trace)
    shell.showtraceback((kind, error, begins), tb_offset=tb_offset, running_compiled_code=begins is trace)


def _in_cell(trace: Any) -> Any:
    """A traceback without the frames that lead to a cell which a magic runs."""
    names = [(frame.filename, frame.name) for frame in traceback.extract_tb(trace)]
    for _ in range(max((i for i, name in enumerate(names, 1) if name == (task_cell.__file__, "run_cell")), default=0)):
        trace = trace.tb_next
    return trace


def _suggest(shell: Any, error: BaseException) -> None:
    """Add what was meant to the error of an attribute or magic of ours that is not there: `cluster.targt`."""
    if isinstance(error, AttributeError) and error.name and type(error.obj).__module__.startswith("dtflab."):
        is_pythons = str(error).endswith(f"'{error.name}'")  # an error of ours goes on, and says what to do
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        if is_pythons and (meant := did_you_mean(error.name, names).strip()):
            error.add_note(meant)
    elif isinstance(error, UsageError) and (wrong := _NO_MAGIC.search(str(error))):
        there = shell.magics_manager.lsmagic()
        ours = [name.removeprefix("dtf_") for kind in there.values() for name in kind if name.startswith("dtf_")]
        for name in near(wrong[1], ours):  # the beginning of them all is not a likeness
            error.args = (f"{error} Did you mean {'%%dtf_' if f'dtf_{name}' in there['cell'] else '%dtf_'}{name}?",)

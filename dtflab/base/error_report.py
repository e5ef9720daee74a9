"""The notebook's view of an error of this package, or of a function that it calls: the user's lines, no library frames.

IPython asks an exception for `_render_traceback_` and prints that in place of its own traceback. An OpError has it, and
so has a Ctrl-C in a step; to Python's own classes notebook/tracebacks.py gives it. To see every frame asks for another
mode than the usual one: `%tb plain` for the last error, `%xmode plain` for all.
"""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
import textwrap
import traceback
from typing import TYPE_CHECKING, Any, cast

from dtflab.base.ipython import current_shell

if TYPE_CHECKING:
    from dtflab.base.errors import OpError

_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NOTEBOOK = os.path.join(_LIBRARY, "notebook", "")
_MACHINERY = re.compile(r"[/\\](?:(?:IPython|ipykernel)[/\\]|(?:threading|runpy|contextlib)\.py$)")
_NODE = re.compile(r"\s*\[\[\{\{node [^}]+\}\}\]\](?: on \S+((?: in iteration \d+ of \S+)*))?")
_MAGIC = re.compile(r"""get_ipython\(\)\.run_line_magic\('(\w+)', (['"])(.*)\2\)""")  # what a cell's %magic has become
_USUAL_MODE = "Context"
_MOST_LINES = 6
_COLUMNS = 78  # longer lines break inside words in JupyterLab: as many fit at 1280 pixels next to the list of files


def is_ours(error: BaseException) -> bool:
    """Whether an error passed through this package: its own, or that of a user's function which it called.

    A magic between a cell and the code in it does not count.
    """
    ran = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    outside = [name for name in ran if not _MACHINERY.search(name) and not _is_installed(name)]
    ours = [name for name in outside if name.startswith(_LIBRARY)]
    return any(name == outside[-1] or not name.startswith(_NOTEBOOK) for name in ours)


def cell(filename: str) -> str:
    """`Cell In[3]` for what IPython calls the code of a cell, else an empty string."""
    named = shell.compile.format_code_name(filename) if (shell := current_shell()) is not None else None
    return " ".join(named) if named else ""


def wrapped(text: str, hanging: int = 0) -> str:
    """A text whose lines are broken at words; the new ones are indented by `hanging` columns."""
    indent = " " * hanging
    wrapper = textwrap.TextWrapper(_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(wrapper.fill, text.split("\n")))


def render(error: BaseException) -> list[str]:
    """The lines that IPython prints for `error`."""
    shell = current_shell()
    mode = getattr(getattr(shell, "InteractiveTB", None), "mode", _USUAL_MODE)
    if shell is not None and mode != _USUAL_MODE:
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
        return lines
    name = type(error).__name__
    return [f"\x1b[31m{name}\x1b[0m{_short(error).removeprefix(name)}"]


def _short(error: BaseException) -> str:
    rows = list[tuple[str, Any]]()
    if hasattr(error, "node_name"):  # an OpError, whose module imports this one
        message, rows = _facts(cast("OpError", error))
    else:
        message = "The run was interrupted." if isinstance(error, KeyboardInterrupt) else str(error)
    run = [_place(frame.filename, frame.lineno or 0, frame.name) for frame in _own_frames(error)]
    if len(run) > _MOST_LINES:
        run[2 : 3 - _MOST_LINES] = [f"… {len(run) - _MOST_LINES + 1} more"]
    rows += [("run in" if i == 0 else "", place) for i, place in enumerate(run)]
    head = f"{type(error).__name__}: {message}".rstrip(": \n")
    facts = "\n".join(wrapped(f"  {title:<8} {fact}", 11) for title, fact in rows)
    notes = map(wrapped, getattr(error, "__notes__", ()))
    return "\n\n".join(filter(None, (wrapped(head), facts, *notes, "All frames: %tb plain")))


def _facts(error: OpError) -> tuple[str, list[tuple[str, Any]]]:
    """The message, without the facts listed below it, and where the op is and was made."""
    facts = [("op", error.node_name), ("device", error.device), ("task", None if error.device else error.task)]
    found = _NODE.search(error.message)
    facts.append(("loop", found and (found[1] or "").removeprefix(" in ")))
    rows = [(title, fact) for title, fact in facts if fact]
    if error.line is not None:
        code, number = error.line
        rows.append(("made in", _place(code.co_filename, number, code.co_name)))
    message = _NODE.sub("", error.message) if error.node_name else error.message
    return message, rows


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames between what runs cells and what runs steps, and those of the user's functions that a step calls."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _MACHINERY.search(f.filename)]
    first = next((i for i, f in enumerate(frames) if f.filename.startswith(_LIBRARY)), len(frames))
    called = [f for f in frames[first:] if not (f.filename.startswith(_LIBRARY) or _is_installed(f.filename))]
    return [f for f in frames[:first] if not _is_installed(f.filename)] + [f for f in called if f.line]  # not compiled


def _is_installed(filename: str) -> bool:
    """Whether a file is Python's or of an installed package; this one may be one of these."""
    return filename.startswith(_INSTALLED) and not filename.startswith(_LIBRARY)


def _place(filename: str, number: int, function: str) -> str:
    """`Cell In[3], line 2, in build:  loss = …` or the same with a file."""
    text = cell(filename) or filename
    text += f", line {number}" + ("" if function == "<module>" else f", in {function}")
    source = _MAGIC.sub(r"%\1 \3", linecache.getline(filename, number).strip())
    return f"{text}:  {source}" if source else text

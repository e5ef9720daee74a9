"""Lines for the person in front of the program: waiting for tasks, `tf.Print`, marks, tables.

TensorFlow writes its lines to stderr. In a notebook stderr is a red box, and costs marks under nbgrader, so there they
go to the cell's standard output.

Rule: a letter that a terminal does not have (ASCII, an old Windows console) is replaced by a plain one.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

from dtflab.base.ipython import current_shell

_PLAIN = {"✓": "+", "✗": "x", "→": "->", "×": "x", "÷": "/", "·": "-", "–": "-", "−": "-", "…": "...",
          "«": '"', "»": '"', "µ": "u", "≤": "<=", "≥": ">="}  # fmt: skip


def in_notebook() -> bool:
    """True inside a Jupyter kernel."""
    return hasattr(current_shell(), "kernel")


def say(text: str) -> None:
    """Write one line: to stderr, or in a notebook to standard output."""
    stream = sys.stdout if in_notebook() else sys.stderr
    if _mark:  # in one write, so no line of another thread's gets into it
        _write("".join(f"{_mark}{line}\n" for line in text.split("\n")), stream, "", flush=True)
    else:
        _write(text, stream, "\n", flush=True)


def mark_lines(mark: str) -> None:
    """From now on, begin each line of `say` with a mark, by which a parent process knows it among what this prints."""
    global _mark
    _mark = mark


def aside() -> Callable[[str], object]:
    """The function for a line that the person in front also gets from another task.

    It is `say`, or writes where only the log has it if a parent process shows what is said.
    """
    return _log if _mark else say


def _log(text: str) -> None:
    _write(text, sys.stderr, "\n", flush=True)


_mark = ""


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """In this block, nobody wants to know what the calls of this thread wait for: a queue runner mostly waits."""
    before = tell_to(_ignore)
    try:
        yield
    finally:
        tell_to(before)


def tell_to(tell: Callable[[str], object]) -> Callable[[str], object]:
    """From now on, have `tell` say what a call of this thread waits for; returns the function that did before."""
    before = listener()
    _of_thread.tell = tell
    return before


def listener() -> Callable[[str], object]:
    """The function that says what a call of this thread waits for."""
    found: Callable[[str], object] = getattr(_of_thread, "tell", say)
    return found


def _ignore(text: str) -> None:
    """Say nothing."""


_of_thread = threading.local()


def show(text: object, end: str = "\n", flush: bool = False) -> None:
    """Print to standard output what was asked for: a mark, a table."""
    _write(str(text), sys.stdout, end, flush)


def _write(text: str, stream: TextIO, end: str, flush: bool) -> None:
    print(plain(text, getattr(stream, "encoding", None) or "utf-8"), end=end, file=stream, flush=flush)


def plain(text: str, encoding: str) -> str:
    """The text in letters of an encoding: others are replaced by plain ones, or spelled as `\\u4e2d`."""
    if _has(encoding, text):
        return text
    return "".join(letter if _has(encoding, letter) else _PLAIN.get(letter, _spelled(letter)) for letter in text)


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _spelled(letter: str) -> str:
    return letter.encode("ascii", "backslashreplace").decode("ascii")

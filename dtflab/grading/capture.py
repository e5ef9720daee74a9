"""Keep for the report everything that an answer prints, warns and logs while it is judged.

nbgrader gives no point to a cell that writes to stderr before its result, and a warning is enough for that. Left out:
what other processes and C libraries write. The kept text has a limit, for answers that print forever.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import warnings
from collections.abc import Iterator

MOST = 4000  # characters kept


class Kept(io.TextIOBase):
    """A file that keeps the first characters and counts the others."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = MOST
        self._dropped = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        kept = text[: self._room]
        self._parts.append(kept) if kept else None
        self._room -= len(kept)
        self._dropped += len(text) - len(kept)
        return len(text)

    @property
    def text(self) -> str:
        more = f"\n… and {self._dropped:,} characters more" if self._dropped else ""
        return "".join(self._parts) + more


@contextlib.contextmanager
def captured() -> Iterator[Kept]:
    """Everything that the process writes meanwhile, on whichever thread."""
    kept = Kept()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(kept))
        stack.enter_context(contextlib.redirect_stderr(kept))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", ResourceWarning)  # Python shows none of a file left open
        warnings.showwarning = functools.partial(_show, kept)
        for handler in _stream_handlers():
            stack.callback(handler.setStream, handler.stream)
            handler.setStream(kept)
        yield kept


def _show(kept: Kept, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    kept.write(warnings.formatwarning(message, category, filename, lineno))


def _stream_handlers() -> list[logging.StreamHandler[io.TextIOBase]]:
    """Handlers that hold the stream of the time when they were made."""
    known = logging.root.manager.loggerDict.values()
    loggers = [logging.root, *(log for log in known if isinstance(log, logging.Logger))]
    handlers = dict.fromkeys(handler for log in loggers for handler in log.handlers)
    return [handler for handler in handlers if type(handler) is logging.StreamHandler]

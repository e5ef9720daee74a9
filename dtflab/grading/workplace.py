"""The folder in which submissions run, and what a grading that was killed has left behind.

A grading holds a lock on its folder as long as it lives; the system opens it however the grading ends.

Rule: only what nobody holds is cleared away: the folder, and the processes that have it in their environment. Where
there is no /proc (macOS), such processes are not found.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dtflab.grading import isolation
from dtflab.machine.file_lock import FileLock

_LOCK = "lock"
_NEW, _READY = "dtflab-new-", "dtflab-grade-"  # it gets its name when it is locked


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder for this grading, which is deleted at the end. OSError if there is no room for one."""
    new = Path(tempfile.mkdtemp(prefix=_NEW))
    lock = FileLock(new / _LOCK)
    lock.acquire()
    folder = new.rename(new.with_name(new.name.replace(_NEW, _READY, 1)))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def clear_dead() -> None:
    """End what gradings that were killed have left running, and delete their folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_READY}*"):
        with contextlib.suppress(OSError):  # it is being deleted, or it is not the folder of a grading
            if folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
                _clear_if_dead(folder)


def _clear_if_dead(folder: Path) -> None:
    if not (folder / _LOCK).is_file():
        return
    lock = FileLock(folder / _LOCK)
    try:
        if lock.acquire():
            isolation.end_marked(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.close()

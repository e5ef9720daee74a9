"""Atomic files: written under a temporary name, renamed when they are complete. A full disk leaves the earlier ones.

Stands for `atomic_write_string_to_file` of `python/lib/io/file_io.py` and the temporary files of checkpoints.

Rules: a temporary file is locked as long as its writer lives; however the writer ends, the lock is released. So an
unlocked file was left behind, and the next writer of the same file removes it; the next checkpoint in the folder, all
of them. A folder is locked while several files are created or renamed in it, so it must be readable, too. If another
program keeps it locked, a writer goes on after a second, and removes nothing. Windows has no such locks: there nothing
is removed, and two writers of a file must take turns.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from dtflab.files.paths import reported

_PATIENCE_S = 1.0  # for a folder; a writer of ours keeps one for milliseconds
MARK = ".tempstate-"  # TensorFlow's has no dash: its temporary files have no lock, and are left alone


@contextlib.contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """A file next to `path` under a temporary name; removed at the end of the block unless it was renamed."""
    temporary = f"{path}{MARK}{os.urandom(8).hex()}"
    with contextlib.ExitStack() as stack:
        with reported(path), held(path):  # a clean-up never sees it unlocked
            file = open(temporary, "xb")  # noqa: SIM115 - closed below
            stack.callback(_remove, temporary)
            stack.enter_context(_locked(temporary))
        with reported(path), file:
            yield file


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A new file that replaces `path` when the block succeeds, and is removed when it fails."""
    with new_file(path) as file:
        yield file
        with reported(path):
            file.close()
            os.replace(file.name, path)
            with held(path) as is_locked:
                if is_locked:
                    remove_leftovers(path)


@contextlib.contextmanager
def held(path: str) -> Iterator[bool]:
    """Lock the folder of `path`; others wait. False if another program keeps it locked, or it can't be locked."""
    with _locked(os.path.dirname(path) or ".", _PATIENCE_S) as is_locked:
        yield is_locked


def remove_leftovers(path: str, ending: str = "") -> None:
    """Remove what dead writers of `path`, with any ending that matches `ending`, left. Needs the folder's lock."""
    folder, name = os.path.split(path)
    remove_leftovers_in(folder, re.escape(name) + ending)


def remove_leftovers_in(folder: str, names: str = ".+", wanted: Callable[[str], bool] = lambda path: False) -> None:
    """Remove what dead writers of files with such names left, except the paths that are `wanted`.

    Needs the folder's lock.
    """
    left = re.compile(names + re.escape(MARK) + "[0-9a-f]+", re.S)
    for path in [os.path.join(folder, name) for name in filter(left.fullmatch, os.listdir(folder or "."))]:
        with contextlib.suppress(OSError), _locked(path) as is_unused:
            if is_unused and not wanted(path):
                _remove(path)


if sys.platform == "win32":

    @contextlib.contextmanager
    def _locked(path: str, patience: float = 0.0) -> Iterator[bool]:
        yield False

else:
    import fcntl

    @contextlib.contextmanager
    def _locked(path: str, patience: float = 0.0) -> Iterator[bool]:
        """A lock on a file or folder. False if somebody else keeps it for `patience` seconds, or there are no locks."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe of that name is not waited for
        try:
            yield _lock(descriptor, patience)
        finally:
            os.close(descriptor)

    def _lock(descriptor: int, patience: float) -> bool:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= end:
                    return False
                time.sleep(0.01)
            except OSError:  # a file system that has none
                return False


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def make_parent(path: str) -> None:
    """Make the last directory of the way to `path`, as TensorFlow does; those above must exist."""
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        with reported(parent), contextlib.suppress(FileExistsError):
            os.mkdir(parent)

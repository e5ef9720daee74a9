"""Env: the files that a task opens for the steps that run there.

Stands for `core/platform/env.h`, which every kernel asks for its files (`ctx->env()`). TensorFlow's opens whatever its
user may; so does `DEFAULT` here. A server that other machines can reach gets a `GuardedEnv` (`cluster/server.py`).

Rules: an op opens, lists and measures files through its task's Env alone (`tests/cluster/test_files_of_steps.py` finds
one that does not). A guarded path is resolved first, with all its links, and then checked. A file is opened from the
allowed folder down without following links, so a link that replaces a part of the path meanwhile leads nowhere.
Checkpoints are renamed and folders are made by their resolved paths: there, a user of the same machine with the right
to write in the folder could still win a race.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Iterable
from typing import IO, Any, BinaryIO

from dtflab.base import errors
from dtflab.files.paths import local, reported
from dtflab.files.patterns import glob

_refused = errors.PermissionDeniedError.of


class Env:
    """All files that the user of this process may open."""

    folder: str | None = None  # the one in which they lie; "": there are none

    def path(self, name: Any) -> str:
        """The local path of a file or folder that a step names."""
        return local(name)

    def prefix(self, name: Any) -> str:
        """The local path of a file that is to be made, or of the common beginning of a checkpoint's files."""
        return local(name)

    def open(self, name: Any, mode: str = "rb", buffering: int = -1) -> BinaryIO:
        """The file of that name, opened for bytes; an error of the system is raised as TensorFlow's."""
        with reported(name):
            file: Any = self._opened(self.path(name), mode, buffering)
        return file  # type: ignore[no-any-return]

    def _opened(self, path: str, mode: str, buffering: int) -> IO[Any]:
        return open(path, mode, buffering)

    def open_for(self, owner: object, name: Any, buffering: int) -> BinaryIO:
        """Open a file to read, and close it when its owner is garbage.

        `__del__` of the owner would not do: of garbage in a cycle, the file may be finalized first, with a
        ResourceWarning.
        """
        file = self.open(name, buffering=buffering)
        weakref.finalize(owner, file.close)
        return file

    def glob(self, patterns: Iterable[str]) -> list[str]:
        """The existing paths that match one of the patterns."""
        return [path for pattern in patterns for path in glob(pattern, self.path)]


DEFAULT = Env()


class GuardedEnv(Env):
    """The files beneath `folder`, or none if it is None; PermissionDeniedError for any other path.

    `task`, which other machines can reach, is named in errors. Raises NotADirectoryError if there is no such folder.
    """

    folder: str

    def __init__(self, task: str, folder: Any = None) -> None:
        self._task = task
        self.folder = "" if folder is None else os.path.realpath(local(folder))
        if folder is not None and not os.path.isdir(local(folder)):
            raise NotADirectoryError(
                errno.ENOTDIR,
                "allow_files must name an existing folder, in which the server may open files; create it first",
                os.fspath(folder),
            )

    def path(self, name: Any) -> str:
        return self._resolved(local(name), name)

    def prefix(self, name: Any) -> str:
        folder, slash, rest = local(name).rpartition("/")
        return os.path.join(self._resolved(folder + slash or ".", name), rest)

    def _resolved(self, path: str, name: Any) -> str:
        """The path without links, if it is in the folder; `name` is what the step asked for."""
        if not self.folder:
            raise _refused(
                f"{name} may not be opened: other machines can reach {self._task}, and a step there or in its sessions "
                "opens no file unless its server was started with a folder for files: tf.train.Server(…, "
                "allow_files='FOLDER')."
            )
        path = os.path.realpath(path)
        if path != self.folder and not path.startswith(os.path.join(self.folder, "")):
            raise _refused(
                f"{name} may not be opened: a step on {self._task}, or in its sessions, opens only files in "
                f"{self.folder}, with which its server was started (allow_files). Use a path in that folder, or start "
                "the server with another one."
            )
        return path

    def _opened(self, path: str, mode: str, buffering: int) -> IO[Any]:
        return open(path, mode, buffering, opener=self._open_beneath if _BENEATH else None)

    def _open_beneath(self, path: str, flags: int) -> int:
        """Open a resolved path part by part, from the allowed folder down."""
        *folders, name = os.path.relpath(path, self.folder).split(os.sep)
        at = os.open(self.folder, _FOLDER)
        try:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=at)
                os.close(at)
                at = inner
            file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=at)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _refused(f"{path} may not be opened: a part of it has been replaced meanwhile.") from None
            raise
        finally:
            os.close(at)
        if stat.S_IFMT(os.fstat(file).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
            os.close(file)
            raise _refused(f"{path} may not be opened: it is a pipe, a socket or a device, not a file.")
        return file


_BENEATH = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")  # elsewhere the resolved path is opened
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)

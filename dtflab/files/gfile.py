"""Files and folders behind TensorFlow's interface, with TensorFlow's errors.

Stands for `python/lib/io/file_io.py` and `tsl/platform/posix/posix_file_system.cc`. Left out: file systems other than
the local one. The names here are those of `tf.io.gfile`; `dtflab/api/gfile.py` has TF1's (`tf.gfile.Exists`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from dtflab.base import errors
from dtflab.base.closing import Closing
from dtflab.files.paths import local, reported
from dtflab.files.patterns import glob as _glob

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class FileStatistics(NamedTuple):
    """Size in bytes, time of the last change in nanoseconds, and whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


class GFile(Closing):
    """A file. It is opened when it is first read or written, and errors are raised then.

    Reads and writes have a position each; a read flushes earlier writes first. Writing starts with an empty file, also
    in the modes `r+` and `w+`; only `a` and `a+` append.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        """`mode` is r, w, a, r+, w+ or a+, with a b to read bytes instead of text."""
        plain = mode.replace("b", "")
        if plain not in _MODES:
            raise errors.InvalidArgumentError.of("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._name = name
        self._mode = mode
        self._may_read = plain not in ("w", "a")
        self._may_write = plain != "r"
        self._reader: BinaryIO | None = None
        self._writer: BinaryIO | None = None

    @property
    def name(self) -> Any:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _reading(self) -> BinaryIO:
        if self._reader is None:
            if not self._may_read:
                raise errors.PermissionDeniedError.of("File isn't open for reading")
            with reported(self._name):
                self._reader = open(local(self._name), "rb")  # noqa: SIM115 - `close` closes it
        return self._reader

    def _writing(self) -> BinaryIO:
        if self._writer is None:
            if not self._may_write:
                raise errors.PermissionDeniedError.of("File isn't open for writing")
            with reported(self._name):
                self._writer = open(local(self._name), "ab" if "a" in self._mode else "wb")  # noqa: SIM115
        return self._writer

    def _text(self, data: bytes) -> Any:
        return data if "b" in self._mode else data.decode()

    def size(self) -> int:
        """Length of the file in bytes."""
        return stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes, or all that are left if `n` is -1; as text unless the mode has a b."""
        file = self._reading()
        if n < -1:
            raise errors.InvalidArgumentError.of(f"Can't read a negative number of bytes: {n}")
        return self._text(file.read(n))

    def readline(self) -> Any:
        """The next line with its newline; empty at the end."""
        return self._text(self._reading().readline())

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        return list(self)

    def write(self, file_content: str | bytes) -> None:
        """Append text (as UTF-8) or bytes."""
        file = self._writing()
        if not isinstance(file_content, str | bytes | bytearray):
            raise TypeError(f"Expected binary or unicode string, got {file_content!r}")
        with reported(self._name):
            file.write(file_content.encode() if isinstance(file_content, str) else file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Read next at `offset` from the start (`whence` 0), the current position (1) or the end (2)."""
        file = self._reading()
        if offset is None and position is None:
            raise TypeError("seek(): offset argument required")
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError.of(f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2.")
        target = (position if offset is None else offset) + (0, file.tell(), self.size())[whence]  # type: ignore[operator]
        if target < 0:
            raise errors.InvalidArgumentError.of(f"Seeking to a negative position: {target}")
        if target > self.size():
            raise errors.OutOfRangeError.of("reached end of file")
        file.seek(target)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        """The position of the next read, or of the next write in modes that can't read."""
        return self._reading().tell() if self._may_read else self._writing().tell()

    def flush(self) -> None:
        """Let other readers see what has been written."""
        if self._writer is not None:
            with reported(self._name):
                self._writer.flush()

    def close(self) -> None:
        """Write what is left. A later read or write opens the file again."""
        for file in (self._reader, self._writer):
            if file is not None:
                with reported(self._name):
                    file.close()
        self._reader = self._writer = None

    def __del__(self) -> None:
        if hasattr(self, "_writer"):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__


# -- files --------------------------------------------------------------------------------------------


def exists(path: Any) -> bool:
    """Whether there is a file or folder of that name."""
    return os.path.exists(local(path))


def stat(path: Any) -> FileStatistics:
    """Size, time of change and kind. Raises NotFoundError if it does not exist."""
    with reported(path):
        found = os.stat(local(path))
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(local(path)))


def remove(path: Any) -> None:
    """Delete a file. Raises NotFoundError if it does not exist, FailedPreconditionError for a folder."""
    with reported(path):
        os.unlink(local(path))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file. Raises AlreadyExistsError if `dst` exists, unless `overwrite` is true."""
    _check_free(dst, overwrite)
    stat(src)
    if isdir(src):
        raise errors.InvalidArgumentError.of(f"{src}; a folder can't be copied, only the files in it")
    with reported(dst):
        import shutil  # with three compressors: `import dtflab` need not wait for it

        shutil.copyfile(local(src), local(dst))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Move a file or folder. Raises AlreadyExistsError if `dst` exists, unless `overwrite` is true."""
    _check_free(dst, overwrite)
    with reported(src):
        os.replace(local(src), local(dst))


def _check_free(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise errors.AlreadyExistsError.of("file already exists")


def glob(pattern: str | Iterable[str]) -> list[str]:
    """Existing paths that match the pattern or one of several: `*`, `?`, `[a-z]`, `[^a-z]`, no recursion by `**`."""
    return _glob(pattern) if isinstance(pattern, str) else [path for one in pattern for path in _glob(one)]


# -- folders ------------------------------------------------------------------------------------------


def isdir(path: Any) -> bool:
    """Whether the path is a folder."""
    return os.path.isdir(local(path))


def listdir(path: Any) -> list[str]:
    """The names in a folder, in any order. Raises NotFoundError if the folder does not exist."""
    if not isdir(path):
        raise errors.NotFoundError.of(f"Could not find directory {path}")
    with reported(path):
        return os.listdir(local(path))


def mkdir(path: Any) -> None:
    """Make a folder in an existing one, if it does not exist yet."""
    if local(path) and not exists(path):
        with reported(path):
            os.mkdir(local(path))


def makedirs(path: Any) -> None:
    """Make a folder and its missing parents. Raises FailedPreconditionError if one of them is a file."""
    done = ""
    for part in local(path).split("/"):
        done += part + "/"
        if not isdir(done):
            if exists(done[:-1]):
                raise errors.FailedPreconditionError.of(f"{done[:-1]} is not a directory")
            mkdir(done[:-1])


def rmtree(path: Any) -> None:
    """Delete a folder with its contents, or a file. Raises NotFoundError if it does not exist."""
    if not exists(path):
        raise errors.NotFoundError.of(f"{path} not found")
    if not isdir(path):
        return remove(path)
    with reported(path):
        import shutil

        shutil.rmtree(local(path))


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[errors.OpError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, folders in it, files in it) for `top` and all below; a folder that can't be listed goes to `onerror`."""
    try:
        names = listdir(top)
    except errors.NotFoundError as error:
        if onerror is not None:
            onerror(error)
        return
    folders = [name for name in names if isdir(join(top, name))]
    here = (os.fspath(top), folders, [name for name in names if name not in folders])
    if topdown:
        yield here
    for folder in folders:
        yield from walk(join(top, folder), topdown, onerror)
    if not topdown:
        yield here


def join(path: Any, *paths: Any) -> str:
    """The parts of a path, joined by `/`."""
    joined: str = os.path.join(path, *paths)
    return joined


def get_registered_schemes() -> list[str]:
    """The kinds of paths that can be used: plain ones and `file://`."""
    return ["", "file"]

"""tf.gfile: files and folders under TF1's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.files import gfile as _gfile
from dtflab.files.gfile import GFile

Open = GFile


class FastGFile(GFile):
    """A GFile by the name that it had before."""


def Exists(filename: Any) -> bool:
    """Whether there is a file or folder of that name."""
    return _gfile.exists(filename)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file; AlreadyExistsError if `newpath` is there and not to be overwritten."""
    _gfile.copy(oldpath, newpath, overwrite)


def Remove(filename: Any) -> None:
    """Delete a file; NotFoundError if there is none."""
    _gfile.remove(filename)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Move a file or folder; AlreadyExistsError if `newname` is there and not to be overwritten."""
    _gfile.rename(oldname, newname, overwrite)


def Glob(filename: str | Iterable[str]) -> list[str]:
    """Existing paths that match a pattern, or one of several."""
    return _gfile.glob(filename)


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a folder, in no order; NotFoundError if there is no such folder."""
    return _gfile.listdir(dirname)


def IsDirectory(dirname: Any) -> bool:
    """Whether the path is a folder."""
    return _gfile.isdir(dirname)


def MkDir(dirname: Any) -> None:
    """Make a folder in an existing one."""
    _gfile.mkdir(dirname)


def MakeDirs(dirname: Any) -> None:
    """Make a folder and the missing ones around it."""
    _gfile.makedirs(dirname)


def DeleteRecursively(dirname: Any) -> None:
    """Delete a folder with all in it."""
    _gfile.rmtree(dirname)


def Stat(filename: Any) -> _gfile.FileStatistics:
    """Size, time of change and kind; NotFoundError if it does not exist."""
    return _gfile.stat(filename)


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, folders in it, files in it) for `top` and all below it."""
    return _gfile.walk(top, in_order)


__getattr__ = _missing_in("tf.gfile", globals())

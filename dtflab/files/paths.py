"""Paths as TensorFlow takes them, and the operating system's errors as TensorFlow's.

Stands for `tsl/platform/posix/error.cc` and the registry of file systems in `env.cc`. Left out: all file systems but
the local one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from dtflab.base import errors
from dtflab.base.malformed import MALFORMED, said

_ERRNOS: dict[type[errors.OpError], str] = {
    errors.InvalidArgumentError: "EINVAL ENAMETOOLONG E2BIG ESPIPE EILSEQ",
    errors.NotFoundError: "ENOENT ENODEV ENXIO",
    errors.AlreadyExistsError: "EEXIST",
    errors.PermissionDeniedError: "EPERM EACCES EROFS",
    errors.FailedPreconditionError: "ENOTEMPTY EISDIR ENOTDIR EBADF EBUSY ETXTBSY",
    errors.ResourceExhaustedError: "ENOSPC EDQUOT EMFILE ENFILE EMLINK ENOMEM",
    errors.OutOfRangeError: "EFBIG EOVERFLOW",
    errors.UnimplementedError: "ENOSYS ENOTSUP EXDEV",
    errors.UnavailableError: "EAGAIN EINTR",
}
_CLASS_OF_ERRNO = {getattr(errno, name): kind for kind, names in _ERRNOS.items() for name in names.split()}


def local(path: Any) -> str:
    """The path of a local file.

    Raises UnimplementedError for a scheme other than `file://`, InvalidArgumentError for a zero byte.
    """
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not isinstance(name, str):
        raise TypeError(f"Expected binary or unicode string, got {path!r}")
    if "\0" in name:  # TensorFlow takes what is before it
        raise errors.InvalidArgumentError.of(f"{name!r} is not a path: no name of a file has a zero byte in it.")
    scheme, separator, rest = name.partition("://")
    if not separator or not scheme.isalnum():
        return name
    if scheme != "file":
        raise errors.UnimplementedError.of(
            f"File system scheme '{scheme}' not implemented (file: '{name}'); dtflab has local files only, "
            "with or without 'file://'."
        )
    return rest


@contextlib.contextmanager
def reported(path: Any) -> Iterator[None]:
    """Raise an OSError in the block as TensorFlow's error about `path`."""
    try:
        yield
    except OSError as error:
        kind = _CLASS_OF_ERRNO.get(error.errno or 0, errors.UnknownError)
        hint = _FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise kind.of(f"{path}; {os.strerror(error.errno) if error.errno else error}{hint}") from None


@contextlib.contextmanager
def intact(path: Any) -> Iterator[None]:
    """Raise what is said in the block about damaged content as an error that names the file.

    What Python itself raises is a DataLossError; ResourceExhaustedError if memory is full.
    """
    try:
        yield
    except errors.OpError as error:
        if str(path) in error.message:
            raise
        raise type(error).of(f"{error.message}; in file {path}") from None
    except MALFORMED as error:
        raise errors.DataLossError.of(f"{path} is damaged: {said(error)}") from error
    except MemoryError as error:
        raise errors.ResourceExhaustedError.of(f"Out of memory while {path} was read: {error}") from None


_FULL = "\nWhat to do: free some space in that file system, or write to another one."

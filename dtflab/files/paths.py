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

_CLASS_OF_ERRNO: dict[int, type[errors.OpError]] = {
    **dict.fromkeys(
        (errno.EINVAL, errno.ENAMETOOLONG, errno.E2BIG, errno.ESPIPE, errno.EILSEQ), errors.InvalidArgumentError
    ),
    **dict.fromkeys((errno.ENOENT, errno.ENODEV, errno.ENXIO), errors.NotFoundError),
    errno.EEXIST: errors.AlreadyExistsError,
    **dict.fromkeys((errno.EPERM, errno.EACCES, errno.EROFS), errors.PermissionDeniedError),
    **dict.fromkeys(
        (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EBADF, errno.EBUSY, errno.ETXTBSY),
        errors.FailedPreconditionError,
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EMLINK, errno.ENOMEM),
        errors.ResourceExhaustedError,
    ),
    **dict.fromkeys((errno.EFBIG, errno.EOVERFLOW), errors.OutOfRangeError),
    **dict.fromkeys((errno.ENOSYS, errno.ENOTSUP, errno.EXDEV), errors.UnimplementedError),
    **dict.fromkeys((errno.EAGAIN, errno.EINTR), errors.UnavailableError),
}


def local(path: Any) -> str:
    """The path of a local file. Raises UnimplementedError for a scheme other than `file://`."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not isinstance(name, str):
        raise TypeError(f"Expected binary or unicode string, got {path!r}")
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
        raise kind.of(f"{path}; {os.strerror(error.errno) if error.errno else error}") from None

"""FileLock: a lock on a file, between processes. The operating system opens it when the process ends, however it ends.

Stands for nothing in TensorFlow. Left out: waiting; a caller that waits asks again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import contextlib
    import msvcrt

    _FAR = 1 << 30  # bytes that nobody reads or writes: Windows keeps others from locked ones

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        with contextlib.suppress(PermissionError):  # it was not locked
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """A lock on the file at `path`, which is made if it is not there."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def acquire(self) -> bool:
        """True if the lock is now held, False if somebody else holds it."""
        try:
            _lock(self.descriptor)
        except OSError as error:
            if isinstance(error, PermissionError | BlockingIOError):
                return False
            raise
        return True

    def release(self) -> None:
        """Let others have it; nothing happens if it is not held."""
        _unlock(self.descriptor)

    def close(self) -> None:
        """Close the file; the lock goes with it."""
        os.close(self.descriptor)

"""Host memory: what a step has freed is there for the next one, in the process of a server.

Stands for nothing in TensorFlow, which leaves the C library as it is.

glibc takes a block of more than 32 MiB from the system each time, and gives it back as soon as it is freed. So each
step touches the pages of its large tensors for the first time, which took a third of adding 1 to 64 MiB.

Rules: only a server that other processes can reach changes how its process keeps memory; a program that just imports
dtflab finds it as it was. Blocks above `LARGEST` go back at once, as ever. All that is kept goes back when a client in
another process closes its session. Where the C library is not glibc, nothing changes.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

LARGEST = 128 << 20  # bytes of a block that is kept
_MOST_AT_THE_END = 256 << 20  # bytes that are kept at the end of the heap, whatever its blocks were
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # the names of settings in glibc's malloc.h


@functools.cache
def _glibc() -> Any:
    """The C library, if it has glibc's settings, else None."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


@functools.cache
def keep() -> None:
    """From now on, keep what is freed for the next allocation. Threads share it: a heap of their own has 64 MiB."""
    if (library := _glibc()) is not None:
        for setting, value in ((_MMAP_THRESHOLD, LARGEST), (_TRIM_THRESHOLD, _MOST_AT_THE_END), (_ARENA_MAX, 1)):
            library.mallopt(setting, value)


def give_back() -> None:
    """Give what is kept back to the system."""
    if (library := _glibc()) is not None:
        library.malloc_trim(0)

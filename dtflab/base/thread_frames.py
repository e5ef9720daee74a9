"""Frames of threads: what another thread of this process is doing, read without a collection.

Stands for nothing in TensorFlow, whose threads record what they wait for.

Rule: no other module asks the interpreter for them, as a collection must not come meanwhile.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType

from dtflab.base.garbage import NO_COLLECTION


def current_frames() -> dict[int, FrameType]:
    """The current frame of each thread, by its ident.

    Python 3.11 makes the frames under a lock of the interpreter. A collection there may run a finalizer that waits, and
    a thread that begins or ends meanwhile would want the lock: nobody would ever go on.
    """
    with NO_COLLECTION:
        return sys._current_frames()


def is_joining(ident: int | None) -> bool:
    """True if that thread is in a function of `threading`: it joins another one, or waits for one in real time.

    The thread may be the program's own, which records nothing about itself; only its frame shows it.
    """
    frame = current_frames().get(ident or 0)
    return frame is not None and frame.f_globals is vars(threading)

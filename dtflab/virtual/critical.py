"""Critical sections of virtual time: which threads may be stopped from outside.

A grader ends an answer that takes too long by raising an exception in its thread (`grading/watchdog.py`). A thread that
is stopped in the middle of its turn would not pass the turn on, and all others would wait forever. So each thread keeps
a record of where it is, and `may_stop` reads the record of any thread.

Rule: a record changes by plain assignments. Python raises an exception from another thread at the beginning of a
Python function or after a call, so none arrives between an assignment and the next call.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import ContextDecorator


class _Record:
    """Where one thread is. Only that thread writes it."""

    sections = 0  # critical sections around what the thread does now
    awaited = 0  # those of them that other threads wait for
    waits = False  # the thread is blocked until its next turn


_records: weakref.WeakValueDictionary[int, _Record] = weakref.WeakValueDictionary()


class _Here(threading.local):
    def __init__(self) -> None:
        self.record = _records[threading.get_ident()] = _Record()


_here = _Here()


class _Section(ContextDecorator):
    """A block, or a decorated function, that is not stopped, except where it waits for its turn.

    In an `awaited` section the thread may not be stopped there either.
    """

    def __init__(self, awaited: bool = False) -> None:
        self._awaited = awaited

    def __enter__(self) -> None:
        record = _here.record
        record.awaited += self._awaited
        record.sections += 1

    def __exit__(self, *exc: object) -> None:
        record = _here.record
        record.sections -= 1
        record.awaited -= self._awaited


CRITICAL = _Section()
AWAITED = _Section(awaited=True)


def wait_for(baton: threading.Lock) -> None:
    """Acquire a thread's baton. The thread may be stopped meanwhile; the exception arrives once it has the baton."""
    record = _here.record
    record.waits = True
    try:
        baton.acquire()
    finally:
        record.waits = False


def may_stop(ident: int) -> bool:
    """Whether a thread may be stopped now: it is in no critical section, or it waits for its turn in one."""
    record = _records.get(ident)
    return record is None or not record.sections or (record.waits and not record.awaited)

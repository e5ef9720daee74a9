"""Rendezvous: a table of keys where the first of send and recv waits for the other.

Stands for `core/framework/rendezvous.h` and `base_rendezvous_mgr.cc`. Left out: buffers handed over by reference
between GPUs.

Rules: a key is used by one producer and one consumer, once per step; the consumer may ask before or after; a
producer never blocks; nobody waits on a thread, the consumer leaves a callback. Across tasks the consumer pulls:
it asks the producer's task (`RecvTensor`), unless that pushes (`pushing.py`): then the value comes by itself, once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.ops.cell import Cell


class _Dead:
    """The value of an edge whose producer was not taken (a branch of a Switch)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<dead>"


DEAD = _Dead()

Done = Callable[[object, Exception | None], None]  # done(value or DEAD, error)
SendOff = Callable[[], object]  # sends what was put into an outbox


Key = tuple[str, int, str, str]  # (send device, its incarnation, recv device, tensor name)


@lru_cache(4096)  # the same in each step
def full_key(key: Key, frame_iter: str) -> str:
    """The key as it stands in the table and on the wire; `frame_iter` is `0:0` outside of loops."""
    send_device, incarnation, recv_device, tensor_name = key
    return f"{send_device};{incarnation:016x};{recv_device};{tensor_name};{frame_iter}"


class Failed(NamedTuple):
    """In place of a value: why it does not come."""

    why: Callable[[], errors.OpError]


class Rendezvous:
    """The table of one step in one task."""

    __slots__ = ("_error", "_lock", "_table")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._table: dict[str, tuple[bool, Any]] = {}  # key → (is a value, the value or the waiter's callback)
        self._error: Exception | None = None

    def send(self, key: str, value: object) -> SendOff | None:
        """Publish `value` under `key`; never blocks. The result sends it off, if it is pushed to its consumer."""
        put: Callable[[], SendOff] | None = None
        with self._lock:
            if self._error is not None:
                raise self._error
            is_value, done = self._table.get(key, (False, None))
            if is_value:
                raise errors.AbortedError.of(f"Duplicated send: {key}")
            if done is None:
                self._table[key], put = self._kept(key, value)
            else:
                del self._table[key]
        if done is not None:
            hand_over(value, done)
        return put() if put is not None else None

    def _kept(self, key: str, value: object) -> tuple[tuple[bool, object], Callable[[], SendOff] | None]:
        """Under the lock: the entry of a value that nobody has asked for, and what puts it into an outbox."""
        return (True, value), None

    def recv_async(self, key: str, done: Done) -> None:
        """Call `done(value, None)` when `key` was sent, or `done(None, error)` when the step is aborted."""
        with self._lock:
            error, entry = self._error, self._table.get(key)
            if error is None:
                if entry is None:
                    self._table[key] = (False, done)
                    return
                if not entry[0]:
                    raise errors.AbortedError.of(f"Duplicated recv: {key}")
                del self._table[key]
        if error is not None or entry is None:
            done(None, error)
        else:
            hand_over(entry[1], done)

    def forget(self, key: str, done: Done) -> None:
        """The consumer no longer waits."""
        with self._lock:
            if self._table.get(key) == (False, done):
                del self._table[key]

    def abort(self, error: Exception) -> None:
        """Every waiter, now and later, gets `error`."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            waiters = [entry for is_value, entry in self._table.values() if not is_value]
            self._table.clear()
        for done in waiters:
            done(None, error)

    def waiting(self) -> list[str]:
        """Keys that somebody asked for and nobody has sent yet."""
        with self._lock:
            return [key for key, (is_value, _) in self._table.items() if not is_value]


def hand_over(value: object, done: Done) -> None:
    """Give `value` to its consumer; a variable is read now, so that the consumer sees all updates it waited for."""
    if isinstance(value, Failed):
        done(None, value.why())
    else:
        done(value_of(value), None)


def value_of(value: object) -> object:
    """The value itself; of a variable, that of now."""
    return value.read() if isinstance(value, Cell) else value


def fetched(i: int, name: str, value: object) -> object:
    """The client's value of fetch number `i`, of tensor `name`; InvalidArgumentError for a dead one."""
    if value is DEAD:
        raise errors.InvalidArgumentError.of(f"Retval[{i}] does not have value: {name} is on a branch not taken.")
    return value_of(value)  # a variable: its value at the end of the step


class RendezvousMgr:
    """The rendezvous of a task, by step. A consumer's request may come before the step itself."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a session on the thread that holds it
        self._steps: dict[int, Rendezvous] = {}
        self._ended: dict[int, None] = {}  # a late RecvTensor must not make a step again

    def find(self, step_id: int) -> Rendezvous:
        """The rendezvous of that step, made on first use; aborted if the step has ended."""
        with self._lock:
            found = self._steps.get(step_id)
            if found is None:
                found = self._new(step_id)
                if step_id in self._ended:
                    found._error = errors.AbortedError.of(f"Step {step_id} has ended.")
                else:
                    self._steps[step_id] = found
            return found

    def _new(self, step_id: int) -> Rendezvous:
        return Rendezvous()

    def cleanup(self, step_id: int, error: Exception | None = None) -> None:
        """Forget the step; requests that still wait in it get `error`."""
        with self._lock:
            found = self._steps.pop(step_id, None)
            self._ended[step_id] = None
            while len(self._ended) > 4096:
                del self._ended[next(iter(self._ended))]
        if found is not None:
            found.abort(error or errors.AbortedError.of(f"Step {step_id} has ended."))

    def abort_all(self, error: Exception) -> None:
        """The task ends: every waiting request gets `error`."""
        for step_id in list(self._steps):
            self.cleanup(step_id, error)

    def waiting(self) -> list[tuple[int, str]]:
        """(step, key) of every consumer that waits here."""
        return [(step_id, key) for step_id, rendezvous in list(self._steps.items()) for key in rendezvous.waiting()]

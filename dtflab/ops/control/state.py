"""The stacks and mutexes of a task.

Stands for the resources of `core/kernels/stack.cc` and `mutex_ops.cc`. Left out: copying swapped values while other
work runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from dtflab.graph.dtypes import DType
from dtflab.ops.messages import dtype_text, invalid

_SMALL = 2048  # bytes: a smaller value is not worth a copy
Done = Callable[[Any, Exception | None], Any]

# -- stacks -------------------------------------------------------------------------------------------


class OnHost(NamedTuple):
    """A value that has been moved to host memory."""

    array: Any


class StackState:
    """The tensors of one stack, the newest last; at most `max_size` of them, if that is not negative."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name, self.dtype, self.max_size = name, dtype, max_size
        self._values: list[Any] | None = []  # None: closed
        self._oldest = 1  # place that may be on the device; the first value stays there, it is needed last

    @property
    def values(self) -> list[Any]:
        if self._values is None:
            raise invalid(f"Stack[{self.name}] has already been closed.")
        return self._values

    def push(self, value: Any, dtype: DType) -> None:
        """Put a value of `dtype` on top."""
        if dtype != self.dtype:
            raise invalid(f"Must have type {dtype_text(self.dtype)} but got {dtype_text(dtype)}")
        if 0 <= self.max_size <= len(self.values):
            raise invalid(f"Stack[{self.name}] overflowed its max_size ({self.max_size})")
        self.values.append(value)

    def pop(self) -> Any:
        """Take what is on top."""
        if not self.values:
            raise invalid(f"Stack[{self.name}] is empty when calling Pop().")
        value = self.values.pop()
        self._oldest = max(1, min(self._oldest, len(self.values)))
        return value

    def swap_out(self, to_host: Callable[[Any], Any]) -> None:
        """Move the oldest large value that is on the device to host memory."""
        while self._oldest < len(self.values):
            value, place = self.values[self._oldest], self._oldest
            self._oldest += 1
            if value.nbytes > _SMALL and value is not self.values[0]:
                self.values[place] = OnHost(to_host(value))
                return

    def close(self) -> None:
        """Release all values; any later use is an error."""
        self._values = None


# -- mutexes ------------------------------------------------------------------------------------------


class Mutex:
    """Held by one token at a time; the others wait in line."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        self._line: deque[Done] = deque()

    def lock(self, done: Done) -> None:
        """Call `done(token, None)` once this caller holds the mutex."""
        with self._lock:
            if self._held:
                self._line.append(done)
                return
            self._held = True
        done(Token(self), None)

    def forget(self, done: Done) -> bool:
        """The caller no longer waits; False if its turn has come."""
        with self._lock:
            if done not in self._line:
                return False
            self._line.remove(done)
            return True

    def unlock(self) -> None:
        """Hand the mutex to the next in line, if there is one."""
        with self._lock:
            done = self._line.popleft() if self._line else None
            self._held = done is not None
        if done is not None:
            done(Token(self), None)


class Token:
    """The right to be in the critical section; it ends when nothing holds the token any more."""

    def __init__(self, mutex: Mutex) -> None:
        self._mutex: Mutex | None = mutex
        self.forget: Callable[[], Any] = lambda: None

    def release(self) -> None:
        """Leave the section, the first time that it is called."""
        mutex, self._mutex = self._mutex, None
        if mutex is not None:
            self.forget()
            mutex.unlock()

    __del__ = release

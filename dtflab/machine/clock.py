"""Clock: time, sleeping, threads and waiting, in one seam.

Stands for `platform/env.h` (Env::StartThread, NowMicros, …). Everything in dtflab that waits or starts a thread does
it through a Clock, from its first line on, so that a virtual clock can take the place of the real one: there,
clients are threads that pass a baton and waiting costs nothing.

Rule: threads are started in this file and nowhere else (a test looks). `Lock` and `threading.local` are free.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from dtflab.base import events


class Event(Protocol):
    """Something that threads wait for. `what` says to a person what it is, if it is worth reporting."""

    what: str

    def set(self) -> None: ...
    def clear(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Thread(Protocol):
    """A thread; it runs from `start()` on."""

    @property
    def name(self) -> str: ...
    def start(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


class Clock(Protocol):
    """The library's view of time. Seconds everywhere."""

    def now(self) -> float:
        """Seconds since some fixed moment; only differences mean anything."""

    def time(self) -> float:
        """Seconds since 1970, for what is shown and kept."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass for the calling thread."""

    def rest(self, seconds: float, what: str) -> None:
        """Sleep between two looks for `what` another thread has to do; an error if it is known that nobody will."""

    def event(self) -> Event:
        """A new event, not set."""

    def thread(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> Thread:
        """A thread, not yet started, that will call `target(*args)`; daemon threads end with the process."""

    def spawn(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> Thread:
        """A thread that has been started and calls `target(*args)`; see `thread`."""


class _Event:
    """An event at which Ctrl-C is always seen. That of `threading` is made of a condition, and costs three times as
    much.

    CPython looks for signals before and after a lock is waited for, not in the moment between its last look and the
    system call. One that comes just then would be seen when the wait ends: so the main thread, which alone sees
    signals, waits in stretches.
    """

    __slots__ = ("_is_set", "_waiting", "what")
    STRETCH = 0.5  # seconds

    def __init__(self) -> None:
        self.what = ""
        self._is_set = False
        self._waiting: dict[threading.Lock, None] = {}  # held, one for each thread that waits

    def set(self) -> None:
        self._is_set = True
        while self._waiting:
            with contextlib.suppress(KeyError):  # another thread was faster
                self._waiting.popitem()[0].release()

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """True once the event is set; False after `timeout` seconds."""
        if self._is_set:
            return True
        if (call := getattr(_of_thread, "before_wait", None)) is not None:
            call()
        lock = threading.Lock()
        lock.acquire()
        self._waiting[lock] = None
        try:
            return self._is_set or _comes(lock, timeout)  # set before it could see the lock, or from now on
        finally:
            self._waiting.pop(lock, None)


def before_waiting(call: Callable[[], object] | None) -> None:
    """Call `call()` whenever this thread is about to wait for a real event; None: no longer."""
    _of_thread.before_wait = call


def _comes(lock: threading.Lock, timeout: float | None) -> bool:
    """Whether another thread lets a lock go within `timeout` seconds."""
    end = math.inf if timeout is None else time.perf_counter() + timeout
    most = _Event.STRETCH if threading.current_thread() is threading.main_thread() else threading.TIMEOUT_MAX
    while not lock.acquire(timeout=min(most, max(0.0, end - time.perf_counter()))):
        if time.perf_counter() >= end:
            return False
    return True


class OwnThread(threading.Thread):
    """A thread that the library started, not the program. The clock that counts for its maker counts for it."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._clock: Clock | None = getattr(_of_thread, "clock", None)

    def run(self) -> None:
        _of_thread.clock = self._clock
        super().run()


class RealClock:
    """The clock on the wall."""

    now = staticmethod(time.perf_counter)
    # Found when they are called: tests of TF1 programs put others in their place.
    time = staticmethod(lambda: time.time())
    sleep = staticmethod(lambda seconds: time.sleep(seconds))
    rest = staticmethod(lambda seconds, what: time.sleep(seconds))
    event = staticmethod(_Event)

    def thread(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> Thread:
        return OwnThread(target=target, args=args, name=name, daemon=daemon)

    def spawn(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> Thread:
        thread = self.thread(target, *args, name=name, daemon=daemon)
        thread.start()
        return thread


REAL = RealClock()

_of_thread = threading.local()  # .clock, where another clock than the real one counts
_of_program: list[Clock] = []  # clocks of the clusters that the program has opened, the newest last


def current() -> Clock:
    """The clock that counts for this thread: that of the virtual cluster whose client it is, or the real one."""
    clock: Clock | None = getattr(_of_thread, "clock", None)
    return clock or (_of_program[-1] if _of_program else REAL)


events.moment = lambda: current().now()


@contextlib.contextmanager
def using(clock: Clock) -> Iterator[None]:
    """Let `clock` count for this thread in the block."""
    before = getattr(_of_thread, "clock", None)
    _of_thread.clock = clock
    try:
        yield
    finally:
        _of_thread.clock = before


def begin(clock: Clock) -> None:
    """From now on, `clock` counts for threads that have none of their own."""
    _of_program.append(clock)


def end(clock: Clock) -> None:
    """No longer; harmless if it never did."""
    if clock in _of_program:
        _of_program.remove(clock)


class _Current:
    """Whatever clock counts for the thread that asks."""

    def now(self) -> float:
        return current().now()

    def time(self) -> float:
        return current().time()

    def sleep(self, seconds: float) -> None:
        current().sleep(seconds)

    def rest(self, seconds: float, what: str) -> None:
        current().rest(seconds, what)

    def event(self) -> Event:
        return current().event()

    def thread(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> Thread:
        return current().thread(target, *args, name=name, daemon=daemon)

    def spawn(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> Thread:
        return current().spawn(target, *args, name=name, daemon=daemon)


class _RealTimes(_Current):
    """For what is not of a virtual cluster and runs next to it: its waits let the cluster go on, its times are real."""

    now = staticmethod(REAL.now)
    time = staticmethod(REAL.time)


def session_clock() -> Clock:
    """The clock of a session without a cluster."""
    return REAL if current() is REAL else _RealTimes()


CURRENT = _Current()  # what training loops go by: coordinators, hooks, writers


class Pool:
    """Threads that run tasks; a new one is started whenever a task comes and none is idle.

    So a task that waits (a RunStep, a blocked RecvTensor) never keeps another one from running. `limit` bounds the
    number of threads where the tasks only compute. A thread is called by the pool and its number, the only one of a
    pool by the pool alone. The idle one with the lowest number takes a task; after `idle` seconds without one it ends.
    """

    def __init__(self, clock: Clock = REAL, name: str = "pool", limit: int | None = None, idle: float = 2.0) -> None:
        self.clock = clock
        self.limit = limit
        self._name = name
        self._idle_seconds = idle
        self._lock = threading.Lock()
        self._tasks: deque[tuple[Callable[[], Any], Any]] = deque()
        self._idle: dict[int, Event] = {}  # by the thread's number
        self._numbers: set[int] = set()  # of the threads that there are
        self._busy: dict[Event, tuple[int, Any]] = {}  # by a thread's own event: its number, and for whom it works
        _pools.add(self)

    def submit(self, task: Callable[[], Any], owner: Any = None) -> None:
        """Run `task` on a thread of the pool, or at once if this is one and all others are busy.

        A task that waits for a thread of its own, full pool would wait forever. `let_go(owner)` gives up the threads
        that work for that owner.
        """
        with self._lock:
            full = not self._idle and self.limit is not None and len(self._numbers) >= self.limit
            if not (full and getattr(_of_thread, "pool", None) is self):
                self._tasks.append((task, owner))
                self._call_thread()
                return
        task()

    def _call_thread(self) -> None:
        """Under the lock: wake a thread for a task, or start one if there may be one more."""
        if self._idle:
            self._idle.pop(min(self._idle)).set()
        elif self.limit is None or len(self._numbers) < self.limit:
            number = next(n for n in itertools.count(1) if n not in self._numbers)
            self._numbers.add(number)
            name = self._name if self.limit == 1 else f"{self._name} {number}"
            self.clock.spawn(self._work, number, name=name)

    def let_go(self, owner: Any) -> None:
        """Replace the threads that work for `owner`: their tasks may never end. If they do, the threads end, too."""
        with self._lock:
            gone = [wake for wake, (_, whose) in self._busy.items() if whose == owner]
            for wake in gone:
                self._numbers.discard(self._busy.pop(wake)[0])
            for _ in self._tasks if gone else ():
                self._call_thread()

    def close(self) -> None:
        """Let every thread end once it has nothing to do. Work submitted later still runs."""
        with self._lock:
            self._idle_seconds = 0.0
            for wake in self._idle.values():
                wake.set()
            self._idle.clear()

    def begin_again(self) -> None:
        """In a forked child: forget the threads, which only the parent has, and the tasks that it will run."""
        self._lock = threading.Lock()  # one of them may have held it
        self._tasks.clear()
        self._idle.clear()
        self._numbers.clear()
        self._busy.clear()

    def _work(self, number: int) -> None:
        wake, _of_thread.pool = self.clock.event(), self
        while True:
            with self._lock:
                task, owner = self._tasks.popleft() if self._tasks else (None, None)
                if task is None:
                    wake.clear()
                    self._idle[number] = wake
                else:
                    self._busy[wake] = number, owner
            if task is not None:
                task()
                del task, owner  # and what they hold, while there is nothing to do
                with self._lock:
                    if self._busy.pop(wake, None) is None:  # let go
                        return
            elif not wake.wait(self._idle_seconds):
                with self._lock:
                    if self._idle.pop(number, None):
                        self._numbers.discard(number)
                        return


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _begin_again() -> None:
    for pool in list(_pools):
        pool.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)

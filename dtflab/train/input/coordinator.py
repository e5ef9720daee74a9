"""Coordinator: several threads that stop together and report the first thing that went wrong.

Stands for `python/training/coordinator.py`.

Rule: the first request decides. The first `request_stop` sets the flag and leaves its exception; later ones find
the flag set and change nothing. Time, events and threads come from the coordinator's clock.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from dtflab.base import errors
from dtflab.base.timeouts import timeouts
from dtflab.machine.clock import CURRENT, Clock, Thread
from dtflab.machine.console import say

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
_LOG = logging.getLogger("tensorflow")


class Coordinator:
    """A flag that says "stop", an exception that says why, and a list of the threads to wait for."""

    def __init__(
        self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None, *, clock: Clock = CURRENT
    ) -> None:
        """An exception of `clean_stop_exception_types` (default: OutOfRangeError, the end of the input) stops the
        threads without being reported."""
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self.clock = clock
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = clock.event()
        self._exc_info_to_raise: _ExcInfo | None = None
        self.joined = False  # whether `join` has ended
        self._registered_threads: set[Thread] = set()

    def request_stop(self, ex: Exception | _ExcInfo | None = None) -> None:
        """Tell all threads to stop; the first request's exception is raised by `join`.

        `ex` is the exception that is being handled right now, or what `sys.exc_info()` gave. After `join` there
        is nobody left to report to: then `ex` is raised here. TypeError if `ex` is not being handled.
        """
        with self._lock:
            if isinstance(ex[1] if isinstance(ex, tuple) else ex, self._clean_stop_exception_types):
                ex = None
            if ex is not None and self.joined:
                raise _exc_info(ex)[1]
            if self._stop_event.is_set():
                return
            if ex is not None and self._exc_info_to_raise is None:
                info = _exc_info(ex)
                _LOG.info("Error reported to Coordinator: %s", info[1], exc_info=info)
                self._exc_info_to_raise = info
            self._stop_event.set()

    def clear_stop(self) -> None:
        """Forget the request and its exception: a new round begins."""
        with self._lock:
            self.joined = False
            self._exc_info_to_raise = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Whatever is raised inside ends the block and is passed to `request_stop`."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info())  # type: ignore[arg-type]

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait, at most `timeout` seconds, until a stop is requested; whether it was."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: Thread) -> None:
        """A thread that `join` waits for, besides those that it is given."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Sequence[Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended, then raise what `request_stop` was given.

        A thread that lives on for more than `stop_grace_period_secs` after a stop was requested is a RuntimeError,
        or with `ignore_live_threads` a line in the log.
        """
        with self._lock:
            waiting_for = list(self._registered_threads.union(threads or ()))
        while _alive(waiting_for) and not self.wait_for_stop(1.0):
            pass
        self._give_time(waiting_for, stop_grace_period_secs)
        stragglers = " ".join(t.name for t in _alive(waiting_for))
        with self._lock:
            self.joined = True
            self._registered_threads = set()
        self.raise_requested_exception()
        if stragglers:
            text = f"Coordinator stopped with threads still running: {stragglers}"
            if not ignore_live_threads:
                raise RuntimeError(text)
            _LOG.info(text)

    def _give_time(self, threads: Sequence[Thread], seconds: float) -> None:
        """Wait for threads that are stopping: short at first, then twice as long each time; says for whom."""
        start = reminded = self.clock.now()
        pause = 0.001
        while (late := _alive(threads)) and (left := start + seconds - self.clock.now()) > 0:
            if self.clock.now() - reminded >= timeouts.notice:
                reminded = self.clock.now()
                names = ", ".join(thread.name for thread in late)
                say(f"Coordinator still waiting for {names} to stop, at most {left:.0f} s more (the grace period)")
            self.clock.sleep(min(pause, left))
            pause *= 2

    def raise_requested_exception(self) -> None:
        """Raise the exception that came with the first `request_stop`, if one did."""
        with self._lock:
            if self._exc_info_to_raise is not None:
                raise self._exc_info_to_raise[1]


def _alive(threads: Iterable[Thread]) -> list[Thread]:
    return [thread for thread in threads if thread.is_alive()]


def _exc_info(ex: Exception | _ExcInfo) -> _ExcInfo:
    """The exception with its type and traceback: `ex` itself, or else what is being handled."""
    info = ex if isinstance(ex, tuple) else sys.exc_info()
    if len(info) != 3 or info[0] is None or info[1] is None:
        raise TypeError(
            f"request_stop({ex!r}): ex must be a tuple or sys.exc_info must return the current exception. Call "
            "request_stop(e) inside `except ... as e:`, or pass what sys.exc_info() returned there."
        )
    return info


class LooperThread:
    """A thread that does something again and again until its coordinator stops: `target`, or an own `run_loop`."""

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Every `timer_interval_secs` seconds, or without pause if that is None. ValueError for wrong arguments."""
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._target, self._args, self._kwargs = target, args or (), kwargs or {}
        self._thread = coord.clock.thread(self.run, name=type(self).__name__)
        coord.register_thread(self)

    @property
    def name(self) -> str:
        return self._thread.name

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """A LooperThread, started."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """Run the thread's loop; its own exceptions stop the other threads, too."""
        with self._coord.stop_on_exception():
            self.start_loop()
            next_time = self._coord.clock.now()
            while not self._wait_until(next_time):
                next_time += self._timer_interval_secs or 0.0
                self.run_loop()
            self.stop_loop()

    def _wait_until(self, moment: float) -> bool:
        """Wait for the next turn; True if a stop came instead."""
        if self._timer_interval_secs is None:
            return self._coord.should_stop()
        return self._coord.wait_for_stop(max(0.0, moment - self._coord.clock.now()))

    def start_loop(self) -> None:
        """Called once, when the thread starts."""

    def stop_loop(self) -> None:
        """Called once, when the thread stops without an error."""

    def run_loop(self) -> None:
        """Called at each turn."""
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

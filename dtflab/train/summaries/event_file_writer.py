"""Writing events to a file while the program goes on: a queue, and a thread that empties it.

Stands for `python/summary/writer/event_file_writer.py`.

Rule: what goes wrong in the thread is raised by the next call of the writer, so that a full disk does not pass in
silence. A writer that nobody closed is closed when it is forgotten and when the program ends.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any, NamedTuple

from dtflab.base import tf_logging
from dtflab.files import gfile
from dtflab.files.events import EventsWriter
from dtflab.machine.clock import REAL, Clock, Event as Signal


class EventFileWriter:
    """Appends Event messages, from any thread, to a new event file in `logdir`.

    At most `max_queue` of them wait to be written, 0 for any number; then `add_event` blocks. Readers see them after
    `flush`, and with the first event that comes `flush_secs` seconds after the file was flushed before.
    """

    def __init__(
        self,
        logdir: str,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
        *,
        clock: Clock = REAL,
    ) -> None:
        self._logdir = os.fspath(logdir)
        gfile.makedirs(self._logdir)
        self._ev_writer = EventsWriter(os.path.join(self._logdir, "events"))
        if filename_suffix:
            self._ev_writer.InitWithSuffix(filename_suffix)
        self._worker_arguments = self._ev_writer, max_queue, flush_secs, clock
        self._start()

    def _start(self) -> None:
        self._closed = False
        self._worker = _Worker(*self._worker_arguments)
        self._finish = weakref.finalize(self, self._worker.end)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self._logdir

    def add_event(self, event: Any) -> None:
        """Have a message written; nothing happens after `close`."""
        if not self._closed and not self._worker.put(event):
            self._raise_failure()

    def flush(self) -> None:
        """Returns when everything so far is in the file."""
        if not self._closed:
            done = self._worker.clock.event()
            if self._worker.put(_Flush(done)):
                done.wait()
            self._raise_failure()

    def close(self) -> None:
        """Write what is left and close the file."""
        if not self._closed:
            self._closed = True
            self._finish()
            self._raise_failure()

    def reopen(self) -> None:
        """After `close`: go on, in a new file."""
        if self._closed:
            self._start()

    def _raise_failure(self) -> None:
        if self._worker.failure is not None:
            self._closed = True
            self._finish()
            raise self._worker.failure


class _Flush(NamedTuple):
    """Stands in the queue after the events that the flush is about."""

    done: Signal


_END = object()  # the last thing in a queue


class _Worker:
    """The queue and its thread."""

    def __init__(self, ev_writer: EventsWriter, max_queue: int, flush_secs: float, clock: Clock) -> None:
        self.clock = clock
        self.failure: Exception | None = None
        self._ev_writer = ev_writer
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._next_flush = 0.0  # the first event is flushed at once
        self._lock = threading.Lock()
        self._queue: deque[Any] = deque()  # of Events and _Flushes
        self._item: Any = None  # what the thread is at
        self._ended = False
        self._filled, self._emptied = clock.event(), clock.event()
        self._thread = clock.spawn(self._run, name="EventLoggerThread")

    def put(self, item: Any) -> bool:
        """Queue an item, after waiting for a place; False if the thread has ended."""
        while True:
            with self._lock:
                if self._ended:
                    return False
                if item is _END or self._max_queue <= 0 or len(self._queue) < self._max_queue:
                    self._queue.append(item)
                    self._filled.set()
                    return True
                self._emptied.clear()
            self._emptied.wait()

    def end(self) -> None:
        """Write what is queued, close the file, and end the thread."""
        self.put(_END)
        if threading.current_thread() is not self._thread:  # a garbage collection may call this anywhere
            self.join()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._take() is not _END:
                self._write(self._item)
            self._ev_writer.Close()
        except Exception as error:
            tf_logging.error("EventFileWriter writer thread error: %s", error)
            self.failure = error
        self._give_up_queue()

    def _take(self) -> Any:
        while True:
            with self._lock:
                if self._queue:
                    self._emptied.set()
                    self._item = self._queue.popleft()
                    return self._item
                self._filled.clear()
            self._filled.wait()

    def _write(self, item: Any) -> None:
        if not isinstance(item, _Flush):
            self._ev_writer.WriteEvent(item)
        now = self.clock.time()
        if isinstance(item, _Flush) or now > self._next_flush:
            self._ev_writer.Flush()
            self._next_flush = now + self._flush_secs
        if isinstance(item, _Flush):
            item.done.set()

    def _give_up_queue(self) -> None:
        """Nobody may wait for a thread that has ended."""
        with self._lock:
            self._ended = True
            left, self._queue = self._queue, deque()
            self._emptied.set()
        for item in (self._item, *left):
            if isinstance(item, _Flush):
                item.done.set()

"""How readers behave: a place in a file, counts, and a line of requests for records.

Stands for `core/framework/reader_base.cc`. `files/sources.py` reads the files.

Rules: a reader serves requests in the order in which they come. Only the first of them takes the name of a file out of
its queue. It waits there as a dequeue does: it stands in the queue's line and holds no thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.brief_lock import BriefLock
from dtflab.files.sources import Source
from dtflab.ops.messages import invalid
from dtflab.ops.queues.queue_state import Element, Get
from dtflab.ops.queues.shared_queue import Queue
from dtflab.protos.reader_base_pb2 import ReaderBaseState


@dataclass(eq=False, slots=True)
class Request:
    """An op of a step that wants a record, or up to `limit` of them."""

    ctx: Any
    name: str
    queue: Queue
    limit: int | None
    done: Callable[..., Any]
    forget: Callable[[], Any] = lambda: None

    def finish(self, values: Any, error: Exception | None) -> None:
        self.forget()
        self.done(values, error)


class Reader:
    """A reader with its line of requests: the resource that lives in a container.

    `start(work)` opens a unit of work.
    """

    def __init__(self, name: str, kind: str, start: Callable[[bytes], Source], serializes: bool) -> None:
        self.name, self.kind = name, kind
        self._start, self._serializes = start, serializes
        self._lock = BriefLock()
        self._line: deque[Request] = deque()
        self._source: Source | None = None
        self._error: Exception | None = None  # for the first request in line
        self._state = ReaderBaseState()

    # -- reading ------------------------------------------------------------------------------------------

    def read_at_once(self, limit: int | None) -> Any:
        """The next record, or records, if nobody is in line and the work in progress has one; else None."""
        with self._lock:
            return None if self._line else self._take(limit)

    def read(self, request: Request) -> None:
        """Serve the request in its turn; `request.done` is called in the end, on any thread."""
        with self._lock:
            self._line.append(request)
            first = len(self._line) == 1
        if first:
            self._serve()
        else:
            request.forget = request.ctx.on_cancel(lambda error: self._leave(request))

    def _serve(self) -> None:
        """Serve the requests in line, until none is left or the first has to wait for a unit of work."""
        while True:
            values, error = None, None
            with self._lock:
                request = self._line[0]
                try:
                    values = self._take(request.limit)
                except Exception as caught:
                    error = caught
                if values is not None or error is not None:
                    self._line.popleft()
                    last = not self._line
            if values is None and error is None:
                if not self._next_work(request):
                    return
                continue
            request.finish(values, error)
            if last:
                return

    def _take(self, limit: int | None) -> Any:
        """The next record, or records, of the work in progress; None if another unit of work is needed."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        source, state = self._source, self._state
        if source is None:
            return None
        values: Any = source.next() if limit is None else source.next_many(limit)
        count = values is not None if limit is None else len(values[0])
        state.num_records_produced += count
        if source.ended:
            self._leave_file()
            state.work_finished = state.work_started
        return values if count else None

    def _next_work(self, request: Request) -> bool:
        """Begin the next unit of work. Returns False if the queue is empty: the reader goes on when one comes."""
        came: list[tuple[list[Element], errors.OpError | None]] = []
        waiting = False

        def arrived(held: list[Element], error: errors.OpError | None) -> None:
            with self._lock:
                came.append((held, error))
                if waiting:
                    self._begin(held, error)
            if waiting:
                self._serve()

        request.queue.join(request.ctx, Get(1, False, request.name, request.ctx.step.step_id, arrived))
        with self._lock:
            if came:
                self._begin(*came[0])
            waiting = not came
        return not waiting

    def _begin(self, held: list[Element], error: errors.OpError | None) -> None:
        """Open the unit of work that came, or keep the error for the request that asked for it."""
        if error is not None:
            self._error = error
            return
        try:
            names = np.asarray(held[0][0], object).ravel()
            if len(names) != 1:
                raise invalid("Expected to dequeue a one-element string tensor")
            self._source = self._start(names[0])
            self._state.current_work = names[0]
            self._state.work_started += 1
        except Exception as problem:
            self._error = problem

    def _leave(self, request: Request) -> None:
        """The request's step was cancelled while it stood in line behind another one."""
        with self._lock:
            waits = request in self._line and request is not self._line[0]
            if waits:
                self._line.remove(request)
        if waits:
            request.finish(None, errors.CancelledError.of(f"Read from {self} was cancelled"))

    # -- state ----------------------------------------------------------------------------------------------

    @property
    def records_produced(self) -> int:
        """How many records have been read in all."""
        return self._state.num_records_produced

    @property
    def work_units_completed(self) -> int:
        """How many units of work have been read to the end."""
        return self._state.work_finished

    def reset(self) -> None:
        """Go back to the start: the work in progress is dropped, the counts are zero."""
        self._put(ReaderBaseState())

    def _put(self, state: ReaderBaseState) -> None:
        with self._lock:
            self._leave_file()
            self._state = state

    def close(self) -> None:
        """Close the file: the container is reset, or the session ends."""
        with self._lock:
            self._leave_file()

    def _leave_file(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source = None

    def serialize(self) -> bytes:
        """The state, for `restore`. Raises UnimplementedError for readers whose place in a file is unknown."""
        if not self._serializes:
            raise errors.UnimplementedError.of("Reader SerializeState")
        return self._state.SerializeToString(deterministic=True)

    def restore(self, text: bytes) -> None:
        """Return to a state. A text that is not a state resets the reader, and raises InvalidArgumentError."""
        state = ReaderBaseState()
        try:
            self._parse(text, state)
        except errors.OpError:
            self.reset()
            raise
        self._put(state)

    def _parse(self, text: bytes, state: ReaderBaseState) -> None:
        if not self._serializes:
            raise errors.UnimplementedError.of("Reader RestoreState")
        try:
            state.ParseFromString(text)
        except DecodeError:
            raise invalid(f"Could not parse state for {self}: {text.decode(errors='replace')}") from None
        if min(state.work_started, state.work_finished, state.num_records_produced) < 0:
            raise invalid(f"Unexpected negative value when restoring in {self}: {state}")
        if state.work_started > state.work_finished:
            raise invalid(f"Inconsistent work started vs. finished when restoring in {self}: {state}")

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"

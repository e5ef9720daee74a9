"""The iterator that lives in a container of a device: a place in a data set, which many steps share.

Stands for `IteratorResource` of `core/kernels/data/iterator_ops.cc`. Left out: saving the place in a checkpoint.

Rules: one step at a time takes an element. If that cannot wait, the element is made on the step's own thread; else on a
thread of the iterator, so that the step can be cancelled meanwhile. An element that comes too late for a cancelled step
is kept for the next one. Beginning again ends the threads of the old iteration, and the requests that wait for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.datasets.dataset import Dataset, Run, check_signature, closed
from dtflab.ops.datasets.elements import Element
from dtflab.ops.datasets.threads import Outcome, next_outcome

Done = Callable[[Any, Exception | None], Any]


class Request:
    """A step that wants an element. It gets one answer: an element, an error, or its own cancellation."""

    def __init__(self, ctx: Any, done: Done) -> None:
        self._done: Done | None = done
        self._lock = threading.Lock()
        self._forget = ctx.on_cancel(lambda error: self.finish(None, errors.CancelledError.of("GetNext was cancelled")))

    @property
    def over(self) -> bool:
        return self._done is None

    def finish(self, element: Element | None, error: Exception | None) -> bool:
        """Answer the request; returns False if it has its answer already."""
        with self._lock:
            done, self._done = self._done, None
        if done is None:
            return False
        self._forget()
        done(element, error)
        return True


class Iteration:
    """One iteration over a data set, and the requests for its elements."""

    def __init__(self, dataset: Dataset, ctx: Any) -> None:
        self._run = Run(ctx)
        self._elements = dataset.iterate(self._run)
        self._waits = dataset.waits
        self._busy = threading.Lock()  # held while an element is taken
        self._line: deque[Request] = deque()
        self._kept: deque[Outcome] = deque()  # answers that came too late for their request
        self._wanted = self._run.clock.event()
        self._unserved = threading.Lock()  # acquired once, by the request that starts the thread

    def next(self, ctx: Any, done: Done) -> None:
        """Call `done(element, error)` with the next element, now or later."""
        if (not self._waits or getattr(self._elements, "ready", False)) and self._busy.acquire(blocking=False):
            try:
                outcome = self._take()
            finally:
                self._busy.release()
            done(*outcome)
            return
        request = Request(ctx, done)
        self._line.append(request)
        if self._run.closed:
            request.finish(None, closed())
            return
        if self._unserved.acquire(blocking=False):
            self._run.closes(self)
            self._run.clock.spawn(self._serve, name="iterator")
        self._wanted.set()

    def _serve(self) -> None:
        """The body of the thread that waits in place of the steps."""
        while not self._run.closed or self._line:
            self._wanted.clear()
            while self._line:
                self._answer(self._line.popleft())
            if not self._run.closed:
                self._wanted.wait()

    def _answer(self, request: Request) -> None:
        with self._busy:
            outcome = self._take() if not request.over else None
        if outcome is not None and not request.finish(*outcome):
            self._kept.append(outcome)

    def _take(self) -> Outcome:
        if self._kept:
            return self._kept.popleft()
        if self._run.closed:
            return None, closed()
        element, error = next_outcome(self._elements)
        return element, errors.OutOfRangeError.of("End of sequence") if isinstance(error, StopIteration) else error

    def close(self) -> None:
        """End the iteration: no more elements will be asked for."""
        if not self._run.closed:
            self._run.close()
        self._wanted.set()


class IteratorResource:
    """An iterator over data sets of one signature; it has no data set before it is initialized."""

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        self.name = name
        self.types, self.shapes = list(types), list(shapes)
        self._iteration: Iteration | None = None

    def begin(self, dataset: Dataset, ctx: Any) -> None:
        """Give the elements of `dataset` from now on. InvalidArgumentError if types or shapes differ."""
        check_signature(dataset, self.types, self.shapes)
        old, self._iteration = self._iteration, Iteration(dataset, ctx)
        if old is not None:
            old.close()

    def next(self, ctx: Any, done: Done) -> None:
        """Call `done(element, error)` with the next element."""
        if self._iteration is None:
            raise errors.FailedPreconditionError.of(
                "GetNext() failed because the iterator has not been initialized. Ensure that you have run "
                "the initializer operation for this iterator before getting the next element."
            )
        self._iteration.next(ctx, done)

    def close(self) -> None:
        """End the threads of the iteration."""
        if self._iteration is not None:
            self._iteration.close()

    __del__ = close

    def __repr__(self) -> str:
        return f"<iterator '{self.name}'>"

"""The iterator that lives in a container of a device: a place in a data set, which many steps share.

Stands for `IteratorResource` of `core/kernels/data/iterator_ops.cc`. Left out: saving the place in a checkpoint.

Rules: one step at a time takes an element. Where that can't mean waiting, it is made on the step's own thread; else on
one of a pool, so that the step can be cancelled meanwhile. What comes too late for a step that was cancelled is for the
next one. To begin anew ends what the old iteration had: threads, and those who wait for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.machine.clock import Pool
from dtflab.ops.dataset import Dataset, Element, Run, check_signature, closed

POOL = Pool(name="iterator")  # for those who wait

Done = Callable[[Any, Exception | None], Any]


class Request:
    """A step that wants an element: it is told once, of an element, an error, or its own end."""

    def __init__(self, ctx: Any, done: Done) -> None:
        self._done: Done | None = done
        self._lock = threading.Lock()
        self._forget = ctx.on_cancel(lambda error: self.finish(None, _cancelled()))

    @property
    def over(self) -> bool:
        return self._done is None

    def finish(self, element: Element | None, error: Exception | None) -> bool:
        """True if it is the first to be told."""
        with self._lock:
            done, self._done = self._done, None
        if done is None:
            return False
        self._forget()
        done(element, error)
        return True


def _cancelled() -> errors.CancelledError:
    return errors.CancelledError(None, None, "GetNext was cancelled")


def _end() -> errors.OutOfRangeError:
    return errors.OutOfRangeError(None, None, "End of sequence")


class Iteration:
    """One iteration over a data set, and those who want its elements."""

    def __init__(self, dataset: Dataset, ctx: Any) -> None:
        self._run = Run(ctx)
        self._elements = dataset.iterate(self._run)
        self._waits = dataset.waits
        self._busy = threading.Lock()  # held by who takes an element
        self._kept: deque[tuple[Element | None, Exception | None]] = deque()  # what came too late

    def next(self, ctx: Any, done: Done) -> None:
        """Tell `done` of the next element, now or later."""
        if (not self._waits or getattr(self._elements, "ready", False)) and self._busy.acquire(blocking=False):
            try:
                outcome = self._take()
            finally:
                self._busy.release()
            done(*outcome)
            return
        request = Request(ctx, done)
        POOL.submit(lambda: self._serve(request))

    def _serve(self, request: Request) -> None:
        with self._busy:
            if request.over:
                return
            outcome = self._take()
            if not request.finish(*outcome):
                self._kept.append(outcome)

    def _take(self) -> tuple[Element | None, Exception | None]:
        if self._kept:
            return self._kept.popleft()
        if self._run.closed:
            return None, closed()
        try:
            return next(self._elements), None
        except StopIteration:
            return None, _end()
        except Exception as error:
            return None, error

    def close(self) -> None:
        """Nobody will ask for more."""
        self._run.close()


class IteratorResource:
    """An iterator over data sets of one signature; before it is initialized it has none."""

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        self.name = name
        self.types, self.shapes = list(types), list(shapes)
        self._iteration: Iteration | None = None

    def begin(self, dataset: Dataset, ctx: Any) -> None:
        """From now on, give the elements of `dataset`. InvalidArgumentError if they are of other types or shapes."""
        check_signature(dataset, self.types, self.shapes)
        old, self._iteration = self._iteration, Iteration(dataset, ctx)
        if old is not None:
            old.close()

    def next(self, ctx: Any, done: Done) -> None:
        """Tell `done` of the next element."""
        if self._iteration is None:
            raise errors.FailedPreconditionError(
                None, None, "GetNext() failed because the iterator has not been initialized. Ensure that you have run "
                "the initializer operation for this iterator before getting the next element.",
            )  # fmt: skip
        self._iteration.next(ctx, done)

    def close(self) -> None:
        """End the threads of the iteration."""
        if self._iteration is not None:
            self._iteration.close()

    __del__ = close

    def __repr__(self) -> str:
        return f"<iterator '{self.name}'>"

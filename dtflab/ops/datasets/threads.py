"""Elements that are made ahead, on other threads: prefetch, and parallel calls of a function.

Stands for `prefetch_dataset_op.cc` and `parallel_map_dataset_op.cc` in `core/kernels/data`. Left out: tuning; where
TensorFlow would choose a number by itself, there are as many calls as cores, and two elements ahead.

Rules: the order is that of the input. Calls that are shorter than handing an element to another thread stay on the
thread that wants the result. A thread starts with the first element that is asked for. It ends with the elements, when
the iterator is garbage collected, or when its run is closed, which raises CancelledError in whatever waits.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import GIVES, METADATA, Dataset, DatasetOp, Run, closed, number
from dtflab.ops.datasets.elements import Element, Elements, Serial
from dtflab.ops.messages import invalid

AUTOTUNE = -1
_AHEAD = 2  # elements, for AUTOTUNE
_HOPS = 300e-6  # seconds: an element to another thread, and its result back
_LONG_CALLS = 3

# -- prefetch -------------------------------------------------------------------------------------------------------


Outcome = tuple[Element | None, Exception | None]


def next_outcome(elements: Elements) -> Outcome:
    """The next element, or the error in its place; StopIteration is one."""
    try:
        return next(elements), None
    except Exception as error:
        return None, error


def element_of(outcome: Outcome) -> Element:
    """The element. Raises the error in its place."""
    element, error = outcome
    if error is not None:
        try:
            raise error
        finally:
            del outcome, error  # else the traceback would keep the error alive, and everything in its frames
    assert element is not None
    return element


class Buffer:
    """A few outcomes between one thread that makes them and one that takes them."""

    def __init__(self, clock: Any, size: int) -> None:
        self._size = size
        self._outcomes: deque[Outcome] = deque()
        self._come, self._room = clock.event(), clock.event()
        self.closed = False

    def __len__(self) -> int:
        return len(self._outcomes)

    def wait_for_room(self) -> bool:
        """True once there is room for an outcome, False once the buffer is closed."""
        while len(self._outcomes) >= self._size and not self.closed:
            self._room.clear()
            if len(self._outcomes) >= self._size and not self.closed:
                self._room.wait()
        return not self.closed

    def put(self, outcome: Outcome) -> None:
        """Add an outcome, for which there is room."""
        self._outcomes.append(outcome)
        self._come.set()

    def take(self) -> Outcome:
        """Wait for an outcome. CancelledError once the buffer is closed."""
        while not self._outcomes:
            if self.closed:
                raise closed()
            self._come.clear()
            if not self._outcomes and not self.closed:
                self._come.wait()
        outcome = self._outcomes.popleft()
        self._room.set()
        return outcome

    def close(self) -> None:
        self.closed = True
        self._room.set()
        self._come.set()


def _fill(source: Elements, buffer: Buffer) -> None:
    """The body of the thread of a prefetch."""
    while buffer.wait_for_room():
        outcome = next_outcome(source)
        buffer.put(outcome)
        if isinstance(outcome[1], StopIteration):
            return


class Prefetched(Serial):
    """The elements of `source`, of which another thread makes up to `size` ahead."""

    def __init__(self, source: Elements, size: int, run: Run) -> None:
        super().__init__(source)
        self._clock = run.clock
        self._buffer = Buffer(self._clock, size)
        self._begun = self._ended = False
        run.closes(self._buffer)

    @property
    def ready(self) -> bool:
        """The next element is there."""
        return self._ended or len(self._buffer) > 0

    def __next__(self) -> Element:
        if self._ended:
            raise StopIteration
        if not self._begun:
            self._begun = True
            self._clock.spawn(_fill, self.source, self._buffer, name="prefetch")
            self.source = iter(())  # from now on only the thread uses it
        try:
            return element_of(self._buffer.take())
        except StopIteration:
            self._ended = True
            raise

    def __del__(self) -> None:
        self._buffer.close()


@op(f"""PrefetchDataset(input_dataset: variant, buffer_size: int64) -> {GIVES}
       slack_period: int = 0, legacy_autotune: bool = true, buffer_size_min: int = 0{METADATA}""")
class PrefetchDataset(DatasetOp):
    def make(node, source, buffer_size):
        size = number(buffer_size, "buffer_size")
        if size < AUTOTUNE:
            raise invalid("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")
        ahead = _AHEAD if size == AUTOTUNE else size
        return Dataset(lambda run: Prefetched(source.iterate(run), ahead, run), waits=True) if ahead else source


# -- calls side by side -----------------------------------------------------------------------------------------------


class Calls(Serial):
    """`function` of the elements of `source`, in order, by as many threads as there are calls at a time.

    The threads take turns, as elements come and as results are wanted.
    """

    def __init__(self, source: Elements, function: Callable[[Element], Element], parallel: int, run: Run) -> None:
        super().__init__(source)
        self._function, self._run = function, run
        self._workers = [(Buffer(run.clock, 1), Buffer(run.clock, 1)) for _ in range(parallel)]  # elements, results
        self._given = self._taken = 0
        self._ended = False
        for buffer in itertools.chain(*self._workers):
            run.closes(buffer)

    def __next__(self) -> Element:
        while self._given - self._taken < len(self._workers) and not self._ended:
            self._give()
        if self._given == self._taken:
            raise StopIteration
        results = self._workers[self._taken % len(self._workers)][1]
        self._taken += 1
        return element_of(results.take())

    def _give(self) -> None:
        elements, results = self._workers[self._given % len(self._workers)]
        outcome = next_outcome(self.source)
        if isinstance(outcome[1], StopIteration):
            self._ended = True
            return
        (elements if outcome[1] is None else results).put(outcome)
        if self._given < len(self._workers):
            self._run.clock.spawn(_work, self._function, elements, results, name="map")
        self._given += 1

    def __del__(self) -> None:
        for buffer in itertools.chain(*self._workers):
            buffer.close()


def _work(function: Callable[[Element], Element], elements: Buffer, results: Buffer) -> None:
    """The body of a thread of a parallel map."""
    calls = map(function, iter(lambda: element_of(elements.take()), None))
    while not results.closed:
        results.put(next_outcome(calls))


class ShortCalls(Serial):
    """`function` of the elements, on this thread as long as that is quicker than handing them to others; then `Calls`.

    For functions that never wait: Python runs only one at a time of those that compute little.
    """

    def __init__(self, source: Elements, function: Callable[[Element], Element], parallel: int, run: Run) -> None:
        super().__init__(source)
        self._function, self._parallel, self._run = function, parallel, run
        self._calls: Calls | None = None
        self._long = 0  # calls in a row that took long: one may have been interrupted by other programs

    def __next__(self) -> Element:
        if self._calls is not None:
            return next(self._calls)
        element, now = next(self.source), self._run.clock.now
        started = now()
        try:
            return self._function(element)
        finally:
            self._long = self._long + 1 if now() - started > _HOPS else 0
            if self._long == _LONG_CALLS:
                self._calls = Calls(self.source, self._function, self._parallel, self._run)


def parallel_calls(value: Any) -> int:
    """The number of calls at a time that a program asks for."""
    count = number(value, "num_parallel_calls")
    if count < 1 and count != AUTOTUNE:
        raise invalid("num_parallel_calls must be greater than zero.")
    return count if count > 0 else os.cpu_count() or 1

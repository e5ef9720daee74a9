"""Elements that are made ahead, on other threads: prefetch, and calls of a function side by side.

Stands for `prefetch_dataset_op.cc` and `parallel_map_dataset_op.cc` in `core/kernels/data`. Left out: tuning; where
TensorFlow would choose a number by itself, there are as many calls as cores, and two elements ahead.

Rules: the order is that of the input. As much is kept as was asked for, and no more. A thread begins with the first
element that is asked for, and ends with the elements, when nobody holds the iterator any more, or when its run is
closed; who waits then is told.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

from dtflab.graph.op_registry import op
from dtflab.machine.clock import REAL, Pool
from dtflab.ops.dataset import METADATA, OUTPUTS, Dataset, DatasetOp, Element, Elements, Run, Serial, closed, number
from dtflab.ops.messages import invalid

AUTOTUNE = -1
_AHEAD = 2  # elements, where the number is left to us

# -- prefetch -------------------------------------------------------------------------------------------------------


class Buffer:
    """A few outcomes between one thread that makes them and one that takes them: elements, errors, the end."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._outcomes: deque[tuple[Element | None, Exception | None]] = deque()
        self._come, self._room = REAL.event(), REAL.event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._outcomes)

    def put(self, element: Element | None, error: Exception | None) -> bool:
        """Wait for room. False once the buffer is closed."""
        while len(self._outcomes) >= self._size and not self._closed:
            self._room.clear()
            if len(self._outcomes) >= self._size and not self._closed:
                self._room.wait()
        self._outcomes.append((element, error))
        self._come.set()
        return not self._closed

    def take(self) -> tuple[Element | None, Exception | None]:
        """Wait for an outcome. CancelledError once the buffer is closed."""
        while not self._outcomes:
            if self._closed:
                raise closed()
            self._come.clear()
            if not self._outcomes and not self._closed:
                self._come.wait()
        outcome = self._outcomes.popleft()
        self._room.set()
        return outcome

    def close(self) -> None:
        self._closed = True
        self._room.set()
        self._come.set()


def _fill(source: Elements, buffer: Buffer) -> None:
    """What the thread of a prefetch does."""
    going = True
    while going:
        try:
            going = buffer.put(next(source), None)
        except StopIteration as end:
            buffer.put(None, end)
            return
        except Exception as error:
            going = buffer.put(None, error)


class Prefetched(Serial):
    """The elements of `source`, of which another thread makes up to `size` ahead."""

    def __init__(self, source: Elements, size: int, run: Run) -> None:
        super().__init__(source)
        self._buffer = Buffer(size)
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
            REAL.spawn(_fill, self.source, self._buffer, name="prefetch")
            self.source = iter(())  # the thread's alone
        element, error = self._buffer.take()
        if element is not None:
            return element
        self._ended = isinstance(error, StopIteration)
        assert error is not None
        raise error

    def __del__(self) -> None:
        self._buffer.close()


class Prefetch(Dataset):
    """The same elements, made ahead."""

    waits = True

    def __init__(self, source: Dataset, size: int) -> None:
        super().__init__(source)
        self.size = size

    def iterate(self, run: Run) -> Elements:
        return Prefetched(self.inputs[0].iterate(run), self.size, run)


@op(f"""PrefetchDataset(input_dataset: variant, buffer_size: int64) -> (handle: variant){OUTPUTS}
       slack_period: int = 0
       legacy_autotune: bool = true
       buffer_size_min: int = 0{METADATA}""")
class PrefetchDataset(DatasetOp):
    def make(node, source, buffer_size):
        size = number(buffer_size, "buffer_size")
        if size < AUTOTUNE:
            raise invalid("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")
        return Prefetch(source, _AHEAD if size == AUTOTUNE else size) if size else source


# -- calls side by side -----------------------------------------------------------------------------------------------


class _Call:
    """One call of the function on a thread of a pool; who wants the result waits for it."""

    def __init__(self, function: Callable[[Element], Element], element: Element) -> None:
        self._function, self._element = function, element
        self._done = REAL.event()
        self._result: Element = ()
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._result = self._function(self._element)
        except Exception as error:
            self._error = error
        self._done.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._done.set()

    def result(self) -> Element:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Calls(Serial):
    """`function` of the elements of `source`, in order, `parallel` calls at a time."""

    def __init__(self, source: Elements, function: Callable[[Element], Element], parallel: int, run: Run) -> None:
        super().__init__(source)
        self._function, self._parallel = function, parallel
        self._calls: deque[_Call] = deque()
        self._pool = Pool(name="map", limit=parallel, idle=0.1)
        self._ended = False
        run.closes(self)

    def __next__(self) -> Element:
        while len(self._calls) < self._parallel and not self._ended:
            self._begin()
        if not self._calls:
            raise StopIteration
        return self._calls.popleft().result()

    def _begin(self) -> None:
        call = _Call(self._function, ())
        try:
            call = _Call(self._function, next(self.source))
        except StopIteration:
            self._ended = True
            return
        except Exception as error:
            call.fail(error)
        else:
            self._pool.submit(call.run)
        self._calls.append(call)

    def close(self) -> None:
        """Send away who waits for a result."""
        self._ended = True
        for call in list(self._calls):
            call.fail(closed())
        self._pool.close()

    def __del__(self) -> None:
        self._pool.close()


def parallel_calls(value: Any) -> int:
    """The number of calls at a time that a program asks for."""
    count = number(value, "num_parallel_calls")
    if count < 1 and count != AUTOTUNE:
        raise invalid("num_parallel_calls must be greater than zero.")
    return count if count > 0 else os.cpu_count() or 1

"""Elements in random order.

Stands for `core/kernels/data/shuffle_dataset_op.cc`. Left out: the forms whose seed generator is a resource, which only
TensorFlow 2 makes, and the fusion with `repeat`.

Rule: for equal seeds the order is TensorFlow's. A Philox number chooses the next element of the buffer, and the
oldest one takes its place; each iteration has two seeds of its own, from a generator that the data set keeps.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import GIVES, METADATA, Dataset, DatasetOp, number
from dtflab.ops.datasets.elements import Element, Serial
from dtflab.ops.datasets.sources import row_slicers
from dtflab.ops.messages import invalid
from dtflab.ops.philox import PhiloxStream


class Seeds:
    """The two seeds of each iteration: the next two numbers of a generator, or the same `(seed, seed2)` each time.

    Two zeros mean that any order will do.
    """

    def __init__(self, seed: int, seed2: int, reshuffles: bool) -> None:
        self._words = PhiloxStream(seed, seed2).words()
        self._lock = threading.Lock()
        self._fixed = None if reshuffles else (seed, seed2) if seed or seed2 else self._two()

    def next(self) -> tuple[int, int]:
        return self._fixed or self._two()

    def _two(self) -> tuple[int, int]:
        with self._lock:
            return next(self._words), next(self._words)


class _ShuffledRows(Serial):
    """Rows of arrays in the order of shuffled numbers: a batch is one selection from each array."""

    def __init__(self, arrays: Element, numbers: Any) -> None:
        super().__init__(numbers)
        self._arrays, self._slicers = arrays, row_slicers(arrays)

    def __next__(self) -> Element:
        number = next(self.source)
        return [row(number) for row in self._slicers]

    def batch(self, count: int) -> list[Any]:
        numbers = list(itertools.islice(self.source, count))
        if not numbers:
            raise StopIteration
        return [array[numbers] for array in self._arrays]


class _Shuffle(Serial):
    """The buffer is a ring: the elements in it are numbered from `start` to `end`."""

    def __init__(self, source: Any, size: int, seeds: tuple[int, int]) -> None:
        super().__init__(source)
        self._size = size
        self._buffer: list[Any] = []
        self._random = PhiloxStream(*seeds).words().__next__
        self._start = self._end = 0
        self._ended = False

    def __next__(self) -> Element:
        buffer, size = self._buffer, self._size
        while not self._ended and self._end - self._start < size:
            self._fill()
        if self._start == self._end:
            raise StopIteration
        first = self._start % size
        chosen = (self._start + self._random() % (self._end - self._start)) % size
        element: Element = buffer[chosen]
        buffer[chosen], buffer[first] = buffer[first], None
        self._start += 1
        return element

    def _fill(self) -> None:
        try:
            element = next(self.source)
        except StopIteration:
            self._ended = True
            return
        if len(self._buffer) < self._size:
            self._buffer.append(element)
        else:
            self._buffer[self._end % self._size] = element
        self._end += 1


@op(f"""ShuffleDataset(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64) -> {GIVES}
       reshuffle_each_iteration: bool = true{METADATA}""")
class ShuffleDataset(DatasetOp):
    """The elements, each drawn from a buffer of the next `buffer_size`."""

    def make(node, source, buffer_size, seed, seed2):
        if buffer_size <= 0:
            raise invalid("buffer_size must be greater than zero.")
        seeds = Seeds(int(seed), int(seed2), node["reshuffle_each_iteration"])
        size = number(buffer_size, "buffer_size")

        def iterate(run):
            rows = source.rows()
            shuffled = _Shuffle(source.iterate(run) if rows is None else rows[1], size, seeds.next())
            return shuffled if rows is None else _ShuffledRows(rows[0], shuffled)

        return Dataset(iterate, source)

"""Which elements there are, and how often: zip, concatenate, take, skip, shard, repeat, cache.

Stands for the files of these names in `core/kernels/data` (`zip_dataset_op.cc`, …). Left out: caches in files.

Rule: elements are computed when they are asked for; a repeated data set begins again each time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import GIVES, METADATA, Dataset, DatasetOp, Rows, Run, number
from dtflab.ops.datasets.elements import Element, Elements, Iterating, Serial, next_batch
from dtflab.ops.messages import invalid

# -- several data sets ------------------------------------------------------------------------------------------


class _Zip(Iterating):
    """Elements of several data sets together, until the shortest ends."""

    def __init__(self, sources: Sequence[Elements]) -> None:
        self._sources = sources

    def __next__(self) -> Element:
        error: Exception | None = None
        components: list[Any] = []
        for source in self._sources:  # all go on, even if one of them has an error
            try:
                components += next(source)
            except StopIteration:
                self._sources = [iter(())]
                if error is None:
                    raise
            except Exception as problem:
                error = error or problem
        if error is not None:
            raise error
        return components


@op(f"ZipDataset(input_datasets: N * variant) -> {GIVES}, N: int >= 1{METADATA}")
class ZipDataset(DatasetOp):
    def make(node, *datasets):
        return Dataset(lambda run: _Zip([dataset.iterate(run) for dataset in datasets]), *datasets)


@op(f"ConcatenateDataset(input_dataset: variant, another_dataset: variant) -> {GIVES}{METADATA}")
class ConcatenateDataset(DatasetOp):
    """The elements of one, then those of the other."""

    def make(node, *datasets):
        chained = itertools.chain.from_iterable
        return Dataset(lambda run: chained(dataset.iterate(run) for dataset in datasets), *datasets)


# -- some of the elements -----------------------------------------------------------------------------------------


class _Take(Serial):
    def __init__(self, source: Elements, count: int) -> None:
        super().__init__(source)
        self._left = count

    def __next__(self) -> Element:
        if not self._left:
            self.source = iter(())  # releases the source, and ends its threads
            raise StopIteration
        element = next(self.source)
        self._left -= 1
        return element

    def batch(self, count: int) -> list[Any]:
        if not self._left:
            raise StopIteration
        found = next_batch(self.source, min(count, self._left))
        self._left -= len(found[0])
        return found


@op(f"TakeDataset(input_dataset: variant, count: int64) -> {GIVES}{METADATA}")
class TakeDataset(DatasetOp):
    """The first `count` elements; all, if it is negative."""

    def make(node, source, count):
        most = number(count, "count")
        return Dataset(lambda run: source.iterate(run) if most < 0 else _Take(source.iterate(run), most), source)


class _Skip(Serial):
    def __init__(self, source: Elements, count: int) -> None:
        super().__init__(source)
        self._count = count

    def __next__(self) -> Element:
        self._pass()
        return next(self.source)

    def batch(self, count: int) -> list[Any]:
        self._pass()
        return next_batch(self.source, count)

    def _pass(self) -> None:
        for _ in range(self._count):  # starts over after an error
            next(self.source)
        self._count = 0


@op(f"SkipDataset(input_dataset: variant, count: int64) -> {GIVES}{METADATA}")
class SkipDataset(DatasetOp):
    """All but the first `count` elements; none, if it is negative."""

    def make(node, source, count):
        first = number(count, "count")
        return Dataset(lambda run: iter(()) if first < 0 else _Skip(source.iterate(run), first), source)


class _Shard(Serial):
    """Every `shards`-th element, beginning with number `index`."""

    def __init__(self, source: Elements, shards: int, index: int) -> None:
        super().__init__(source)
        self._shards, self._index = shards, index
        self._at = 0  # the number of the element that comes next

    def __next__(self) -> Element:
        between = (self._index - self._at) % self._shards
        for _ in range(between):
            next(self.source)
        self._at += between
        element = next(self.source)
        self._at += 1
        return element


@op(f"""ShardDataset(input_dataset: variant, num_shards: int64, index: int64) -> {GIVES}
       require_non_empty: bool = false{METADATA}""")
class ShardDataset(DatasetOp):
    def make(node, source, num_shards, index):
        if num_shards <= 0:
            raise invalid(f"Number of shards must be greater than zero (currently num_shards = {num_shards}).")
        if not 0 <= index < num_shards:
            raise invalid(f"Index must be between 0 and {num_shards - 1} (currently index = {index}).")
        chosen = number(num_shards, "num_shards"), number(index, "index")
        return Dataset(lambda run: _Shard(source.iterate(run), *chosen), source)


# -- elements again ---------------------------------------------------------------------------------------------


def _repeated_rows(source: Dataset, count: int) -> Rows | None:
    found = source.rows()
    if found is None or not len(found[0][0]):
        return None
    epochs = itertools.repeat(None) if count < 0 else itertools.repeat(None, count)
    return found[0], (number for _ in epochs for number in source.rows()[1])  # type: ignore[index]  # it had rows


class _Repeat(Iterating):
    """The elements `count` times; forever, if it is negative and there are any."""

    def __init__(self, dataset: Dataset, count: int, run: Run) -> None:
        self._dataset, self._left, self._run = dataset, count, run
        self._elements: Elements | None = None
        self._empty = True  # nothing has come from the source since it was begun

    def __next__(self) -> Element:
        while True:
            elements = self._begun()
            try:
                element = next(elements)
            except StopIteration:
                self._end_of_epoch()
            else:
                self._empty = False
                return element

    def batch(self, count: int) -> list[Any]:
        parts: list[list[Any]] = []
        while count:
            try:
                elements = self._begun()
            except StopIteration:
                if parts:
                    break
                raise
            try:
                part = next_batch(elements, count)
            except StopIteration:
                self._end_of_epoch()
            else:
                self._empty = False
                parts.append(part)
                count -= len(part[0])
        return parts[0] if len(parts) == 1 else [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _begun(self) -> Elements:
        if self._elements is None:
            if not self._left:
                raise StopIteration
            self._left -= self._left > 0
            self._elements, self._empty = self._dataset.iterate(self._run), True
        return self._elements

    def _end_of_epoch(self) -> None:
        self._elements = None
        if self._left < 0 and self._empty:  # it would go on forever, and never give anything
            self._left = 0


@op(f"RepeatDataset(input_dataset: variant, count: int64) -> {GIVES}{METADATA}")
class RepeatDataset(DatasetOp):
    def make(node, source, count):
        times = number(count, "count")
        return Dataset(lambda run: _Repeat(source, times, run), source, rows=lambda: _repeated_rows(source, times))


class _Cache:
    """Keeps the elements in memory once an iteration has seen them all."""

    def __init__(self, source: Dataset) -> None:
        self.source = source
        self.elements: list[Element] | None = None

    def iterate(self, run: Run) -> Elements:
        return _Filling(self, self.source.iterate(run)) if self.elements is None else iter(self.elements)


class _Filling(Serial):
    def __init__(self, cache: _Cache, source: Elements) -> None:
        super().__init__(source)
        self._cache = cache
        self._seen: list[Element] = []

    def __next__(self) -> Element:
        try:
            element = next(self.source)
        except StopIteration:
            self._cache.elements = self._seen
            raise
        self._seen.append(element)
        return element


@op(f"CacheDataset(input_dataset: variant, filename: string) -> {GIVES}{METADATA}")
class CacheDataset(DatasetOp):
    def make(node, source, filename):
        if filename.item():
            raise errors.UnimplementedError.of(
                "dtflab caches elements in memory only: call cache() without a file name."
            )
        return Dataset(_Cache(source).iterate, source)

"""Data sets as elements: window, group_by_window; and elements without errors.

Stands for `window_dataset_op.cc`, `group_by_window_dataset_op.cc` and `ignore_errors_dataset_op.cc` in
`core/kernels/data`. Left out: warnings about the errors.

Rules: an error in one element is the error of each window that the element is in. A group is complete when it has its
window of elements; at the end the remaining groups follow in the order of their keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops.datasets.captured import Captured, captured_functions
from dtflab.ops.datasets.dataset import GIVES, METADATA, OUTPUTS, Dataset, DatasetOp, Run, several
from dtflab.ops.datasets.elements import Element, Elements, Serial, each_call
from dtflab.ops.messages import invalid


class _Windows(Serial):
    """Each element is a data set of `size` elements per component, `stride` apart; the next begins `shift` later."""

    def __init__(self, dataset: Dataset, run: Run, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        super().__init__(dataset.iterate(run))
        self._dataset, self._shift, self._stride, self._drop_remainder = dataset, shift, stride, drop_remainder
        self._span = (size - 1) * stride + 1
        self._buffer: list[Any] = []  # elements, or errors in their place
        self._ended = False

    def __next__(self) -> Element:
        buffer = self._buffer
        while not self._ended and len(buffer) < self._span:
            self._read()
        if not buffer or (self._drop_remainder and len(buffer) < self._span):
            raise StopIteration
        chosen = buffer[:: self._stride]
        for _ in range(self._shift - len(buffer)):
            if not self._ended:
                self._read()
        del buffer[: self._shift]
        for element in chosen:
            if isinstance(element, Exception):
                raise element
        columns = zip(zip(*chosen, strict=True), self._dataset.types, self._dataset.shapes, strict=True)
        return [several([[value] for value in column], [dtype], [shape]) for column, dtype, shape in columns]

    def _read(self) -> None:
        try:
            self._buffer.append(next(self.source))
        except StopIteration:
            self._ended = True
        except Exception as error:
            self._buffer.append(error)


@op(f"""WindowDataset(input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool) ->
       {GIVES}{METADATA}""")
class WindowDataset(DatasetOp):
    def make(node, source, size, shift, stride, drop_remainder):
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value <= 0:
                raise invalid(f"Window {name} must be greater than zero.")
        sizes = int(size), int(shift), int(stride)
        return Dataset(lambda run: _Windows(source, run, *sizes, bool(drop_remainder)), source)


class _Groups(Serial):
    """The elements of `reduce(key, elements)` of `window_size(key)` elements with equal `key(element)` at a time."""

    def __init__(self, dataset: Dataset, run: Run, key: Captured, reduce: Captured, window_size: Captured) -> None:
        super().__init__(dataset.iterate(run))
        self._dataset, self._run = dataset, run
        self._key, self._reduce, self._window_size = key.on(run), reduce.on(run), window_size.on(run)
        self._groups: dict[int, list[Element]] = {}
        self._sizes: dict[int, int] = {}
        self._current: Elements = iter(())

    def __next__(self) -> Element:
        while True:
            for element in self._current:
                return element
            try:
                self._collect(next(self.source))
            except StopIteration:
                if not self._groups:
                    raise
                self._give(min(self._groups))

    def _collect(self, element: Element) -> None:
        key = int(self._key(element)[0])
        group = self._groups.setdefault(key, [])
        if not group:
            self._sizes[key] = int(self._window_size([np.int64(key)])[0])
            if self._sizes[key] <= 0:
                del self._groups[key]
                raise invalid(f"Window size must be greater than zero, but got {self._sizes[key]}.")
        group.append(element)
        if len(group) == self._sizes[key]:
            self._give(key)

    def _give(self, key: int) -> None:
        """Make the elements of this group the next ones."""
        group = several(self._groups.pop(key), self._dataset.types, self._dataset.shapes)
        made: Dataset = self._reduce([np.int64(key), group])[0]
        self._current = made.iterate(self._run)


@op(f"""GroupByWindowDataset(input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments,
                             reduce_func_other_arguments: Treduce_func_other_arguments,
                             window_size_func_other_arguments: Twindow_size_func_other_arguments) -> (handle: variant)
       key_func: func
       reduce_func: func
       window_size_func: func
       Tkey_func_other_arguments: list(type) >= 0
       Treduce_func_other_arguments: list(type) >= 0
       Twindow_size_func_other_arguments: list(type) >= 0{OUTPUTS}{METADATA}""")
class GroupByWindowDataset(DatasetOp):
    needs_ctx = True

    def make(node, ctx, source, *inputs):
        parts = ("key", "reduce", "window_size")
        functions = captured_functions(ctx, node, parts, "T{}_func_other_arguments", inputs)
        return Dataset(lambda run: _Groups(source, run, *functions), waits=True)  # `reduce` may make what waits


def _without_error(elements: Elements) -> Element:
    while True:
        try:
            return next(elements)
        except errors.CancelledError:  # the run is over
            raise
        except errors.OpError:
            continue


@op(f"IgnoreErrorsDataset(input_dataset: variant) -> {GIVES}\n       log_warning: bool = false")
class IgnoreErrorsDataset(DatasetOp):
    def make(node, source):
        def iterate(run):
            elements = source.iterate(run)
            return each_call(lambda: _without_error(elements))

        return Dataset(iterate, source)

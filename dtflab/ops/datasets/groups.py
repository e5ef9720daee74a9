"""Elements by what a function says of them: group_by_window; and those that are no errors.

Stands for `group_by_window_dataset_op.cc` and `ignore_errors_dataset_op.cc` in `core/kernels/data`. Left
out: warnings about the errors.

Rule: a group is given away when it has its window of elements; at the end the rest are, by their keys in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops.datasets.calls import Captured
from dtflab.ops.datasets.dataset import METADATA, OUTPUTS, Dataset, DatasetOp, Element, Elements, Run, Serial
from dtflab.ops.datasets.sources import Several
from dtflab.ops.messages import invalid


class GroupByWindow(Dataset):
    """The elements of `reduce(key, elements)` of `window_size(key)` elements with equal `key(element)` at a time."""

    waits = True  # nobody knows yet what the data sets are

    def __init__(self, source: Dataset, key: Captured, reduce: Captured, window_size: Captured) -> None:
        super().__init__(source)
        self.key, self.reduce, self.window_size = key, reduce, window_size

    def iterate(self, run: Run) -> Elements:
        return _Groups(self, run)


class _Groups(Serial):
    def __init__(self, dataset: GroupByWindow, run: Run) -> None:
        super().__init__(dataset.inputs[0].iterate(run))
        self._dataset, self._run = dataset, run
        self._key, self._reduce = dataset.key.on(run), dataset.reduce.on(run)
        self._window_size = dataset.window_size.on(run)
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
            self._sizes[key] = int(self._window_size([self._key_of(key)])[0])
            if self._sizes[key] <= 0:
                del self._groups[key]
                raise invalid(f"Window size must be greater than zero, but got {self._sizes[key]}.")
        group.append(element)
        if len(group) == self._sizes[key]:
            self._give(key)

    def _give(self, key: int) -> None:
        """The elements of this group are next."""
        source = self._dataset.inputs[0]
        group = Several(self._groups.pop(key))
        group.types, group.shapes = source.types, source.shapes
        made: Dataset = self._reduce([self._key_of(key), group])[0]
        self._current = made.iterate(self._run)

    @staticmethod
    def _key_of(key: int) -> Any:
        return np.int64(key)


_PARTS = ("key", "reduce", "window_size")


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
        functions, taken = [], 0
        for part in _PARTS:
            count = len(node[f"T{part}_func_other_arguments"])
            functions.append(Captured(ctx, node[f"{part}_func"], inputs[taken : taken + count]))
            taken += count
        return GroupByWindow(source, *functions)


class IgnoreErrors(Dataset):
    """The elements that are no errors."""

    def iterate(self, run: Run) -> Elements:
        return _NoErrors(self.inputs[0].iterate(run))


class _NoErrors(Serial):
    def __next__(self) -> Element:
        while True:
            try:
                return next(self.source)
            except errors.CancelledError:  # the run is over
                raise
            except errors.OpError:
                continue


@op(f"IgnoreErrorsDataset(input_dataset: variant) -> (handle: variant){OUTPUTS}\n       log_warning: bool = false")
class IgnoreErrorsDataset(DatasetOp):
    def make(node, source):
        return IgnoreErrors(source)

"""Elements together and apart: batch, padded_batch, unbatch; window, group_by_window; elements without errors.

Stands for `batch_dataset_op.cc`, `padded_batch_dataset_op.cc`, `unbatch_dataset_op.cc`, `window_dataset_op.cc`,
`group_by_window_dataset_op.cc` and `ignore_errors_dataset_op.cc` in `core/kernels/data`. Left out: parallel copies,
warnings about the errors.

Rules: elements of a batch have equal shapes, those of a padded one equal ranks. An error in one element is the error of
its batch, and the next batch begins after it; it is the error of each window that the element is in. A group is
complete when it has its window of elements; at the end the remaining groups follow in the order of their keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops.array_module import filled
from dtflab.ops.datasets.captured import Captured, captured_functions
from dtflab.ops.datasets.dataset import GIVES, METADATA, OUTPUTS, Dataset, DatasetOp, Run, number, several
from dtflab.ops.datasets.elements import Element, Elements, Serial, each_call, next_batch
from dtflab.ops.messages import check_rank, invalid, shape_text

# -- batch --------------------------------------------------------------------------------------------------------


def _batch_size(value: Any) -> int:
    size = number(value, "batch_size")
    if size <= 0:
        raise invalid("Batch size must be greater than zero.")
    return size


@op(
    f"BatchDataset(input_dataset: variant, batch_size: int64) -> {GIVES}{METADATA}",
    f"""BatchDatasetV2(input_dataset: variant, batch_size: int64, drop_remainder: bool) -> {GIVES}
       parallel_copy: bool = false{METADATA}""",
)
class BatchDataset(DatasetOp):
    """`batch_size` elements stacked into one; the last batch may be smaller, unless it is dropped."""

    def make(node, source, batch_size, drop_remainder=False):
        size = _batch_size(batch_size)

        def iterate(run):
            elements = source.iterate(run)
            return each_call(lambda: next_batch(elements, size, size if drop_remainder else 1))

        return Dataset(iterate, source)


# -- padded batch ---------------------------------------------------------------------------------------------------


def _padded_batch(elements: Elements, size: int, padding: Sequence[Any], drop_remainder: bool) -> Element:
    """The next batch; `padding` is the shape to fill up to and the value, of each component."""
    rows = list(itertools.islice(elements, size))
    if not rows or (drop_remainder and len(rows) < size):
        raise StopIteration
    columns = zip(zip(*rows, strict=True), padding, strict=True)
    return [_padded(column, shape, value, i) for i, (column, (shape, value)) in enumerate(columns)]


def _padded(values: Sequence[Any], shape: list[int], padding: Any, component: int) -> Any:
    """Arrays of one rank, padded to `shape` and stacked; -1 in `shape` stands for the largest size."""
    for value in values:
        if value.ndim != len(shape):
            raise invalid(
                "All elements in a batch must have the same rank as the padded shape for "
                f"component{component}: expected rank {len(shape)} but got element with rank {value.ndim}"
            )
    largest = [max(sizes) for sizes in zip(*(value.shape for value in values), strict=True)]
    sizes = [most if size < 0 else size for size, most in zip(shape, largest, strict=True)]
    if any(most > size for most, size in zip(largest, sizes, strict=True)):
        raise errors.DataLossError.of("Attempted to pad to a smaller size than the input element.")
    out: Any = filled(np, (len(values), *sizes), padding, values[0].dtype)
    for i, value in enumerate(values):
        out[(i, *map(slice, value.shape))] = value if value.ndim else value.item()
    return out


_PADDED = "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types"
_PADDED_GIVES = f"""{GIVES.replace("output_types", "Toutput_types")}
       N: int >= 1"""


@op(
    f"PaddedBatchDataset({_PADDED}) -> {_PADDED_GIVES}{METADATA}",
    f"PaddedBatchDatasetV2({_PADDED}, drop_remainder: bool) -> {_PADDED_GIVES}, parallel_copy: bool = false{METADATA}",
)
class PaddedBatchDataset(DatasetOp):
    """Batches whose elements are padded to one shape; -1 in `padded_shapes` stands for the largest size."""

    def make(node, source, batch_size, *inputs):
        count = node["N"]
        shapes, values, drop_remainder = inputs[:count], inputs[count : 2 * count], any(inputs[2 * count :])
        for i, value in enumerate(values):
            check_rank(value, 0, f"All padding values must be scalars; but at component {i} got {{}}.")
        size, padding = _batch_size(batch_size), [*zip((s.tolist() for s in shapes), values, strict=True)]

        def iterate(run):
            elements = source.iterate(run)
            return each_call(lambda: _padded_batch(elements, size, padding, drop_remainder))

        return Dataset(iterate, source)


# -- apart --------------------------------------------------------------------------------------------------------


class _Rows(Serial):
    """The rows of the elements."""

    def __init__(self, source: Elements) -> None:
        super().__init__(source)
        self._rows: Elements = iter(())

    def __next__(self) -> Element:
        while True:
            for row in self._rows:
                return row
            components = next(self.source)
            if any(len(component) != len(components[0]) for component in components):
                found = ", ".join(shape_text(component) for component in components)
                raise invalid(f"Input element must have the same batch size in each component. Shapes: {found}")
            self._rows = zip(*map(_rows_of, components), strict=True)


def _rows_of(array: Any) -> Any:
    """The slices along the first axis; each string is an array of its own, like every value of a tensor."""
    return (array[i, ...] for i in range(len(array))) if array.dtype == object and array.ndim == 1 else iter(array)


@op(f"UnbatchDataset(input_dataset: variant) -> {GIVES}{METADATA}")
class UnbatchDataset(DatasetOp):
    def make(node, source):
        return Dataset(lambda run: _Rows(source.iterate(run)), source)


# -- data sets of elements ---------------------------------------------------------------------------


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
       key_func: func, reduce_func: func, window_size_func: func, Tkey_func_other_arguments: list(type) >= 0
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


@op(f"IgnoreErrorsDataset(input_dataset: variant) -> {GIVES}, log_warning: bool = false")
class IgnoreErrorsDataset(DatasetOp):
    def make(node, source):
        def iterate(run):
            elements = source.iterate(run)
            return each_call(lambda: _without_error(elements))

        return Dataset(iterate, source)

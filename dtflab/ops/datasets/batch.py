"""Elements together and apart: batch, padded_batch, unbatch, window.

Stands for `batch_dataset_op.cc`, `padded_batch_dataset_op.cc`, `window_dataset_op.cc` and `unbatch_dataset_op.cc` in
`core/kernels/data`. Left out: parallel copies.

Rule: elements of a batch have equal shapes, those of a padded one equal ranks. An error in one element is the error of
its batch, and the next batch begins behind it; in a window, of each window that the element is in.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import (
    METADATA,
    OUTPUTS,
    Dataset,
    DatasetOp,
    Element,
    Elements,
    Run,
    Serial,
    next_batch,
    number,
)
from dtflab.ops.datasets.sources import Several
from dtflab.ops.messages import invalid, shape_text

# -- batch --------------------------------------------------------------------------------------------------------


class Batch(Dataset):
    """`size` elements stacked into one; the last batch may be smaller, unless it is dropped."""

    def __init__(self, source: Dataset, size: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self.size, self.drop_remainder = size, drop_remainder

    def iterate(self, run: Run) -> Elements:
        return _Batches(self.inputs[0].iterate(run), self.size, self.drop_remainder)


class _Batches(Serial):
    def __init__(self, source: Elements, size: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self._size, self._least = size, size if drop_remainder else 1

    def __next__(self) -> Element:
        return next_batch(self.source, self._size, self._least)


def _batch_size(value: Any) -> int:
    size = number(value, "batch_size")
    if size <= 0:
        raise invalid("Batch size must be greater than zero.")
    return size


@op(f"""BatchDatasetV2(input_dataset: variant, batch_size: int64, drop_remainder: bool) -> (handle: variant)
       parallel_copy: bool = false{OUTPUTS}{METADATA}""")
class BatchDatasetV2(DatasetOp):
    def make(node, source, batch_size, drop_remainder):
        return Batch(source, _batch_size(batch_size), bool(drop_remainder))


@op(f"BatchDataset(input_dataset: variant, batch_size: int64) -> (handle: variant){OUTPUTS}{METADATA}")
class BatchDataset(DatasetOp):
    def make(node, source, batch_size):
        return Batch(source, _batch_size(batch_size), False)


# -- padded batch ---------------------------------------------------------------------------------------------------


class PaddedBatch(Dataset):
    """Batches whose elements are filled up to a common shape; -1 in a padded shape: to the largest of the batch."""

    def __init__(
        self, source: Dataset, size: int, padded: list[list[int]], values: Sequence[Any], drop_remainder: bool
    ) -> None:
        super().__init__(source)
        self.size, self.drop_remainder = size, drop_remainder
        self.padding = list(zip(padded, values, strict=True))  # of each component

    def iterate(self, run: Run) -> Elements:
        return _PaddedBatches(self.inputs[0].iterate(run), self)


class _PaddedBatches(Serial):
    def __init__(self, source: Elements, dataset: PaddedBatch) -> None:
        super().__init__(source)
        self._dataset = dataset

    def __next__(self) -> Element:
        dataset = self._dataset
        rows = list(itertools.islice(self.source, dataset.size))
        if not rows or (dataset.drop_remainder and len(rows) < dataset.size):
            raise StopIteration
        columns = zip(zip(*rows, strict=True), dataset.padding, strict=True)
        return [_padded(column, shape, value, i) for i, (column, (shape, value)) in enumerate(columns)]


def _padded(values: Sequence[Any], shape: list[int], padding: Any, component: int) -> Any:
    """Arrays of one rank side by side, in an array that is full of `padding` before."""
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
    out: Any = np.full((len(values), *sizes), padding.item() if padding.dtype == object else padding, values[0].dtype)
    for i, value in enumerate(values):
        out[(i, *map(slice, value.shape))] = value if value.ndim else value.item()
    return out


def _padded_batch(source: Any, batch_size: Any, inputs: Sequence[Any], drop_remainder: bool) -> PaddedBatch:
    shapes, values = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]
    for i, value in enumerate(values):
        if value.ndim:
            raise invalid(f"All padding values must be scalars; but at component {i} got {shape_text(value)}.")
    return PaddedBatch(source, _batch_size(batch_size), [shape.tolist() for shape in shapes], values, drop_remainder)


_PADDED = "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types"
_PADDED_ATTRS = """
       Toutput_types: list(type) >= 1
       output_shapes: list(shape) >= 1
       N: int >= 1"""


@op(f"PaddedBatchDataset({_PADDED}) -> (handle: variant){_PADDED_ATTRS}{METADATA}")
class PaddedBatchDataset(DatasetOp):
    def make(node, source, batch_size, *inputs):
        return _padded_batch(source, batch_size, inputs, False)


@op(f"PaddedBatchDatasetV2({_PADDED}, drop_remainder: bool) -> (handle: variant)\n"
    f"       parallel_copy: bool = false{_PADDED_ATTRS}{METADATA}")  # fmt: skip
class PaddedBatchDatasetV2(DatasetOp):
    def make(node, source, batch_size, *inputs):
        return _padded_batch(source, batch_size, inputs[:-1], bool(inputs[-1]))


# -- apart --------------------------------------------------------------------------------------------------------


class Unbatch(Dataset):
    """The rows of the elements."""

    def iterate(self, run: Run) -> Elements:
        return _Rows(self.inputs[0].iterate(run))


class _Rows(Serial):
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
    """What lies along the first axis; a string as an array of its own, like every value of a tensor."""
    return (array[i, ...] for i in range(len(array))) if array.dtype == object and array.ndim == 1 else iter(array)


@op(f"UnbatchDataset(input_dataset: variant) -> (handle: variant){OUTPUTS}{METADATA}")
class UnbatchDataset(DatasetOp):
    def make(node, source):
        return Unbatch(source)


# -- windows ------------------------------------------------------------------------------------------------------


class Window(Dataset):
    """Each element is a data set of `size` elements per component, `stride` apart; the next begins `shift` later."""

    def __init__(self, source: Dataset, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self.size, self.shift, self.stride, self.drop_remainder = size, shift, stride, drop_remainder

    def iterate(self, run: Run) -> Elements:
        return _Windows(self.inputs[0].iterate(run), self)


class _Windows(Serial):
    def __init__(self, source: Elements, window: Window) -> None:
        super().__init__(source)
        self._window = window
        self._span = (window.size - 1) * window.stride + 1
        self._buffer: list[Any] = []  # elements, or errors in their place
        self._ended = False

    def __next__(self) -> Element:
        window, buffer = self._window, self._buffer
        while not self._ended and len(buffer) < self._span:
            self._read()
        if not buffer or (window.drop_remainder and len(buffer) < self._span):
            raise StopIteration
        chosen = buffer[:: window.stride]
        for _ in range(window.shift - len(buffer)):
            if not self._ended:
                self._read()
        del buffer[: window.shift]
        for element in chosen:
            if isinstance(element, Exception):
                raise element
        return [self._part(column, i) for i, column in enumerate(zip(*chosen, strict=True))]

    def _read(self) -> None:
        try:
            self._buffer.append(next(self.source))
        except StopIteration:
            self._ended = True
        except Exception as error:
            self._buffer.append(error)

    def _part(self, column: Sequence[Any], component: int) -> Dataset:
        source = self._window.inputs[0]
        part = Several([[value] for value in column])
        part.types, part.shapes = [source.types[component]], [source.shapes[component]]
        return part


@op(f"WindowDataset(input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool) -> "
    f"(handle: variant){OUTPUTS}{METADATA}")  # fmt: skip
class WindowDataset(DatasetOp):
    def make(node, source, size, shift, stride, drop_remainder):
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value <= 0:
                raise invalid(f"Window {name} must be greater than zero.")
        return Window(source, int(size), int(shift), int(stride), bool(drop_remainder))

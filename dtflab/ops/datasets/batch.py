"""Elements together and apart: batch, padded_batch, unbatch.

Stands for `batch_dataset_op.cc`, `padded_batch_dataset_op.cc` and `unbatch_dataset_op.cc` in `core/kernels/data`. Left
out: parallel copies.

Rule: elements of a batch have equal shapes, those of a padded one equal ranks. An error in one element is the error of
its batch, and the next batch begins after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import GIVES, METADATA, Dataset, DatasetOp, number
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
    out: Any = np.full((len(values), *sizes), padding.item() if padding.dtype == object else padding, values[0].dtype)
    for i, value in enumerate(values):
        out[(i, *map(slice, value.shape))] = value if value.ndim else value.item()
    return out


_PADDED = "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types"
_PADDED_GIVES = f"""{GIVES.replace("output_types", "Toutput_types")}
       N: int >= 1"""


@op(
    f"PaddedBatchDataset({_PADDED}) -> {_PADDED_GIVES}{METADATA}",
    f"""PaddedBatchDatasetV2({_PADDED}, drop_remainder: bool) -> {_PADDED_GIVES}
       parallel_copy: bool = false{METADATA}""",
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

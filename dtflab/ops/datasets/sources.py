"""Where elements come from: tensors, ranges of numbers.

Stands for `tensor_dataset_op.cc`, `tensor_slice_dataset_op.cc` and `range_dataset_op.cc` in
`core/kernels/data`. Left out: slices of sparse tensors.

Rule: slices are views. A batch of neighbours is one view, too, so `from_tensor_slices(…).batch(…)` copies nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import GIVES, METADATA, Dataset, DatasetOp, number
from dtflab.ops.datasets.elements import Element, Iterating
from dtflab.ops.messages import invalid

_GIVES = GIVES.replace("output_types", "Toutput_types")


@op(f"TensorDataset(components: Toutput_types) -> {_GIVES}{METADATA}")
class TensorDataset(DatasetOp):
    stateful = True

    def make(node, *components):
        return Dataset(lambda run: iter([components]))


class _Slices(Iterating):
    """The slices of tensors along their first dimension."""

    def __init__(self, components: Element, count: int) -> None:
        self._slicers = row_slicers(components)
        self._components = components
        self._at, self._count = 0, count

    def __next__(self) -> Element:
        at = self._at
        if at >= self._count:
            raise StopIteration
        self._at = at + 1
        return [row(at) for row in self._slicers]

    def batch(self, count: int) -> list[Any]:
        if self._at >= self._count:
            raise StopIteration
        start = self._at
        self._at = min(start + count, self._count)
        return [a[start : self._at] for a in self._components]


def row_slicers(arrays: Element) -> list[Any]:
    """For each array, the function from a row's number to the row, which is an array, too."""
    # Of a vector of strings, `a[i]` is bytes, not an array.
    return [(lambda at, a=a: a[at, ...]) if a.dtype == object and a.ndim == 1 else a.__getitem__ for a in arrays]


@op(f"""TensorSliceDataset(components: Toutput_types) -> {_GIVES}
       is_files: bool = false{METADATA}
       replicate_on_split: bool = false""")
class TensorSliceDataset(DatasetOp):
    stateful = True

    def make(node, *components):
        for i, component in enumerate(components):
            if not component.ndim:
                raise invalid("All components must be at least 1-dimensional")
            if len(component) != len(components[0]):
                raise invalid(
                    "All components must have the same size in the 0th dimension. "
                    f"Component 0 has {len(components[0])}, component {i} has {len(component)}"
                )
        count = len(components[0])
        return Dataset(lambda run: _Slices(components, count), rows=lambda: (components, iter(range(count))))


class _Numbers(Iterating):
    """The numbers of a range, scalars of one dtype."""

    def __init__(self, numbers: range, dtype: Any) -> None:
        self._numbers = numbers
        self._dtype: Any = dtype
        self._at = 0

    def __next__(self) -> Element:
        at = self._at
        if at >= len(self._numbers):
            raise StopIteration
        self._at = at + 1
        return [self._dtype(self._numbers[at])]

    def batch(self, count: int) -> list[Any]:
        part = self._numbers[self._at : self._at + count]
        if not part:
            raise StopIteration
        self._at += len(part)
        return [np.arange(part.start, part.stop, part.step, dtype=self._dtype)]


@op(f"""RangeDataset(start: int64, stop: int64, step: int64) -> {GIVES}{METADATA}
       replicate_on_split: bool = false""")
class RangeDataset(DatasetOp):
    stateful = True

    def make(node, start, stop, step):
        if not step:
            raise invalid("step must be a non-zero integer.")
        numbers = range(number(start, "start"), number(stop, "stop"), number(step, "step"))
        return Dataset(lambda run: _Numbers(numbers, node["output_types"][0].as_numpy_dtype))

"""Elements, one after the other: the iterators of data sets, and how elements become batches.

Stands for `IteratorBase` of `core/framework/dataset.h` and `CopyBatch` of `core/data/dataset_utils.cc`.

Rules: an element is a list of arrays, one per component. Iterating gives a Python iterator: StopIteration is the end,
every time; after any other error it goes on with the next element. So it is never a generator, which an error would
end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtflab.ops.messages import invalid, shape_text

Element = Sequence[Any]
Elements = Iterator[Element]


class Iterating:
    """Base of iterators."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Element:
        raise NotImplementedError


class Serial(Iterating):
    """Base of iterators that draw on one other iterator."""

    def __init__(self, source: Elements) -> None:
        self.source = source


def each_call(function: Callable[[], Element]) -> Elements:
    """An iterator over the results of `function`, until that raises StopIteration; another error does not end it."""
    return iter(function, None)


def next_batch(elements: Elements, count: int, least: int = 1) -> list[Any]:
    """The next `count` elements, or those that are left, stacked. Raises StopIteration if there are fewer than `least`.

    An iterator that can batch faster by itself has a method `batch`.
    """
    batch = getattr(elements, "batch", None)
    if batch is not None:
        found: list[Any] = batch(count)
        if len(found[0]) < least:
            raise StopIteration
        return found
    rows = list(itertools.islice(elements, count))
    if len(rows) < least:
        raise StopIteration
    return [stacked(column, i) for i, column in enumerate(zip(*rows, strict=True))]


def stacked(values: Sequence[Any], component: int) -> Any:
    """Arrays of one shape, stacked; data sets become a vector."""
    first = values[0]
    if not isinstance(first, np.ndarray | np.generic):
        out = np.empty(len(values), object)
        out[:] = values
        return out
    _check_shapes(values, component)
    if not first.ndim and first.dtype != object:
        return np.array(values, first.dtype)
    out = np.empty((len(values), *first.shape), first.dtype)
    for i, value in enumerate(values):
        out[i] = value if value.ndim else value.item()
    return out


def _check_shapes(values: Sequence[Any], component: int) -> None:
    shape = values[0].shape
    for i, value in enumerate(values):
        if value.shape == shape:
            continue
        if value.size != values[0].size:
            raise invalid(
                "Cannot add tensor to the batch: number of elements does not match. "
                f"Shapes are: [tensor]: {shape_text(value)}, [batch]: {shape_text(shape)}"
            )
        raise invalid(
            f"Cannot batch tensors with different shapes in component {component}. "
            f"First element had shape {shape_text(shape)} and element {i} had shape {shape_text(value)}."
        )

"""The namespace `tf.data.experimental`: transformations that TF1 programs name, made of the methods of Dataset.

Stands for `python/data/experimental`. Left out: what needs ops of its own (`group_by_window`, `ignore_errors`,
`sample_from_datasets`, `CsvDataset`, …).

Rule: most give a function of a data set, for `dataset.apply(…)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.missing import missing as _missing
from dtflab.ops.casting import cast

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Counter",
    "enumerate_dataset",
    "map_and_batch",
    "parallel_interleave",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
]

Transformation = Callable[[Dataset], Dataset]


def Counter(start: Any = 0, step: Any = 1, dtype: DType = dtypes.int64) -> Dataset:
    """The numbers `start`, `start + step`, … without end."""
    last = 2**63 - 1 if step > 0 else -(2**63)
    numbers = Dataset.range(start, last, step)
    return numbers if dtype == dtypes.int64 else numbers.map(lambda number: cast(number, dtype))


def enumerate_dataset(start: Any = 0) -> Transformation:
    """`dataset.enumerate(start)`"""
    return lambda dataset: dataset.enumerate(start)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """`dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)`

    `num_parallel_batches` is another way to say `num_parallel_calls`, in batches; both are a ValueError.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "`map_and_batch` allows only one of `num_parallel_batches` and `num_parallel_calls` to be set."
        )
    calls = num_parallel_calls if num_parallel_batches is None else batch_size * num_parallel_batches
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool | None = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """`dataset.interleave(map_func, cycle_length, block_length, cycle_length)`; the other arguments have no effect."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """`dataset.shuffle(buffer_size, seed).repeat(count)`"""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """`dataset.take_while(predicate)`"""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """`dataset.unbatch()`"""
    return lambda dataset: dataset.unbatch()


def __getattr__(name: str) -> Any:
    raise _missing("tf.data.experimental", name, globals())

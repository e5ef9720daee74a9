"""The namespace `tf.data.experimental`: transformations that TF1 programs name, most made of the methods of Dataset.

Stands for `python/data/experimental`. Left out: `sample_from_datasets`, `CsvDataset`, and more that needs own ops.

Rule: most give a function of a data set, for `dataset.apply(…)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.data import grouping
from dtflab.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.ops.arrays.functions import cast

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Counter",
    "bucket_by_sequence_length",
    "enumerate_dataset",
    "group_by_window",
    "ignore_errors",
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


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Padded batches of elements of similar length: a batch size for each bucket, one more than there are boundaries.

    `pad_to_bucket_boundary`: up to the longest that the bucket may have, not the longest of the batch.
    """
    return lambda dataset: grouping.bucket_by_sequence_length(
        dataset, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding, drop_remainder,
    )  # fmt: skip


def enumerate_dataset(start: Any = 0) -> Transformation:
    """`dataset.enumerate(start)`"""
    return lambda dataset: dataset.enumerate(start)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """`reduce_func(key, elements)`, a data set, of `window_size` elements at a time whose `key_func` is the same.

    The size may be a function of the key instead. At the end come the groups that are not full.
    """
    return lambda dataset: grouping.group_by_window(dataset, key_func, reduce_func, window_size, window_size_func)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """The elements whose computation did not fail; `log_warning` has no effect."""
    return lambda dataset: dataset._with("IgnoreErrorsDataset", log_warning=log_warning)


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

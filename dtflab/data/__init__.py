"""The namespace `tf.data`: data sets as graphs that hand out one element after the other.

Read `dataset` (what a program writes), `structure` (what an element is), `traced` (its functions and generators) and
`iterator` (a place in a data set); then `files` (elements out of files), `padding` (arguments of padded_batch),
`grouping` (elements of equal keys together), `experimental` (more transformations) and `options` (accepted, without
effect). What runs is in `ops/datasets/`.

Design: docs/design/data.md
"""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.data import experimental
from dtflab.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from dtflab.data.files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from dtflab.data.iterator import Iterator
from dtflab.data.options import Options

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The dtype of each component of the elements."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The static shape of each component of the elements."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The Python class of each component of the elements."""
    return dataset_or_iterator.output_classes


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """`dataset.make_one_shot_iterator()`"""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """`dataset.make_initializable_iterator(shared_name)`"""
    return dataset.make_initializable_iterator(shared_name)


def __getattr__(name: str) -> Any:
    raise _missing("tf.data", name, globals())

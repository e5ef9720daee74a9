"""Data sets of strings out of files: the lines of texts, records, stretches of equal length.

Stands for `python/data/ops/readers.py`. Left out: buffers; their size has no effect.

Rule: the names of files may be a data set themselves; then each name becomes a data set, one after the other, or
several in turns with `num_parallel_reads`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dtflab.data.dataset import Dataset
from dtflab.data.structure import TensorStructure
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.tensor_shape import TensorShape


class _FilesDataset(Dataset):
    """Base of the data sets of strings out of files: `filenames` are a string, several, a tensor or a data set."""

    def __init__(self, filenames: Any, of_files: Callable[[Any], Dataset], num_parallel_reads: Any = None) -> None:
        if isinstance(filenames, Dataset):
            made = filenames.flat_map(of_files)
        elif num_parallel_reads is None:
            made = of_files(convert_to_tensor(filenames, dtypes.string, name="filenames"))
        else:
            names = Dataset.from_tensor_slices(convert_to_tensor(filenames, dtypes.string, name="filenames"))
            made = names.interleave(of_files, num_parallel_reads, 1, num_parallel_reads)
        super().__init__(made._variant_tensor, made._structure)


class _RecordsDataset(_FilesDataset):
    _OP = ""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """Records as byte strings. `compression_type` is '', 'ZLIB' or 'GZIP'; `buffer_size` has no effect.

        With `num_parallel_reads`, that many files are read in turns, ahead.
        """
        make = functools.partial(_of_files, self._OP, compression_type, buffer_size)
        super().__init__(filenames, make, num_parallel_reads)


class TextLineDataset(_RecordsDataset):
    """The lines of text files, without ends of lines."""

    _OP = "TextLineDataset"


class TFRecordDataset(_RecordsDataset):
    """The records of TFRecord files."""

    _OP = "TFRecordDataset"


class FixedLengthRecordDataset(_FilesDataset):
    """Stretches of equal length out of files."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        """Records of `record_bytes` after `header_bytes` and before `footer_bytes` of each file."""
        sizes = {"record_bytes": record_bytes, "header_bytes": header_bytes, "footer_bytes": footer_bytes}
        numbers = {name: convert_to_tensor(value or 0, dtypes.int64, name=name) for name, value in sizes.items()}
        make = functools.partial(_of_files, "FixedLengthRecordDatasetV2", compression_type, buffer_size, **numbers)
        super().__init__(filenames, make, num_parallel_reads)


def _of_files(op_type: str, compression_type: Any, buffer_size: Any, filenames: Any, **sizes: Any) -> Dataset:
    compression = convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")
    size = convert_to_tensor(buffer_size or 0, dtypes.int64, name="buffer_size")
    variant = apply_op(op_type, filenames=filenames, compression_type=compression, buffer_size=size, **sizes)
    return Dataset(variant, TensorStructure(dtypes.string, TensorShape([])))

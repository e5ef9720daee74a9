"""Where elements come from: tensors, ranges of numbers; lines, records, records of fixed length.

Stands for `tensor_dataset_op.cc`, `tensor_slice_dataset_op.cc`, `range_dataset_op.cc`, `text_line_dataset_op.cc`,
`tf_record_dataset_op.cc` and `fixed_length_record_dataset_op.cc` in `core/kernels/data`. `files/sources.py` reads the
files. Left out: slices of sparse tensors, byte offsets, buffer sizes.

Rules: slices are views. A batch of neighbours is one view, too, so `from_tensor_slices(…).batch(…)` copies nothing. A
file is opened when the one before it has ended. A file that can't be opened is an error each time; after a damaged
record the next file follows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.files.compression import WINDOW_BITS
from dtflab.files.env import Env
from dtflab.files.sources import FixedLengthRecords, Lines, Records, Source
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


@op(f"RangeDataset(start: int64, stop: int64, step: int64) -> {GIVES}{METADATA}, replicate_on_split: bool = false")
class RangeDataset(DatasetOp):
    stateful = True

    def make(node, start, stop, step):
        if not step:
            raise invalid("step must be a non-zero integer.")
        numbers = range(number(start, "start"), number(stop, "stop"), number(step, "step"))
        return Dataset(lambda run: _Numbers(numbers, node["output_types"][0].as_numpy_dtype))


# -- files -------------------------------------------------------------------------------------------


Opener = Callable[[bytes, Env], Source]


def _files(filenames: Any, start: Opener) -> Dataset:
    """The records of some files, one file after the other; `start(name, env)` opens one."""
    if filenames.ndim > 1:
        raise invalid("`filenames` must be a scalar or a vector.")
    names: list[bytes] = filenames.ravel().tolist()
    return Dataset(lambda run: _Records(names, start, run.ctx.env))


class _Records(Iterating):
    def __init__(self, names: list[bytes], start: Opener, env: Env) -> None:
        self._names, self._start, self._env = names, start, env
        self._at = 0
        self._source: Source | None = None

    def __next__(self) -> Element:
        while (found := self._read()) is None:
            pass
        return [np.array(found[1], object)]

    def batch(self, count: int) -> list[Any]:
        values: list[bytes] = []
        with contextlib.suppress(StopIteration):
            while len(values) < count:
                values += self._read(count - len(values))[1]
        if not values:
            raise StopIteration
        return [np.array(values, object)]

    def _read(self, count: int | None = None) -> Any:
        """The next record, or the next `count`, of the open file, or of the next one; StopIteration at the end."""
        if self._at == len(self._names):
            raise StopIteration
        if self._source is None:
            self._source = self._start(self._names[self._at], self._env)
        try:
            found = self._source.next() if count is None else self._source.next_many(count)
        except errors.OpError:
            self._leave(self._source)
            raise
        if self._source.ended:
            self._leave(self._source)
        return found

    def _leave(self, source: Source) -> None:
        source.close()
        self._source = None
        self._at += 1


def _compression(compression_type: Any) -> str:
    kind: str = compression_type.item().decode()
    if kind and kind not in WINDOW_BITS:
        raise invalid("Unsupported compression_type.")
    return kind


_FILES = f"(filenames: string, compression_type: string, buffer_size: int64) -> (handle: variant){METADATA}"


class _FilesOp(DatasetOp):
    stateful = True


@op(f"TextLineDataset{_FILES}")
class TextLineDataset(_FilesOp):
    def make(node, filenames, compression_type, buffer_size):
        kind = _compression(compression_type)
        return _files(filenames, lambda name, env: Lines(name, compression=kind, env=env))


@op(f"TFRecordDataset{_FILES}")
class TFRecordDataset(_FilesOp):
    def make(node, filenames, compression_type, buffer_size):
        kind = _compression(compression_type)
        return _files(filenames, lambda name, env: Records(name, kind, env))


def _fixed_length(filenames: Any, header: Any, record: Any, footer: Any, kind: str) -> Dataset:
    head, size, foot = (number(x, n) for x, n in ((header, "header"), (record, "record"), (footer, "footer")))
    for name, value, least in (("header_bytes", head, 0), ("record_bytes", size, 1), ("footer_bytes", foot, 0)):
        if value < least:
            raise invalid(f"`{name}` must be {'> 0' if least else '>= 0'}")

    def start(name: bytes, env: Env) -> Source:
        if not kind:
            _check_body(env.path(os.fsdecode(name)), head, size, foot)
        return FixedLengthRecords(name, size, head, foot, 0, kind, env)

    return _files(filenames, start)


def _check_body(path: str, header: int, record: int, footer: int) -> None:
    """Raise InvalidArgumentError unless whole records lie between header and footer."""
    body = os.path.getsize(path) - header - footer if os.path.isfile(path) else 0
    if body % record:
        raise invalid(
            f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{path}" has body '
            f"length {body} bytes, which is not an exact multiple of the record length ({record} bytes)."
        )


_SIZES = "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64"


@op(
    f"FixedLengthRecordDataset({_SIZES}) -> (handle: variant){METADATA}",
    f"FixedLengthRecordDatasetV2({_SIZES}, compression_type: string) -> (handle: variant){METADATA}",
)
class FixedLengthRecordDataset(_FilesOp):
    def make(node, filenames, header_bytes, record_bytes, footer_bytes, buffer_size, compression_type=None):
        kind = "" if compression_type is None else _compression(compression_type)
        return _fixed_length(filenames, header_bytes, record_bytes, footer_bytes, kind)

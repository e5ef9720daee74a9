"""Features of Examples → arrays: dense ones, sparse ones (indices, values, shape), ragged ones (values, row splits).

Stands for `core/util/example_proto_fast_parsing.cc` and `example_proto_helper.cc`. Python's protobuf does the parsing.

Rule: everything is a column: for each example of a batch, the list of values of one feature, or None where the feature
is missing. One example alone is a batch of one, and its first dimension is dropped in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import filled
from dtflab.ops.examples.functions import starts_unknown
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.sparse_arrays import array_of, counted, sparse_rows
from dtflab.protos.example_pb2 import Feature, SequenceExample

FIELDS = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}
_TYPES = {field: dtype for dtype, field in FIELDS.items()}

Column = list[Any]  # per example: its values, or None


class Batch:
    """Parsed messages with their names for error messages."""

    def __init__(self, messages: Sequence[Any], names: Any, alone: bool) -> None:
        self.messages = messages
        self.alone = alone
        self._names = [name.decode(errors="replace") for name in np.ravel(names)]

    @classmethod
    def parse(cls, kind: Any, serialized: Any, names: Any) -> Batch:
        """`serialized` and `names` are arrays of strings, a vector or a scalar; there may be no names."""
        if serialized.ndim > 1:
            raise invalid(f"Expected serialized to be a vector or scalar, got shape: {shape_text(serialized)}")
        if names.size and names.shape != serialized.shape:
            raise invalid(
                "Expected names have the same shape as serialized: "
                f"name.shape={shape_text(names)}, serialized.shape={shape_text(serialized)}"
            )
        return cls([_message(kind, text) for text in serialized.ravel().tolist()], names, serialized.ndim == 0)

    def name(self, i: int) -> str:
        """The name of example `i` in messages."""
        return f"Name: {self._names[i] if self._names else '<unknown>'}, "

    def place(self, i: int, key: str) -> str:
        """Where in the batch a feature is."""
        return f"Key: {key}." if self.alone else f"{self.name(i)}Key: {key}, Index: {i}."

    def squeezed(self, array: Any) -> Any:
        """The array of a batch, or of the only example."""
        return array.reshape(array.shape[self.alone :])


def _message(kind: Any, text: bytes) -> Any:
    try:
        return kind.FromString(text)
    except DecodeError:
        raise invalid(f"Could not parse example input, value: '{text.decode(errors='replace')}'") from None


def features_of(message: Any) -> Mapping[str, Feature]:
    """The features of an Example, or of the context of a SequenceExample."""
    found: Mapping[str, Feature] = (
        message.context if isinstance(message, SequenceExample) else message.features
    ).feature
    return found


def column(batch: Batch, key: str, dtype: DType) -> Column:
    """The values of a feature in each example, or None."""
    return [
        _values(features_of(message).get(key), dtype, lambda found, i=i: _mismatch(batch, i, key, dtype, found))
        for i, message in enumerate(batch.messages)
    ]


def _mismatch(batch: Batch, i: int, key: str, dtype: DType, found: DType) -> str:
    if isinstance(batch.messages[i], SequenceExample):
        return f"{batch.name(i)}Context feature: {key}.  Data types don't match. Expected type: {dtype_text(dtype)}"
    there = f"Data type: {dtype_text(found)} but expected type: {dtype_text(dtype)}"
    return f"{batch.place(i, key)}  Data types don't match. {there}"


def _values(feature: Feature | None, dtype: DType, mismatch: Callable[[DType], str]) -> Any:
    kind = feature.WhichOneof("kind") if feature is not None else None
    if kind is None:
        return None
    if kind != FIELDS[dtype]:
        raise invalid(mismatch(_TYPES[kind]))
    return getattr(feature, kind).value


# -- dense --------------------------------------------------------------------------------------------


def dense(batch: Batch, key: str, dtype: DType, shape: TensorShape, default: Any) -> Any:
    """Values of one `shape` in each example. A missing feature has those of `default`, which must not be empty then."""
    if starts_unknown(shape):
        return padded(batch, key, dtype, shape, default)
    size, rows = shape.num_elements() or 0, column(batch, key, dtype)
    for i, row in enumerate(rows):
        if row is None:
            if default.size != size:
                where = "" if batch.alone else batch.name(i)
                raise invalid(
                    f"{where}Feature: {key} (data type: {dtype_text(dtype)}) is required but could not be found."
                )
            rows[i] = default.ravel().tolist()
        elif len(row) != size:
            raise invalid(
                f"{batch.place(i, key)}  Number of {dtype_text(dtype)} values != expected.  "
                f"Values size: {len(row)} but output shape: {shape_text(shape)}"
            )
    return batch.squeezed(array_of(chain(*rows), dtype).reshape(len(rows), *shape.as_list()))


def padded(batch: Batch, key: str, dtype: DType, shape: TensorShape, default: Any) -> Any:
    """Steps of `shape[1:]`, as many as the longest example has; `default` fills up the others."""
    step = shape.as_list()[1:]
    stride = TensorShape(step).num_elements() or 1
    rows = column(batch, key, dtype)
    for i, row in enumerate(rows):
        if row is not None and len(row) % stride:
            raise invalid(
                f"{batch.place(i, key)}  Number of {dtype_text(dtype)} values is not a "
                f"multiple of stride length. Saw {len(row)} values but output shape is: {shape_text(shape)}"
            )
    longest = max((len(row) for row in rows if row is not None), default=0)
    default = default.item() if default.size else _zero(dtype)
    out = filled(np, (len(rows), longest), default, dtype.as_numpy_dtype)
    for row, values in zip(out, rows):
        if values is not None:
            row[: len(values)] = array_of(values, dtype)
    return batch.squeezed(out.reshape(len(rows), longest // stride, *step))


def _zero(dtype: DType) -> Any:
    return b"" if dtype == dtypes.string else 0


# -- sparse and ragged ----------------------------------------------------------------------------------


def sparse(batch: Batch, key: str, dtype: DType) -> tuple[Any, Any, Any]:
    """Indices, values and shape of a matrix with a row for each example; of a vector for one alone."""
    indices, values, shape = sparse_rows([row or () for row in column(batch, key, dtype)], dtype)
    return indices[:, batch.alone :], values, shape[batch.alone :]


def ragged(batch: Batch, key: str, dtype: DType, split_dtype: DType) -> tuple[Any, Any]:
    """Values and row splits; one example alone has no splits."""
    rows = [row or () for row in column(batch, key, dtype)]
    return array_of(chain(*rows), dtype), splits(map(len, rows), split_dtype)[: 0 if batch.alone else None]


def splits(lengths: Any, dtype: DType) -> Any:
    """Where rows of these lengths begin, and where the last one ends."""
    return np.cumsum([0, *lengths], dtype=dtype.as_numpy_dtype)


# -- lists of features ----------------------------------------------------------------------------------


def steps(batch: Batch, key: str, dtype: DType) -> list[list[Any] | None]:
    """For each SequenceExample the values at each step, or None where it has no such list."""
    found: list[list[Any] | None] = []
    for i, message in enumerate(batch.messages):
        lists = message.feature_lists.feature_list
        if key not in lists:
            found.append(None)
            continue
        row = []
        for j, feature in enumerate(lists[key].feature):
            where = f"{batch.name(i)}Feature list: {key}, Index: {j}."
            wrong = f"{where}  Data types don't match. Expected type: {dtype_text(dtype)}"
            row.append(_values(feature, dtype, lambda _, wrong=wrong: wrong) or ())
        found.append(row)
    return found


def dense_steps(batch: Batch, key: str, dtype: DType, shape: TensorShape, may_be_missing: bool) -> tuple[Any, Any]:
    """Values of `shape` at each step, zeros after the last one, and how many steps each example has."""
    size, rows = shape.num_elements() or 0, steps(batch, key, dtype)
    for i, row in enumerate(rows):
        if row is None and not may_be_missing:
            raise invalid(
                f"{batch.name(i)}Feature list '{key}' is required but could not be found.  Did you mean to "
                "include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
            )
        _check_steps(row or (), f"{batch.name(i)}Key: {key}", key, shape)
    lengths = np.array([len(row or ()) for row in rows], np.int64)
    out = np.full((len(rows), lengths.max(initial=0), size), _zero(dtype), dtype.as_numpy_dtype)
    for i, row in enumerate(rows):
        out[i, : lengths[i]] = array_of(chain(*(row or ())), dtype).reshape(lengths[i], size)
    return batch.squeezed(out.reshape(*out.shape[:2], *shape.as_list())), batch.squeezed(lengths)


def _check_steps(row: Sequence[Any], where: str, key: str, shape: TensorShape) -> None:
    size, total = shape.num_elements() or 0, sum(map(len, row))
    if total % max(size, 1):
        raise invalid(
            f"Feature list '{key}' has an unexpected number of values.  Total values size: {total} is not "
            f"consistent with output shape: {shape_text(TensorShape([None]).concatenate(shape))}"
        )
    for j, values in enumerate(row):
        if len(values) != size:
            raise invalid(
                f"{where}, Index: {j}.  Number of values != expected.  values size: {len(values)} but output shape: "
                f"{shape_text(shape)}"
            )


def sparse_steps(batch: Batch, key: str, dtype: DType) -> tuple[Any, Any, Any]:
    """Indices (example, step, place), values and shape; without the first for one example alone."""
    rows = [row or [] for row in steps(batch, key, dtype)]
    counts = np.array([len(row) for row in rows], np.int64)
    lengths = np.array([len(values) for row in rows for values in row], np.int64)
    at = [np.repeat(np.arange(len(rows)), counts), counted(counts)]
    indices = np.stack([*(np.repeat(place, lengths) for place in at), counted(lengths)], 1)
    shape = np.array([len(rows), counts.max(initial=0), lengths.max(initial=0)], np.int64)
    return indices[:, batch.alone :], array_of(chain(*chain(*rows)), dtype), shape[batch.alone :]


def ragged_steps(batch: Batch, key: str, dtype: DType, split_dtype: DType) -> tuple[Any, Any, Any]:
    """Values, the row splits of the examples' steps, and those of the steps' values."""
    rows = [row or [] for row in steps(batch, key, dtype)]
    outer = splits(map(len, rows), split_dtype)[: 0 if batch.alone else None]
    return array_of(chain(*chain(*rows)), dtype), outer, splits((len(v) for row in rows for v in row), split_dtype)

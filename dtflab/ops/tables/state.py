"""Tables as resources: what is kept under keys, and how keys are looked up, inserted and removed.

Stands for `core/kernels/lookup_table_op.cc`, `initializable_lookup_table.cc` and `lookup_util.cc`. Left out: buckets;
a table is a dict, so that a DenseTable only keeps the checks of its two reserved keys.

Rule: a static table is filled once; the others change at any time, under a lock.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.files.env import Env
from dtflab.files.paths import reported
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType, dtype_text
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.numerals import number

Pairs = Iterable[tuple[Any, Any]]


class Table:
    """Values by keys: a key is bytes, a number, or a tuple where keys are vectors; a value is an element or a row."""

    def __init__(
        self, key_dtype: DType, value_dtype: DType, key_shape: tuple[int, ...] = (), value_shape: tuple[int, ...] = ()
    ) -> None:
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.key_shape, self.value_shape = key_shape, value_shape
        self._entries: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, keys: Any, default: Any) -> Any:
        """The values of `keys`. Missing keys get `default`, which is one value for all or one for each key."""
        places = self._places(keys)
        one, many = self.value_shape, places + self.value_shape
        if default.shape not in (one, many):
            expected = f"{shape_text(one)} or {shape_text(many)}"
            raise invalid(f"Expected shape {expected} for default value, got {shape_text(default)}")
        found = np.empty(many, default.dtype)
        found[...] = default
        rows = found.reshape(-1, *self.value_shape)
        get = self._entries.get
        for i, key in enumerate(self._keys(keys)):
            if (value := get(key)) is not None:
                rows[i] = value
        return found

    def insert(self, keys: Any, values: Any) -> None:
        """Store `values` under `keys`; of equal keys the last one counts."""
        pairs = self._pairs(keys, values)
        with self._lock:
            self._entries.update(pairs)

    def remove(self, keys: Any) -> None:
        """Remove `keys`; missing ones are ignored."""
        self._places(keys)
        with self._lock:
            for key in self._keys(keys):
                self._entries.pop(key, None)

    def fill(self, keys: Any, values: Any) -> None:
        """Replace all entries by `keys` and `values`, which `export` gave."""
        pairs = dict(self._pairs(keys, values))
        with self._lock:
            self._entries = pairs

    def export(self) -> tuple[Any, Any]:
        """All keys and their values, row by row."""
        with self._lock:
            keys, values = list(self._entries), list(self._entries.values())
        return (_array(keys, self.key_dtype, self.key_shape), _array(values, self.value_dtype, self.value_shape))

    def _places(self, keys: Any) -> tuple[int, ...]:
        """The shape of `keys` as an array of keys: without the axes of one key."""
        rank = len(self.key_shape)
        if keys.shape[keys.ndim - rank :] != self.key_shape:
            wanted = shape_text(self.key_shape)
            raise invalid(f"Input key shape {shape_text(keys)} must end with the table's key shape {wanted}")
        return keys.shape[: keys.ndim - rank]

    def _keys(self, keys: Any) -> list[Any]:
        if self.key_shape:
            return [tuple(key) for key in keys.reshape(-1, *self.key_shape).tolist()]
        return keys.ravel().tolist()

    def _pairs(self, keys: Any, values: Any) -> Iterator[tuple[Any, Any]]:
        expected = self._places(keys) + self.value_shape
        if values.shape != expected:
            raise invalid(f"Expected shape {shape_text(expected)} for value, got {shape_text(values)}")
        rows = values.reshape(-1, *self.value_shape)
        return zip(self._keys(keys), rows.copy() if self.value_shape else rows.tolist(), strict=True)


def _array(items: list[Any], dtype: DType, shape: tuple[int, ...]) -> Any:
    found = np.empty((len(items), *shape), dtype.as_numpy_dtype)
    for i, item in enumerate(items):
        found[i] = item
    return found


class StaticTable(Table):
    """A table that is filled once. Filling it again is allowed only with the same entries."""

    filled = False

    def find(self, keys: Any, default: Any) -> Any:
        if not self.filled:
            raise errors.FailedPreconditionError.of("Table not initialized.")
        return super().find(keys, default)

    def export(self) -> tuple[Any, Any]:
        if not self.filled:
            raise errors.AbortedError.of("HashTable is not initialized.")
        return super().export()

    def insert(self, keys: Any, values: Any) -> None:
        raise errors.UnimplementedError.of("Insert not supported by InitializableLookupTable implementations")

    def remove(self, keys: Any) -> None:
        raise errors.UnimplementedError.of("Remove not supported by InitializableLookupTable implementations")

    def fill(self, keys: Any, values: Any) -> None:
        self.fill_once(self._pairs(keys, values))

    def fill_once(self, pairs: Pairs) -> None:
        """Store `pairs`; FailedPreconditionError if they contradict each other or the entries so far."""
        entries: dict[Any, Any] = {}
        for key, value in pairs:
            if entries.setdefault(key, value) != value:
                shown, has, new = map(_shown, (key, entries[key], value))
                raise _failed(
                    f"HashTable has different value for same key. Key {shown} has {has} and trying to add value {new}"
                )
        with self._lock:
            if self.filled and entries != self._entries:
                raise _failed("Table was already initialized with different data.")
            self._entries, self.filled = entries, True


class DenseTable(Table):
    """A table that changes, in which two keys are reserved: no entry has them."""

    def __init__(self, empty_key: Any, deleted_key: Any, *args: Any) -> None:
        super().__init__(*args)
        if empty_key.shape != deleted_key.shape:
            both = f"{shape_text(empty_key)} and {shape_text(deleted_key)}"
            raise invalid(f"Empty and deleted keys must have same shape, got shapes: {both}")
        self._reserved = {self._one(deleted_key): "deleted", self._one(empty_key): "empty"}
        if len(self._reserved) == 1:
            raise invalid("Empty and deleted keys cannot be equal")

    def _one(self, key: Any) -> Any:
        return super()._keys(key)[0]

    def _places(self, keys: Any) -> tuple[int, ...]:
        """Like the base class, but the first axis alone says how many keys there are."""
        places = super()._places(keys)
        count = keys.shape[:1] or (1,)
        if keys.size != math.prod(count + self.key_shape):
            raise invalid(f"Expected key shape {shape_text(count + self.key_shape)} got {shape_text(keys)}")
        return places

    def _keys(self, keys: Any) -> list[Any]:
        plain = super()._keys(keys)
        for key in plain:
            if key in self._reserved:
                raise invalid(f"Using the {self._reserved[key]}_key as a table key is not allowed")
        return plain

    def fill(self, keys: Any, values: Any) -> None:
        """Like the base class, but skips the reserved keys: a checkpoint by TensorFlow has empty buckets, too."""
        kept = [i for i, key in enumerate(super()._keys(keys)) if key not in self._reserved]
        super().fill(keys[kept], values[kept])


def _failed(message: str) -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError.of(message)


def _shown(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


# -- tables in text files ---------------------------------------------------------------------------------------------

WHOLE_LINE, LINE_NUMBER = -2, -1


class Columns(NamedTuple):
    """Which part of each line is the key and which the value: a column's number, WHOLE_LINE, or LINE_NUMBER."""

    key: int
    value: int
    delimiter: bytes
    vocab_size: int  # how many lines count; -1 for all
    offset: int  # added to numbers of lines


def pairs_of_file(
    env: Env, filename: Any, columns: Columns, key_dtype: DType, value_dtype: DType
) -> Iterator[tuple[Any, Any]]:
    """The (key, value) of each line of a text in `env`; errors name the file and the line."""
    path = os.fsdecode(filename)
    if len(columns.delimiter) != 1:
        raise invalid("delimiter should be only 1 char")
    with reported(path), env.open(path) as file:
        text = file.read().replace(b"\r", b"")
    lines = text.removesuffix(b"\n").split(b"\n") if text else []
    if columns.vocab_size > len(lines):
        raise invalid(f"Invalid vocab_size in {path}: expected {columns.vocab_size} but got {len(lines)}")
    if columns.vocab_size >= 0:
        lines = lines[: columns.vocab_size]
    key = _reader(path, columns, columns.key, key_dtype)
    value = _reader(path, columns, columns.value, value_dtype)
    return ((key(i, line), value(i, line)) for i, line in enumerate(lines))


def _reader(path: str, columns: Columns, index: int, dtype: DType) -> Callable[[int, bytes], Any]:
    """The function of (line number, line) that gives the key or the value."""
    if index == LINE_NUMBER:
        return lambda i, line: i + columns.offset
    if index == WHOLE_LINE:
        return lambda i, line: _parsed(line, i, dtype)

    least = max(columns.key, columns.value) + 1

    def read(i: int, line: bytes) -> Any:
        fields = line.split(columns.delimiter)
        if len(fields) < least:
            raise invalid(
                f"Invalid number of columns in {path} line {i} ({_shown(line)}) : expected at least {least} got "
                f"{len(fields)}"
            )
        return _parsed(fields[index], i, dtype)

    return read


_IN_FILES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def _parsed(field: bytes, line: int, dtype: DType) -> Any:
    if dtype == dtypes.string:
        return field
    if dtype not in _IN_FILES:
        raise invalid(f"Data type {dtype_text(dtype)} not supported.")
    try:
        return number(field, dtype).item()
    except ValueError:
        raise invalid(f"Field {_shown(field)} in line {line} is not a valid {dtype.name}.") from None

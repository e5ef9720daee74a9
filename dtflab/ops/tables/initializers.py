"""What fills a static table: vectors of keys and values, or the lines of a text file.

Stands for the initializers of `python/ops/lookup_ops.py`. Left out: DatasetInitializer of TensorFlow 2.

Rule: an initializer fills every table that is made with it, by an operation that `tables_initializer` collects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType, as_dtype
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, device, name_scope
from dtflab.ops.tables.state import LINE_NUMBER, WHOLE_LINE
from dtflab.ops.variables.variable import init_scope

if TYPE_CHECKING:
    from dtflab.ops.tables.functions import LookupInterface


class _Initializer:
    _shared_name = ""  # tables with one shared name are one table

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    def _check(self, table: LookupInterface) -> None:
        for what, wanted, has in (("key", table.key_dtype, self._key_dtype),
                                  ("value", table.value_dtype, self._value_dtype)):  # fmt: skip
            if wanted != has.base_dtype:
                raise TypeError(f"Invalid {what} dtype for table, expected {wanted} but got {has}.")


class KeyValueTensorInitializer(_Initializer):
    """Fills a table with the vectors `keys` and `values`."""

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
                 name: str | None = None) -> None:  # fmt: skip
        with init_scope():
            self._keys = convert_to_tensor(keys, dtype=key_dtype, name="keys")
            self._values = convert_to_tensor(values, dtype=value_dtype, name="values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table`. TypeError if its dtypes are others."""
        self._check(table)
        handle = table.resource_handle
        with name_scope(self._name, values=[handle, self._keys, self._values]):
            init_op: Operation = apply_op("LookupTableImportV2", table_handle=handle, keys=self._keys,
                                          values=self._values)  # fmt: skip
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, init_op)
        return init_op


class TextFileIndex:
    """What of a line is meant, if not a column: all of it, or its number, from 0."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TextFileInitializer(_Initializer):
    """Fills a table with the lines of a text, each an entry.

    `key_index` and `value_index` are numbers of columns, from 0, parted by `delimiter`, or a TextFileIndex.
    `vocab_size` is how many lines count, all if None. `value_index_offset` is added to numbers of lines. ValueError for
    what does not fit; what is wrong with the file is an error of the step.
    """

    def __init__(self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
                 vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
                 value_index_offset: int = 0) -> None:  # fmt: skip
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        super().__init__(key_dtype, value_dtype)
        _check_column("key", key_index, self._key_dtype)
        _check_column("value", value_index, self._value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        self._name = name
        self._filename = filename
        with init_scope(), device("CPU"):
            self._path = convert_to_tensor(filename, dtypes.string, name="asset_path")
        self._attrs: dict[str, Any] = {
            "key_index": key_index, "value_index": value_index, "vocab_size": vocab_size or -1,
            "delimiter": delimiter, "offset": value_index_offset,
        }  # fmt: skip

    @property
    def _shared_name(self) -> str:
        given = self._attrs
        parts = [self._filename, given["key_index"], given["value_index"]]
        if given["vocab_size"] > 0:
            parts.insert(1, given["vocab_size"])
        return "_".join(map(str, ["hash_table", *parts, *([given["offset"]] if given["offset"] else [])]))

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table`. TypeError if its dtypes are others."""
        self._check(table)
        handle = table.resource_handle
        with name_scope(self._name, "text_file_init", [handle]):
            init_op: Operation = apply_op("InitializeTableFromTextFileV2", table_handle=handle, filename=self._path,
                                          **self._attrs)  # fmt: skip
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, init_op)
        if self._path.op.type == "Const":  # a saved model takes the file along
            add_to_collection(GraphKeys.ASSET_FILEPATHS, self._path)
        return init_op


def _check_column(what: str, index: int, dtype: DType) -> None:
    if index < WHOLE_LINE:
        raise ValueError(f"`{what}_index` should be >= -2, received: {index}.")
    if index == LINE_NUMBER and dtype != dtypes.int64:
        raise ValueError(f"`{what}_dtype` must be int64 if `{what}_index` is {LINE_NUMBER}, received: {dtype}")
    if index == WHOLE_LINE and not dtype.is_integer and dtype != dtypes.string:
        raise ValueError(
            f"`{what}_dtype` should be either integer or string for `{what}_index` {WHOLE_LINE}, received: {dtype}"
        )

"""The classes of `tf.lookup`: tables from keys to values, and what fills them.

Stands for `python/ops/lookup_ops.py`. Left out: anonymous tables, ragged keys, DatasetInitializer of TensorFlow 2.

Rule: an initializer (vectors of keys and values, or the lines of a text file) fills every static table that is made
with it, by an operation that `tables_initializer` collects. Mutable tables are saved and restored with the variables.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.dtypes import DType, as_dtype
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, colocate_with, device, get_collection, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import cast
from dtflab.ops.control import functions as control
from dtflab.ops.control.functions import init_scope
from dtflab.ops.entropy import from_system
from dtflab.ops.indexing.functions import where_v2
from dtflab.ops.math.functions import add, not_equal
from dtflab.ops.saveable import SaveableObject, SaveSpec
from dtflab.ops.sparse.sparse_tensor import SparseTensor
from dtflab.ops.tables.state import LINE_NUMBER, WHOLE_LINE
from dtflab.ops.text.functions import as_string, string_to_hash_bucket_fast


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """One operation that runs the initializers of all tables; without tables it does nothing."""
    initializers = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return control.group(*initializers, name=name) if initializers else control.no_op(name=name)


# What it was called before TensorFlow 1.0.
initialize_all_tables = tables_initializer


class _Typed:
    """The dtypes of keys and values."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)


class LookupInterface(_Typed):
    """The common interface of all tables."""

    resource_handle: Any  # a tensor; None for a vocabulary of buckets alone

    @property
    def name(self) -> str:
        """The last part of the name of its node."""
        return self.resource_handle.op.name.rpartition("/")[2]

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        raise NotImplementedError

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _check(self, keys: Any) -> None:
        if keys.dtype.base_dtype != self.key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self.key_dtype}, received: {keys.dtype}")

    def _apply(self, what: str, **arguments: Any) -> Any:
        return apply_op(f"LookupTable{what}V2", table_handle=self.resource_handle, **arguments)

    def _export(self) -> Any:
        return self._apply("Export", Tkeys=self.key_dtype, Tvalues=self.value_dtype)


# -- tables that are filled once --------------------------------------------------------------------------------------


class StaticHashTable(LookupInterface):
    """A table that its `initializer` fills, once. Missing keys have the value `default_value`, a scalar.

    Its attribute `initializer` is the operation that fills it; `tables_initializer` runs that, too.
    """

    def __init__(self, initializer: Any, default_value: Any, name: str | None = None) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self.default_value = convert_to_tensor(default_value, dtype=self.value_dtype)
        self.default_value.shape.merge_with(TensorShape([]))
        shared_name = initializer._shared_name or f"hash_table_{from_system():016x}"
        with init_scope():
            dtypes = {"key_dtype": self.key_dtype, "value_dtype": self.value_dtype}
            self.resource_handle = apply_op("HashTableV2", name or "hash_table", shared_name=shared_name, **dtypes)
        with init_scope():
            self.initializer: Operation = initializer.initialize(self)

    def size(self, name: str | None = None) -> Tensor:
        """How many entries there are, a scalar int64; 0 before it is filled."""
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]):
            return self._apply("Size")

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys`, in the shape of `keys`; a SparseTensor if that is one.

        Raises TypeError if the keys have another dtype than the table's. A run before the table is filled raises
        FailedPreconditionError.
        """
        key_tensor = keys.values if isinstance(keys, SparseTensor) else keys
        self._check(keys)
        with name_scope(name, f"{self.name}_Lookup", [self.resource_handle, key_tensor, self.default_value]):
            values = self._apply("Find", keys=key_tensor, default_value=self.default_value)
        values.set_shape(key_tensor.shape)
        return _like_keys(keys, values)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values, two vectors."""
        with name_scope(name, f"{self.name}_Export", [self.resource_handle]):
            keys, values = self._export()
        values.set_shape(keys.shape.concatenate(self.default_value.shape))
        return keys, values


def _like_keys(keys: Any, values: Tensor) -> Any:
    return SparseTensor(keys.indices, values, keys.dense_shape) if isinstance(keys, SparseTensor) else values


class StaticVocabularyTable(LookupInterface):
    """Ids of words: those of `initializer`, and for other words one of `num_oov_buckets` more, by the word's hash.

    Without an initializer there are only the buckets. Integer keys are cast to the initializer's key dtype.
    Raises ValueError or TypeError for arguments that do not fit.
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: str | None = None
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        name = name.rstrip("/") if name else name
        self._table: StaticHashTable | None = None
        key_dtype: DType = dtypes.string
        if initializer:
            key_dtype = as_dtype(lookup_key_dtype or initializer.key_dtype)
            _check_vocabulary(initializer, key_dtype)
            self._table = StaticHashTable(initializer, default_value=-1)
        if not key_dtype.is_integer and key_dtype != dtypes.string:
            raise TypeError(f"Invalid `key_dtype`, expected integer or string, got {key_dtype}")
        super().__init__(key_dtype, dtypes.int64)
        self._num_oov_buckets = num_oov_buckets
        self.resource_handle = self._table.resource_handle if self._table else None
        self._name = (name or (self._table.name if self._table else "hash_bucket")).rpartition("/")[2]

    @property
    def name(self) -> str:
        return self._name

    @property
    def initializer(self) -> Operation:
        """Fills the table of the words that have ids of their own."""
        if self._table:
            return self._table.initializer
        with name_scope(None, "init"):
            return control.no_op()

    def size(self, name: str | None = None) -> Any:
        """How many ids there are, buckets included, a scalar int64."""
        with name_scope(name, f"{self.name}_Size"):
            known = self._table.size() if self._table else constant(0, dtypes.int64)
            return known + self._num_oov_buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of `keys`, int64, in their shape; a SparseTensor if that is one. TypeError for another dtype."""
        self._check(keys)
        words = keys.values if isinstance(keys, SparseTensor) else keys
        if self._table and self._table.key_dtype == dtypes.int64:
            words = cast(words, dtypes.int64)
        with name_scope(name, f"{self.name}_Lookup"):
            texts = words if words.dtype.base_dtype == dtypes.string else as_string(words)
            ids = string_to_hash_bucket_fast(texts, num_buckets=self._num_oov_buckets, name="hash_bucket")
            if self._table:
                known = self._table.lookup(words)
                buckets = add(ids, self._table.size())
                ids = where_v2(not_equal(known, self._table.default_value), known, buckets)
        return _like_keys(keys, ids)


def _check_vocabulary(initializer: Any, key_dtype: DType) -> None:
    supported = (dtypes.int64, dtypes.string)
    if initializer.key_dtype not in supported:
        raise TypeError(f"Invalid `key_dtype`, expected one of {supported}, but got {initializer.key_dtype}.")
    if initializer.key_dtype.is_integer != key_dtype.is_integer:
        kind = "integer" if key_dtype.is_integer else "non-integer"
        raise TypeError(f"Invalid `key_dtype`, expected {kind} but got {initializer.key_dtype}.")
    if initializer.value_dtype != dtypes.int64:
        raise TypeError(f"Invalid `value_dtype`, expected {dtypes.int64} but got {initializer.value_dtype}.")


# -- what fills static tables ----------------------------------------------------------------------------------------


class _Initializer(_Typed):
    _shared_name = ""  # tables with one shared name are one table

    def _check(self, table: LookupInterface) -> None:
        for what in ("key_dtype", "value_dtype"):
            wanted, has = getattr(table, what), getattr(self, what)
            if wanted != has.base_dtype:
                raise TypeError(f"Invalid {what.replace('_', ' ')} for table, expected {wanted} but got {has}.")


class KeyValueTensorInitializer(_Initializer):
    """Fills a table with the vectors `keys` and `values`."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        with init_scope():
            self._keys = convert_to_tensor(keys, dtype=key_dtype, name="keys")
            self._values = convert_to_tensor(values, dtype=value_dtype, name="values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table`. Raises TypeError if the table has other dtypes."""
        self._check(table)
        with name_scope(self._name, values=[table.resource_handle, self._keys, self._values]):
            init_op: Operation = table._apply("Import", keys=self._keys, values=self._values)
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, init_op)
        return init_op


class TextFileIndex:
    """The parts of a line other than a column: all of its text, or its number, from 0."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TextFileInitializer(_Initializer):
    """Fills a table with the lines of a text, each an entry.

    `key_index` and `value_index` are numbers of columns, from 0, separated by `delimiter`, or a TextFileIndex. Only the
    first `vocab_size` lines are read, all if None. `value_index_offset` is added to line numbers. Raises ValueError for
    arguments that do not fit; a problem with the file is an error of the step.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        super().__init__(key_dtype, value_dtype)
        _check_column("key", key_index, self.key_dtype)
        _check_column("value", value_index, self.value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        self._name = name
        self._filename = filename
        with init_scope(), device("CPU"):
            self._path = convert_to_tensor(filename, dtypes.string, name="asset_path")
        self._attrs: dict[str, Any] = {"key_index": key_index, "value_index": value_index, "offset": value_index_offset}
        self._attrs |= {"vocab_size": vocab_size or -1, "delimiter": delimiter}

    @property
    def _shared_name(self) -> str:
        given = self._attrs
        parts = [self._filename, given["key_index"], given["value_index"]]
        if given["vocab_size"] > 0:
            parts.insert(1, given["vocab_size"])
        return "_".join(map(str, ["hash_table", *parts, *([given["offset"]] if given["offset"] else [])]))

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table`. Raises TypeError if the table has other dtypes."""
        self._check(table)
        handle = table.resource_handle
        with name_scope(self._name, "text_file_init", [handle]):
            arguments = {"table_handle": handle, "filename": self._path}
            init_op: Operation = apply_op("InitializeTableFromTextFileV2", **arguments, **self._attrs)
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, init_op)
        if self._path.op.type == "Const":  # a saved model copies the file
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


# -- tables that change -----------------------------------------------------------------------------------------------


class MutableHashTable(LookupInterface):
    """A table that `insert` and `remove` change. Missing keys have the value `default_value`, of any shape.

    With `checkpoint`, savers save it, and all workers that name it share it.
    """

    _default_name: str | None = None

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, dtype=value_dtype, name=self._default_name)
        self.resource_handle = self._make(name, checkpoint)
        if checkpoint:
            add_to_collection(GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))

    def _make(self, name: str, checkpoint: bool) -> Any:
        attrs = {"key_dtype": self.key_dtype, "value_dtype": self.value_dtype, "use_node_name_sharing": checkpoint}
        shape = self._default_value.shape
        if shape.ndims == 0:
            return apply_op("MutableHashTableV2", name, **attrs)
        return apply_op("MutableHashTableOfTensorsV2", name, **attrs, value_shape=shape)

    def size(self, name: str | None = None) -> Tensor:
        """How many entries there are, a scalar int64."""
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]), colocate_with(self.resource_handle):
            return self._apply("Size")

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """The values of `keys`. `dynamic_default_values` is one default for all, or one for each key."""
        default = self._default_value if dynamic_default_values is None else dynamic_default_values
        with name_scope(name, f"{self.name}_lookup_table_find", [self.resource_handle, keys, self._default_value]):
            keys = convert_to_tensor(keys, dtype=self.key_dtype, name="keys")
            with colocate_with(self.resource_handle):
                return self._apply("Find", keys=keys, default_value=default)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The operation that stores `values` under `keys`, of any shape, and replaces what they had."""
        with name_scope(name, f"{self.name}_lookup_table_insert", [self.resource_handle, keys, values]):
            keys = convert_to_tensor(keys, self.key_dtype, name="keys")
            values = convert_to_tensor(values, self.value_dtype, name="values")
            with colocate_with(self.resource_handle):
                return self._apply("Insert", keys=keys, values=values)

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """The operation that removes `keys`; missing ones are ignored. Raises TypeError for another dtype."""
        self._check(keys)
        with name_scope(name, f"{self.name}_lookup_table_remove", [self.resource_handle, keys, self._default_value]):
            return self._apply("Remove", keys=keys)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values."""
        scope = name_scope(name, f"{self.name}_lookup_table_export_values", [self.resource_handle])
        with scope, colocate_with(self.resource_handle):
            return self._export()


class DenseHashTable(MutableHashTable):
    """A mutable table in which no entry may have the keys `empty_key` and `deleted_key`; keys may be vectors.

    `initial_num_buckets` must be a power of 2, as in TensorFlow; it has no effect here.
    """

    _default_name = "default_value"

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        self._reserved = {"empty_key": empty_key, "deleted_key": deleted_key}
        self._buckets = initial_num_buckets
        super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)

    def _make(self, name: str, checkpoint: bool) -> Any:
        reserved = {what: convert_to_tensor(key, self.key_dtype, name=what) for what, key in self._reserved.items()}
        values = {"value_dtype": self.value_dtype, "value_shape": self._default_value.shape}
        how = {"use_node_name_sharing": checkpoint, "initial_num_buckets": self._buckets}
        return apply_op("MutableDenseHashTableV2", name, **reserved, **values, **how)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys`. A run raises InvalidArgumentError for a reserved key."""
        return super().lookup(keys, name=name)

    insert_or_assign = MutableHashTable.insert
    erase = MutableHashTable.remove


class _TableSaveable(SaveableObject):
    """A mutable table in a checkpoint: its keys and its values."""

    def __init__(self, table: MutableHashTable, name: str) -> None:
        keys, values = table.export()
        super().__init__(table, [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")], name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with name_scope(f"{self.name}_table_restore"), colocate_with(self.op.resource_handle):
            return self.op._apply("Import", keys=restored_tensors[0], values=restored_tensors[1])

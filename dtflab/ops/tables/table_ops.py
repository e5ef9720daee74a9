"""The ops of lookup tables.

Stands for `core/ops/lookup_ops.cc` and the op kernels of `core/kernels/lookup_table_op.cc`. Left out: the older family
with handles of strings, and anonymous tables, which only eager programs make. What a table is: `lookup_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.dtypes import DType, dtype_text
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.handles import ResourceHandle, resource_of
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER, name_for
from dtflab.ops.tables.state import Columns, DenseTable, StaticTable, Table, conflict, pairs_of_file

TABLE_TYPE = "tensorflow::lookup::LookupInterface"
_KEYS = ("int32", "int64", "string")


class _MakesTable(Op):
    """A handle of the table with this name, which is made if there is none."""

    stateful = True
    needs_ctx = True
    infer = shapes.scalar
    grad = no_gradient
    flops = free

    def bind(node, xp):
        return _handle_of(node, lambda: Table(node["key_dtype"], node["value_dtype"], (), _value_shape(node)))


def _handle_of(node: Any, make: Callable[..., Table]) -> Callable[..., ResourceHandle]:
    """The kernel of such an op; `make` gets the values of its inputs."""
    if node["key_dtype"].name not in _KEYS:
        raise invalid(f"No OpKernel was registered to support Op '{node.op}' used by {{{{node {node.name}}}}}: keys "
                      f"are int32, int64 or string, not {node['key_dtype'].name}.")  # fmt: skip
    container, shared_name = node["container"].decode() or DEFAULT_CONTAINER, node["shared_name"].decode()
    if node["use_node_name_sharing"] and not shared_name:
        shared_name = node.name

    def find(ctx: Any, *args: Any) -> ResourceHandle:
        name = name_for(ctx, node.name, container, shared_name, Table)
        table = ctx.resources.lookup_or_create(container, name, Table, lambda: make(*args))
        if (wrong := conflict(table, node["key_dtype"], node["value_dtype"], name)) is not None:
            raise wrong
        return ResourceHandle(ctx.device, container, name, TABLE_TYPE)

    return find


def _value_shape(node: Any) -> tuple[int, ...]:
    shape = node.attrs.get("value_shape")
    return tuple(shape.as_list()) if shape is not None else ()


@op("""HashTableV2() -> (table_handle: resource)
       container: string = ''
       shared_name: string = ''
       use_node_name_sharing: bool = False
       key_dtype: type
       value_dtype: type""")
class HashTableV2(_MakesTable):
    """A table that an initializer fills once."""

    def bind(node, xp):
        return _handle_of(node, lambda: StaticTable(node["key_dtype"], node["value_dtype"]))


@op("""MutableHashTableV2() -> (table_handle: resource)
       container: string = ''
       shared_name: string = ''
       use_node_name_sharing: bool = False
       key_dtype: type
       value_dtype: type""")
class MutableHashTableV2(_MakesTable):
    """A table that changes."""


@op("""MutableHashTableOfTensorsV2() -> (table_handle: resource)
       container: string = ''
       shared_name: string = ''
       use_node_name_sharing: bool = False
       key_dtype: type
       value_dtype: type
       value_shape: shape = []""")
class MutableHashTableOfTensorsV2(_MakesTable):
    """A table that changes, of rows."""


@op("""MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) -> (table_handle: resource)
       container: string = ''
       shared_name: string = ''
       use_node_name_sharing: bool = False
       key_dtype: type
       value_dtype: type
       value_shape: shape = []
       initial_num_buckets: int = 131072
       max_load_factor: float = 0.8""")
class MutableDenseHashTableV2(_MakesTable):
    """A table that changes, in which two keys are reserved."""

    def bind(node, xp):
        buckets = node["initial_num_buckets"]

        def make(empty_key, deleted_key):
            if buckets < 4 or buckets & (buckets - 1):
                raise invalid(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
            dtypes = node["key_dtype"], node["value_dtype"]
            return DenseTable(empty_key, deleted_key, *dtypes, empty_key.shape, _value_shape(node))

        return _handle_of(node, make)


class _UsesTable(Op):
    stateful = True
    needs_ctx = True
    flops = free


def _table(ctx: Any, handle: Any, key_dtype: DType | None = None, value_dtype: DType | None = None) -> Table:
    """The table of a handle; InvalidArgumentError if the node was made for other dtypes than it has."""
    if handle.type_name != TABLE_TYPE:
        raise invalid(f"Trying to access a handle's resource using the wrong type. The handle points to a resource "
                      f"(name '{handle.name}') of type '{handle.type_name}', which is no table.")  # fmt: skip
    table = resource_of(ctx, handle, Table)
    for what, has, wants in (("key", table.key_dtype, key_dtype), ("value", table.value_dtype, value_dtype)):
        if wants is not None and has != wants:
            raise invalid(f"Signature mismatch: the {what}s of table {handle.name} are {dtype_text(has)}, not "
                          f"{dtype_text(wants)}")  # fmt: skip
    return table


_OF_ROWS = ("MutableHashTableOfTensorsV2", "MutableDenseHashTableV2")


@op("""LookupTableFindV2(table_handle: resource, keys: Tin, default_value: Tout) -> (values: Tout)
       Tin: type
       Tout: type""")
class LookupTableFindV2(_UsesTable):
    """The values of keys."""

    grad = no_gradient

    def infer(operation):
        maker = operation.inputs[0].op
        if not maker.type.startswith("Mutable"):
            return [TensorShape(None)]
        shape = operation.inputs[1].shape
        if maker.type == "MutableDenseHashTableV2":
            rank = maker.inputs[0].shape.ndims
            shape = TensorShape(None) if rank is None or shape.ndims is None else shape[: shape.ndims - rank]
        return [shape.concatenate(maker.attrs["value_shape"]) if maker.type in _OF_ROWS else shape]

    def bind(node, xp):
        dtypes = node["Tin"], node["Tout"]
        return lambda ctx, handle, keys, default: _table(ctx, handle, *dtypes).find(keys, default)


@op("""LookupTableInsertV2(table_handle: resource, keys: Tin, values: Tout) -> ()
       Tin: type
       Tout: type""")
class LookupTableInsertV2(_UsesTable):
    """Keep values under keys."""

    grad = no_gradient
    infer = shapes.none

    def bind(node, xp):
        dtypes = node["Tin"], node["Tout"]
        return lambda ctx, handle, keys, values: _table(ctx, handle, *dtypes).insert(keys, values)


@op("""LookupTableRemoveV2(table_handle: resource, keys: Tin) -> ()
       Tin: type""")
class LookupTableRemoveV2(_UsesTable):
    """Forget keys."""

    infer = shapes.none

    def bind(node, xp):
        return lambda ctx, handle, keys: _table(ctx, handle, node["Tin"]).remove(keys)


@op("LookupTableSizeV2(table_handle: resource) -> (size: int64)")
class LookupTableSizeV2(_UsesTable):
    """The number of entries."""

    grad = no_gradient
    infer = shapes.scalar

    def bind(node, xp):
        return lambda ctx, handle: np.int64(len(_table(ctx, handle)))


@op("""LookupTableExportV2(table_handle: resource) -> (keys: Tkeys, values: Tvalues)
       Tkeys: type
       Tvalues: type""")
class LookupTableExportV2(_UsesTable):
    """All keys and values."""

    def infer(operation):
        return [TensorShape(None), TensorShape(None)]

    def bind(node, xp):
        dtypes = node["Tkeys"], node["Tvalues"]
        return lambda ctx, handle: _table(ctx, handle, *dtypes).export()


@op("""LookupTableImportV2(table_handle: resource, keys: Tin, values: Tout) -> ()
       Tin: type
       Tout: type""")
class LookupTableImportV2(_UsesTable):
    """Let the table hold this and nothing else."""

    def infer(operation):
        _, keys, values = (tensor.shape for tensor in operation.inputs)
        if operation.inputs[0].op.type == "HashTableV2":
            keys.with_rank(1)
            keys.merge_with(values)
        return []

    def bind(node, xp):
        dtypes = node["Tin"], node["Tout"]
        return lambda ctx, handle, keys, values: _table(ctx, handle, *dtypes).fill(keys, values)


@op("""InitializeTableV2(table_handle: resource, keys: Tkey, values: Tval) -> ()
       Tkey: type
       Tval: type""")
class InitializeTableV2(_UsesTable):
    """Fill a static table."""

    grad = no_gradient

    def infer(operation):
        operation.inputs[1].shape.with_rank(1).merge_with(operation.inputs[2].shape)
        return []

    def bind(node, xp):
        dtypes = node["Tkey"], node["Tval"]
        return lambda ctx, handle, keys, values: _table(ctx, handle, *dtypes).fill(keys, values)


@op("""InitializeTableFromTextFileV2(table_handle: resource, filename: string) -> ()
       key_index: int >= -2
       value_index: int >= -2
       vocab_size: int >= -1 = -1
       delimiter: string = '\t'
       offset: int = 0""")
class InitializeTableFromTextFileV2(_UsesTable):
    """Fill a static table with the lines of a text; one that is filled already stays as it is."""

    grad = no_gradient

    def infer(operation):
        operation.inputs[1].shape.with_rank(0)
        return []

    def bind(node, xp):
        columns = Columns(*(node[a] for a in ("key_index", "value_index", "delimiter", "vocab_size", "offset")))

        def fill(ctx, handle, filename):
            if filename.ndim:
                raise invalid(f"filename should be a single string, but got {shape_text(filename)}")
            table = _table(ctx, handle)
            if not isinstance(table, StaticTable):
                raise invalid(f"Table {handle.name} is no static table, and not filled from files.")
            if not table.filled:
                table.fill_once(pairs_of_file(filename.item(), columns, table.key_dtype, table.value_dtype))

        return fill

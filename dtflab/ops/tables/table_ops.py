"""The ops of lookup tables.

Stands for `core/ops/lookup_ops.cc` and the op kernels of `core/kernels/lookup_table_op.cc`. Left out: the older family
with handles of strings, and anonymous tables, which only eager programs make. What a table does is in `state.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import op_registry
from dtflab.graph.dtypes import dtype_text
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.handles import new_or_shared, resource_of
from dtflab.ops.messages import check_rank, invalid
from dtflab.ops.tables.state import Columns, DenseTable, StaticTable, Table, pairs_of_file

TABLE_TYPE = "tensorflow::lookup::LookupInterface"

# -- making tables ------------------------------------------------------------------------------------

_ATTRS = """
       container: string = '', shared_name: string = '', use_node_name_sharing: bool = False, key_dtype: type
       value_dtype: type"""
_ROWS = f"{_ATTRS}\n       value_shape: shape = []"


class _NewTable(Op):
    """Gives the handle of a table. The first op that names a table makes it."""

    stateful = needs_ctx = True
    infer = shapes.scalar
    grad = no_gradient
    flops = free

    def make(node: Node, dtypes: Any, *inputs: Any) -> Table:
        return Table(*dtypes, value_shape=_value_shape(node))

    @classmethod
    def bind(cls, node, xp):
        dtypes = node["key_dtype"], node["value_dtype"]
        if dtypes[0].name not in ("int32", "int64", "string"):
            raise invalid(
                f"No OpKernel was registered to support Op '{node.op}' used by {{{{node {node.name}}}}}: keys are "
                f"int32, int64 or string, not {dtypes[0].name}."
            )

        def check(table, name):
            has = table.key_dtype, table.value_dtype
            if has != dtypes:
                wanted, found = "->".join(map(dtype_text, dtypes)), "-".join(map(dtype_text, has))
                raise invalid(f"Conflicting key/value dtypes {wanted} with {found} for table {name}")

        return new_or_shared(node, Table, TABLE_TYPE, lambda ctx, name, *inputs: cls.make(node, dtypes, *inputs), check)


def _value_shape(node: Node) -> tuple[int, ...]:
    shape = node.attrs.get("value_shape")
    return tuple(shape.as_list()) if shape is not None else ()


@op(f"HashTableV2() -> (table_handle: resource){_ATTRS}")
class HashTableV2(_NewTable):
    """A table that an initializer fills once."""

    def make(node, dtypes):
        return StaticTable(*dtypes)


@op(f"MutableHashTableV2() -> (table_handle: resource){_ATTRS}")
class MutableHashTableV2(_NewTable):
    """A table that changes."""


@op(f"MutableHashTableOfTensorsV2() -> (table_handle: resource){_ROWS}")
class MutableHashTableOfTensorsV2(_NewTable):
    """A table that changes, of rows."""


@op(f"""MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) -> (table_handle: resource){_ROWS}
       initial_num_buckets: int = 131072, max_load_factor: float = 0.8""")
class MutableDenseHashTableV2(_NewTable):
    """A table that changes, in which two keys are reserved."""

    def make(node, dtypes, empty_key, deleted_key):
        buckets = node["initial_num_buckets"]
        if buckets < 4 or buckets & (buckets - 1):
            raise invalid(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
        return DenseTable(empty_key, deleted_key, *dtypes, empty_key.shape, _value_shape(node))


# -- using them ---------------------------------------------------------------------------------------


class _UsesTable(Op):
    stateful = needs_ctx = True
    flops = free


def _kernel(node: Node, use: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that gives `use(table, *inputs)`, of a table with the dtypes that the node declares."""
    dtypes = _dtypes(node)
    return lambda ctx, handle, *inputs: use(_table(ctx, handle, dtypes), *inputs)


def _dtypes(node: Node) -> list[Any]:
    return [node[attr.name] for attr in op_registry.get(node.op).op_def.attrs.values() if attr.type == "type"]


def _table(ctx: Any, handle: Any, dtypes: Any) -> Table:
    """The table of a handle. Raises InvalidArgumentError if its dtypes are not those that the node declares."""
    if handle.type_name != TABLE_TYPE:
        raise invalid(
            "Trying to access a handle's resource using the wrong type. The handle points to a resource (name "
            f"'{handle.name}') of type '{handle.type_name}', which is not a table."
        )
    table = resource_of(ctx, handle, Table)
    for what, has, wants in zip(("keys", "values"), (table.key_dtype, table.value_dtype), dtypes, strict=False):
        if has != wants:
            raise invalid(
                f"Signature mismatch: the {what} of table {handle.name} are {dtype_text(has)}, not {dtype_text(wants)}"
            )
    return table


_TYPES = """
       Tin: type, Tout: type"""


@op(f"LookupTableFindV2(table_handle: resource, keys: Tin, default_value: Tout) -> (values: Tout){_TYPES}")
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
        return [shape.concatenate(maker.attrs.get("value_shape", TensorShape([])))]

    def bind(node, xp):
        return _kernel(node, lambda table, keys, default: table.find(keys, default))


@op(f"LookupTableInsertV2(table_handle: resource, keys: Tin, values: Tout) -> (){_TYPES}")
class LookupTableInsertV2(_UsesTable):
    """Store values under keys."""

    grad = no_gradient
    infer = shapes.none

    def bind(node, xp):
        return _kernel(node, lambda table, keys, values: table.insert(keys, values))


@op("LookupTableRemoveV2(table_handle: resource, keys: Tin) -> () where Tin: type")
class LookupTableRemoveV2(_UsesTable):
    """Remove keys."""

    infer = shapes.none

    def bind(node, xp):
        return _kernel(node, lambda table, keys: table.remove(keys))


@op("LookupTableSizeV2(table_handle: resource) -> (size: int64)")
class LookupTableSizeV2(_UsesTable):
    """The number of entries."""

    grad = no_gradient
    infer = shapes.scalar

    def bind(node, xp):
        return _kernel(node, lambda table: np.int64(len(table)))


@op("LookupTableExportV2(table_handle: resource) -> (keys: Tkeys, values: Tvalues) where Tkeys: type, Tvalues: type")
class LookupTableExportV2(_UsesTable):
    """All keys and values."""

    def bind(node, xp):
        return _kernel(node, lambda table: table.export())


class _Fills(_UsesTable):
    def bind(node, xp):
        return _kernel(node, lambda table, keys, values: table.fill(keys, values))


@op(f"LookupTableImportV2(table_handle: resource, keys: Tin, values: Tout) -> (){_TYPES}")
class LookupTableImportV2(_Fills):
    """Replace all entries."""

    def infer(operation):
        _, keys, values = (tensor.shape for tensor in operation.inputs)
        if operation.inputs[0].op.type == "HashTableV2":
            keys.with_rank(1)
            keys.merge_with(values)
        return []


@op("InitializeTableV2(table_handle: resource, keys: Tkey, values: Tval) -> () where Tkey: type, Tval: type")
class InitializeTableV2(_Fills):
    """Fill a static table."""

    grad = no_gradient

    def infer(operation):
        operation.inputs[1].shape.with_rank(1).merge_with(operation.inputs[2].shape)
        return []


@op("""InitializeTableFromTextFileV2(table_handle: resource, filename: string) -> ()
       key_index: int >= -2, value_index: int >= -2, vocab_size: int >= -1 = -1, delimiter: string = '\t'
       offset: int = 0""")
class InitializeTableFromTextFileV2(_UsesTable):
    """Fill a static table with the lines of a text; one that is filled already stays as it is."""

    grad = no_gradient

    infer = shapes.fixed(ranks=[None, 0])

    def bind(node, xp):
        columns = Columns(*(node[a] for a in ("key_index", "value_index", "delimiter", "vocab_size", "offset")))
        dtypes = _dtypes(node)

        def fill(ctx, handle, filename):
            table = _table(ctx, handle, dtypes)
            check_rank(filename, 0, "filename should be a single string, but got {}")
            if not isinstance(table, StaticTable):
                raise invalid("This table changes; only a static table (HashTableV2) can be filled from a file.")
            if not table.filled:
                pairs = pairs_of_file(ctx.env, filename.item(), columns, table.key_dtype, table.value_dtype)
                table.fill_once(pairs)

        return fill

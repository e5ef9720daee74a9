"""Embeddings: rows of a matrix by number, where the matrix may be cut into shards over several servers.

Stands for `python/ops/embedding_ops.py`. Left out: ragged ids.

Rule: each shard is asked for its own rows, on its own device; only rows travel, and only the gradients of rows come
back. `mod` deals rows out one by one, `div` in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import convert_n_to_tensor_or_indexed_slices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, device, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import clipping, functions as math
from dtflab.ops.reduce import functions as reduce_functions
from dtflab.ops.sparse import functions as sparse
from dtflab.ops.sparse.sparse_tensor import SparseTensor
from dtflab.ops.variables.partitioned_variables import PartitionedVariable
from dtflab.ops.variables.resource_variable import ResourceVariable


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """The rows `ids` (of any shape) of `params`: a matrix, a list of shards of one, or a PartitionedVariable.

    `partition_strategy` says how the rows are dealt out over the shards: `mod` or `div`. Rows longer than `max_norm`
    are scaled down to it.
    """
    del validate_indices  # always
    shards = _shards(params)
    with name_scope(name, "embedding_lookup", [*shards, ids]) as scope:
        if not any(isinstance(shard, ResourceVariable) for shard in shards):
            shards = convert_n_to_tensor_or_indexed_slices(shards, name="params")
        ids = convert_to_tensor(ids, name="ids")
        if len(shards) > 1:
            return _clip(_from_shards(shards, ids, partition_strategy, scope), ids, max_norm)
        with colocate_with(shards[0]):
            rows = _clip(indexing.gather(shards[0], ids, name=scope), ids, max_norm)
        return arrays.identity(rows)


def _shards(params: Any) -> list[Any]:
    if params is None:
        raise ValueError("params must be specified")
    if isinstance(params, list | tuple) and not params:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    if isinstance(params, PartitionedVariable):
        return list(params)
    return params if isinstance(params, list) else [params]


def _clip(rows: Any, ids: Any, max_norm: float | None) -> Any:
    if max_norm is None:
        return rows
    first, last = (t.shape.ndims or arrays.rank(t) for t in (ids, rows))
    known = isinstance(first, int) and isinstance(last, int)
    axes = list(range(first, last)) if known else arrays.range(first, last)  # type: ignore[arg-type]
    return clipping.clip_by_norm(rows, max_norm, axes=axes)


def _from_shards(shards: list[Any], ids: Tensor, strategy: str, name: str) -> Tensor:
    """Ask each shard for its rows, and put the answers in the order of `ids`."""
    count = len(shards)
    flat_ids = arrays.reshape(ids, [-1])
    positions = arrays.range(arrays.size(flat_ids, out_type=dtypes.int32))
    owners, rows = _owners(shards, flat_ids, strategy)
    owners = arrays.cast(owners, dtypes.int32)
    asked = indexing.dynamic_partition(rows, owners, count)
    places = indexing.dynamic_partition(positions, owners, count)
    answers = []
    for shard, wanted in zip(shards, asked, strict=True):
        with device(None), colocate_with(shard):
            answers.append(indexing.gather(shard, wanted))
    found = apply_op("ParallelDynamicStitch", name, indices=places, data=answers)
    row = row_shape = shards[0].shape[1:]
    for shard in shards[1:]:
        row = row_shape = row.merge_with(shard.shape[1:])
    if not row.is_fully_defined():
        with colocate_with(shards[0]):
            row_shape = arrays.shape(shards[0])
        row_shape = row_shape[1:]
    found = arrays.reshape(found, arrays.concat([arrays.shape(ids), row_shape], 0))
    found.set_shape(ids.shape.concatenate(row))
    return found


def _owners(shards: Sequence[Any], ids: Any, strategy: str) -> tuple[Any, Any]:
    """For each id the number of its shard, and its row there."""
    count = len(shards)
    if strategy == "mod":
        return ids % count, ids // count
    if strategy != "div":
        raise ValueError(f"Unrecognized partition strategy: {strategy}.Must be one of either `mod` or `div`.")
    total = _total_rows(shards, ids.dtype)
    block, extras = total // count, total % count  # the first `extras` shards have one row more
    owners = math.maximum(ids // (block + 1), (ids - extras) // block)
    return owners, indexing.where(owners < extras, ids % (block + 1), (ids - extras) % block)


def _total_rows(shards: Sequence[Any], dtype: Any) -> Any:
    known = [shard.shape[0].value for shard in shards]
    if None not in known and sum(known):
        return constant(sum(known), dtype)
    sizes: list[Any] = list(known)
    for i, shard in enumerate(shards):
        if known[i] is None:
            with colocate_with(shard):
                sizes[i] = arrays.shape(shard)[0]
    return reduce_functions.reduce_sum(arrays.cast(arrays.stack(sizes), dtype))


# -- bags of ids --------------------------------------------------------------------------------------


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """For each row of `sp_ids`: its embeddings, combined by `sum`, `mean` or `sqrtn` with the weights, if any.

    `sp_weights` is a SparseTensor with the places of `sp_ids`, or None for equal weights. No row may be empty.
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    shards = _shards(params)
    _check_bags(sp_ids, sp_weights)
    with name_scope(name, "embedding_lookup_sparse", [*shards, sp_ids]) as scope:
        rows = convert_to_tensor(sp_ids.indices[:, 0], name="segment_ids")
        ids = sp_ids.values
        if len(shards) == 1 and not isinstance(shards[0], Tensor | ResourceVariable):
            shards = [convert_to_tensor(shards[0], name="params")]
        here = len(shards) == 1 and not isinstance(shards[0], ResourceVariable) and shards[0].device == rows.device
        fast = here and max_norm is None and (allow_fast_lookup or sp_weights is None)
        if fast:
            table, where = shards[0], ids
        else:
            ids, where = indexing.unique(ids)
            table = embedding_lookup(shards, ids, partition_strategy, max_norm=max_norm)
        if sp_weights is not None:
            return _weighted(table, where, rows, sp_weights.values, combiner, scope)
        reduce = _COMBINERS[combiner]
        return reduce(table, where, rows, name=scope, sparse_gradient=fast and not allow_fast_lookup)


_COMBINERS = {
    "sum": sparse.sparse_segment_sum,
    "mean": sparse.sparse_segment_mean,
    "sqrtn": sparse.sparse_segment_sqrt_n,
}


def _check_bags(sp_ids: Any, sp_weights: Any) -> None:
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be SparseTensor, got {type(sp_ids)}")
    if sp_weights is None:
        return
    if not isinstance(sp_weights, SparseTensor):
        raise TypeError(f"sp_weights must be either None or SparseTensor,got {type(sp_weights)}")
    for part in ("values", "indices", "dense_shape"):
        getattr(sp_ids, part).shape.assert_is_compatible_with(getattr(sp_weights, part).shape)


def _weighted(table: Any, where: Any, rows: Any, weights: Any, combiner: str, name: str) -> Tensor:
    rows = arrays.cast(rows, dtypes.int32)
    found: Any = indexing.gather(table, where)
    dtype = found.dtype
    if dtype in (dtypes.float16, dtypes.bfloat16):
        found = arrays.cast(found, dtypes.float32)
    weights = _as_column(arrays.cast(weights, found.dtype), found)
    found *= weights
    if combiner == "sum":
        return arrays.cast(reduce_functions.segment_sum(found, rows, name=name), dtype)
    total = reduce_functions.segment_sum(found, rows)
    if combiner == "mean":
        scale = reduce_functions.segment_sum(weights, rows)
    else:
        scale = math.sqrt(reduce_functions.segment_sum(math.pow(weights, 2), rows))
    return arrays.cast(math.div_no_nan(total, scale, name=name), dtype)


def _as_column(weights: Tensor, rows: Tensor) -> Tensor:
    """The weights with axes of size 1, as many as `rows` has more."""
    missing = arrays.expand_dims(arrays.rank(rows) - 1, 0)
    shape = arrays.shape(weights)
    ones = arrays.ones(missing, dtype=shape.dtype)
    known = weights.shape
    weights = arrays.reshape(weights, arrays.concat([shape, ones], 0))
    if rows.shape.ndims is not None:
        weights.set_shape(known.concatenate([1] * (rows.shape.ndims - 1)))
    return weights


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The combined rows of bags, which may be of any rank, be empty, or hold numbers that are not ids.

    Negative ids and weights that are not positive are left out; an empty bag gives the row `default_id`, or zeros.
    """
    tables = _tables(embedding_weights, sparse_weights)
    with name_scope(name, "embedding_lookup", [*tables, sparse_ids, sparse_weights]) as scope:
        shape = sparse_ids.dense_shape
        known_rank = shape.shape[0].value
        rank = arrays.size(shape) if known_rank is None else known_rank
        bags = [reduce_functions.reduce_prod(indexing.slice(shape, [0], [rank - 1])), indexing.gather(shape, rank - 1)]
        ids = sparse.sparse_reshape(sparse_ids, bags)
        weights = None
        if sparse_weights is not None:
            weights = SparseTensor(ids.indices, sparse_weights.values, ids.dense_shape)
        ids, weights = _pruned(ids, weights, combiner)
        ids, is_empty = sparse.sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse.sparse_fill_empty_rows(weights, 1.0)
        inner_name = None if default_id is None else scope
        ways: dict[str, Any] = {"combiner": combiner, "max_norm": max_norm, "allow_fast_lookup": allow_fast_lookup}
        result = embedding_lookup_sparse(tables, ids, weights, partition_strategy, inner_name, **ways)
        if default_id is None:
            width = arrays.stack([1, arrays.shape(result)[1]])
            is_empty = arrays.tile(arrays.reshape(is_empty, [-1, 1]), width)
            result = indexing.where(is_empty, arrays.zeros_like(result), result, name=scope)
        outer = indexing.slice(arrays.cast(shape, dtypes.int32), [0], [rank - 1])
        inner = indexing.slice(arrays.shape(result), [1], [-1])
        final = arrays.reshape(result, arrays.concat([outer, inner], 0))
        unknown = TensorShape(None if known_rank is None else [None] * (known_rank - 1))
        final.set_shape(unknown.concatenate(result.shape[1:]))
        return final


def _tables(embedding_weights: Any, sparse_weights: Any) -> list[Any]:
    if embedding_weights is None or (isinstance(embedding_weights, list) and not embedding_weights):
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    dtype = None if sparse_weights is None else sparse_weights.dtype
    return [
        table
        if isinstance(table, ResourceVariable) and dtype in (None, table.dtype)
        else convert_to_tensor(table, dtype)
        for table in _shards(embedding_weights)
    ]


def _pruned(ids: SparseTensor, weights: SparseTensor | None, combiner: str) -> tuple[SparseTensor, SparseTensor | None]:
    """Leave out entries that are not an id or have no weight."""
    valid = math.greater_equal(ids.values, 0)
    if weights is None:
        return sparse.sparse_retain(ids, valid), None
    valid = math.logical_and(valid, arrays.ones_like(weights.values, dtype=dtypes.bool))
    ids, weights = sparse.sparse_retain(ids, valid), sparse.sparse_retain(weights, valid)
    if combiner == "sum":
        return ids, weights
    positive = math.greater(weights.values, 0)
    return sparse.sparse_retain(ids, positive), sparse.sparse_retain(weights, positive)

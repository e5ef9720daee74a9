"""SparseTensors in batches: through the queue goes a number in place of each.

Stands for `_store_sparse_tensors` and `_restore_sparse_tensors` in `python/training/input.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import Dimension
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import expand_dims, ones, squeeze
from dtflab.ops.control.cond import smart_cond
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.indexing.functions import gather
from dtflab.ops.sparse.functions import add_many_sparse, add_sparse, sparse_retain, take_many_sparse
from dtflab.ops.sparse.sparse_tensor import SparseTensor


class Stored(NamedTuple):
    """Where the SparseTensors of one component wait: the op whose map it is, and the rank of one example."""

    map_op: Operation
    rank: Dimension


def stored(sets: list[list[Any]], enqueue_many: bool, keep: Tensor) -> tuple[list[list[Any]], list[Stored | None]]:
    """The sets with handles in place of SparseTensors, and for each component where these wait, if it is one.

    ValueError if a component is sparse in some sets only, or its rank differs.
    """
    first, infos = _stored(sets[0], [None] * len(sets[0]), enqueue_many, keep)
    result = [first]
    for tensors in sets[1:]:
        handles, others = _stored(tensors, infos, enqueue_many, keep)
        if not all(map(_agree, infos, others)):
            raise ValueError(f"Inconsistent SparseTensors list: {sets[0]} vs. {tensors}")
        result.append(handles)
    return result, infos


def _agree(info: Stored | None, other: Stored | None) -> bool:
    if info is None or other is None:
        return info is other
    return info.rank.is_compatible_with(other.rank)


def _stored(
    tensors: list[Any], shared: Sequence[Stored | None], enqueue_many: bool, keep: Tensor
) -> tuple[list[Any], list[Stored | None]]:
    handles: list[Any] = []
    infos: list[Stored | None] = []
    for tensor, there in zip(tensors, shared):
        if not isinstance(tensor, SparseTensor):
            handles.append(tensor)
            infos.append(None)
            continue
        handle = _store(tensor, there.map_op.name if there else None, enqueue_many, keep)
        rank = tensor.dense_shape.shape.with_rank(1)[0]
        infos.append(Stored(there.map_op if there else _map_op(handle), rank - 1 if enqueue_many else rank))
        handles.append(handle)
    return [expand_dims(h, [-1]) if info else h for h, info in zip(handles, infos)], infos


def _store(sparse: SparseTensor, map_name: str | None, enqueue_many: bool, keep: Tensor) -> Tensor:
    """The handle of `sparse`, or of its rows; -1 for what is not kept."""
    if keep.shape.ndims == 1:
        kept = sparse_retain(sparse, gather(keep, sparse.indices[:, 0]))
        return add_many_sparse(kept, map_name)
    if not enqueue_many:
        return smart_cond(keep, lambda: add_sparse(sparse, map_name), lambda: constant(-1, dtypes.int64))
    handles: Tensor = smart_cond(
        keep, lambda: add_many_sparse(sparse, map_name), lambda: -1 * ones(arrays.shape(sparse)[0:1], dtypes.int64)
    )
    handles.set_shape([None])
    return handles


def _map_op(handle: Tensor) -> Operation:
    """The op that adds to the map: that of `handle`, or one before it in a branch."""
    adding = (t.op for t in handle.op.inputs if t.op.type in ("AddSparseToTensorsMap", "AddManySparseToTensorsMap"))
    return next(adding, handle.op)


def restored(tensors: list[Tensor], infos: list[Stored | None]) -> list[Any]:
    """The queue's elements, handles again as SparseTensors; all of it waits for all SparseTensors."""
    found = [_restored(t, info) if info else t for t, info in zip(tensors, infos)]
    if not any(infos):
        return found
    values = [t.values if isinstance(t, SparseTensor) else t for t in found]

    def after_all(tensor: Tensor) -> Tensor:
        return with_dependencies(values, tensor)

    return [t.map(after_all) if isinstance(t, SparseTensor) else after_all(t) for t in found]


def _restored(handles: Tensor, info: Stored) -> SparseTensor:
    return take_many_sparse(info.map_op, squeeze(handles, [1]), (info.rank + 1).value)

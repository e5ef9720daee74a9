"""SparseTensors by number: what a queue carries in place of a SparseTensor.

Stands for `core/kernels/sparse_tensors_map_ops.cc` and the three private functions of `python/ops/sparse_ops.py` on
it.

Rule: a queue's elements are dense, so a SparseTensor waits in a map of its task and a handle, an int64, goes through
the queue. Who takes it, by number, removes it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.sparse.sparse_tensor import SparseTensor


class Sparse(NamedTuple):
    """The arrays of one SparseTensor."""

    indices: np.ndarray
    values: np.ndarray
    shape: np.ndarray


class SparseTensorsMap:
    """The SparseTensors of one name that are on their way, by number."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: dict[int, Sparse] = {}
        self._next = 0

    def add(self, sparse: Sparse) -> int:
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._waiting[number] = sparse
        return number

    def take(self, numbers: Sequence[int]) -> list[Sparse]:
        """Those with the given numbers, which then are gone."""
        with self._lock:
            found = []
            for number in numbers:
                if number not in self._waiting:
                    raise invalid(f"Unable to find SparseTensor: {number} in map: {self._name}")
                found.append(self._waiting.pop(number))
            return found


def _map_of(ctx: Any, node: Any) -> SparseTensorsMap:
    """The map that the op names; without a `shared_name` it has the name of the node."""
    name = node["shared_name"].decode() or node.name
    found: SparseTensorsMap = ctx.resources.lookup_or_create(
        node["container"].decode(), name, SparseTensorsMap, lambda: SparseTensorsMap(name)
    )
    return found


def checked(indices: Any, values: Any, shape: Any) -> Sparse:
    for name, array, rank, kind in (
        ("indices", indices, 2, "matrix"),
        ("values", values, 1, "vector"),
        ("shape", shape, 1, "vector"),
    ):
        if array.ndim != rank:
            raise invalid(f"Input {name} should be a {kind} but received shape {shape_text(array.shape)}")
    if len(indices) != len(values):
        raise invalid(
            "indices and values rows (indexing dimension) must match. "
            f"(indices = {len(indices)}, values = {len(values)})"
        )
    if indices.shape[1] != len(shape):
        raise invalid("Order length must be SparseTensor rank.")
    return Sparse(indices, values, shape)


class _Add(Op):
    stateful = True
    needs_ctx = True
    flops = free


@op("""AddSparseToTensorsMap(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> (sparse_handle: int64)
       T: type
       container: string = ''
       shared_name: string = ''""")
class AddSparseToTensorsMap(_Add):
    infer = shapes.scalar

    def bind(node, xp):
        return lambda ctx, *parts: np.array(_map_of(ctx, node).add(checked(*parts)), np.int64)


@op("""AddManySparseToTensorsMap(sparse_indices: int64, sparse_values: T, sparse_shape: int64)
       -> (sparse_handles: int64)
       T: type
       container: string = ''
       shared_name: string = ''""")
class AddManySparseToTensorsMap(_Add):
    """The rows of a SparseTensor, each as a SparseTensor of its own."""

    def infer(op):
        return [TensorShape([None])]

    def bind(node, xp):
        def add(ctx, *parts):
            waiting = _map_of(ctx, node)
            return np.array([waiting.add(row) for row in rows_of(checked(*parts))], np.int64)

        return add


def rows_of(sparse: Sparse) -> list[Sparse]:
    if len(sparse.shape) <= 1:
        raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sparse.shape)}")
    _check_in_order(sparse)
    borders = np.searchsorted(sparse.indices[:, 0], np.arange(sparse.shape[0] + 1))
    parts = [slice(begin, end) for begin, end in itertools.pairwise(borders)]
    return [Sparse(sparse.indices[part, 1:], sparse.values[part], sparse.shape[1:]) for part in parts]


def _check_in_order(sparse: Sparse) -> None:
    """InvalidArgumentError unless the indices are inside of the shape, in order, and none comes twice."""
    before: tuple[int, ...] = ()
    for i, row in enumerate(map(tuple, sparse.indices.tolist())):
        said = f"indices[{i}] = [{','.join(map(str, row))}] is"
        if any(not 0 <= index < size for index, size in zip(row, sparse.shape)):
            raise invalid(f"{said} out of bounds: need 0 <= index < {shape_text(sparse.shape.tolist())}")
        if row == before:
            raise invalid(f"{said} repeated")
        if row < before:
            raise invalid(
                f"{said} out of order. Many sparse ops require sorted indices.\n"
                "    Use `tf.sparse.reorder` to create a correctly ordered copy."
            )
        before = row


@op("""TakeManySparseFromTensorsMap(sparse_handles: int64)
       -> (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)
       dtype: type
       container: string = ''
       shared_name: string = ''""")
class TakeManySparseFromTensorsMap(_Add):
    """SparseTensors with the given numbers as the rows of one, as wide as the widest."""

    def infer(op):
        op.inputs[0].shape.with_rank(1)
        return [TensorShape([None, None]), TensorShape([None]), TensorShape([None])]

    def bind(node, xp):
        def take(ctx, handles):
            if not len(handles):
                raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
            return stacked(_map_of(ctx, node).take(handles.tolist()), node["dtype"])

        return take


def stacked(parts: Sequence[Sparse], dtype: Any) -> Sparse:
    """One SparseTensor, its rows the given ones."""
    for i, part in enumerate(parts):
        if part.values.dtype != dtype.as_numpy_dtype:
            raise invalid(
                f"Requested SparseTensor of type {dtype.name} but SparseTensor[{i}].dtype() == {part.values.dtype}"
            )
        if len(part.shape) != len(parts[0].shape):
            raise invalid(
                f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{i}] was: "
                f"{len(parts[0].shape) + 1} but rank of SparseTensor[{i}] is: {len(part.shape) + 1}"
            )
    rows = np.repeat(np.arange(len(parts)), [len(part.values) for part in parts])
    indices = np.column_stack([rows, np.concatenate([part.indices for part in parts])])
    shape = [len(parts), *np.max([part.shape for part in parts], axis=0)]
    return Sparse(indices, np.concatenate([part.values for part in parts]), np.array(shape, np.int64))


# -- in programs --------------------------------------------------------------------------------------------------


def add_sparse(sparse: SparseTensor, shared_name: str | None = None) -> Tensor:
    """The handle of `sparse`, which waits in a map until it is taken."""
    return _add("AddSparseToTensorsMap", sparse, shared_name)


def add_many_sparse(sparse: SparseTensor, shared_name: str | None = None) -> Tensor:
    """A vector of handles of the rows of `sparse`."""
    return _add("AddManySparseToTensorsMap", sparse, shared_name)


def _add(op_type: str, sparse: SparseTensor, shared_name: str | None) -> Tensor:
    handles: Tensor = apply_op(
        op_type,
        sparse_indices=sparse.indices,
        sparse_values=sparse.values,
        sparse_shape=sparse.dense_shape,
        shared_name=shared_name,
    )
    return handles


def take_many_sparse(map_op: Operation, handles: Tensor, rank: int | None) -> SparseTensor:
    """The SparseTensors behind `handles`, of the map that `map_op` added to, as one of `rank` dimensions."""
    with colocate_with(map_op):
        indices, values, shape = apply_op(
            "TakeManySparseFromTensorsMap",
            sparse_handles=handles,
            dtype=map_op.get_attr("T"),
            container=map_op.get_attr("container"),
            shared_name=map_op.get_attr("shared_name") or map_op.name,
        )
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)

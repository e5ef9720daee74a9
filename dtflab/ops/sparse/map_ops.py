"""SparseTensors by number: what a queue carries in place of a SparseTensor.

Stands for `core/kernels/sparse_tensors_map_ops.cc`.

Rule: a queue's elements are dense, so a SparseTensor waits in a map of its task and a handle, an int64, goes through
the queue. Taking a SparseTensor, by number, removes it from the map.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid
from dtflab.ops.sparse.places import Sparse, checked, rows_of, stacked


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
        """Remove and return the SparseTensors with the given numbers."""
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
    container, make = node["container"].decode(), functools.partial(SparseTensorsMap, name)
    found: SparseTensorsMap = ctx.resources.lookup_or_create(container, name, SparseTensorsMap, make)
    return found


class _UsesMap(Op):
    stateful = True
    needs_ctx = True
    flops = free


_SHARED = """
       container: string = ''
       shared_name: string = ''"""
_PARTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"


@op(f"AddSparseToTensorsMap({_PARTS}) -> (sparse_handle: int64)\n       T: type{_SHARED}")
class AddSparseToTensorsMap(_UsesMap):
    infer = shapes.scalar

    def bind(node, xp):
        return lambda ctx, *parts: np.array(_map_of(ctx, node).add(checked(*parts)), np.int64)


@op(f"AddManySparseToTensorsMap({_PARTS}) -> (sparse_handles: int64)\n       T: type{_SHARED}")
class AddManySparseToTensorsMap(_UsesMap):
    """The rows of a SparseTensor, each as a SparseTensor of its own."""

    infer = shapes.fixed([None])

    def bind(node, xp):
        def add(ctx, *parts):
            waiting = _map_of(ctx, node)
            return np.array([waiting.add(row) for row in rows_of(checked(*parts))], np.int64)

        return add


@op(f"""TakeManySparseFromTensorsMap(sparse_handles: int64) ->
       (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)
       dtype: type{_SHARED}""")
class TakeManySparseFromTensorsMap(_UsesMap):
    """SparseTensors with the given numbers as the rows of one, as wide as the widest."""

    infer = shapes.fixed([None, None], [None], [None], ranks=[1])

    def bind(node, xp):
        def take(ctx, handles):
            if not len(handles):
                raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
            return stacked(_map_of(ctx, node).take(handles.tolist()), node["dtype"])

        return take

"""How sparse tensors travel where only dense ones may: as strings, or by number through queues.

Stands for `core/kernels/serialize_sparse_op.cc`, `deserialize_sparse_string_op.cc` and `sparse_tensors_map_ops.cc`.
Left out: the form for tf.data (`variant`).

Rules: as strings they are three serialized TensorProtos each. A queue's elements are dense, so a SparseTensor waits in
a map of its task and a handle, an int64, goes through the queue. Taking a SparseTensor, by number, removes it from the
map.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.base.varint import get_varint, put_varint
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_proto import make_ndarray
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.sparse_arrays import Sparse, checked, rows_of, shapes_of, stacked
from dtflab.protos.tensor_pb2 import TensorProto

_PARTS = """(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> (serialized_sparse: out_type)
       T: type, out_type: {string, variant} = string"""


def _message(array: Any, dtype: DType) -> bytes:
    """A TensorProto whose elements stand in `tensor_content`: of strings first all lengths, then all bytes."""
    proto = TensorProto()
    proto.dtype = dtype.as_datatype_enum
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    if dtype == dtypes.string:
        items = [bytes(item) for item in array.reshape(-1)]
        proto.tensor_content = b"".join([*(put_varint(len(item)) for item in items), *items])
    else:
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return proto.SerializeToString(deterministic=True)


def _three_messages(sparse: Sparse, dtype: DType) -> list[bytes]:
    kinds = (dtypes.int64, dtype, dtypes.int64)
    return [_message(part, kind) for part, kind in zip(sparse, kinds, strict=True)]


def _as_objects(rows: Sequence[Any], *shape: int) -> Any:
    found = np.empty(shape, object)
    found.reshape(-1)[:] = [item for row in rows for item in row]
    return found


@op(f"SerializeSparse{_PARTS}")
class SerializeSparse(Op):
    """The three messages of a sparse tensor."""

    infer = shapes.fixed([3])

    def bind(node, xp):
        return lambda *parts: _as_objects([_three_messages(checked(*parts), node["T"])], 3)


@op(f"SerializeManySparse{_PARTS}")
class SerializeManySparse(Op):
    """The three messages of each row of a sparse tensor."""

    infer = shapes.fixed([None, 3])

    def kernel(node, xp, *parts):
        rows = [_three_messages(row, node["T"]) for row in rows_of(checked(*parts))]
        return _as_objects(rows, len(rows), 3)


def _parsed(message: bytes) -> Any:
    try:
        proto = TensorProto.FromString(message)
    except DecodeError:
        raise invalid("Could not parse serialized proto") from None
    if proto.dtype != dtypes.string.as_datatype_enum or not proto.tensor_content:
        return make_ndarray(proto)
    shape = [dim.size for dim in proto.tensor_shape.dim]
    lengths, at = [], 0
    for _ in range(int(np.prod(shape))):
        length, at = get_varint(proto.tensor_content, at)
        lengths.append(length)
    ends = at + np.cumsum(lengths)
    return _as_objects([[proto.tensor_content[e - n : e] for n, e in zip(lengths, ends, strict=True)]], *shape)


def _sparse(messages: Any, number: int, dtype: DType) -> Sparse:
    """The sparse tensor in three messages; an error names its number."""
    indices, values, shape = (_parsed(message) for message in messages)
    if values.dtype != np.dtype(dtype.as_numpy_dtype):
        found = dtype_text(dtypes.as_dtype(values.dtype))
        raise invalid(
            f"Requested SparseTensor of type {dtype_text(dtype)} but SparseTensor[{number}].values.dtype() == {found}"
        )
    if len(indices) == 0:
        indices = indices.reshape(0, len(shape))
    return checked(indices, values, shape)


@op("""DeserializeManySparse(serialized_sparse: string) ->
       (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)
       dtype: type""")
class DeserializeManySparse(Op):
    """Serialized sparse tensors as the rows of one."""

    def infer(op):
        op.inputs[0].shape.with_rank(2).merge_with([None, 3])
        return shapes_of(None, None)

    def kernel(node, xp, rows):
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise invalid(f"Serialized sparse input should be a matrix with 3 columns, got {list(rows.shape)}")
        if not len(rows):
            raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
        return stacked([_sparse(row, i, node["dtype"]) for i, row in enumerate(rows)], node["dtype"])


@op("""DeserializeSparse(serialized_sparse: Tserialized) ->
       (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)
       dtype: type, Tserialized: {string, variant} = string""")
class DeserializeSparse(Op):
    """Serialized sparse tensors: one, or as the rows of one for each axis before the last."""

    def infer(op):
        op.inputs[0].shape.with_rank_at_least(1)
        return shapes_of(None, None)

    def bind(node, xp):
        def joined(messages):
            if messages.ndim == 1:
                return _sparse(messages, 0, node["dtype"])
            if not len(messages):
                raise invalid("Serialized sparse should have non-zero rank and at least one element.")
            return stacked([joined(part) for part in messages], node["dtype"])

        def kernel(messages):
            if not messages.ndim or messages.shape[-1] != 3:
                raise invalid(
                    f"Serialized sparse should have 3 as the last dimension, has shape {list(messages.shape)}"
                )
            return joined(messages)

        return kernel


# -- by number ---------------------------------------------------------------------------------------


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


def _map_of(ctx: Any, node: Node) -> SparseTensorsMap:
    """The map that the op names; without a `shared_name` it has the name of the node."""
    name = node["shared_name"].decode() or node.name
    container, make = node["container"].decode(), functools.partial(SparseTensorsMap, name)
    return ctx.resources.lookup_or_create(container, name, SparseTensorsMap, make)


class _UsesMap(Op):
    stateful = needs_ctx = True
    flops = free


_SHARED = """
       container: string = '', shared_name: string = ''"""
_PARTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"


@op(f"AddSparseToTensorsMap({_PARTS}) -> (sparse_handle: int64) where T: type{_SHARED}")
class AddSparseToTensorsMap(_UsesMap):
    infer = shapes.scalar

    def bind(node, xp):
        return lambda ctx, *parts: np.array(_map_of(ctx, node).add(checked(*parts)), np.int64)


@op(f"AddManySparseToTensorsMap({_PARTS}) -> (sparse_handles: int64) where T: type{_SHARED}")
class AddManySparseToTensorsMap(_UsesMap):
    """The rows of a SparseTensor, each as a SparseTensor of its own."""

    infer = shapes.fixed([None])

    def kernel(node, xp, ctx, *parts):
        waiting = _map_of(ctx, node)
        return np.array([waiting.add(row) for row in rows_of(checked(*parts))], np.int64)


@op(f"""TakeManySparseFromTensorsMap(sparse_handles: int64) ->
       (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)
       dtype: type{_SHARED}""")
class TakeManySparseFromTensorsMap(_UsesMap):
    """SparseTensors with the given numbers as the rows of one, as wide as the widest."""

    infer = shapes.fixed([None, None], [None], [None], ranks=[1])

    def kernel(node, xp, ctx, handles):
        if not len(handles):
            raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
        return stacked(_map_of(ctx, node).take(handles.tolist()), node["dtype"])

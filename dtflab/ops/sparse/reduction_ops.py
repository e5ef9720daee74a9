"""The ops that reduce sparse tensors: sums, maxima, softmax.

Stands for `core/kernels/sparse_reduce_op.cc`, `sparse_softmax_op.cc` and their gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sparse_arrays import check_sparse, order, strides


def _reduced(indices: Any, values: Any, shape: Any, axes: Any, ufunc: Any) -> tuple[Any, Any, list[int]]:
    """The places of the result, with a 0 along the reduced axes; their values; and the reduced axes."""
    rank = len(shape)
    axes = np.reshape(axes, -1)
    for axis in axes:
        if not -rank <= axis < rank:
            raise invalid(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
    gone = sorted({int(axis) % rank for axis in axes})
    places = indices.copy()
    places[:, gone] = 0
    by = order(places)
    places, values = places[by], values[by]
    starts = np.ones(len(places), bool)
    starts[1:] = (places[1:] != places[:-1]).any(1)
    first = np.flatnonzero(starts)
    return places[first], ufunc.reduceat(values, first) if len(first) else values, gone


def _left(sizes: Any, gone: list[int], keep: bool) -> Any:
    if keep:
        return np.array([1 if axis in gone else size for axis, size in enumerate(sizes)], np.int64)
    return np.array([size for axis, size in enumerate(sizes) if axis not in gone], np.int64)


class _Reduce(Op):
    ufunc = ""

    def infer(op: Operation) -> list[TensorShape]:
        if len(op.outputs) == 3:
            return [TensorShape(None)] * 3
        shape, axes = folded_value(op.inputs[2]), folded_value(op.inputs[3])
        if shape is None or axes is None:
            return [TensorShape(None)]
        gone = [int(axis) % len(shape) for axis in np.reshape(axes, -1)]
        return [TensorShape([int(size) for size in _left(shape, gone, op.get_attr("keep_dims"))])]

    @classmethod
    def kernel(cls, node: Node, xp: Any, indices: Any, values: Any, shape: Any, axes: Any) -> Any:
        keep, ufunc, sparse = node["keep_dims"], getattr(xp, cls.ufunc), node.op.endswith("Sparse")
        check_sparse(indices, values, shape)
        places, found, gone = _reduced(indices, values, shape, axes, ufunc)
        sizes = _left(shape, gone, keep)
        found = found.astype(values.dtype)
        if not keep:
            places = np.delete(places, gone, 1)
        if sparse:
            return places, found, sizes
        out = xp.zeros(int(np.prod(sizes)), values.dtype)
        out[places @ strides(sizes)] = found
        return out.reshape(sizes.tolist())

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return elements(ins[1])


def _sum_grad(op, dy):
    indices, _, shape, axes = op.inputs
    kept = reduce.reduced_shape(shape, axes)
    scale = shape // arrays.cast(kept, dtypes.int64)
    return [None, indexing.gather_nd(arrays.reshape(dy, kept), indices // scale), None, None]


_DENSE = "(output: T)"
_SPARSE = "(output_indices: int64, output_values: T, output_shape: int64)"
_REDUCTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("SparseReduceSum", f"{_DENSE}\n       T: numbertype", {"ufunc": "add", "grad": _sum_grad}),
    ("SparseReduceSumSparse", f"{_SPARSE}\n       T: numbertype", {"ufunc": "add"}),
    ("SparseReduceMax", f"{_DENSE}\n       T: realnumbertype", {"ufunc": "maximum"}),
    ("SparseReduceMaxSparse", f"{_SPARSE}\n       T: realnumbertype", {"ufunc": "maximum"}),
]
for _name, _outputs, _members in _REDUCTIONS:
    op(f"""{_name}(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> {_outputs}
       keep_dims: bool = false""")(type(_name, (_Reduce,), _members))


@op("SparseSoftmax(sp_indices: int64, sp_values: T, sp_shape: int64) -> (output: T) where T: {half, float, double}")
class SparseSoftmax(Op):
    """Softmax along the last axis, among the elements that are there."""

    def infer(op):
        op.inputs[2].shape.with_rank(1)
        return [op.inputs[1].shape.with_rank(1)]

    def kernel(node, xp, indices, values, shape):
        check_sparse(indices, values, shape)
        if len(shape) < 2:
            raise invalid(f"Input should have rank >= 2, but got shape: {shape_text(shape.tolist())}")
        _, row = np.unique(indices[:, :-1], axis=0, return_inverse=True)
        row = row.reshape(-1)
        largest = xp.full(int(row.max(initial=-1)) + 1, -np.inf, values.dtype)
        xp.maximum.at(largest, row, values)
        powers = xp.exp(values - largest[row])
        sums = xp.zeros_like(largest)
        xp.add.at(sums, row, powers)
        return powers / sums[row]

    def grad(op, dy):
        indices, _, shape = op.inputs
        y = op.outputs[0]
        parts = {"input_indices": indices, "input_values": y * dy, "input_shape": shape}
        total = apply_op("SparseReduceSum", None, **parts, reduction_axes=[-1], keep_dims=True)
        centred = apply_op("SparseDenseCwiseAdd", None, sp_indices=indices, sp_values=dy, sp_shape=shape, dense=-total)
        return [None, centred * y, None]

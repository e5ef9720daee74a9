"""The ops that take sparse tensors apart and join them: slice, split, concat.

Stands for `core/kernels/sparse_slice_op.cc`, `sparse_split_op.cc`, `sparse_concat_op.cc` and their gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid
from dtflab.ops.sparse_arrays import box, check_sparse, order, shapes_of


@op("""SparseSlice(indices: int64, values: T, shape: int64, start: int64, size: int64) ->
       (output_indices: int64, output_values: T, output_shape: int64)
       T: type""")
class SparseSlice(Op):
    """The elements in a box."""

    def infer(op):
        shape = op.inputs[2].shape
        return [TensorShape([None, shape.with_rank(1)[0]]), TensorShape([None]), shape]

    def kernel(node, xp, indices, values, shape, start, size):
        check_sparse(indices, values, shape)
        for name, given in (("start", start), ("size", size)):
            if len(given) != len(shape):
                raise invalid(f"Expected {name} to be a vector of length {len(shape)} but got length {len(given)}")
        return box(indices, values, shape, start, size)

    def grad(op, _, dvalues, __):
        places = {"input_indices": op.inputs[0], "input_start": op.inputs[3], "output_indices": op.outputs[0]}
        dx = apply_op("SparseSliceGrad", None, backprop_val_grad=dvalues, **places)
        dx.set_shape(op.inputs[1].shape)
        return [None, dx, None, None, None]


@op("""SparseSliceGrad(backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64) ->
       (val_grad: T)
       T: numbertype""")
class SparseSliceGrad(Op):
    """The gradient of the values: zero for those outside the box."""

    def infer(op):
        return [TensorShape([op.inputs[1].shape.with_rank(2)[0]])]

    def kernel(node, xp, grad, indices, start, out_indices):
        places = {tuple(row): i for i, row in enumerate((out_indices + start).tolist())}
        out = xp.zeros(len(indices), grad.dtype)
        for i, row in enumerate(indices.tolist()):
            if tuple(row) in places:
                out[i] = grad[places[tuple(row)]]
        return out


@op("""SparseSplit(split_dim: int64, indices: int64, values: T, shape: int64) ->
       (output_indices: num_split * int64, output_values: num_split * T, output_shape: num_split * int64)
       num_split: int >= 1, T: type""")
class SparseSplit(Op):
    """Parts along an axis; the first ones are longer by one where the size can't be divided."""

    def infer(op):
        n, shape = op.get_attr("num_split"), op.inputs[3].shape
        indices = TensorShape([None, shape[0] if shape.ndims else None])
        return [indices] * n + [TensorShape([None])] * n + [shape] * n

    def kernel(node, xp, axis, indices, values, shape):
        count = node["num_split"]
        rank = len(shape)
        if not -rank <= axis < rank:
            raise invalid(f"Input axis should be in range [{-rank}, {rank}), got {int(axis)}")
        axis = int(axis) % rank
        if not 1 <= count <= shape[axis]:
            raise invalid(
                f"Input num_split should be between 1 and the splitting dimension size ({shape[axis]}), got {count}"
            )
        least, remainder = divmod(int(shape[axis]), count)
        parts, start, size = [], np.zeros_like(shape), shape.copy()
        for i in range(count):
            size[axis] = least + (i < remainder)
            parts.append(box(indices, values, shape, start, size))
            start[axis] += size[axis]
        return [part[k] for k in range(3) for part in parts]


@op("""SparseConcat(indices: N * int64, values: N * T, shapes: N * int64) ->
       (output_indices: int64, output_values: T, output_shape: int64)
       concat_dim: int, N: int >= 2, T: type""")
class SparseConcat(Op):
    """Sparse tensors joined along an axis."""

    grad = no_gradient

    def infer(op):
        n = op.get_attr("N")
        rows, rank = 0, None
        for indices in op.inputs[:n]:
            known = indices.shape.with_rank(2).as_list()
            rows = None if rows is None or known[0] is None else rows + known[0]
            rank = known[1] if rank is None else rank
        return shapes_of(rows, rank)

    def kernel(node, xp, *inputs):
        n, dim = node["N"], node["concat_dim"]
        indices, values, shapes = inputs[:n], inputs[n : 2 * n], inputs[2 * n :]
        axis = _concat_axis(dim, shapes)
        offset, moved = 0, []
        for places, shape in zip(indices, shapes, strict=True):
            places = places.copy()
            places[:, axis] += offset
            offset += shape[axis]
            moved.append(places)
        all_ = np.concatenate(moved)
        by = order(all_)
        shape = shapes[0].copy()
        shape[axis] = offset
        return all_[by], np.concatenate(values)[by], shape


def _concat_axis(dim: int, shapes: Any) -> int:
    rank = len(shapes[0])
    if not -rank <= dim < rank:
        raise invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {dim}")
    axis = dim % rank
    for i, shape in enumerate(shapes[1:], 1):
        if len(shape) != rank:
            raise invalid(
                f"Ranks of all input tensors must match: expected {rank} but got {len(shape)} at position {i}"
            )
        for d in range(rank):
            if d != axis and shape[d] != shapes[0][d]:
                raise invalid(
                    f"Input shapes must match: expected {shapes[0][d]} for dimension {d} but got {shape[d]} at "
                    f"position {i}"
                )
    return axis

"""The ops that move the elements of a sparse tensor: to a dense tensor, into order, to another shape, into empty rows.

Stands for `core/kernels/sparse_to_dense_op.cc`, `sparse_reorder_op.cc`, `sparse_reshape_op.cc`,
`sparse_fill_empty_rows_op.cc` and their gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.static_value import constant_value_as_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import filled
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.messages import check_rank, invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sparse_arrays import check_order, check_sparse, order, strides


@op("""SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T) -> (dense: T)
       validate_indices: bool = true, T: type, Tindices: {int32, int64}""")
class SparseToDense(Op):
    """A dense tensor: the elements, and the default value everywhere else."""

    def infer(op):
        return [constant_value_as_shape(op.inputs[1])]

    def kernel(node, xp, indices, shape, values, default):
        dtype, validate = node["T"].as_numpy_dtype, node["validate_indices"]
        places = indices.reshape(-1, 1) if indices.ndim < 2 else indices
        _check_dense(places, shape, values, default)
        if validate:
            check_order(places, shape)
        elif ((places < 0) | (places >= shape)).any():
            raise invalid(f"Indices are not valid (out of bounds).  Shape: {shape_text(shape.tolist())}")
        out = filled(xp, shape.tolist(), default, dtype)
        if places.shape[1]:
            out[tuple(places.T)] = values
        elif np.size(values):  # a scalar has one place, with no index
            out[...] = np.ravel(values)[-1]
        return out

    flops = free

    def grad(op, dy):
        indices, shape, _, _ = op.inputs
        values = indexing.gather_nd(dy, indices)
        default = reduce.reduce_sum(dy) - reduce.reduce_sum(values)
        return [arrays.zeros_like(indices), arrays.zeros_like(shape), values, default]


def _check_dense(places: Any, shape: Any, values: Any, default: Any) -> None:
    check_rank(shape, 1, "output_shape must be rank 1, got shape {}")
    if len(shape) != places.shape[1]:
        raise invalid(f"output_shape has incorrect number of elements: {len(shape)} should be: {places.shape[1]}")
    if np.ndim(values) and np.shape(values) != (len(places),):
        raise invalid(f"sparse_values has incorrect shape {shape_text(values.shape)}, should be [] or [{len(places)}]")
    check_rank(default, 0, "default_value should be a scalar, got shape {}")


@op("""SparseReorder(input_indices: int64, input_values: T, input_shape: int64) ->
       (output_indices: int64, output_values: T)
       T: type""")
class SparseReorder(Op):
    """The elements in the order of their indices."""

    def infer(op):
        indices, values, shape = (t.shape for t in op.inputs)
        shape.with_rank(1)
        return [indices.with_rank(2), values.with_rank(1)]

    def kernel(node, xp, indices, values, shape):
        check_sparse(indices, values, shape)
        by = order(indices)
        return indices[by], values[by]

    def grad(op, _, dvalues):
        rows, places = arrays.range(arrays.shape(op.inputs[0])[0]), {"input_indices": op.inputs[0]}
        _, came_from = apply_op("SparseReorder", None, **places, input_values=rows, input_shape=op.inputs[2])
        inverse = apply_op("InvertPermutation", None, x=came_from)
        return [None, indexing.gather(dvalues, inverse), None]


@op("""SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64) ->
       (output_indices: int64, output_shape: int64)""")
class SparseReshape(Op):
    """The places of the elements when the tensor gets another shape; one size may be -1."""

    def infer(op):
        indices, _, new_shape = (t.shape for t in op.inputs)
        rank = new_shape.with_rank(1)[0]
        return [TensorShape([indices.with_rank(2)[0], rank]), TensorShape([rank])]

    def kernel(node, xp, indices, shape, new_shape):
        check_rank(indices, 2, "Input indices should be a matrix but received shape {}")
        sizes = _completed(shape, new_shape)
        flat = indices @ strides(shape)
        return np.stack(np.unravel_index(flat, sizes), 1).astype(np.int64).reshape(-1, len(sizes)), sizes

    def flops(node, ins, outs):
        return 2 * elements(ins[0])


def _completed(shape: Any, new_shape: Any) -> Any:
    """`new_shape` with the size that -1 stands for."""
    sizes, total = new_shape.copy(), int(np.prod(shape))
    unknown = np.flatnonzero(new_shape == -1)
    if len(unknown) > 1:
        raise invalid(f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}")
    if len(unknown):
        sizes[unknown] = 1
        rest = int(np.prod(sizes))
        if rest == 0:
            raise invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes "
                "are non-zero"
            )
        shapes = f"input_shape={shape_text(shape.tolist())} output_shape={shape_text(sizes.tolist())}"
        if total % rest:
            raise invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested shape requires a "
                f"multiple of {rest}. {shapes}"
            )
        sizes[unknown] = total // rest
    if int(np.prod(sizes)) != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has "
            f"{int(np.prod(sizes))}. input_shape={shape_text(shape.tolist())} output_shape={shape_text(sizes.tolist())}"
        )
    return sizes


@op("""SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) ->
       (output_indices: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64)
       T: type""")
class SparseFillEmptyRows(Op):
    """One element, the default value, in each row that has none; the elements in the order of rows."""

    def infer(op):
        indices, values, shape, default = (t.shape for t in op.inputs)
        default.with_rank(0)
        rank = indices.with_rank(2)[1].merge_with(shape.with_rank(1)[0])
        rows = folded_value(op.inputs[2])
        count = None if rows is None or not len(rows) or rows[0] < 0 else int(rows[0])
        found = indices[0].merge_with(values.with_rank(1)[0])
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([count]), TensorShape([found])]

    def kernel(node, xp, indices, values, shape, default):
        _check_rows(indices, values, shape, default)
        rows = int(shape[0])
        is_empty = np.bincount(indices[:, 0], minlength=rows) == 0
        missing = np.zeros((int(is_empty.sum()), indices.shape[1]), np.int64)
        missing[:, 0] = np.flatnonzero(is_empty)
        all_ = np.concatenate([indices, missing])
        by = np.argsort(all_[:, 0], kind="stable")
        place = np.empty(len(by), np.int64)
        place[by] = np.arange(len(by))
        filling = np.empty(len(missing), values.dtype)
        filling[...] = default
        return all_[by], np.concatenate([values, filling])[by], is_empty, place[: len(indices)]

    def grad(op, _, dvalues, __, ___):
        dx, ddefault = apply_op("SparseFillEmptyRowsGrad", None, reverse_index_map=op.outputs[3], grad_values=dvalues)
        return [None, dx, None, ddefault]


def _check_rows(indices: Any, values: Any, shape: Any, default: Any) -> None:
    check_rank(default, 0, "default_value must be a scalar, saw: {}")
    check_sparse(indices, values, shape)
    rows = int(shape[0])
    if rows == 0 and len(indices):
        raise invalid(f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(indices)}")
    wrong = (indices[:, 0] < 0) | (indices[:, 0] >= rows)
    if wrong.any():
        at = int(wrong.argmax())
        raise invalid(f"indices({at}, 0) is invalid: {indices[at, 0]} >= {rows}")


@op("""SparseFillEmptyRowsGrad(reverse_index_map: int64, grad_values: T) -> (d_values: T, d_default_value: T)
       T: type""")
class SparseFillEmptyRowsGrad(Op):
    """The gradients of the values that were there, and of the default value: the sum of the others."""

    def infer(op):
        return [op.inputs[0].shape.with_rank(1), TensorShape([])]

    def kernel(node, xp, places, grad):
        if ((places < 0) | (places >= len(grad))).any():
            raise invalid(f"Elements in reverse index must be in [0, {len(grad)})")
        others = xp.ones(len(grad), bool)
        others[places] = False
        return grad[places], grad[others].sum(dtype=grad.dtype)

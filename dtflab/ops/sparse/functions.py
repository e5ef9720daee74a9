"""The functions on sparse tensors.

Stands for `python/ops/sparse_ops.py` and the sparse segment sums of `math_ops.py`. Left out: crosses of features,
`sparse_matmul` (of dense tensors).

Rule: the result's static shape keeps everything that follows from the static shapes of the arguments.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dtflab.base.naming import named
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, name_scope
from dtflab.graph.static_value import constant_value, constant_value_as_shape
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math_functions
from dtflab.ops.messages import renamed
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue, is_sparse


def checked_sparse(value: Any) -> SparseTensor:
    """`value` as a SparseTensor. Raises TypeError if it is not sparse."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def parts_of(sp: SparseTensor, before: str = "") -> dict[str, Tensor]:
    """The parts of `sp` as arguments: `indices`, `values`, `shape`, with a prefix."""
    return {f"{before}indices": sp.indices, f"{before}values": sp.values, f"{before}shape": sp.dense_shape}


# -- to dense tensors ---------------------------------------------------------------------------------


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of `default_value` that has the values at the indices: rows of a matrix, a vector or a scalar."""
    arguments = {"sparse_indices": sparse_indices, "output_shape": output_shape, "sparse_values": sparse_values}
    return apply_op("SparseToDense", name, **arguments, default_value=default_value, validate_indices=validate_indices)


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense tensor, with `default_value` (zero) where `sp_input` has nothing."""
    sp = checked_sparse(sp_input)
    default = arrays.zeros([], dtype=sp.dtype) if default_value is None else default_value
    return sparse_to_dense(sp.indices, sp.dense_shape, sp.values, default, validate_indices, name)


def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Booleans: whether the row has the id. The ids are the values of `sp_input`, below `vocab_size`."""
    sp = checked_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sp]) as scope:
        count = arrays.shape(sp.indices)[0]
        there = arrays.fill(arrays.expand_dims(count, 0), True)
        merged = sparse_merge(sp, SparseTensor(sp.indices, there, sp.dense_shape), vocab_size, scope)
        return sparse_tensor_to_dense(merged, default_value=False, validate_indices=False, name=scope)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero."""
    with name_scope(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        places = indexing.where_v2(math_functions.not_equal(tensor, arrays.zeros_like(tensor)))
        return SparseTensor(places, indexing.gather_nd(tensor, places), arrays.shape(tensor, out_type=dtypes.int64))


def sparse_eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """An identity matrix."""
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = _int64(num_rows, "num_rows")
        columns = rows if num_columns is None else _int64(num_columns, "num_columns")
        size = math_functions.minimum(rows, columns)
        steps = arrays.range(size, dtype=dtypes.int64)
        indices, values = arrays.stack([steps, steps], axis=1), arrays.ones(size, dtype=dtype)
        return SparseTensor(indices, values, dense_shape=[rows, columns])


def _int64(value: Any, name: str) -> Tensor:
    if isinstance(value, numbers.Integral):
        return convert_to_tensor(value, dtypes.int64, name=name)
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be an integer value")
    return arrays.cast(value, dtypes.int64)


# -- order and shape ----------------------------------------------------------------------------------


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The elements in the order of their indices, the last axis fastest."""
    sp = checked_sparse(sp_input)
    indices, values = apply_op("SparseReorder", name, **parts_of(sp, "input_"))
    if sp.shape.is_fully_defined():
        return SparseTensor(indices, values, sp.shape.as_list())
    ordered = SparseTensor(indices, values, arrays.identity(sp.dense_shape))
    ordered.set_shape(sp.shape)
    return ordered


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in a tensor of another shape; one size may be -1."""
    sp = checked_sparse(sp_input)
    shape = arrays.cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape", [sp]) as scope:
        places = {"input_indices": sp.indices, "input_shape": sp.dense_shape}
        indices, new_shape = apply_op("SparseReshape", scope, **places, new_shape=shape)
        known = constant_value_as_shape(shape)
        if known.ndims is not None and sp.shape.is_fully_defined():
            size = math.prod(int(dim) for dim in sp.shape)
            completed = _completed(known.as_list(), size, constant_value(shape))
            new_shape = new_shape if completed is None else constant(completed, dtypes.int64)
        return SparseTensor(indices, arrays.identity(sp.values), new_shape)


def _completed(wanted: list[Any], size: int, given: Any) -> list[int] | None:
    """The full new shape, if it follows from the old one. Raises ValueError if there can't be one."""
    if given is not None and (given == -1).sum() > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {given}")
    unknown = wanted.count(None)
    if unknown > 1 or (unknown == 1 and 0 in wanted):
        return None
    completed = list(wanted)
    if unknown:
        completed[wanted.index(None)] = size // math.prod(dim for dim in wanted if dim is not None)
    if math.prod(completed) != size:
        raise ValueError(
            f"Cannot reshape a tensor with {size} elements to shape {wanted} ({math.prod(completed)} elements)."
        )
    return completed


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The axes in the order `perm`, by default reversed."""
    with name_scope(name, "SparseTranspose", [sp_input]):
        if perm is None:
            known = sp_input.shape.ndims
            rank: Any = arrays.rank(sp_input) if known is None else known
            perm = rank - 1 - (arrays.range(0, rank, 1) if known is None else np.arange(rank))
        columns = indexing.gather(arrays.transpose(sp_input.indices), perm)
        indices = arrays.transpose(columns)
        order = constant_value(convert_to_tensor(perm))
        if order is not None and sp_input.shape.is_fully_defined():
            shape: Any = [sp_input.shape.as_list()[axis] for axis in order]
        else:
            shape = indexing.gather(sp_input.dense_shape, perm)
        return sparse_reorder(SparseTensor(indices, sp_input.values, shape))


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A new axis of size 1 before `axis`, by default the last one."""
    known = sp_input.dense_shape.shape[0].value
    rank = arrays.shape(sp_input.dense_shape)[0] if known is None else known
    axis = -1 if axis is None else axis
    with name_scope(name, "expand_dims", [sp_input]):
        if isinstance(axis, numbers.Integral):
            axis = convert_to_tensor(axis, dtypes.int32, name="axis")
        elif not isinstance(axis, Tensor):
            raise TypeError("axis must be an integer value in range [-rank(sp_input) - 1, rank(sp_input)]")
        axis = indexing.where_v2(axis >= 0, axis, axis + rank + 1)
        rows = arrays.shape(sp_input.indices)[0]
        zeros = arrays.zeros([rows, 1], dtype=dtypes.int64)
        before = indexing.slice(sp_input.indices, [0, 0], [-1, axis])
        after = indexing.slice(sp_input.indices, [0, axis], [-1, -1])
        indices = arrays.concat([before, zeros, after], axis=1)
        first = indexing.slice(sp_input.dense_shape, [0], [axis])
        last = indexing.slice(sp_input.dense_shape, [axis], [-1])
        one = convert_to_tensor([1], dtypes.int64, name="new_shape")
        return SparseTensor(indices, sp_input.values, arrays.concat([first, one, last], axis=0))


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a larger shape; without `new_shape` in the smallest that holds them."""
    sp = checked_sparse(sp_input)
    indices, values, shape = (arrays.identity(part) for part in (sp.indices, sp.values, sp.dense_shape))
    if new_shape is None:
        bound = reduce.reduce_max(indices, axis=0)
        tight = math_functions.add(bound, arrays.ones_like(shape))
        return SparseTensor(indices, values, math_functions.maximum(constant(0, dtypes.int64), tight))
    wanted = convert_to_tensor(new_shape)
    wanted.shape.assert_has_rank(1)
    wanted = arrays.cast(wanted, dtypes.int64)
    wanted.shape[0].assert_is_compatible_with(shape.shape[0])
    known = constant_value(wanted)
    if known is None or not sp.shape.is_fully_defined():
        return SparseTensor(indices, values, _not_smaller(wanted, shape))
    if not (np.array(sp.shape.as_list()) <= known).all():
        raise ValueError(
            "Requested new_shape should have dimension sizes >= sp_input.shape.  "
            f"Found new_shape ({np.array(sp.shape.as_list())}), sp_input.shape ({known})."
        )
    return SparseTensor(indices, values, known)


def _not_smaller(wanted: Tensor, shape: Tensor) -> Tensor:
    """`wanted`, after checks that it has the rank of `shape` and that its sizes are not smaller."""
    wanted = with_dependencies([assertions.assert_equal(arrays.shape(shape), arrays.shape(wanted))], wanted)
    return with_dependencies([assertions.assert_less_equal(shape, wanted)], wanted)


# -- parts --------------------------------------------------------------------------------------------


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The box of `size` that begins at `start`."""
    sp = checked_sparse(sp_input)
    start, size = convert_to_tensor(start, dtypes.int64), convert_to_tensor(size, dtypes.int64)
    with name_scope(name, "SparseSlice", [sp]) as scope:
        return SparseTensor(*apply_op("SparseSlice", scope, **parts_of(sp), start=start, size=size))


class KeywordRequired:
    """Stands where a function takes keyword arguments only."""

    def __repr__(self) -> str:
        return "KeywordRequired()"


def sparse_split(
    keyword_required: Any = KeywordRequired(),  # noqa: B008
    sp_input: Any = None,
    num_split: int | None = None,
    axis: int | None = None,
    name: str | None = None,
    split_dim: int | None = None,
) -> list[SparseTensor]:
    """`num_split` parts along `axis`; the first ones are longer by one where the size can't be divided."""
    if not isinstance(keyword_required, KeywordRequired):
        raise ValueError("Keyword arguments are required for this function.")
    axis = renamed("axis", axis, "split_dim", split_dim)
    for argument, value in (("sp_input", sp_input), ("num_split", num_split), ("axis", axis)):
        if value is None:
            raise ValueError(f"{argument} is required")
    sp = checked_sparse(sp_input)
    indices, values, shapes = apply_op("SparseSplit", name, split_dim=axis, **parts_of(sp), num_split=num_split)
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes, strict=True)]


def sparse_concat(
    axis: int | None = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """The sparse tensors joined along `axis`.

    With `expand_nonconcat_dims` the other sizes may differ; the largest ones count.
    """
    axis = renamed("axis", axis, "concat_dim", concat_dim)
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    if not isinstance(sp_inputs, list | tuple):
        raise TypeError("Inputs must be a list or tuple.")
    parts = [checked_sparse(sp) for sp in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    shapes = [sp.dense_shape for sp in parts]
    shapes = _expanded(shapes, axis) if expand else shapes
    lists = {"indices": [sp.indices for sp in parts], "values": [sp.values for sp in parts], "shapes": shapes}
    indices, values, shape = apply_op("SparseConcat", name, **lists, concat_dim=axis)
    known = _concatenated([sp.shape for sp in parts], axis, expand)
    if all(sp.shape.is_fully_defined() for sp in parts):
        shape = convert_to_tensor(known.as_list(), dtypes.int64)
    result = SparseTensor(indices, values, shape)
    result.set_shape(known)
    return result


def _expanded(shapes: Sequence[Tensor], axis: int) -> list[Any]:
    """The shapes, with the largest sizes along all axes but one."""
    rows = arrays.concat([arrays.reshape(shape, [1, -1]) for shape in shapes], 0)
    largest = reduce.reduce_max(rows, 0)
    if axis == -1:
        return [arrays.concat([largest[:axis], shape[-1:], []], 0) for shape in shapes]
    return [arrays.concat([largest[:axis], shape[axis : axis + 1], largest[axis + 1 :]], 0) for shape in shapes]


def _concatenated(shapes: Sequence[TensorShape], axis: int, expand: bool) -> TensorShape:
    if any(shape.ndims is None for shape in shapes):
        return TensorShape(None)
    columns = list(zip(*(shape.as_list() for shape in shapes), strict=True))
    known = [max(sizes) if expand and None not in sizes else sizes[0] for sizes in columns]
    known[axis] = None if None in columns[axis] else sum(columns[axis])
    return TensorShape(known)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The elements for which `to_retain`, a vector of booleans, is true."""
    sp = checked_sparse(sp_input)
    to_retain = convert_to_tensor(to_retain)
    to_retain.shape.assert_has_rank(1)
    sp.values.shape[0].assert_is_compatible_with(to_retain.shape[0])
    kept = arrays.reshape(indexing.where_v2(to_retain), [-1])
    indices, values = indexing.gather(sp.indices, kept), indexing.gather(sp.values, kept)
    return SparseTensor(indices, values, arrays.identity(sp.dense_shape))


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """`sp_input` with one element `default_value` in each empty row; and which rows were empty."""
    sp = checked_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sp]):
        default = convert_to_tensor(default_value, dtype=sp.values.dtype)
        parts = {"indices": sp.indices, "values": sp.values, "dense_shape": sp.dense_shape}
        indices, values, was_empty, _ = apply_op("SparseFillEmptyRows", None, **parts, default_value=default)
        return SparseTensor(indices, values, sp.dense_shape), was_empty


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """Ids and values of the same places as one: the ids become the last axis (or axes), of size `vocab_size`."""
    ids, sizes = _ids_and_sizes(sp_ids, vocab_size)
    with name_scope(name, "SparseMerge", [*ids, sp_values]):
        ids, values = [checked_sparse(one) for one in ids], checked_sparse(sp_values)
        columns = [arrays.expand_dims(arrays.cast(one.values, dtypes.int64), axis=1) for one in ids]
        sizes = [arrays.cast(size, dtypes.int64) for size in sizes]
        indices = arrays.concat([ids[0].indices[:, :-1], *columns], 1)
        shape = arrays.concat([ids[0].dense_shape[:-1], sizes], 0)
        merged = SparseTensor(indices, values.values, shape)
        if already_sorted:
            return merged
        ordered = sparse_reorder(merged)
        return SparseTensor(ordered.indices, ordered.values, shape)


def _ids_and_sizes(sp_ids: Any, vocab_size: Any) -> tuple[list[Any], list[Any]]:
    if is_sparse(sp_ids):
        sp_ids, vocab_size = [sp_ids], [vocab_size]
    elif not isinstance(sp_ids, Iterable):
        raise TypeError(f"sp_ids has to be a SparseTensor or list thereof. Found {type(sp_ids)}")
    elif not isinstance(vocab_size, Iterable):
        raise TypeError(f"vocab_size has to be a list of Tensors or Python ints. Found {type(vocab_size)}")
    ids, sizes = list(sp_ids), list(vocab_size)
    for size in sizes:
        if not isinstance(size, Tensor | numbers.Integral):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(size)}")
    if len(ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    return ids, sizes


# -- arithmetic ---------------------------------------------------------------------------------------


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum: sparse of two sparse tensors, dense if one is.

    Where both have an element and the sum is smaller than `threshold`, the result has none.
    """
    threshold = renamed("threshold", threshold, "thresh", thresh)
    if not (is_sparse(a) or is_sparse(b)):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not (is_sparse(a) and is_sparse(b)):
        sp, dense = (a, b) if is_sparse(a) else (b, a)
        return apply_op("SparseTensorDenseAdd", None, **parts_of(sp, "a_"), b=dense)
    a, b = checked_sparse(a), checked_sparse(b)
    real = a.values.dtype.real_dtype.base_dtype
    least = convert_to_tensor(0 if threshold is None else threshold, real, name="threshold")
    indices, values, shape = apply_op("SparseAdd", None, **parts_of(a, "a_"), **parts_of(b, "b_"), thresh=least)
    a.shape.assert_is_compatible_with(b.shape)
    known = arrays.broadcast_static_shape(a.shape, b.shape)
    return SparseTensor(indices, values, known.as_list() if known.is_fully_defined() else shape)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The matrix product of a sparse and a dense tensor, in either order."""
    if is_sparse(b):
        flip = adjoint_a == adjoint_b
        return arrays.transpose(sparse_tensor_dense_matmul(b, sp_a, adjoint_a != flip, adjoint_b != flip))
    sp = checked_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp.indices, sp.values, b]):
        b = convert_to_tensor(b, name="b")
        adjoints = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
        return apply_op("SparseTensorDenseMatMul", None, **parts_of(sp, "a_"), b=b, **adjoints)


def _reduce(how: str, sparse: bool) -> Callable[..., Any]:
    def function(
        sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
    ) -> Any:
        keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
        axis = renamed("axis", axis, "reduction_axes", reduction_axes)
        if axis is None:
            rank = sp_input.shape.ndims if isinstance(sp_input, SparseTensor) else None
            axis = constant(np.arange(rank, dtype=np.int32)) if rank else arrays.range(0, arrays.rank(sp_input))
        op_type = f"SparseReduce{how.title()}{'Sparse' if sparse else ''}"
        result = apply_op(op_type, None, **parts_of(sp_input, "input_"), reduction_axes=axis, keep_dims=bool(keep))
        return SparseTensor(*result) if sparse else result

    doc = f"The {how} over the elements along `axis` (all), as a {'sparse' if sparse else 'dense'} tensor."
    return named(function, f"sparse_reduce_{how}{'_sparse' if sparse else ''}", doc)


sparse_reduce_sum = _reduce("sum", False)
sparse_reduce_max = _reduce("max", False)
sparse_reduce_sum_sparse = _reduce("sum", True)
sparse_reduce_max_sparse = _reduce("max", True)


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax along the last axis, among the elements that are there."""
    with name_scope(name, "SparseSoftmax", [sp_input.indices, sp_input.values]):
        values = apply_op("SparseSoftmax", None, **parts_of(sp_input, "sp_"))
        return SparseTensor(sp_input.indices, values, sp_input.dense_shape)


def _either(how: str) -> Callable[..., SparseTensor]:
    op_type = f"SparseSparse{how.title()}"

    def function(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
        with name_scope(name, op_type, [sp_a.indices, sp_a.values, sp_b.indices, sp_b.values]) as scope:
            indices, values = apply_op(op_type, scope, **parts_of(sp_a, "a_"), **parts_of(sp_b, "b_"))
        return SparseTensor(indices, values, sp_a.dense_shape)

    doc = f"The {how} at all places where one of the two has an element; what is missing is zero."
    return named(function, f"sparse_{how}", doc)


sparse_maximum = _either("maximum")
sparse_minimum = _either("minimum")


# Their quotients are float32, those of larger ones float64.
_SMALL_INTEGERS = dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16


def sparse_dense_cwise_add(sp_t: SparseTensor, dense_t: Any) -> SparseTensor:
    """`dense_t`, which may broadcast, added to the elements of `sp_t`; missing elements stay missing."""
    values = apply_op("SparseDenseCwiseAdd", None, **parts_of(sp_t, "sp_"), dense=dense_t)
    return SparseTensor(sp_t.indices, values, sp_t.dense_shape)


def _cwise(how: str, scope_name: str) -> Callable[..., SparseTensor]:
    def operator(sp: SparseTensor, dense: Any) -> SparseTensor:
        with name_scope(None, scope_name, [sp, dense]) as scope:
            dense = convert_to_tensor(dense, sp.dtype.base_dtype, name="y")
            values = sp.values
            if scope_name == "truediv" and sp.dtype.is_integer:
                kind = dtypes.float32 if sp.dtype in _SMALL_INTEGERS else dtypes.float64
                values, dense = arrays.cast(values, kind), arrays.cast(dense, kind)
            parts = {"sp_indices": sp.indices, "sp_values": values, "sp_shape": sp.dense_shape}
            return sp.with_values(apply_op(f"SparseDenseCwise{how}", scope, **parts, dense=dense))

    return operator


for _how, _operator in (("Mul", "mul"), ("Div", "div"), ("Div", "truediv")):
    setattr(SparseTensor, f"__{_operator}__", _cwise(_how, _operator))


# -- segments -----------------------------------------------------------------------------------------


def _segments(how: str, python_name: str) -> Callable[..., Tensor]:
    def function(
        data: Any,
        indices: Any,
        segment_ids: Any,
        name: str | None = None,
        num_segments: Any = None,
        sparse_gradient: bool = False,
    ) -> Tensor:
        arguments = {"data": data, "indices": indices, "segment_ids": segment_ids, "sparse_gradient": sparse_gradient}
        if num_segments is None:
            return apply_op(f"SparseSegment{how}", name, **arguments)
        return apply_op(f"SparseSegment{how}WithNumSegments", name, **arguments, num_segments=num_segments)

    doc = f"The {python_name} of the rows data[indices[i]] whose `segment_ids[i]` are equal."
    return named(function, f"sparse_segment_{python_name}", doc)


sparse_segment_sum = _segments("Sum", "sum")
sparse_segment_mean = _segments("Mean", "mean")
sparse_segment_sqrt_n = _segments("SqrtN", "sqrt_n")


# -- strings ------------------------------------------------------------------------------------------


def _serialize(op_type: str, sp_input: Any, name: str | None, out_type: Any) -> Tensor:
    sp = checked_sparse(sp_input)
    if dtypes.as_dtype(out_type) != dtypes.string:
        raise NotImplementedError("dtflab serializes sparse tensors to strings only: pass out_type=tf.string.")
    return apply_op(op_type, name, **parts_of(sp, "sparse_"), out_type=out_type)


def serialize_sparse(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """A sparse tensor as a vector of 3 strings."""
    return _serialize("SerializeSparse", sp_input, name, out_type)


def serialize_many_sparse(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """Each row of a sparse tensor as 3 strings: a matrix with 3 columns."""
    return _serialize("SerializeManySparse", sp_input, name, out_type)


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensors of `serialize_sparse`, stacked, or of `serialize_many_sparse`, as the rows of one."""
    parts = apply_op("DeserializeManySparse", name, serialized_sparse=serialized_sparse, dtype=dtype)
    return _of_rank(parts, rank)


# -- maps of a task -----------------------------------------------------------------------------------


def add_sparse(sparse: SparseTensor, shared_name: str | None = None) -> Tensor:
    """The handle of `sparse`, which waits in a map until it is taken."""
    return _add("AddSparseToTensorsMap", sparse, shared_name)


def add_many_sparse(sparse: SparseTensor, shared_name: str | None = None) -> Tensor:
    """A vector of handles of the rows of `sparse`."""
    return _add("AddManySparseToTensorsMap", sparse, shared_name)


def _add(op_type: str, sparse: SparseTensor, shared_name: str | None) -> Tensor:
    return apply_op(op_type, None, **parts_of(sparse, "sparse_"), shared_name=shared_name)


def take_many_sparse(map_op: Operation, handles: Tensor, rank: int | None) -> SparseTensor:
    """The SparseTensors behind `handles`, of the map that `map_op` added to, as one of `rank` dimensions."""
    with colocate_with(map_op):
        name = map_op.get_attr("shared_name") or map_op.name
        where = {"container": map_op.get_attr("container"), "shared_name": name}
        dtype = map_op.get_attr("T")
        parts = apply_op("TakeManySparseFromTensorsMap", None, sparse_handles=handles, dtype=dtype, **where)
    return _of_rank(parts, rank)


def _of_rank(parts: Any, rank: int | None) -> SparseTensor:
    indices, values, shape = parts
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)

"""Arithmetic on sparse tensors: sums, products, reductions, softmax.

Stands for the second half of `python/ops/sparse_ops.py`. The ops are in `sparse_math.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import casting, constant as constants, identity as array, repeating, reshaping
from dtflab.ops.messages import renamed
from dtflab.ops.sparse.functions import checked_sparse, parts_of
from dtflab.ops.sparse.sparse_tensor import SparseTensor, is_sparse


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
    least = convert_to_tensor(
        0 if threshold is None else threshold, a.values.dtype.real_dtype.base_dtype, name="threshold"
    )
    indices, values, shape = apply_op("SparseAdd", None, **parts_of(a, "a_"), **parts_of(b, "b_"), thresh=least)
    a.shape.assert_is_compatible_with(b.shape)
    known = repeating.broadcast_static_shape(a.shape, b.shape)
    return SparseTensor(indices, values, known.as_list() if known.is_fully_defined() else shape)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The matrix product of a sparse and a dense tensor, in either order."""
    if is_sparse(b):
        flip = adjoint_a == adjoint_b
        return reshaping.transpose(sparse_tensor_dense_matmul(b, sp_a, adjoint_a != flip, adjoint_b != flip))
    sp = checked_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp.indices, sp.values, b]):
        b = convert_to_tensor(b, name="b")
        return apply_op(
            "SparseTensorDenseMatMul", None, **parts_of(sp, "a_"), b=b, adjoint_a=adjoint_a, adjoint_b=adjoint_b
        )


def _reduce(how: str, sparse: bool) -> Callable[..., Any]:
    def function(
        sp_input: Any, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None,
        keep_dims: bool | None = None,
    ) -> Any:  # fmt: skip
        keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
        axis = renamed("axis", axis, "reduction_axes", reduction_axes)
        if axis is None:
            rank = sp_input.shape.ndims if isinstance(sp_input, SparseTensor) else None
            axis = constant(np.arange(rank, dtype=np.int32)) if rank else constants.range(0, array.rank(sp_input))
        op_type = f"SparseReduce{how.title()}{'Sparse' if sparse else ''}"
        result = apply_op(op_type, None, **parts_of(sp_input, "input_"), reduction_axes=axis, keep_dims=bool(keep))
        return SparseTensor(*result) if sparse else result

    function.__name__ = f"sparse_reduce_{how}{'_sparse' if sparse else ''}"
    function.__doc__ = f"The {how} over the elements along `axis` (all), as a {'sparse' if sparse else 'dense'} tensor."
    return function


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

    function.__name__ = f"sparse_{how}"
    function.__doc__ = f"The {how} at all places where one of the two has an element; what is missing is zero."
    return function


sparse_maximum = _either("maximum")
sparse_minimum = _either("minimum")


_WHOLE = (dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16)  # their quotients are float32, of larger ones float64


def sparse_dense_cwise_add(sp_t: SparseTensor, dense_t: Any) -> SparseTensor:
    """`dense_t`, which may broadcast, added to the elements of `sp_t`; what is missing stays zero."""
    values = apply_op("SparseDenseCwiseAdd", None, **parts_of(sp_t, "sp_"), dense=dense_t)
    return SparseTensor(sp_t.indices, values, sp_t.dense_shape)


def _cwise(how: str, scope_name: str) -> Callable[..., SparseTensor]:
    def operator(sp: SparseTensor, dense: Any) -> SparseTensor:
        with name_scope(None, scope_name, [sp, dense]) as scope:
            dense = convert_to_tensor(dense, sp.dtype.base_dtype, name="y")
            values = sp.values
            if scope_name == "truediv" and sp.dtype.is_integer:
                kind = dtypes.float32 if sp.dtype in _WHOLE else dtypes.float64
                values, dense = casting.cast(values, kind), casting.cast(dense, kind)
            values = apply_op(
                f"SparseDenseCwise{how}", scope, sp_indices=sp.indices, sp_values=values, sp_shape=sp.dense_shape,
                dense=dense,
            )  # fmt: skip
            return SparseTensor(sp.indices, values, sp.dense_shape)

    return operator


for _how, _operator in (("Mul", "mul"), ("Div", "div"), ("Div", "truediv")):
    setattr(SparseTensor, f"__{_operator}__", _cwise(_how, _operator))

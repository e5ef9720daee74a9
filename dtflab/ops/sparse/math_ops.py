"""The ops that compute with sparse tensors: sums, products, reductions.

Stands for `core/kernels/sparse_add_op.cc`, `sparse_tensor_dense_{add,matmul}_op.cc`,
`sparse_dense_binary_op_shared.cc`, `sparse_reduce_op.cc`, `sparse_softmax_op.cc`, `sparse_sparse_binary_op_shared.cc`
and their gradients. Their functions are in `sparse.py`.

Rule: what is not there is zero, and stays away: no op makes elements where none of its inputs has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import casting, constant as constants, gathering, identity as array, joining, reshaping, slicing
from dtflab.ops.linalg import matmul
from dtflab.ops.math import unary
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import reduction
from dtflab.ops.reduce.segments import add_rows
from dtflab.ops.sparse.places import check_sparse, order, strides


def _united(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """All places of two sparse tensors in order; and where among them those of each are."""
    both = np.concatenate([a, b])
    if not both.shape[1]:
        return both[:1], np.zeros(len(a), int), np.zeros(len(b), int)
    found, inverse = np.unique(both, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    return found, inverse[: len(a)], inverse[len(a) :]


def _check_same_shape(a: Any, b: Any) -> None:
    if len(a) != len(b):
        raise invalid(f"Ranks of input tensors must match, but saw ranks: {len(a)} and {len(b)}")
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y:
            raise invalid(f"Input shapes must match: got {x} and {y} for dimension {i}")


@op("""SparseAdd(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64,
                 thresh: Treal) -> (sum_indices: int64, sum_values: T, sum_shape: int64)
       T: numbertype
       Treal: realnumbertype""")
class SparseAdd(Op):
    """The sum of two sparse tensors; where both have an element, only if their sum is not smaller than thresh."""

    def infer(op):
        shape = op.inputs[2].shape.with_rank(1)
        return [TensorShape([None, shape[0]]), TensorShape([None]), shape]

    def bind(node, xp):
        def kernel(a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh):
            check_sparse(a_indices, a_values, a_shape)
            check_sparse(b_indices, b_values, b_shape)
            _check_same_shape(a_shape, b_shape)
            found, from_a, from_b = _united(a_indices, b_indices)
            out = xp.zeros(len(found), a_values.dtype)
            xp.add.at(out, from_a, a_values)
            xp.add.at(out, from_b, b_values)
            kept = xp.abs(out) >= thresh
            kept |= xp.bincount(np.concatenate([from_a, from_b]), minlength=len(found)) < 2
            return found[kept], out[kept], a_shape

        return kernel

    def grad(op, _, dvalues, __):
        da, db = apply_op(
            "SparseAddGrad", None, backprop_val_grad=dvalues, a_indices=op.inputs[0], b_indices=op.inputs[3],
            sum_indices=op.outputs[0],
        )  # fmt: skip
        da.set_shape(op.inputs[1].shape)
        db.set_shape(op.inputs[4].shape)
        return [None, da, None, None, db, None, None]


@op("""SparseAddGrad(backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64) ->
       (a_val_grad: T, b_val_grad: T)
       T: numbertype""")
class SparseAddGrad(Op):
    """The gradient of each element of a and b: that of the sum where the sum kept it, else 0."""

    grad = no_gradient

    def infer(op):
        return [TensorShape([op.inputs[1].shape[0]]), TensorShape([op.inputs[2].shape[0]])]

    def bind(node, xp):
        def kernel(grad, a_indices, b_indices, sum_indices):
            places = {tuple(row): g for row, g in zip(sum_indices.tolist(), grad, strict=True)}
            zero = grad.dtype.type(0)
            return [
                np.array([places.get(tuple(row), zero) for row in rows.tolist()], grad.dtype)
                for rows in (a_indices, b_indices)
            ]

        return kernel


@op("""SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> (output: T)
       T: numbertype
       Tindices: {int32, int64}""")
class SparseTensorDenseAdd(Op):
    """The dense tensor b, with the elements of a added."""

    def infer(op):
        return [op.inputs[3].shape]

    def bind(node, xp):
        def kernel(indices, values, shape, b):
            if b.shape != tuple(shape.tolist()):
                raise invalid(
                    "Dimensions of a and b must match: "
                    f"a.shape = {shape_text(shape.tolist())}, b.shape = {shape_text(b.shape)}"
                )
            if ((indices < 0) | (indices >= shape)).any():
                raise invalid("Indices are not valid (out of bounds).  Shape: " + shape_text(shape.tolist()))
            out = b.copy()
            xp.add.at(out, tuple(indices.T), values)
            return out

        return kernel

    def grad(op, dy):
        return [None, gathering.gather_nd(dy, op.inputs[0]), None, dy]


@op("""SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> (product: T)
       T: type
       Tindices: {int32, int64} = int64
       adjoint_a: bool = false
       adjoint_b: bool = false""")
class SparseTensorDenseMatMul(Op):
    """The product of a sparse and a dense matrix: for each element of a, a row of b."""

    def infer(op):
        adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
        b, known = op.inputs[3].shape.with_rank(2), folded_value(op.inputs[2])
        rows = None if known is None else int(known[1 if adjoint_a else 0])
        return [TensorShape([rows, b[0 if adjoint_b else 1]])]

    def bind(node, xp):
        adjoint_a, adjoint_b = node["adjoint_a"], node["adjoint_b"]

        def kernel(indices, values, shape, b):
            rows, cols = indices.T
            (m, n), right = shape, (b.conj().T if adjoint_b else b)
            if adjoint_a:
                rows, cols, values, m, n = cols, rows, values.conj(), n, m
            _check_product(rows, cols, int(m), int(n), right)
            return add_rows(xp.zeros((int(m), right.shape[1]), b.dtype), rows, values[:, None] * right[cols], xp)

        return kernel

    def flops(node, ins, outs):
        return 2 * elements(ins[1]) * (elements(ins[3]) // max(int(ins[3].shape[1 if node["adjoint_b"] else 0]), 1))

    def grad(op, dy):
        indices, values, shape, b = op.inputs
        adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
        db = apply_op(
            "SparseTensorDenseMatMul", None, a_indices=indices, a_values=values, a_shape=shape, b=dy,
            adjoint_a=not adjoint_a,
        )  # fmt: skip
        if adjoint_b:
            db = reshaping.matrix_transpose(db, conjugate=True)
        rows, cols = indices[:, 0], indices[:, 1]
        if adjoint_a:
            rows, cols = cols, rows
        left = reshaping.expand_dims(gathering.gather(dy, rows), -1 if adjoint_a else -2)
        table = reshaping.transpose(b) if adjoint_b else b
        right = reshaping.expand_dims(gathering.gather(table, cols), -1 if adjoint_a != adjoint_b else -2)
        da = matmul.matmul(left, right, adjoint_a=adjoint_a, adjoint_b=adjoint_a == adjoint_b)
        return [None, reshaping.squeeze(da, axis=[-2, -1]), None, db]


def _check_product(rows: Any, cols: Any, m: int, n: int, right: Any) -> None:
    if n != right.shape[0]:
        raise invalid(f"Cannot multiply A and B because inner dimension does not match: {n} vs. {right.shape[0]}.")
    for name, found, limit in (("m", rows, m), ("k", cols, n)):
        wrong = (found < 0) | (found >= limit)
        if wrong.any():
            at = int(wrong.argmax())
            raise invalid(f"{name} ({found[at]}) from index[{at},{'01'[name == 'k']}] out of bounds (>={limit})")


# -- element by element -------------------------------------------------------------------------------


class _Cwise(Op):
    how: Callable[..., Any]

    def infer(op: Any) -> list[TensorShape]:
        return [TensorShape([op.inputs[0].shape.with_rank(2)[0]])]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        def kernel(indices: Any, values: Any, shape: Any, dense: Any) -> Any:
            try:
                whole = xp.broadcast_to(dense, shape.tolist())
            except ValueError:
                raise invalid(
                    "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
                    f"[{shape_text(shape.tolist())}] vs. [{shape_text(np.shape(dense))}]"
                ) from None
            if ((indices < 0) | (indices >= shape)).any():
                raise invalid("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape")
            return cls.how(xp, values, whole[tuple(indices.T)]).astype(values.dtype)

        return kernel


_CWISE = """(sp_indices: int64, sp_values: T, sp_shape: int64, dense: T) -> (output: T)
       T: numbertype"""


@op(f"SparseDenseCwiseAdd{_CWISE}")
class SparseDenseCwiseAdd(_Cwise):
    """The elements plus what the dense tensor has at their places."""

    how = staticmethod(lambda xp, x, y: x + y)

    def grad(op, dy):
        raise NotImplementedError("Gradient for SparseDenseCwiseAdd is not implemented.")


@op(f"SparseDenseCwiseMul{_CWISE}")
class SparseDenseCwiseMul(_Cwise):
    """The elements times what the dense tensor has at their places."""

    how = staticmethod(lambda xp, x, y: x * y)

    def grad(op, dy):
        there, scaled = _dense_at(op)
        return [None, dy * there, None, _into_dense(op, scaled, dy * op.inputs[1])]


def _quotient(xp: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return x / y
    if (y == 0).any():
        raise invalid("Integer division by zero")
    return xp.abs(x) // xp.abs(y) * xp.sign(x) * xp.sign(y)  # towards zero, as in C


@op(f"SparseDenseCwiseDiv{_CWISE}")
class SparseDenseCwiseDiv(_Cwise):
    """The elements divided by what the dense tensor has at their places."""

    how = staticmethod(_quotient)

    def grad(op, dy):
        there, scaled = _dense_at(op)
        return [None, dy / there, None, _into_dense(op, scaled, dy * (-op.inputs[1] / unary.square(there)))]


def _dense_at(op: Any) -> tuple[Any, Any]:
    """What the dense tensor has at the elements' places, and these places in it before broadcasting."""
    indices, _, shape, dense = op.inputs
    dense_shape = casting.cast(array.shape(dense), dtypes.int64)
    missing = reshaping.expand_dims(array.size(shape) - array.size(dense_shape), 0)
    augmented = joining.concat([constants.ones(missing, dtypes.int64), dense_shape], 0)
    scaled: Any = slicing.slice(indices // (shape // augmented), joining.concat([[0], missing], 0), [-1, -1])
    return gathering.gather_nd(dense, scaled), scaled


def _into_dense(op: Any, places: Any, values: Any) -> Any:
    dense = op.inputs[3]
    return apply_op(
        "SparseTensorDenseAdd", None, a_indices=places, a_values=values,
        a_shape=casting.cast(array.shape(dense), dtypes.int64), b=constants.zeros_like(dense),
    )  # fmt: skip


def _check_operands(a: Any, b: Any) -> None:
    if len(a) != len(b):
        shapes = " and ".join(" ".join(map(str, shape)) for shape in (a, b))
        raise invalid(f"Operands do not have the same ranks; got shapes: {shapes}")
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y:
            raise invalid(f"Operands' shapes do not match: got {x} and {y} for dimension {i}")


class _SparseSparse(Op):
    ufunc = ""

    def infer(op: Any) -> list[TensorShape]:
        return [TensorShape([None, None]), TensorShape([None])]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        ufunc = getattr(xp, cls.ufunc)

        def kernel(a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any, b_shape: Any) -> Any:
            check_sparse(a_indices, a_values, a_shape)
            check_sparse(b_indices, b_values, b_shape)
            _check_operands(a_shape, b_shape)
            found, from_a, from_b = _united(a_indices, b_indices)
            a, b = (xp.zeros(len(found), a_values.dtype) for _ in range(2))
            a[from_a], b[from_b] = a_values, b_values
            return found, ufunc(a, b)

        return kernel

    @classmethod
    def grad(cls, op: Any, *dys: Any) -> Any:
        raise NotImplementedError(f"Gradient for {op.type} is not implemented.")


_TWO = """(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64) ->
       (output_indices: int64, output_values: T)"""


@op(f"""SparseSparseMaximum{_TWO}
       T: realnumbertype""")
class SparseSparseMaximum(_SparseSparse):
    ufunc = "maximum"


@op(f"""SparseSparseMinimum{_TWO}
       T: numbertype""")
class SparseSparseMinimum(_SparseSparse):
    ufunc = "minimum"


# -- reductions ---------------------------------------------------------------------------------------


def _reduced(indices: Any, values: Any, shape: Any, axes: Any, ufunc: Any) -> tuple[Any, Any, list[int]]:
    """The places that are left, with a 0 along the reduced axes; their values; and the reduced axes."""
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

    def infer(op: Any) -> list[TensorShape]:
        if len(op.outputs) == 3:
            return [TensorShape(None)] * 3
        shape, axes = folded_value(op.inputs[2]), folded_value(op.inputs[3])
        if shape is None or axes is None:
            return [TensorShape(None)]
        gone = [int(axis) % len(shape) for axis in np.reshape(axes, -1)]
        return [TensorShape([int(size) for size in _left(shape, gone, op.get_attr("keep_dims"))])]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        keep, ufunc, sparse = node["keep_dims"], getattr(xp, cls.ufunc), node.op.endswith("Sparse")

        def kernel(indices: Any, values: Any, shape: Any, axes: Any) -> Any:
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

        return kernel

    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[1])


_DENSE = """(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> (output: T)
       keep_dims: bool = false"""
_SPARSE = _DENSE.replace("(output: T)", "(output_indices: int64, output_values: T, output_shape: int64)")


@op(f"""SparseReduceSum{_DENSE}
       T: numbertype""")
class SparseReduceSum(_Reduce):
    """The sums over some axes, as a dense tensor."""

    ufunc = "add"

    def grad(op, dy):
        indices, _, shape, axes = op.inputs
        kept = reduction.reduced_shape(shape, axes)
        scale = shape // casting.cast(kept, dtypes.int64)
        return [None, gathering.gather_nd(reshaping.reshape(dy, kept), indices // scale), None, None]


@op(f"""SparseReduceSumSparse{_SPARSE}
       T: numbertype""")
class SparseReduceSumSparse(_Reduce):
    """The sums over some axes, as a sparse tensor."""

    ufunc = "add"


@op(f"""SparseReduceMax{_DENSE}
       T: realnumbertype""")
class SparseReduceMax(_Reduce):
    """The largest elements over some axes, as a dense tensor."""

    ufunc = "maximum"


@op(f"""SparseReduceMaxSparse{_SPARSE}
       T: realnumbertype""")
class SparseReduceMaxSparse(_Reduce):
    """The largest elements over some axes, as a sparse tensor."""

    ufunc = "maximum"


@op("""SparseSoftmax(sp_indices: int64, sp_values: T, sp_shape: int64) -> (output: T)
       T: {half, float, double}""")
class SparseSoftmax(Op):
    """Softmax along the last axis, among the elements that are there."""

    def infer(op):
        op.inputs[2].shape.with_rank(1)
        return [op.inputs[1].shape.with_rank(1)]

    def bind(node, xp):
        def kernel(indices, values, shape):
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

        return kernel

    def grad(op, dy):
        indices, _, shape = op.inputs
        y = op.outputs[0]
        total = apply_op(
            "SparseReduceSum", None, input_indices=indices, input_values=y * dy, input_shape=shape,
            reduction_axes=[-1], keep_dims=True,
        )  # fmt: skip
        centred = apply_op("SparseDenseCwiseAdd", None, sp_indices=indices, sp_values=dy, sp_shape=shape, dense=-total)
        return [None, centred * y, None]

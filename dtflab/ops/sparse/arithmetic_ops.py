"""The ops that compute with sparse tensors: sums, products, element by element.

Stands for `core/kernels/sparse_add_op.cc`, `sparse_tensor_dense_{add,matmul}_op.cc`,
`sparse_dense_binary_op_shared.cc`, `sparse_sparse_binary_op_shared.cc` and their gradients.

Rule: missing elements are zero and stay missing: no op makes elements where none of its inputs has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.segment_kernels import add_rows
from dtflab.ops.sparse_arrays import check_sparse, united


def _check_same_shape(a: Any, b: Any, ranks: str, sizes: str) -> None:
    """Raise InvalidArgumentError if two shapes differ; `ranks` and `sizes` are its beginnings, which differ by op."""
    if len(a) != len(b):
        raise invalid(ranks)
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y:
            raise invalid(f"{sizes}: got {x} and {y} for dimension {i}")


@op("""SparseAdd(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64,
                 thresh: Treal) -> (sum_indices: int64, sum_values: T, sum_shape: int64)
       T: numbertype, Treal: realnumbertype""")
class SparseAdd(Op):
    """The sum of two sparse tensors; where both have an element, only if their sum is not smaller than thresh."""

    def infer(op):
        shape = op.inputs[2].shape.with_rank(1)
        return [TensorShape([None, shape[0]]), TensorShape([None]), shape]

    def kernel(node, xp, a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh):
        check_sparse(a_indices, a_values, a_shape)
        check_sparse(b_indices, b_values, b_shape)
        ranks = f"Ranks of input tensors must match, but saw ranks: {len(a_shape)} and {len(b_shape)}"
        _check_same_shape(a_shape, b_shape, ranks, "Input shapes must match")
        found, from_a, from_b = united(a_indices, b_indices)
        out = xp.zeros(len(found), a_values.dtype)
        xp.add.at(out, from_a, a_values)
        xp.add.at(out, from_b, b_values)
        kept = xp.abs(out) >= thresh
        kept |= xp.bincount(np.concatenate([from_a, from_b]), minlength=len(found)) < 2
        return found[kept], out[kept], a_shape

    def grad(op, _, dvalues, __):
        places = {"a_indices": op.inputs[0], "b_indices": op.inputs[3], "sum_indices": op.outputs[0]}
        da, db = apply_op("SparseAddGrad", None, backprop_val_grad=dvalues, **places)
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

    def kernel(node, xp, grad, a_indices, b_indices, sum_indices):
        places = {tuple(row): g for row, g in zip(sum_indices.tolist(), grad, strict=True)}
        zero = grad.dtype.type(0)
        return [
            np.array([places.get(tuple(row), zero) for row in rows.tolist()], grad.dtype)
            for rows in (a_indices, b_indices)
        ]


@op("""SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> (output: T)
       T: numbertype, Tindices: {int32, int64}""")
class SparseTensorDenseAdd(Op):
    """The dense tensor b, with the elements of a added."""

    def infer(op):
        return [op.inputs[3].shape]

    def kernel(node, xp, indices, values, shape, b):
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

    def grad(op, dy):
        return [None, indexing.gather_nd(dy, op.inputs[0]), None, dy]


@op("""SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> (product: T)
       T: type, Tindices: {int32, int64} = int64, adjoint_a: bool = false, adjoint_b: bool = false""")
class SparseTensorDenseMatMul(Op):
    """The product of a sparse and a dense matrix: for each element of a, a row of b."""

    def infer(op):
        adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
        b, known = op.inputs[3].shape.with_rank(2), folded_value(op.inputs[2])
        rows = None if known is None else int(known[1 if adjoint_a else 0])
        return [TensorShape([rows, b[0 if adjoint_b else 1]])]

    def kernel(node, xp, indices, values, shape, b):
        adjoint_a, adjoint_b = node["adjoint_a"], node["adjoint_b"]
        rows, cols = indices.T
        (m, n), right = shape, (b.conj().T if adjoint_b else b)
        if adjoint_a:
            rows, cols, values, m, n = cols, rows, values.conj(), n, m
        _check_product(rows, cols, int(m), int(n), right)
        return add_rows(xp.zeros((int(m), right.shape[1]), b.dtype), rows, values[:, None] * right[cols], xp)

    def flops(node, ins, outs):
        return 2 * elements(ins[1]) * (elements(ins[3]) // max(int(ins[3].shape[1 if node["adjoint_b"] else 0]), 1))

    def grad(op, dy):
        indices, values, shape, b = op.inputs
        adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
        parts = {"a_indices": indices, "a_values": values, "a_shape": shape}
        db = apply_op("SparseTensorDenseMatMul", None, **parts, b=dy, adjoint_a=not adjoint_a)
        if adjoint_b:
            db = arrays.matrix_transpose(db, conjugate=True)
        rows, cols = indices[:, 0], indices[:, 1]
        if adjoint_a:
            rows, cols = cols, rows
        left = arrays.expand_dims(indexing.gather(dy, rows), -1 if adjoint_a else -2)
        table = arrays.transpose(b) if adjoint_b else b
        right = arrays.expand_dims(indexing.gather(table, cols), -1 if adjoint_a != adjoint_b else -2)
        da = linalg.matmul(left, right, adjoint_a=adjoint_a, adjoint_b=adjoint_a == adjoint_b)
        return [None, arrays.squeeze(da, axis=[-2, -1]), None, db]


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

    def infer(op: Operation) -> list[TensorShape]:
        return [TensorShape([op.inputs[0].shape.with_rank(2)[0]])]

    @classmethod
    def kernel(cls, node: Node, xp: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
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


_CWISE = "(sp_indices: int64, sp_values: T, sp_shape: int64, dense: T) -> (output: T) where T: numbertype"


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
        return [None, dy / there, None, _into_dense(op, scaled, dy * (-op.inputs[1] / math.square(there)))]


def _dense_at(op: Operation) -> tuple[Any, Any]:
    """The dense tensor's values at the elements' places, and these places in it before broadcasting."""
    indices, _, shape, dense = op.inputs
    dense_shape = arrays.cast(arrays.shape(dense), dtypes.int64)
    missing = arrays.expand_dims(arrays.size(shape) - arrays.size(dense_shape), 0)
    augmented = arrays.concat([arrays.ones(missing, dtypes.int64), dense_shape], 0)
    scaled: Any = indexing.slice(indices // (shape // augmented), arrays.concat([[0], missing], 0), [-1, -1])
    return indexing.gather_nd(dense, scaled), scaled


def _into_dense(op: Operation, places: Any, values: Any) -> Any:
    dense = op.inputs[3]
    shape = arrays.cast(arrays.shape(dense), dtypes.int64)
    parts = {"a_indices": places, "a_values": values, "a_shape": shape}
    return apply_op("SparseTensorDenseAdd", None, **parts, b=arrays.zeros_like(dense))


class _SparseSparse(Op):
    ufunc = ""
    infer = shapes.fixed([None, None], [None])

    @classmethod
    def kernel(cls, node, xp, a_indices, a_values, a_shape, b_indices, b_values, b_shape):
        ufunc = getattr(xp, cls.ufunc)
        check_sparse(a_indices, a_values, a_shape)
        check_sparse(b_indices, b_values, b_shape)
        both = " and ".join(" ".join(map(str, shape)) for shape in (a_shape, b_shape))
        ranks = f"Operands do not have the same ranks; got shapes: {both}"
        _check_same_shape(a_shape, b_shape, ranks, "Operands' shapes do not match")
        found, from_a, from_b = united(a_indices, b_indices)
        a, b = (xp.zeros(len(found), a_values.dtype) for _ in range(2))
        a[from_a], b[from_b] = a_values, b_values
        return found, ufunc(a, b)

    @classmethod
    def grad(cls, op: Operation, *dys: Any) -> Any:
        raise NotImplementedError(f"Gradient for {op.type} is not implemented.")


for _how, _type in (("Maximum", "realnumbertype"), ("Minimum", "numbertype")):
    op(f"""SparseSparse{_how}(
           a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64) ->
       (output_indices: int64, output_values: T)
       T: {_type}""")(type(f"SparseSparse{_how}", (_SparseSparse,), {"ufunc": _how.lower()}))

"""Products of matrices, alone, in batches, and of matrices that are mostly zeros.

Stands for `core/kernels/{matmul_op_impl.h,sparse_matmul_op.cc}` and their part of `math_grad.py`. Left out:
BatchMatMulV3's mixed types.

Rule: the product is one call of BLAS, or one per part if it is large, and a transposed operand is a view. The flags of
SparseMatMul are hints: one call of BLAS is faster than what they would save.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.blas import NANOSECONDS_PER_FLOP, Shard
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.type_sets import FLOAT_COMPLEX

ONE_BLOCK = 80_000_000  # multiplications times bytes of a number: with less, two parts are too short


def product_shape(op: Operation) -> list[TensorShape]:
    """The static shape of the product of two matrices."""
    a, b = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(2)
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    inner_a, inner_b = a[0 if ta else 1], b[1 if tb else 0]
    if not inner_a.is_compatible_with(inner_b):
        wrong = ValueError(f"Dimensions must be equal, but are {inner_a} and {inner_b}")
        raise _with_cure(wrong, a.as_list(), b.as_list(), ta, tb)
    return [TensorShape([a[1 if ta else 0], b[0 if tb else 1]])]


def _with_cure(error: Exception, a: Sequence[int | None], b: Sequence[int | None], ta: bool, tb: bool) -> Exception:
    """The error of two shapes that have no product, with a note of what would give them one."""
    columns, turned = a[-2 if ta else -1], b[-2 if tb else -1]
    fits = f": transpose_b={not tb} gives it these" if turned in (columns, None) else ""
    rows = f"The {'transposed ' * tb}second matrix needs {columns} rows"
    error.add_note(f"{rows}, as many as the {'transposed ' * ta}first has columns{fits}.")
    return error


def _is_short(dtype: Any, xp: Any) -> bool:
    """True if the terms have to be made float32 first; a GPU's BLAS takes halves, and adds in float32 by itself."""
    return xp is np and dtype in (dtypes.bfloat16, dtypes.float16)


def product(node: Node, xp: Any, shard: Shard | None = None) -> Callable[[Any, Any], Any]:
    """a @ b for matrices; the short floats are multiplied in float32."""
    multiply = xp.matmul if shard is None else functools.partial(_in_blocks, shard)
    ta, tb, dtype = node["transpose_a"], node["transpose_b"], node["T"]
    short = dtype.as_numpy_dtype if _is_short(dtype, xp) else None

    def kernel(a: Any, b: Any) -> Any:
        left = a.T if ta else a
        right = b.T if tb else b
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise _mismatch(a, b, ta, tb)
        if short is not None:
            return multiply(left.astype(np.float32), right.astype(np.float32)).astype(short)
        return multiply(left, right)

    return kernel


def _in_blocks(shard: Shard, left: Any, right: Any) -> Any:
    """left @ right; a large product in blocks of rows, or of columns if it has more of them."""
    if left.nbytes * right.shape[-1] < ONE_BLOCK:
        return np.matmul(left, right)
    (*batch, rows, inner), columns = left.shape, right.shape[-1]
    out = np.empty((*np.broadcast_shapes(tuple(batch), right.shape[:-2]), rows, columns), left.dtype)
    cost = 2 * inner * out.size * out.itemsize / 4 * NANOSECONDS_PER_FLOP

    def some_rows(first: int, last: int) -> None:
        np.matmul(left[..., first:last, :], right, out=out[..., first:last, :])

    def some_columns(first: int, last: int) -> None:
        np.matmul(left, right[..., first:last], out=out[..., first:last])

    total, work = (rows, some_rows) if rows >= columns else (columns, some_columns)
    shard(total, cost / total, work)
    return out


def _mismatch(a: Any, b: Any, ta: bool, tb: bool) -> Exception:
    for i, x in enumerate((a, b)):
        if np.ndim(x) != 2:
            return invalid(f"In[{i}] is not a matrix. Instead it has shape {shape_text(x)}")
    wrong = invalid(f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}")
    return _with_cure(wrong, a.shape, b.shape, ta, tb)


def product_flops(node: Node, ins: Any, outs: Any) -> int:
    """A multiplication and an addition per term; from the inputs alone, as it is asked before the product is made."""
    a, b = ins[0].shape, ins[1].shape
    if len(a) != 2 or len(b) != 2:
        return 0  # the kernel will say what is wrong
    return 2 * a[0] * a[1] * b[0 if node["transpose_b"] else 1]


@op("""MatMul(a: T, b: T) -> (product: T)
       transpose_a: bool = false, transpose_b: bool = false
       T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}
       grad_a: bool = false, grad_b: bool = false""")
class MatMul(Op):
    """The product of two matrices."""

    blas = shards = True
    infer = product_shape
    bind = product
    flops = product_flops

    def grad(op, dy):
        ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
        a, b = math.conj(op.inputs[0]), math.conj(op.inputs[1])
        da = linalg._mat_mul(b, dy, tb, True, grad_a=True) if ta else linalg._mat_mul(dy, b, False, not tb, grad_a=True)
        db = linalg._mat_mul(dy, a, True, ta, grad_b=True) if tb else linalg._mat_mul(a, dy, not ta, False, grad_b=True)
        return [da, db]


# -- batches -----------------------------------------------------------------------------------------------

_BATCHED = FLOAT_COMPLEX[:-1] + ", int16, int32, int64, uint8, uint16, uint32, uint64}"
_BATCH_ATTRS = "adj_x: bool = false\nadj_y: bool = false\ngrad_x: bool = false\ngrad_y: bool = false"


class _BatchProduct(Op):
    """Base of the batch products."""

    blas = shards = True

    def infer(op):
        x, y = (t.shape.with_rank_at_least(2) for t in op.inputs)
        if x.ndims is None or y.ndims is None:
            return [TensorShape(None)]
        rows, inner_x = (x[-1], x[-2]) if op.get_attr("adj_x") else (x[-2], x[-1])
        inner_y, columns = (y[-1], y[-2]) if op.get_attr("adj_y") else (y[-2], y[-1])
        if not inner_x.is_compatible_with(inner_y):
            wrong = ValueError(f"Dimensions must be equal, but are {inner_x} and {inner_y}")
            raise _with_cure(wrong, x.as_list(), y.as_list(), op.get_attr("adj_x"), op.get_attr("adj_y"))
        batch = x[:-2].merge_with(y[:-2]) if op.type == "BatchMatMul" else infer_broadcast(x[:-2], y[:-2])
        return [batch.concatenate([rows, columns])]

    def bind(node, xp, shard=None):
        multiply = xp.matmul if shard is None else functools.partial(_in_blocks, shard)
        adj_x, adj_y, dtype = node["adj_x"], node["adj_y"], node["T"]
        short = _is_short(dtype, xp)

        def adjoint(x):
            x = xp.swapaxes(x, -1, -2)
            return xp.conjugate(x) if dtype.is_complex else x

        def kernel(x, y):
            given, (x, y) = (x, y), (adjoint(x) if adj_x else x, adjoint(y) if adj_y else y)
            if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2]:
                wrong = invalid(f"Matrix size-incompatible: In[0]: {shape_text(x)}, In[1]: {shape_text(y)}")
                raise wrong if min(x.ndim, y.ndim) < 2 else _with_cure(wrong, *(z.shape for z in given), adj_x, adj_y)
            if short:
                return multiply(x.astype(np.float32), y.astype(np.float32)).astype(dtype.as_numpy_dtype)
            return multiply(x, y)

        return kernel

    def flops(node, ins, outs):
        x, y = ins[0].shape, ins[1].shape
        if len(x) < 2 or len(y) < 2:
            return 0  # the kernel will say what is wrong
        batch = prod(map(max, zip_longest(x[-3::-1], y[-3::-1], fillvalue=1)))
        return 2 * batch * x[-2] * x[-1] * y[-2 if node["adj_y"] else -1]

    def grad(op, dy):
        x, y = op.inputs
        adj_x, adj_y = op.get_attr("adj_x"), op.get_attr("adj_y")
        marks: list[dict[str, Any]] = [{}, {}] if op.type == "BatchMatMul" else [{"grad_a": True}, {"grad_b": True}]
        if adj_x:
            dx = linalg.matmul(y, dy, adjoint_a=adj_y, adjoint_b=True, **marks[0])
        else:
            dx = linalg.matmul(dy, y, adjoint_b=not adj_y, **marks[0])
        if adj_y:
            dy_ = linalg.matmul(dy, x, adjoint_a=True, adjoint_b=adj_x, **marks[1])
        else:
            dy_ = linalg.matmul(x, dy, adjoint_a=not adj_x, **marks[1])
        return _reduce_batches(op, dx, dy_)


def _reduce_batches(op: Operation, dx: Tensor, dy: Tensor) -> list[Any]:
    """Sum the gradients over the batch axes along which an input was repeated."""
    x, y = op.inputs
    batch_x, batch_y = x.shape[:-2], y.shape[:-2]
    matrices = x.shape.ndims == 2 and y.shape.ndims == 2
    same = batch_x.is_fully_defined() and batch_y.is_fully_defined() and batch_x == batch_y
    if op.type == "BatchMatMul" or matrices or same:
        return [dx, dy]
    sx, sy = arrays.shape(x), arrays.shape(y)
    rx, ry = arrays.broadcast_gradient_args(sx[:-2], sy[:-2])
    return [arrays.reshape(reduce.reduce_sum(dx, rx), sx), arrays.reshape(reduce.reduce_sum(dy, ry), sy)]


@op(f"""BatchMatMul(x: T, y: T) -> (output: T)
        T: {{bfloat16, half, float, double, int32, int64, complex64, complex128}}, {_BATCH_ATTRS}""")
class BatchMatMul(_BatchProduct):
    """The products of two stacks of matrices, pair by pair."""


@op(f"BatchMatMulV2(x: T, y: T) -> (output: T) where T: {_BATCHED}, {_BATCH_ATTRS}")
class BatchMatMulV2(_BatchProduct):
    """The products of two stacks of matrices, with broadcasting."""


# ---- operands that are mostly zeros ----


@op("""SparseMatMul(a: Ta, b: Tb) -> (product: float)
       transpose_a: bool = false, transpose_b: bool = false, a_is_sparse: bool = false, b_is_sparse: bool = false
       Ta: {float, bfloat16} = float, Tb: {float, bfloat16} = float""")
class SparseMatMul(Op):
    """The product of two matrices in float32."""

    blas = True
    infer = product_shape
    flops = product_flops

    def kernel(node, xp, a, b):
        ta, tb = node["transpose_a"], node["transpose_b"]
        left, right = (a.T if ta else a), (b.T if tb else b)
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise invalid(f"Matrix size incompatible: a: {shape_text(a)}, b: {shape_text(b)}")
        return xp.matmul(left.astype(np.float32), right.astype(np.float32))

    def grad(op, dy):
        a, b = op.inputs
        sparse = {id(a): op.get_attr("a_is_sparse"), id(b): op.get_attr("b_is_sparse")}
        sparse[id(dy)] = dy.op.type == "ReluGrad"

        def product(left, right, like, transpose_left=False, transpose_right=False):
            flags = sparse[id(left)], sparse[id(right)]
            right = arrays.transpose(right) if transpose_right else right
            found = linalg.matmul(left, right, transpose_left, a_is_sparse=flags[0], b_is_sparse=flags[1])
            return arrays.cast(found, like.dtype)

        ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
        da = product(b, dy, a, tb, True) if ta else product(dy, b, a, False, not tb)
        db = product(dy, a, b, True, ta) if tb else product(a, dy, b, not ta)
        return [da, db]

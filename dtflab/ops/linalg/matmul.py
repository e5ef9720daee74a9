"""Products of matrices, alone and in batches.

Stands for `core/kernels/matmul_op_impl.h`, `matmul` in `python/ops/math_ops.py`, and
`math_grad.py`. Left out: sparse products, BatchMatMulV3's mixed types.

Rule: the product is one call of BLAS, or one per part if it is large, and a transposed operand is a view.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops.arrays import casting, identity as array, repeating, reshaping
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import reduction
from dtflab.ops.type_sets import FLOAT_COMPLEX

Shard = Callable[[int, float, Callable[[int, int], Any]], None]  # (total, nanoseconds per unit, work(first, last))

NANOSECONDS_PER_FLOP = 0.01  # in float32, on one core
ONE_BLOCK = 1 << 20  # multiplications that are never worth a second thread (20 µs)


def alone(total: int, cost: float, work: Callable[[int, int], Any]) -> None:
    """What stands for a Shard where there are no threads: a GPU has its own."""
    work(0, total)


def product_shape(op: Any) -> TensorShape:
    """The static shape of the product of two matrices."""
    a, b = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(2)
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    inner_a, inner_b = a[0 if ta else 1], b[1 if tb else 0]
    if not inner_a.is_compatible_with(inner_b):
        raise ValueError(f"Dimensions must be equal, but are {inner_a} and {inner_b}")
    return TensorShape([a[1 if ta else 0], b[0 if tb else 1]])


def _is_short(dtype: Any, xp: Any) -> bool:
    """True if the terms have to be made float32 first; a GPU's BLAS takes halves, and adds in float32 by itself."""
    return xp is np and dtype in (dtypes.bfloat16, dtypes.float16)


def product(node: Any, xp: Any, shard: Shard | None = None) -> Callable[[Any, Any], Any]:
    """a @ b for matrices; the short floats are multiplied in float32."""
    multiply = xp.matmul if shard is None else functools.partial(_in_blocks, shard)
    ta, tb, dtype = node["transpose_a"], node["transpose_b"], node["T"]
    short = dtype.as_numpy_dtype if _is_short(dtype, xp) else None

    def kernel(a: Any, b: Any) -> Any:
        left = a.T if ta else a
        right = b.T if tb else b
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise _mismatch(a, b)
        if short is not None:
            return multiply(left.astype(np.float32), right.astype(np.float32)).astype(short)
        return multiply(left, right)

    return kernel


def _in_blocks(shard: Shard, left: Any, right: Any) -> Any:
    """left @ right; a large product in blocks of rows, or of columns if it has more of them."""
    (*batch, rows, inner), columns = left.shape, right.shape[-1]
    if left.size * columns < ONE_BLOCK:
        return np.matmul(left, right)
    out = np.empty((*np.broadcast_shapes(tuple(batch), right.shape[:-2]), rows, columns), left.dtype)
    cost = 2 * inner * out.size * out.itemsize / 4 * NANOSECONDS_PER_FLOP

    def some_rows(first: int, last: int) -> None:
        np.matmul(left[..., first:last, :], right, out=out[..., first:last, :])

    def some_columns(first: int, last: int) -> None:
        np.matmul(left, right[..., first:last], out=out[..., first:last])

    total, work = (rows, some_rows) if rows >= columns else (columns, some_columns)
    shard(total, cost / total, work)
    return out


def _mismatch(a: Any, b: Any) -> Exception:
    for i, x in enumerate((a, b)):
        if np.ndim(x) != 2:
            return invalid(f"In[{i}] is not a matrix. Instead it has shape {shape_text(x)}")
    return invalid(f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}")


def product_flops(node: Any, ins: Any, outs: Any) -> int:
    """A multiplication and an addition per term."""
    """From the inputs alone: it is asked before the product is made."""
    a, b = ins[0].shape, ins[1].shape
    if len(a) != 2 or len(b) != 2:
        return 0  # the kernel will say what is wrong
    return 2 * a[0] * a[1] * b[0 if node["transpose_b"] else 1]


@op("""MatMul(a: T, b: T) -> (product: T)
       transpose_a: bool = false
       transpose_b: bool = false
       T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}
       grad_a: bool = false
       grad_b: bool = false""")
class MatMul(Op):
    """The product of two matrices."""

    blas = True
    shards = True
    bind = product
    flops = product_flops

    def infer(op):
        return [product_shape(op)]

    def grad(op, dy):
        ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
        a, b = casting.conj(op.inputs[0]), casting.conj(op.inputs[1])
        da = _mat_mul(b, dy, tb, True, grad_a=True) if ta else _mat_mul(dy, b, False, not tb, grad_a=True)
        db = _mat_mul(dy, a, True, ta, grad_b=True) if tb else _mat_mul(a, dy, not ta, False, grad_b=True)
        return [da, db]


def _mat_mul(
    a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, name: str | None = None, **grads: bool
) -> Tensor:
    return apply_op("MatMul", name, a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b, **grads)


# -- batches -----------------------------------------------------------------------------------------------

_BATCHED = FLOAT_COMPLEX[:-1] + ", int16, int32, int64, uint8, uint16, uint32, uint64}"
_BATCH_ATTRS = "adj_x: bool = false\nadj_y: bool = false\ngrad_x: bool = false\ngrad_y: bool = false"


class _BatchProduct(Op):
    """What the batch products share."""

    blas = True
    shards = True

    def infer(op):
        x, y = (t.shape.with_rank_at_least(2) for t in op.inputs)
        if x.ndims is None or y.ndims is None:
            return [TensorShape(None)]
        rows, inner_x = (x[-1], x[-2]) if op.get_attr("adj_x") else (x[-2], x[-1])
        inner_y, columns = (y[-1], y[-2]) if op.get_attr("adj_y") else (y[-2], y[-1])
        if not inner_x.is_compatible_with(inner_y):
            raise ValueError(f"Dimensions must be equal, but are {inner_x} and {inner_y}")
        if op.type == "BatchMatMul":
            batch = x[:-2].merge_with(y[:-2])
        else:
            batch = infer_broadcast(x[:-2], y[:-2])
        return [batch.concatenate([rows, columns])]

    def bind(node, xp, shard=None):
        multiply = xp.matmul if shard is None else functools.partial(_in_blocks, shard)
        adj_x, adj_y, dtype = node["adj_x"], node["adj_y"], node["T"]
        short = _is_short(dtype, xp)

        def adjoint(x):
            x = xp.swapaxes(x, -1, -2)
            return xp.conjugate(x) if dtype.is_complex else x

        def kernel(x, y):
            x, y = adjoint(x) if adj_x else x, adjoint(y) if adj_y else y
            if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2]:
                raise invalid(f"Matrix size-incompatible: In[0]: {shape_text(x)}, In[1]: {shape_text(y)}")
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
            dx = matmul(y, dy, adjoint_a=adj_y, adjoint_b=True, **marks[0])
        else:
            dx = matmul(dy, y, adjoint_b=not adj_y, **marks[0])
        if adj_y:
            dy_ = matmul(dy, x, adjoint_a=True, adjoint_b=adj_x, **marks[1])
        else:
            dy_ = matmul(x, dy, adjoint_a=not adj_x, **marks[1])
        return _reduce_batches(op, dx, dy_)


def _reduce_batches(op: Any, dx: Tensor, dy: Tensor) -> list[Any]:
    """Sum the gradients over the batch axes along which an input was repeated."""
    x, y = op.inputs
    batch_x, batch_y = x.shape[:-2], y.shape[:-2]
    matrices = x.shape.ndims == 2 and y.shape.ndims == 2
    same = batch_x.is_fully_defined() and batch_y.is_fully_defined() and batch_x == batch_y
    if op.type == "BatchMatMul" or matrices or same:
        return [dx, dy]
    sx: Any = array.shape(x)
    sy: Any = array.shape(y)
    rx, ry = repeating.broadcast_gradient_args(sx[:-2], sy[:-2])
    return [
        reshaping.reshape(reduction.reduce_sum(dx, rx), sx),
        reshaping.reshape(reduction.reduce_sum(dy, ry), sy),
    ]


@op(f"""BatchMatMul(x: T, y: T) -> (output: T)
        T: {{bfloat16, half, float, double, int32, int64, complex64, complex128}}
        {_BATCH_ATTRS}""")
class BatchMatMul(_BatchProduct):
    """The products of two stacks of matrices, pair by pair."""


@op(f"""BatchMatMulV2(x: T, y: T) -> (output: T)
        T: {_BATCHED}
        {_BATCH_ATTRS}""")
class BatchMatMulV2(_BatchProduct):
    """The products of two stacks of matrices, with broadcasting."""


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product a @ b; of arrays with more than two axes that of their last two.

    `a_is_sparse` and `b_is_sparse` make it a SparseMatMul, which may mix float32 and bfloat16.
    """
    with name_scope(name, "MatMul", [a, b]) as scope:
        for which, transpose, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
            if transpose and adjoint:
                raise ValueError(
                    f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. "
                    f"Received `transpose_{which}`={transpose}, `adjoint_{which}`={adjoint}."
                )
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, dtype_hint=a.dtype.base_dtype, name="b")
        if output_type is not None and any(dtypes.as_dtype(output_type) != t.dtype.base_dtype for t in (a, b)):
            raise NotImplementedError("tf.matmul with an output_type other than its inputs' is not in dtflab.")
        if a.shape.ndims is None or a.shape.ndims > 2 or b.shape.ndims is None or b.shape.ndims > 2:
            a, b = casting.conj(a) if transpose_a else a, casting.conj(b) if transpose_b else b
            return apply_op(
                "BatchMatMulV2", scope, x=a, y=b,
                adj_x=adjoint_a or transpose_a, adj_y=adjoint_b or transpose_b, grad_x=grad_a, grad_y=grad_b,
            )  # fmt: skip
        a, b = casting.conj(a) if adjoint_a else a, casting.conj(b) if adjoint_b else b
        if _for_sparse(a, b, a_is_sparse or b_is_sparse):
            flags = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
            found = apply_op("SparseMatMul", scope, a=a, b=b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, **flags)
            return casting.cast(found, dtypes.bfloat16) if a.dtype == b.dtype == dtypes.bfloat16 else found
        return _mat_mul(
            a, b, transpose_a or adjoint_a, transpose_b or adjoint_b, name=scope, grad_a=grad_a, grad_b=grad_b
        )


def _for_sparse(a: Tensor, b: Tensor, hinted: bool) -> bool:
    """True if SparseMatMul takes the operands, because of a hint or because only it mixes their types."""
    types = {a.dtype.base_dtype, b.dtype.base_dtype}
    return types <= {dtypes.float32, dtypes.bfloat16} and (hinted or len(types) == 2)


def matvec(a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, name: str | None = None) -> Tensor:
    """The matrix `a` times the vector `b`."""
    with name_scope(name, "MatVec", [a, b]):
        output = matmul(a, reshaping.expand_dims(b, axis=-1), transpose_a=transpose_a, adjoint_a=adjoint_a)
        return reshaping.squeeze(output, axis=-1)

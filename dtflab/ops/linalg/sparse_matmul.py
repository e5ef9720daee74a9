"""The product of matrices that are mostly zeros, by SparseMatMul; its operands may be float32 and bfloat16 mixed.

Stands for `core/kernels/sparse_matmul_op.cc` and its part of `python/ops/math_grad.py`.

Rule: the flags that say what is sparse are hints; one call of BLAS is faster than what they would save.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import casting, reshaping
from dtflab.ops.linalg import matmul
from dtflab.ops.messages import invalid, shape_text


@op("""SparseMatMul(a: Ta, b: Tb) -> (product: float)
       transpose_a: bool = false
       transpose_b: bool = false
       a_is_sparse: bool = false
       b_is_sparse: bool = false
       Ta: {float, bfloat16} = float
       Tb: {float, bfloat16} = float""")
class SparseMatMul(Op):
    """The product of two matrices in float32."""

    blas = True
    flops = matmul.product_flops

    def infer(op):
        return [matmul.product_shape(op)]

    def bind(node, xp):
        ta, tb = node["transpose_a"], node["transpose_b"]

        def kernel(a, b):
            left, right = (a.T if ta else a), (b.T if tb else b)
            if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
                raise invalid(f"Matrix size incompatible: a: {shape_text(a)}, b: {shape_text(b)}")
            return xp.matmul(left.astype(np.float32), right.astype(np.float32))

        return kernel

    def grad(op, dy):
        a, b = op.inputs
        sparse = {id(a): op.get_attr("a_is_sparse"), id(b): op.get_attr("b_is_sparse"),
                  id(dy): dy.op.type == "ReluGrad"}  # fmt: skip

        def product(left, right, like, transpose_left=False, transpose_right=False):
            flags = sparse[id(left)], sparse[id(right)]
            right = reshaping.transpose(right) if transpose_right else right
            found = matmul.matmul(left, right, transpose_left, a_is_sparse=flags[0], b_is_sparse=flags[1])
            return casting.cast(found, like.dtype)

        ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
        da = product(b, dy, a, tb, True) if ta else product(dy, b, a, False, not tb)
        db = product(dy, a, b, True, ta) if tb else product(a, dy, b, not ta)
        return [da, db]


def sparse_matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matrix product a @ b in float32; the operands may be of float32 and bfloat16."""
    return apply_op(
        "SparseMatMul", name, a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b, a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
    )  # fmt: skip

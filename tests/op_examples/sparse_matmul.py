"""Products of matrices by SparseMatMul."""

from __future__ import annotations

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("SparseMatMul")
def sparse_matmul(v: Values) -> list[Example]:
    mixed = Values("SparseMatMul", dtypes.float32)
    return [
        v(v.array(3, 4), mixed.array(4, 2), a_is_sparse=True),
        v(v.array(4, 3), v.array(4, 2), transpose_a=True),
        v(v.array(3, 4), v.array(2, 4), transpose_b=True, b_is_sparse=True),
        v(v.array(4, 3), v.array(2, 4), transpose_a=True, transpose_b=True),
    ]

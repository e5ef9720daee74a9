"""Sparse tensors: their indices, values and shapes are separate inputs."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import SOME_ROUNDINGS, Example, Values, examples

_HOWS = ("Sum", "Mean", "SqrtN")


@examples(*[f"SparseSegment{how}{counted}" for how in _HOWS for counted in ("", "WithNumSegments")])
def sparse_segments(v: Values) -> list[Example]:
    counts = [np.array(5, np.int32)] if v.op.endswith("Segments") else []
    found = []
    for kind in (np.int32, np.int64):
        where, ids = np.array([0, 3, 3, 1], kind), np.array([0, 0, 2, 2], kind)
        found += [v(v.array(4, 2), where, ids, *counts), v(v.array(4), where, ids, *counts)]
        # TensorFlow's gradient of nothing is whatever was in its memory.
        found += [v(v.array(4, 2), where[:0], ids[:0], *counts, gradient=False)]
    return found


@examples(*[f"SparseSegment{how}Grad{version}" for how in _HOWS for version in ("", "V2")])
def sparse_segment_gradients(v: Values) -> list[Example]:
    where, ids = np.array([0, 3, 3, 1], np.int32), np.array([0, 0, 2, 2], np.int32)
    return [v(v.array(3, *rest), where, ids, np.array(5, np.int32)) for rest in ((2,), (), (2, 2))]


_PLACES = np.array([[0, 1], [1, 0], [1, 3], [2, 2]], np.int64)
_SHAPE = np.array([3, 4], np.int64)


@examples("SparseToDense")
def sparse_to_dense(v: Values) -> list[Example]:
    def one(dims: list[int], where: np.ndarray, values: np.ndarray, kind: type = np.int64) -> Example:
        # TensorFlow's gradient is that of a vector of values at a matrix of places.
        plain = where.ndim == 2 and len(where) and values.ndim == 1
        return v(where.astype(kind), np.array(dims, kind), values, v.array(), gradient=plain, smooth=plain)

    if v.dtype == dtypes.string:
        return [one([3, 4], _PLACES, v.array(4))]
    return [
        one([3, 4], _PLACES, v.array(4)), one([3, 4], _PLACES, v.array(4), np.int32), one([3, 4], _PLACES, v.array()),
        one([6], np.array([1, 4]), v.array(2)), one([6], np.array(2), v.array()), one([3, 4], _PLACES[:0], v.array(0)),
        v(_PLACES[::-1], _SHAPE, v.array(4), v.array(), validate_indices=False),
    ]  # fmt: skip


@examples("SparseReorder")
def sparse_reorder(v: Values) -> list[Example]:
    return [
        v(_PLACES[[2, 0, 3, 1]], v.array(4), _SHAPE),
        v(_PLACES[:0], v.array(0), _SHAPE, gradient=False, smooth=False),
        v(np.array([[1, 0], [0, 1], [1, 0]], np.int64), v.array(3), _SHAPE),
    ]


@examples("SparseReshape")
def sparse_reshape(v: Values) -> list[Example]:
    return [v(_PLACES, _SHAPE, np.array(to, np.int64)) for to in ([4, 3], [12], [-1], [2, -1, 2], [1, 12, 1])]


@examples("SparseSlice")
def sparse_slice(v: Values) -> list[Example]:
    boxes = [([0, 0], [3, 4]), ([1, 0], [2, 2]), ([1, 1], [9, 9]), ([0, 0], [0, 0])]
    return [v(_PLACES, v.array(4), _SHAPE, *(np.array(part, np.int64) for part in box)) for box in boxes]


@examples("SparseSliceGrad")
def sparse_slice_grad(v: Values) -> list[Example]:
    return [v(v.array(2), _PLACES, np.array([1, 0], np.int64), np.array([[0, 0], [1, 2]], np.int64))]


@examples("SparseSplit")
def sparse_split(v: Values) -> list[Example]:
    cuts = [(0, 1), (0, 2), (1, 2), (1, 3), (-1, 4)]
    return [v(np.array(axis, np.int64), _PLACES, v.array(4), _SHAPE, num_split=n) for axis, n in cuts]


@examples("SparseConcat")
def sparse_concat(v: Values) -> list[Example]:
    def parts(n: int) -> tuple[list, list, list]:
        return [_PLACES] * n, [v.array(4) for _ in range(n)], [_SHAPE] * n

    return [v(*parts(n), concat_dim=axis) for n, axis in ((2, 0), (2, 1), (3, -1), (2, -2))]


@examples("SparseFillEmptyRows")
def sparse_fill_empty_rows(v: Values) -> list[Example]:
    wide = np.array([5, 4], np.int64)
    return [
        v(_PLACES, v.array(4), wide, v.array()),
        v(_PLACES[[2, 0, 3, 1]], v.array(4), wide, v.array()),
        v(_PLACES, v.array(4), _SHAPE, v.array()),
        v(_PLACES[:0], v.array(0), _SHAPE, v.array()),
    ]


@examples("SparseFillEmptyRowsGrad")
def sparse_fill_empty_rows_grad(v: Values) -> list[Example]:
    if v.dtype.is_bool or v.dtype == dtypes.string:
        return []
    return [v(np.array(where, np.int64), v.array(5)) for where in ([1, 3], [0, 1, 2, 3, 4], [])]


_OTHERS = np.array([[0, 0], [1, 0], [2, 2]], np.int64)


@examples("SparseAdd")
def sparse_add(v: Values) -> list[Example]:
    real = v.array().real.dtype
    found = [(_PLACES, 4, _OTHERS, 3), (_PLACES, 4, _PLACES[:0], 0), (_PLACES, 4, _PLACES, 4)]
    return [v(a, v.array(n), _SHAPE, b, v.array(m), _SHAPE, np.array(t, real)) for a, n, b, m in found for t in (0, 2)]


@examples("SparseAddGrad")
def sparse_add_grad(v: Values) -> list[Example]:
    return [v(v.array(3), _PLACES, _OTHERS, np.array([[0, 0], [0, 1], [1, 3]], np.int64))]


@examples("SparseTensorDenseAdd")
def sparse_tensor_dense_add(v: Values) -> list[Example]:
    return [v(_PLACES.astype(t), v.array(4), _SHAPE.astype(t), v.array(3, 4)) for t in (np.int32, np.int64)]


@examples("SparseTensorDenseMatMul", roundings=SOME_ROUNDINGS)
def sparse_tensor_dense_matmul(v: Values) -> list[Example]:
    if v.dtype not in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.complex64, dtypes.complex128):
        return []
    found = []
    for left in (False, True):
        inner = 3 if left else 4
        for right in (False, True):
            b = v.array(2, inner) if right else v.array(inner, 2)
            # TensorFlow's gradient forgets to conjugate.
            whole = not v.dtype.is_complex
            found.append(v(_PLACES, v.array(4), _SHAPE, b, adjoint_a=left, adjoint_b=right, gradient=whole))
    return found


@examples("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def sparse_dense_cwise(v: Values) -> list[Example]:
    known = not v.op.endswith("Add")
    return [
        v(_PLACES, v.positive(4), _SHAPE, v.positive(*dims), gradient=known and dims != (), smooth=known and dims != ())
        for dims in ((3, 4), (4,), (1, 4), (3, 1), ())
    ]


@examples("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_sparse(v: Values) -> list[Example]:
    if v.dtype.is_complex:
        return []
    return [
        v(_PLACES, v.array(4), _SHAPE, _OTHERS, v.array(3), _SHAPE, gradient=False, smooth=False),
        v(_PLACES[:0], v.array(0), _SHAPE, _OTHERS, v.array(3), _SHAPE, gradient=False, smooth=False),
    ]


@examples("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse")
def sparse_reduce(v: Values) -> list[Example]:
    axes = [np.array(axis, np.int32) for axis in ([0], [1], [-1], [0, 1], 1)]
    return [v(_PLACES, v.array(4), _SHAPE, axis, keep_dims=keep) for axis in axes for keep in (False, True)]


@examples("SparseSoftmax")
def sparse_softmax(v: Values) -> list[Example]:
    deep = np.array([[0, 0, 1], [0, 0, 2], [1, 1, 0]], np.int64)
    return [v(_PLACES, v.array(4), _SHAPE), v(deep, v.array(3), np.array([2, 2, 3], np.int64))]


@examples("SerializeSparse", "SerializeManySparse")
def serialize_sparse(v: Values) -> list[Example]:
    return [v(_PLACES, v.array(4), _SHAPE), v(_PLACES[:0], v.array(0), _SHAPE)]


IN_PROGRAMS = dict.fromkeys(("DeserializeSparse", "DeserializeManySparse"), "tests/ops/oracle/test_sparse.py")

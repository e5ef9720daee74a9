"""Examples of initial values of variables, and of changes to parts of them."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import SOME_ROUNDINGS, Example, Values, Var, examples


@examples("Qr", roundings=SOME_ROUNDINGS)
def qr(v: Values) -> list[Example]:
    shapes = [(3, 3), (4, 2), (2, 4), (2, 3, 2)]
    if v.dtype == dtypes.float16:
        return []  # TensorFlow computes in this precision, dtflab in a higher one
    found = [v(v.array(*shape)) for shape in shapes]
    return found + [v(v.array(*shape), full_matrices=True, gradient=shape != (4, 2)) for shape in shapes[:3]]


@examples("MatrixInverse", roundings=SOME_ROUNDINGS)
def matrix_inverse(v: Values) -> list[Example]:
    def matrices(*shape: int) -> np.ndarray:
        return (v.array(*shape) + 4 * np.eye(shape[-1])).astype(v.dtype.as_numpy_dtype)

    if v.dtype == dtypes.float16:
        return []  # as Qr
    return [
        v(matrices(3, 3)),
        v(matrices(2, 2, 2)),
        v(matrices(3, 3), adjoint=True),
        v(np.empty((0, 0), matrices(1, 1).dtype)),
    ]


def _positions(v: Values) -> list[tuple[tuple[int, ...], np.ndarray, tuple[int, ...]]]:
    """(shape of what is written to, where, shape of what is written); no position twice."""
    return [
        ((4, 2), np.array([[3], [0]], np.int32), (2, 2)),
        ((4, 2), np.array([[3, 1], [0, 0]], np.int64), (2,)),
        ((2, 2, 2), np.array([[[0, 1]], [[1, 0]]], np.int32), (2, 1, 2)),
        ((3,), np.array([[1]], np.int32), (1,)),
    ]


_KINDS = ("Update", "Add", "Sub", "Min", "Max")


@examples(*[f"{family}ScatterNd{kind}" for family in ("", "Resource") for kind in _KINDS])
def scatter_nd(v: Values) -> list[Example]:
    if "Resource" in v.op and not v.op.endswith("Update") and (v.dtype.is_bool or v.dtype == dtypes.string):
        return []  # TensorFlow has no kernel
    found = [v(Var(v.array(*shape)), where, v.array(*written)) for shape, where, written in _positions(v)]
    if v.op.endswith("Update"):
        return found
    return [*found, v(Var(v.array(4, 2)), np.array([[3], [0], [3]], np.int32), v.array(3, 2))]


@examples(*[f"TensorScatter{kind}" for kind in _KINDS], "ScatterNdNonAliasingAdd")
def tensor_scatter(v: Values) -> list[Example]:
    if not v.op.endswith("Update") and (v.dtype.is_bool or v.dtype == dtypes.string):
        return []
    return [v(v.array(*shape), where, v.array(*written)) for shape, where, written in _positions(v)]


@examples("StridedSliceAssign", "ResourceStridedSliceAssign")
def strided_slice_assign(v: Values) -> list[Example]:
    def one(begin: list[int], end: list[int], strides: list[int], value: np.ndarray, **masks: int) -> Example:
        return v(Var(v.array(3, 4)), *(np.array(b, np.int32) for b in (begin, end, strides)), value, **masks)

    return [
        one([0, 1], [2, 3], [1, 1], v.array(2, 2)), one([0, 0], [3, 4], [2, 3], v.array(2, 2)),
        one([1], [2], [1], v.array(4), shrink_axis_mask=1), one([0, 1], [0, 2], [1, 1], v.array(), shrink_axis_mask=3),
        one([2, 0], [0, 0], [-1, 1], v.array(2, 4), end_mask=2), one([0], [2], [1], v.array()),
    ]  # fmt: skip


@examples("ResourceGatherNd")
def resource_gather_nd(v: Values) -> list[Example]:
    where = [np.array([[3], [0], [3]], np.int32), np.array([[[3, 1]], [[0, 0]]], np.int64)]
    return [v(Var(v.array(4, 2)), w, dtype=v.dtype) for w in where]

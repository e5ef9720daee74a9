"""Ops that cut, sort and rearrange arrays."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("SegmentMax", "SegmentMin", "SegmentProd", "SegmentMean")
def segments(v: Values) -> list[Example]:
    found = []
    for kind in (np.int32, np.int64):
        ids = np.array([0, 0, 2, 2, 3], kind)
        found += [v(v.array(5, 2), ids), v(v.array(5), ids), v(v.array(0, 2), ids[:0])]
    tied = np.array([1, 1, 2]).astype(v.dtype.as_numpy_dtype)
    found.append(v(tied, np.array([0, 0, 0], np.int32), smooth=v.op in ("SegmentProd", "SegmentMean")))
    zeros = np.array([[0, 0, 2], [3, 0, 4]]).astype(v.dtype.as_numpy_dtype)
    return [*found, v(zeros, np.array([1, 1], np.int32), smooth=v.op == "SegmentMean")]


@examples("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
def unsorted_segments(v: Values) -> list[Example]:
    found = []
    for kind in (np.int32, np.int64):
        ids, count = np.array([2, 0, 2, -1, 1], kind), np.array(3, kind)
        found += [v(v.array(5, 2), ids, count), v(v.array(5), ids, count)]
        found.append(v(v.array(5, 2), ids, np.array(5, kind), smooth=False))  # two segments without rows
    i = np.int32
    found.append(v(v.array(2, 2, 3), np.array([[0, 1], [1, 0]], i), np.array(2, i)))
    found.append(v(v.array(2, 0), np.array([0, 1], i), np.array(2, i)))
    zeros = np.array([[0, 0, 2], [3, 0, 4]]).astype(v.dtype.as_numpy_dtype)
    return [*found, v(zeros, np.array([1, 1], i), np.array(2, i), smooth=False)]


def _real(v: Values) -> bool:
    return not (v.dtype.is_bool or v.dtype == dtypes.string)


@examples("SpaceToBatchND")
def space_to_batch_nd(v: Values) -> list[Example]:
    if not _real(v) or v.dtype.is_complex:
        return []
    found = []
    for kind in (np.int32, np.int64):
        block, pads = np.array([2, 3], kind), np.array([[1, 1], [0, 2]], kind)
        found += [v(v.array(2, 4, 4, 3), block, pads), v(v.array(2, 2, 1), block, pads)]
    i = np.int32
    found.append(v(v.array(0, 4, 2), np.array([2], i), np.array([[0, 0]], i)))
    return [*found, v(v.array(2, 6), np.array([3], i), np.array([[0, 0]], i))]


@examples("BatchToSpaceND")
def batch_to_space_nd(v: Values) -> list[Example]:
    if not _real(v) or v.dtype.is_complex:
        return []
    found = []
    for kind in (np.int32, np.int64):
        block, crops = np.array([2, 3], kind), np.array([[1, 0], [0, 2]], kind)
        found += [v(v.array(12, 2, 2, 3), block, crops), v(v.array(6, 3, 1), block, crops)]
    i = np.int32
    return [*found, v(v.array(6, 2), np.array([3], i), np.array([[0, 0]], i))]


@examples("SpaceToBatch")
def space_to_batch(v: Values) -> list[Example]:
    if not _real(v) or v.dtype.is_complex:
        return []
    pads = np.array([[1, 1], [0, 1]])
    return [v(v.array(2, 4, 3, 2), pads.astype(t), block_size=2) for t in (np.int32, np.int64)]


@examples("BatchToSpace")
def batch_to_space(v: Values) -> list[Example]:
    if not _real(v) or v.dtype.is_complex:
        return []
    crops = np.array([[1, 0], [0, 1]])
    return [v(v.array(8, 2, 2, 2), crops.astype(t), block_size=2) for t in (np.int32, np.int64)]


@examples("SpaceToDepth", "DepthToSpace")
def depth(v: Values) -> list[Example]:
    sizes = [(2, 4, 6, 8), (0, 4, 2, 4), (1, 4, 2, 0)]
    return [v(v.array(*size), block_size=2) for size in sizes] + [v(v.array(1, 3, 6, 9), block_size=3)]


@examples("ReverseSequence")
def reverse_sequence(v: Values) -> list[Example]:
    found = []
    for kind in (np.int32, np.int64):
        lengths = np.array([0, 3, 2], kind)
        found += [v(v.array(0, 4), lengths[:0], seq_dim=1), v(v.array(3, 0, 3), 0 * lengths, seq_dim=1)]
        found += [v(v.array(3, 4), lengths, seq_dim=1), v(v.array(4, 2, 3), lengths, seq_dim=0, batch_dim=2)]
    return found


@examples("Roll")
def roll(v: Values) -> list[Example]:
    i, j = np.int32, np.int64
    ways = [(np.array(2, i), np.array(1, j)), (np.array(-5, j), np.array(-2, i))]
    ways += [(np.array([1, -1], i), np.array([0, 1], i)), (np.array([1, 1, 2], j), np.array([0, 0, -1], j))]
    return [v(v.array(3, 4), *way) for way in ways] + [
        v(v.array(*size), np.array(7, i), np.array(0, i)) for size in ((5,), (0,), (0, 2))
    ]


@examples("LowerBound", "UpperBound")
def bounds(v: Values) -> list[Example]:
    if not _real(v) or v.dtype.is_complex:
        return []
    rows = np.sort(np.array([[0, 1, 1, 3], [2, 2, 2, 2]])).astype(v.dtype.as_numpy_dtype)
    values = np.array([[0, 1, 2], [3, 2, 1]]).astype(v.dtype.as_numpy_dtype)
    return [v(rows, values, out_type=t) for t in (dtypes.int32, dtypes.int64)] + [v(rows[:, :0], values)]


@examples("UnravelIndex")
def unravel_index(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    dims = np.array([2, 3, 4], kind)
    return [v(np.array(places, kind), dims) for places in ([0, 5, 23], 17)]


@examples("MatrixBandPart")
def matrix_band_part(v: Values) -> list[Example]:
    found = []
    for kind in (np.int32, np.int64):
        bands = [(0, 0), (1, -1), (-1, 1), (2, 1), (-1, -1)]
        found += [v(v.array(3, 4), *(np.array(n, kind) for n in band)) for band in bands]
    found.append(v(v.array(0, 3), np.array(0), np.array(0)))
    return [*found, v(v.array(2, 4, 3), np.array(1), np.array(0))]


@examples("ParallelConcat")
def parallel_concat(v: Values) -> list[Example]:
    return [v([v.array(1, 2) for _ in range(3)], shape=[3, 2]), v([v.array(1)], shape=[1])]


@examples("ExtractImagePatches")
def extract_image_patches(v: Values) -> list[Example]:
    def one(shape: tuple[int, ...], size: list[int], step: list[int], rate: list[int], padding: str) -> Example:
        ways = {"ksizes": size, "strides": step, "rates": rate}
        return v(v.array(*shape), padding=padding, **{name: [1, *way, 1] for name, way in ways.items()})

    found = []
    for padding in ("SAME", "VALID"):
        found += [
            one((2, 5, 4, 2), [3, 2], [1, 2], [1, 1], padding),
            one((1, 6, 7, 1), [2, 3], [2, 1], [2, 2], padding),
        ]
    return found


@examples("EditDistance")
def edit_distance(v: Values) -> list[Example]:
    if v.dtype.is_complex:
        return []
    i = np.int64
    words = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 0]], i)
    truth = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]], i)
    shapes = np.array([2, 2, 2], i), np.array([2, 3, 2], i)
    return [
        v(words, v.array(4), shapes[0], truth, v.array(4), shapes[1], normalize=normalize)
        for normalize in (True, False)
    ]


IN_PROGRAMS = {"Timestamp": "tests/ops/oracle/test_arrays.py"}

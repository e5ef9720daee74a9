"""Ops that cut, sort and rearrange arrays."""

from __future__ import annotations

import numpy as np

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
    zeros = np.array([[0, 0, 2], [3, 0, 4]]).astype(v.dtype.as_numpy_dtype)
    return [*found, v(zeros, np.array([1, 1], i), np.array(2, i), smooth=False)]

"""Counts, histograms, running log-sum-exps."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples


@examples("Bincount")
def bincount(v: Values) -> list[Example]:
    arr, none = np.array([1, 1, 3, 0, 7], np.int32), np.zeros(0, v.dtype.as_numpy_dtype)
    return [v(arr, np.array(n, np.int32), w) for n in (5, 9, 0) for w in (none, v.array(5))]


@examples("DenseBincount")
def dense_bincount(v: Values) -> list[Example]:
    none, found = np.zeros(0, v.dtype.as_numpy_dtype), []
    for kind in (np.int32, np.int64):
        size = np.array(5, kind)
        for arr in (np.array([1, 1, 3, 0, 7], kind), np.array([[1, 1, 3], [0, 4, 4]], kind)):
            found += [v(arr, size, none), v(arr, size, none, binary_output=True), v(arr, size, v.array(*arr.shape))]
    return found


@examples("HistogramFixedWidth")
def histogram(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    ends = np.array([-2, 3], kind)
    return [v(v.array(30, low=-5, high=6), ends, np.array(n, np.int32)) for n in (1, 4, 5)] + [
        v(v.array(2, 3), ends, np.array(5, np.int32))
    ]


@examples("CumulativeLogsumexp")
def cumulative_logsumexp(v: Values) -> list[Example]:
    flags = [(e, r) for e in (False, True) for r in (False, True)]
    # TensorFlow's gradient of the exclusive scan is infinite where nothing has been summed.
    return [v(v.positive(2, 5), np.array(a, np.int32), exclusive=e, reverse=r, smooth=not e)
            for e, r in flags for a in (0, -1)]  # fmt: skip

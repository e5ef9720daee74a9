"""Histograms as TensorBoard draws them: counts in buckets whose limits grow by a tenth.

Stands for `core/lib/histogram/histogram.cc`. Left out: percentiles, medians, text.
"""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import numpy as np

from dtflab.protos.summary_pb2 import HistogramProto


@functools.cache
def limits() -> np.ndarray:
    """The upper ends of the buckets: ±1e-12, ±1.1e-12, … up to 1e20, 0, and the largest float64."""
    steps = itertools.accumulate(itertools.repeat(1.1), lambda limit, factor: limit * factor, initial=1.0e-12)
    positive = [*itertools.takewhile(lambda limit: limit < 1e20, steps), sys.float_info.max]
    return np.array([*(-limit for limit in reversed(positive)), 0.0, *positive])


def histogram(values: np.ndarray) -> Any:
    """The HistogramProto of finite numbers; runs of empty buckets are written as one."""
    flat = values.ravel().astype(np.float64)
    found = HistogramProto(min=sys.float_info.max, max=-sys.float_info.max)
    if flat.size:
        # Summed one by one, as TensorFlow does, so that the last bits agree.
        with np.errstate(over="ignore"):
            total, squares = np.add.accumulate(flat)[-1], np.add.accumulate(flat * flat)[-1]
        found = HistogramProto(min=flat.min(), max=flat.max(), num=flat.size, sum=total, sum_squares=squares)
    ends = limits()
    at = np.minimum(np.searchsorted(ends, flat, side="right"), ends.size - 1)
    counts = np.bincount(at, minlength=ends.size)
    kept = (counts > 0) | (np.append(counts[1:], 1) > 0)  # an empty bucket only before one that is not
    kept[-1] = True
    found.bucket_limit.extend(ends[kept])
    found.bucket.extend(counts[kept])
    return found

"""Values that cross between the tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.interop.programs.site import PS, WORKER, Site

_NAMES = (
    "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128 "
    "string"
).split()


def all_dtypes(tf: Any, site: Site) -> list[str]:
    """Send values of every dtype, strings too, to the ps, the worker and back; list those that come back changed."""
    values, found = [], {}
    for dtype in map(tf.as_dtype, _NAMES):
        values.append(np.array([[0, 1, 1], [1, 0, 2]]).astype(dtype.as_numpy_dtype))
        if dtype == tf.string:
            values[-1] = np.array([[b"", b"\x00\xff"], [b"text\x00", b"long" * 1000]], object)
        with tf.device(PS):
            x = tf.placeholder(dtype, values[-1].shape)
            there = tf.identity(x)
        with tf.device(WORKER):
            found[x] = tf.identity(there)
    with tf.Session(site.target) as sess:
        back = sess.run(list(found.values()), dict(zip(found, values, strict=True)))
    same = [a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in zip(values, back, strict=True)]
    return [name for name, ok in zip(_NAMES, same, strict=True) if not ok]


def large_tensors(tf: Any, site: Site) -> list[Any]:
    """Send eight megabytes from one task to the other, and an empty tensor."""
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [None])
        y = x + 1.0
    with tf.device(WORKER):
        z = y * 2.0
    with tf.Session(site.target) as sess:
        return [float(sess.run(z, {x: np.ones(n, np.float32)}).sum()) for n in (2_000_000, 0)]

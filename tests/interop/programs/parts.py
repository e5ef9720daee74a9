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


AWKWARD = (
    0x00000000, 0x80000000, 0x00000001, 0x8000FFFF, 0x00010000, 0x007FFFFF, 0x7F7FFFFF, 0xFF7F8000, 0x7F800000,
    0xFF800000, 0x7F800001, 0xFFC12345, 0x7FFFFFFF, 0x3F808000, 0x3F818000, 0xBF80FFFF, 0x40490FDB,
)  # fmt: skip


def in_bfloat16(tf: Any, site: Site) -> list[list[int]]:
    """`enable_bfloat16_sendrecv`: the bits that arrive of zeros, NaNs, infinities, ties and the rest, three times."""
    bits = np.array(AWKWARD, np.uint32).view(np.float32)
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [None])
        here = tf.reverse(x, [0])  # an Identity would be pruned, and the crossing with it
    with tf.device(WORKER):
        there = tf.bitcast(here, tf.int32)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))
    with tf.Session(site.target, config=config) as sess:
        return [sess.run(there, {x: bits}).tolist() for _ in range(3)]

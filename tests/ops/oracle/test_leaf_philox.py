from __future__ import annotations

import numpy as np
import pytest

from dtflab.ops.philox import PhiloxStream

tf = pytest.importorskip("tensorflow").compat.v1

SEEDS = [(1, 2), (0, 5), (87654321, 0), (123456789012345, 2**62 + 7), (-3, -9)]
SHAPES = [(), (1,), (7,), (3, 5), (0, 2), (300, 37)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
LAST_BIT = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-14}
RANGES = [("int32", 0, 10), ("int32", -(2**31), 2**31 - 1), ("int64", -7, -3), ("int64", -(2**63), 2**63 - 1)]


def compare(make_op, draw, seeds, atol=0.0):
    """Three runs in one session are three stretches of one stream."""
    with tf.Graph().as_default(), tf.Session() as session:
        op = make_op(seed=seeds[0], seed2=seeds[1])
        stream = PhiloxStream(*seeds)
        for _ in range(3):
            theirs, ours = np.asarray(session.run(op)), draw(stream)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            if atol == 0:
                np.testing.assert_array_equal(ours, theirs)
            else:
                np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=atol)


def vector(shape):
    return np.array(shape, np.int32)


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(seeds, dtype):
    theirs = tf.as_dtype(dtype)
    for shape in SHAPES:
        compare(
            lambda s=shape, **kw: tf.raw_ops.RandomUniform(shape=vector(s), dtype=dtype, **kw),
            lambda stream, s=shape: stream.uniform(s, theirs),
            seeds,
        )
        compare(
            lambda s=shape, **kw: tf.raw_ops.RandomStandardNormal(shape=vector(s), dtype=dtype, **kw),
            lambda stream, s=shape: stream.normal(s, theirs),
            seeds,
            LAST_BIT[dtype],
        )
        compare(
            lambda s=shape, **kw: tf.raw_ops.TruncatedNormal(shape=vector(s), dtype=dtype, **kw),
            lambda stream, s=shape: stream.truncated_normal(s, theirs),
            seeds,
            LAST_BIT[dtype],
        )


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("dtype, lo, hi", RANGES)
def test_integers(seeds, dtype, lo, hi):
    for shape in SHAPES:
        compare(
            lambda s=shape, **kw: tf.raw_ops.RandomUniformInt(
                shape=vector(s), minval=tf.constant(lo, dtype), maxval=tf.constant(hi, dtype), **kw
            ),
            lambda stream, s=shape: stream.uniform_int(lo, hi, s, dtype),
            seeds,
        )


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (7,), (8,), (9,), (16,), (17,), (1001,), (9, 3), (1, 4), (5, 0)])
def test_shuffle(shape):
    rows = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    for seeds in SEEDS:
        compare(
            lambda **kw: tf.raw_ops.RandomShuffle(value=rows, **kw),
            lambda stream: stream.shuffle(rows),
            seeds,
        )


def test_normals_are_nearly_always_equal_to_the_bit():
    with tf.Graph().as_default(), tf.Session() as session:
        theirs = session.run(tf.raw_ops.RandomStandardNormal(shape=[100_000], dtype=tf.float32, seed=1, seed2=2))
    assert np.mean(PhiloxStream(1, 2).normal([100_000]) == theirs) > 0.9

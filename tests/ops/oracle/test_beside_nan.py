"""Where NaN stands among numbers: what is the extreme of a segment, and where the extreme along an axis is."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.graph_defs import both

NAN = np.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
ORDERS = ([1, NAN, 2], [NAN, 1, 2], [1, 2, NAN], [NAN], [NAN, NAN], [1, NAN, NAN, 0], [2, NAN, 1], [NAN, 2, 1, NAN])


def agree(program):
    theirs, ours = both(lambda tf: (lambda fetches: tf.Session().run(fetches))(program(tf)))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    return ours


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["segment_max", "segment_min", "unsorted_segment_max", "unsorted_segment_min"])
def test_extremes_of_segments(name, dtype):
    """A number takes the place of a NaN before it. (TensorFlow's vector units skip NaN in wide rows instead.)"""
    table = np.array([[1, NAN], [NAN, 3], [2, NAN], [NAN, NAN], [NAN, NAN], [NAN, 1]])

    def program(tf):
        def extreme(values, ids, count):
            given = (tf.cast(tf.constant(values), dtype), ids, count)[: 3 if "unsorted" in name else 2]
            return tf.cast(getattr(tf.math, name)(*given), tf.float64)

        ends = [extreme(np.array(order, float), [0] * len(order), 1) for order in ORDERS]
        return [*ends, extreme(table, [0, 0, 0, 1, 1, 3], 4)]

    found = agree(program)
    assert found[0] == [2] and np.isnan(found[2]).all()


def test_extremes_of_segments_in_any_order():
    x = np.random.default_rng(0).normal(size=(50, 3))
    x[np.random.default_rng(1).random(x.shape) < 0.1] = NAN
    ids = np.random.default_rng(2).integers(-1, 6, 50)
    agree(lambda tf: [f(tf.constant(x), ids, 7) for f in (tf.math.unsorted_segment_max, tf.math.unsorted_segment_min)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_places_of_extremes(dtype):
    orders = [*ORDERS, [NAN, 1, 2, NAN, -1, 1, 3], [NAN, -np.inf], [np.inf, NAN], [3, NAN, 1, 2]]

    def program(tf):
        rows = [tf.cast(tf.constant(np.array(order, float)), dtype) for order in orders]
        return [f(x, 0) for x in [*rows, tf.stack([rows[0], rows[1]], 1)] for f in (tf.argmax, tf.argmin)]

    assert agree(program)[16:18] == [6, 4]

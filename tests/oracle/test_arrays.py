"""Functions on arrays that are made of several ops, or of one: TensorFlow's graphs, values, static shapes and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from tests.oracle.graph_defs import assert_same_graph

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function(tf)` → a list of what to fetch."""
    PROGRAMS.append(function)
    return function


each = pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)


@each
@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_same_values(make):
    found = []
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default(), tf.Session() as session:
            found.append(session.run(make(tf)))
    for theirs, ours in zip(*found, strict=True):
        if theirs.dtype.kind in "fc":
            np.testing.assert_allclose(ours, theirs, 1e-5)
        else:
            np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@each
def test_same_graph(make):
    assert_same_graph(make, gradients=True)


@each
def test_same_static_shapes(make):
    shapes = []
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default():
            shapes.append([str(t.shape) for t in make(tf)])
    assert shapes[1] == shapes[0]


def unknown(tf: Any, value: Any, shape: Any = None) -> Any:
    """`value`, of which the graph does not know more than this shape."""
    return tf.placeholder_with_default(np.asarray(value), shape)


# -- segments -----------------------------------------------------------------------------------------------------


@program
def segments(tf):
    x, ids = tf.constant([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]), [0, 0, 2]
    return [
        tf.segment_max(x, ids), tf.segment_min(x, ids, name="least"), tf.math.segment_mean(x, ids),
        tf.segment_prod(x, ids),
    ]  # fmt: skip


@program
def unsorted_segments(tf):
    x, ids = tf.constant([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]), tf.constant([2, 0, 2])
    return [
        tf.unsorted_segment_max(x, ids, 3), tf.unsorted_segment_min(x, ids, 3, name="least"),
        tf.math.unsorted_segment_prod(x, ids, 4), tf.unsorted_segment_mean(x, ids, 4),
        tf.unsorted_segment_sqrt_n(x, unknown(tf, [0, 2, 2]), 3, name="root"),
    ]  # fmt: skip


@program
def gradients_of_segments(tf):
    x, ids = tf.constant([[1.0, 2.0], [1.0, -4.0], [0.0, 6.0]]), [0, 0, 1]
    found = [f(x, ids) for f in (tf.segment_max, tf.segment_min, tf.segment_mean, tf.segment_prod)]
    found += [
        f(x, ids, 2)
        for f in (
            tf.unsorted_segment_max, tf.unsorted_segment_min, tf.unsorted_segment_mean, tf.unsorted_segment_sqrt_n,
        )
    ]  # fmt: skip
    return [tf.gradients(y, x)[0] for y in found]

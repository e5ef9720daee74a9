"""tf.sets next to TensorFlow: dense and sparse operands in either order, graphs, values and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both

FUNCTIONS = ["set_intersection", "set_union", "set_difference", "intersection", "union", "difference"]
ROWS = np.array([[1, 2, 2, 3], [5, 4, 4, 0], [7, 7, 7, 7]])


def operand(tf: Any, kind: str, dtype: Any) -> Any:
    values = ROWS.astype(dtype) if dtype is not object else ROWS.astype("S1").astype(object)
    if kind == "dense":
        return tf.constant(values)
    if kind == "unknown":
        return tf.placeholder_with_default(values, None)
    places = [[0, 0], [0, 3], [2, 1]]
    sparse = tf.SparseTensorValue(np.array(places), values[[0, 0, 1], [1, 3, 3]], np.array([3, 4]))
    return sparse if kind == "value" else tf.SparseTensor(*sparse)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("a", "b"), [*itertools.product(["dense", "sparse"], repeat=2), ("value", "dense"), ("unknown", "sparse")]
)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, object])
def test_operations(name, a, b, dtype):
    def program(tf):
        first, second = operand(tf, a, dtype), operand(tf, b, dtype)
        if a == b == "dense":
            second = tf.reverse(second, [0])
        return getattr(tf.sets, name)(first, second)

    def run(tf):
        found = program(tf)
        with tf.Session() as sess:
            return [*sess.run(found), found.shape.ndims, found.values.shape.as_list()]

    assert_same_graph(program)
    theirs, ours = both(run)
    assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("reverse", [True, False])
def test_difference_in_either_direction(reverse):
    def run(tf):
        pairs = [operand(tf, "dense", np.int32), operand(tf, "sparse", np.int32)]
        with tf.Session() as sess:
            return sess.run(tf.sets.difference(*pairs, aminusb=reverse)), sess.run(
                tf.sets.difference(*pairs[::-1], aminusb=reverse, validate_indices=False)
            )

    for theirs, ours in zip(*both(run), strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))


def test_size():
    def run(tf):
        sizes = [tf.sets.size(operand(tf, kind, np.int16)) for kind in ("sparse", "value")]
        with tf.Session() as sess:
            return sess.run(sizes)

    for theirs, ours in zip(*both(run), strict=True):
        assert np.array_equal(ours, theirs) and ours.dtype == theirs.dtype


@pytest.mark.parametrize(
    "bad",
    [
        lambda tf: tf.sets.size(ROWS),
        lambda tf: tf.sets.union(ROWS.astype("f"), ROWS.astype("f")),
        lambda tf: tf.sets.union(ROWS, ROWS.astype("int8")),
        lambda tf: tf.sets.union(ROWS, ROWS[:2]),
        lambda tf: tf.sets.union(ROWS[0], ROWS[0]),
    ],
)
def test_errors_when_the_graph_is_built(bad):
    def kind(tf):
        with pytest.raises((TypeError, ValueError)) as caught:
            bad(tf)
        return type(caught.value).__name__

    theirs, ours = both(kind)
    assert ours == theirs


def test_errors_in_a_step_name_the_shapes_and_the_place():
    def program(tf):
        a, b = tf.placeholder(tf.int64), tf.placeholder(tf.int64)
        places = tf.placeholder(tf.int64, [2, 2])
        wrong = tf.sets.size(tf.SparseTensor(places, [1, 2], [3, 3]))
        union = tf.sets.union(a, b).values
        with tf.Session() as sess:
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"Mismatched shapes \[1\] vs \[2\]"):
                sess.run(union, {a: ROWS[:1], b: ROWS[:2]})
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[0,1\] is out of order"):
                sess.run(wrong, {places: [[1, 0], [0, 1]]})

    both(program)

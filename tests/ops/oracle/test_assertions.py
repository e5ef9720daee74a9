"""The assertions of tf.debugging, side by side with TensorFlow: their graphs, and when and how they fail."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab

COMPARISONS = "equal none_equal less less_equal greater greater_equal near".split()
SIGNS = "negative positive non_negative non_positive".split()
SHAPE_ERRORS = (
    "Specified explicitly",
    "Specified by tensor",
    "must have size",
    "must have rank",
    "first entry",
    "iterable",
)
PAIRS = [([1, 2], [1, 2]), ([1, 2], [1, 3]), ([1, 2], [2, 3]), ([2, 3], [1, 2]), ([1, 1], 1), ([], [])]


def outcome(tf: Any, make: Any, feeds: Any = None) -> Any:
    """The outcome of building and running an assertion, and the graph it made."""
    with tf.Graph().as_default() as graph:
        try:
            check, fed = make(tf)
        except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            return "built", type(error).__name__, str(error).split("\n\n")[0]
        nodes = [(op.name, op.type, [t.name for t in op.inputs]) for op in graph.get_operations()]
        with tf.Session() as sess:
            try:
                sess.run(check, {fed: feeds} if fed is not None else None)
            except tf.errors.InvalidArgumentError as error:
                return nodes, "assertion failed" in error.message
        return nodes, "holds"


def both(make: Any, feeds: Any = None) -> None:
    theirs, ours = outcome(real_tf, make, feeds), outcome(dtflab, make, feeds)
    assert ours == theirs


@pytest.mark.parametrize(
    "name", [*COMPARISONS, *SIGNS, *"rank rank_at_least rank_in scalar shapes integer type".split()]
)
def test_signatures(name):
    theirs, ours = (inspect.signature(getattr(tf.debugging, f"assert_{name}")) for tf in (real_tf, dtflab))
    assert [(p.name, p.default) for p in ours.parameters.values()] == [
        (p.name, p.default) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, pair):
    def known(tf):
        x, y = (np.float32(v) for v in pair)
        return getattr(tf.debugging, f"assert_{name}")(x, y, message="see"), None

    def fed(tf):
        x = tf.placeholder(tf.float32)
        return getattr(tf.debugging, f"assert_{name}")(x, np.float32(pair[1])), x

    both(known)
    both(fed, np.float32(pair[0]))


@pytest.mark.parametrize("values", [[1, 2], [-1, -2], [0, 1], [0, -1], [0], []], ids=str)
@pytest.mark.parametrize("name", SIGNS)
def test_signs(name, values):
    def fed(tf):
        x = tf.placeholder(tf.int32)
        return getattr(tf, f"assert_{name}")(x, summarize=2), x

    both(lambda tf: (getattr(tf, f"assert_{name}")(np.int32(values)), None))
    both(fed, np.int32(values))


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("name", ["rank", "rank_at_least"])
def test_ranks(name, rank):
    def fed(tf):
        x = tf.placeholder(tf.float32)
        return getattr(tf, f"assert_{name}")(x, rank), x

    both(lambda tf: (getattr(tf, f"assert_{name}")(tf.ones([3]), rank, message="see"), None))
    both(fed, np.ones([3]))
    both(lambda tf: (getattr(tf, f"assert_{name}")(tf.ones([3]), [rank]), None))


def test_rank_in():
    def fed(tf):
        x = tf.placeholder(tf.float32)
        return tf.assert_rank_in(x, [0, 1]), x

    both(fed, np.ones([3]))
    both(fed, np.ones([3, 3]))
    both(lambda tf: (tf.assert_rank_in(tf.ones([3]), (1, 2)), None))
    both(lambda tf: (tf.assert_rank_in(tf.ones([3]), (0, 2)), None))


def test_types():
    both(lambda tf: (tf.assert_type(tf.ones([3]), tf.float32), None))
    both(lambda tf: (tf.assert_integer(3), None))
    both(lambda tf: (tf.assert_scalar(tf.constant(3.0)), None))
    both(lambda tf: (tf.assert_scalar(tf.ones([3])), None))
    both(lambda tf: (tf.assert_integer(3.0), None))
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default():
            assert tf.assert_same_float_dtype([tf.ones([2]), None], tf.float32) == tf.float32
            assert tf.assert_same_float_dtype() == tf.float32
            with pytest.raises(TypeError, match="must be of type"):
                tf.assert_type(tf.ones([3]), tf.int32)
            for wrong in ([tf.constant(1)], [tf.ones([2]), tf.constant(1.0, tf.float64)]):
                with pytest.raises(ValueError):
                    tf.assert_same_float_dtype(wrong)
            assert tf.is_numeric_tensor(tf.ones([2])) and not tf.is_numeric_tensor(tf.constant("x"))
            for wrong in (tf.ones([2]), np.ones(2), "text", 3):
                with pytest.raises(TypeError, match="Expected argument"):
                    tf.debugging.assert_proper_iterable(wrong)


@pytest.mark.parametrize("values", [[], [1], [1, 2], [1, 1], [2, 1], [[1, 2], [3, 4]]], ids=str)
def test_order(values):
    answers = []
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = np.float32(values)
            answers.append([bool(v) for v in sess.run([tf.is_non_decreasing(x), tf.is_strictly_increasing(x)])])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("shapes", [
    [("N", "Q"), ("N", "D"), ("D",)], [(2, 3), (2, None), (".",)], [("N", "N"), None, None], [("*", "Q"), None, ("Q",)],
    [(..., "Q"), ("N", "D"), None], [(2,), None, None], [("N", "*"), None, None], [3, None, None],
    [("N", 4), None, None],
], ids=str)  # fmt: skip
def test_shapes(shapes):
    def outcome(tf, dynamic):
        with tf.Graph().as_default(), tf.Session() as sess:
            values = [np.ones([2, 3]), np.ones([2, 4]), np.ones([4])]
            tensors = [tf.placeholder(tf.float64) if dynamic else tf.constant(v) for v in values]
            try:
                check = tf.debugging.assert_shapes(list(zip(tensors, shapes, strict=True)))
                sess.run(check, dict(zip(tensors, values, strict=True)) if dynamic else None)
            except (ValueError, tf.errors.InvalidArgumentError) as error:
                return type(error).__name__, [words for words in SHAPE_ERRORS if words in str(error)]
            return "holds"

    for dynamic in (False, True):
        assert outcome(dtflab, dynamic) == outcome(real_tf, dynamic)

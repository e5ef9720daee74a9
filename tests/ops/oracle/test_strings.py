"""Functions on strings, side by side with TensorFlow: the graphs that they make and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab
from tests.oracle.answers import both
from tests.oracle.graph_defs import assert_same_graph

TABLE = [["a", "b"], ["c", "d"]]
GRAPHS = {
    "reduce_join": lambda tf: tf.reduce_join(TABLE),
    "reduce_join of unknown rank": lambda tf: tf.reduce_join(tf.placeholder(tf.string), name="x"),
    "reduce_join with all": lambda tf: tf.reduce_join(TABLE, [1], keep_dims=True, separator=", ", name="x"),
    "static regex_replace": lambda tf: tf.regex_replace(TABLE, "a", "b"),
    "regex_replace": lambda tf: tf.strings.regex_replace(TABLE, tf.constant("a"), "b", replace_global=False),
    "regex_full_match": lambda tf: tf.strings.regex_full_match(TABLE, "a"),
    "unsorted_segment_join": lambda tf: tf.strings.unsorted_segment_join(["a"], [0], 1, separator="+"),
    "format": lambda tf: tf.strings.format("{} and {}", [tf.constant(1), tf.constant(["x"])], summarize=1, name="f"),
}
REFUSED = [
    (lambda tf: tf.reduce_join(TABLE, 2), "ValueError", "Invalid reduction dimension 2 for input with 2 dimensions"),
    (lambda tf: tf.reduce_join(TABLE, fed(tf, 2)), "OutOfRangeError", "Invalid reduction dimension 2 for input with 2"),
    (lambda tf: tf.reduce_join(TABLE, fed(tf, [0, 0])), "InvalidArgumentError", "Duplicate reduction dimension 0"),
    (lambda tf: tf.regex_replace("a", "(", "b"), "InvalidArgumentError", "Invalid pattern: (, error: missing )"),
    (lambda tf: tf.regex_replace("a", fed(tf, ["a"]), "b"), "ValueError", "Shape must be rank 0 but is rank 1"),
    (lambda tf: tf.strings.unsorted_segment_join(["a"], [1], 1), "InvalidArgumentError", "segment_ids are not allowed"),
    (
        lambda tf: tf.strings.unsorted_segment_join(["a"], [0], fed(tf, -1)),
        "InvalidArgumentError",
        "must be non-negative",
    ),
    (lambda tf: tf.strings.unsorted_segment_join(["a", "b"], [0], 1), "ValueError", "must be equal, but are 2 and 1"),
    (lambda tf: tf.strings.split(unranked(tf, [["a b"]])), "InvalidArgumentError", "input must be a vector, got shape"),
    (lambda tf: tf.string_split(unranked(tf, [["a b"]])), "InvalidArgumentError", "input must be a vector, got shape"),
    (lambda tf: tf.strings.format("{} {}", [tf.constant(1)]), "ValueError", "The template expects 2 tensors, but the"),
]


def fed(tf, value):
    """A tensor whose value is only known in the step."""
    return tf.placeholder_with_default(value, np.shape(value))


def unranked(tf, value):
    """A tensor of which not even the rank is known before the step."""
    return tf.placeholder_with_default(value, None)


@pytest.mark.parametrize("name", GRAPHS)
def test_same_graph(name):
    assert_same_graph(GRAPHS[name])


@pytest.mark.parametrize(("make", "kind", "words"), REFUSED)
def test_same_refusal(make, kind, words):
    def answer(tf):
        error = ValueError if kind == "ValueError" else getattr(tf.errors, kind)
        with tf.Graph().as_default(), tf.Session() as sess, pytest.raises(error) as caught:
            sess.run(make(tf))
        return words in str(caught.value)

    assert both(answer) == (True, True)


FILLED = {
    "fill": lambda tf: tf.fill([2], fed(tf, "z\0")),
    "join": lambda tf: tf.string_join([tf.fill([2], "ab"), "x"]),
    "sparse_to_dense": lambda tf: tf.sparse_to_dense([[1]], [2], ["a"], default_value="z\0"),
    "padded_batch": lambda tf: next_of(tf, tf.data.Dataset.from_tensors(["a"]).padded_batch(1, [2], "z\0")),
    "parse_example": lambda tf: tf.parse_example(
        [tf.train.Example().SerializeToString(), example_of(tf, b"a").SerializeToString()],
        {"a": tf.FixedLenSequenceFeature([], tf.string, default_value="z\0", allow_missing=True)},
    )["a"],
}


def next_of(tf, dataset):
    return tf.data.make_one_shot_iterator(dataset).get_next()


def example_of(tf, value):
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Example(features=tf.train.Features(feature={"a": feature}))


@pytest.mark.parametrize("name", FILLED)
def test_a_tensor_filled_with_a_string_holds_that_string(name):
    """Not arrays of it, whose memory a join would give away, and with the zeros at its end."""

    def answer(tf):
        with tf.Graph().as_default(), tf.Session() as sess:
            return repr(sess.run(FILLED[name](tf)).tolist())

    theirs, ours = both(answer)
    assert ours == theirs


def test_a_rewrite_that_refers_to_no_group_is_refused():
    with (
        dtflab.Graph().as_default(),
        dtflab.Session() as sess,
        pytest.raises(dtflab.errors.InvalidArgumentError, match=r"refers to '\\2'"),
    ):
        sess.run(dtflab.regex_replace("a", "(a)", r"\2"))

"""Names that are not written yet say what to use."""

from __future__ import annotations

import pytest

import dtflab as tf


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (lambda: tf.get_variable, "'tf.get_variable' (yet).*Use tf.Variable"),
        (lambda: tf.train.Saver, "'tf.train.Saver' (yet).*Use session.run"),
        (lambda: tf.nn.conv2d, "'tf.nn.conv2d' (yet).*Use tf.matmul"),
        (lambda: tf.nn.sigmod, "Did you mean sigmoid"),
        (lambda: tf.train.GradientDescentOptimiser, "Did you mean GradientDescentOptimizer"),
    ],
)
def test_a_missing_name_says_what_to_use(look, said):
    with pytest.raises(AttributeError, match=said.replace("(", r"\(").replace(")", r"\)")):
        look()

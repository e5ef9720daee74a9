"""Names that are not here: the error says whether TF1 has them, and what is near."""

from __future__ import annotations

import operator
import re

import pytest

import dtflab as tf
from dtflab.base.missing_names import _INSTEAD


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (lambda: tf.contrib, "TensorFlow 1 has tf.contrib, dtflab does not (yet). Use the same without tf.contrib"),
        (lambda: tf.errors.TimeoutError, "There is no tf.errors.TimeoutError."),
        (lambda: tf.nn.sigmod, "There is no tf.nn.sigmod. The nearest here: sigmoid"),
        (lambda: tf.train.GradientDescentOptimiser, "The nearest here: GradientDescentOptimizer"),
        (lambda: tf.sessions, "There is no tf.sessions. The nearest here: Session"),
        (lambda: tf.SESSION, "There is no tf.SESSION. The nearest here: Session"),
        (lambda: tf.keras, "TensorFlow 1 has tf.keras, dtflab does not (yet). Use tf.layers, tf.losses and tf.train's"),
        (lambda: tf.estimator, "tf.estimator, dtflab does not (yet). Use tf.train.MonitoredTrainingSession"),
        (lambda: tf.function, "tf.function, dtflab does not (yet). Use plain functions"),
        (lambda: tf.GradientTape, "tf.GradientTape, dtflab does not (yet). Use tf.gradients(loss, variables), or"),
        (lambda: tf.enable_v2_behavior, "Use a session, as in sess.run(y): there is no eager execution."),
        (lambda: tf.compat.v2, "TensorFlow 1 has tf.compat.v2, dtflab does not (yet). Use tf.compat.v1, which is tf"),
        (lambda: tf.viz.timelin, "There is no tf.viz.timelin. The nearest here: timeline."),
        (lambda: tf.viz.Timeline, "The nearest here: timeline."),
        (lambda: tf.datasets.digit, "There is no tf.datasets.digit. The nearest here: digits."),
        (lambda: tf.extend.ops, "There is no tf.extend.ops. The nearest here: Op, op."),
        (lambda: tf.train.Adam, "There is no tf.train.Adam. The nearest here: AdamOptimizer."),
        (lambda: tf.nn.ctc_loss_v2, "TensorFlow 1 has tf.nn.ctc_loss_v2, dtflab does not (yet)."),
        (lambda: tf.raw_ops.AllToAll, "TensorFlow 1 has tf.raw_ops.AllToAll, dtflab does not (yet)."),
        (lambda: tf.mul, "There is no tf.mul. Use tf.multiply."),
        (lambda: tf.train.SummaryWriter, "There is no tf.train.SummaryWriter. Use tf.summary.FileWriter."),
    ],
)
def test_a_missing_name_says_what_to_use(look, said):
    with pytest.raises(AttributeError, match=re.escape(said)):
        look()


@pytest.mark.parametrize("name", ["keras", "lite", "estimator", "user_ops", "qwertz"])
def test_what_is_not_alike_is_not_near(name):
    with pytest.raises(AttributeError) as caught:
        getattr(tf, name)
    assert "nearest" not in str(caught.value)


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new in _INSTEAD.items() if new.startswith("tf.")])
def test_what_to_use_instead_is_here_and_the_old_name_is_not(old, new):
    for name in re.findall(r"tf(?:\.\w+)+", new):
        assert _lookup(name) is not None
    with pytest.raises(AttributeError, match=re.escape(f"Use {new}.")):
        _lookup(old)


def _lookup(path):
    return operator.attrgetter(path.removeprefix("tf."))(tf)


def test_what_python_asks_for_itself_is_simply_not_there():
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        _ = tf.__wrapped__

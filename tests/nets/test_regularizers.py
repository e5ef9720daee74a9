"""Regularizers: their values, and where layers and scopes put them."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab import regularizers

WEIGHTS = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def value(tensor):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


@pytest.mark.parametrize(
    ("regularizer", "want"),
    [
        (regularizers.l1_regularizer(0.5), 0.5 * np.abs(WEIGHTS).sum()),
        (regularizers.l2_regularizer(0.5), 0.25 * (WEIGHTS**2).sum()),
        (regularizers.l1_l2_regularizer(0.5, 2.0), 0.5 * np.abs(WEIGHTS).sum() + (WEIGHTS**2).sum()),
        (regularizers.l1_l2_regularizer(0.5, 0.0), 0.5 * np.abs(WEIGHTS).sum()),
    ],
)
def test_values(regularizer, want):
    assert value(regularizer(tf.constant(WEIGHTS))) == pytest.approx(want)


def test_nothing_to_add():
    assert regularizers.l2_regularizer(0.0)(tf.constant(WEIGHTS)) is None
    assert regularizers.sum_regularizer([regularizers.l1_regularizer(0.0)])(tf.constant(WEIGHTS)) is None


@pytest.mark.parametrize("scale", [1, -0.5])
def test_bad_scales(scale):
    with pytest.raises(ValueError, match="scale"):
        regularizers.l2_regularizer(scale)


def test_layers_and_scopes_collect_losses():
    l2 = regularizers.l2_regularizer(0.1)
    tf.layers.dense(tf.constant(WEIGHTS), 3, kernel_regularizer=l2, name="layer")
    with tf.variable_scope("scope", regularizer=l2):
        tf.get_variable("w", initializer=WEIGHTS)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert [loss.name for loss in losses] == [
        "layer/kernel/Regularizer/l2_regularizer:0",
        "scope/w/Regularizer/l2_regularizer:0",
    ]
    kernel, *found, total = value([tf.trainable_variables()[0], *losses, tf.losses.get_regularization_loss()])
    assert found == pytest.approx([0.05 * (kernel**2).sum(), 0.05 * (WEIGHTS**2).sum()])
    assert total == pytest.approx(sum(found))


def test_a_regularizer_of_many_weights():
    weights = [tf.get_variable(name, initializer=WEIGHTS) for name in ("a", "b")]
    total = regularizers.apply_regularization(regularizers.l1_regularizer(0.5), weights)
    assert value(total) == pytest.approx(np.abs(WEIGHTS).sum())
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == [total]
    with pytest.raises(ValueError, match="No weights"):
        regularizers.apply_regularization(regularizers.l1_regularizer(0.5))

"""tf.layers next to TensorFlow: values, gradients and what the updates leave, with the same weights; a training."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from tests.oracle.graph_defs import both

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be removed:UserWarning")


def numbers(*shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + 1.0).reshape(shape)


def weights(tf):
    def made(shape, dtype=None, partition_info=None):
        return tf.constant(numbers(*shape), dtype)

    return made


VALUES = {
    "dense": lambda tf: tf.layers.dense(numbers(2, 3, 4), 3, tf.nn.relu),
    "conv1d": lambda tf: tf.layers.conv1d(numbers(2, 8, 3), 4, 3, strides=2),
    "conv2d": lambda tf: tf.layers.conv2d(numbers(2, 8, 7, 3), 4, (3, 2), strides=2, padding="same"),
    "conv3d": lambda tf: tf.layers.conv3d(numbers(2, 4, 5, 3, 2), 3, 2),
    "conv2d transposed": lambda tf: tf.layers.conv2d_transpose(numbers(2, 4, 3, 2), 3, 3, 2, "same"),
    "conv2d transposed valid": lambda tf: tf.layers.conv2d_transpose(numbers(2, 4, 3, 2), 3, 3, 2),
    "conv3d transposed": lambda tf: tf.layers.conv3d_transpose(numbers(1, 3, 3, 2, 2), 3, 2, 2),
    "separable 1d": lambda tf: tf.layers.separable_conv1d(numbers(2, 8, 3), 4, 3, padding="causal", dilation_rate=2),
    "separable 2d": lambda tf: tf.layers.separable_conv2d(numbers(2, 8, 8, 3), 4, 3, 2, depth_multiplier=2),
    "dilated": lambda tf: tf.layers.conv2d(numbers(2, 8, 8, 3), 4, 3, dilation_rate=2, activation="tanh"),
    "max 1d": lambda tf: tf.layers.max_pooling1d(tf.constant(numbers(2, 8, 3)), 2, 2),
    "mean 2d": lambda tf: tf.layers.average_pooling2d(tf.constant(numbers(2, 8, 8, 3)), 3, 2, "same"),
    "mean 3d": lambda tf: tf.layers.average_pooling3d(tf.constant(numbers(2, 4, 4, 4, 3), tf.float32), 2, 2),
    "flatten first": lambda tf: tf.layers.flatten(tf.constant(numbers(2, 3, 4, 5)), data_format="channels_first"),
    "normalized": lambda tf: tf.layers.batch_normalization(numbers(6, 3), training=True),
    "normalized images": lambda tf: tf.layers.batch_normalization(
        tf.constant(numbers(2, 4, 4, 3), tf.float32), training=True, momentum=0.8
    ),
    "normalized images as fed": lambda tf: tf.layers.batch_normalization(
        tf.constant(numbers(2, 4, 4, 3), tf.float32), training=tf.placeholder_with_default(True, [])
    ),
    "normalized images later": lambda tf: tf.layers.batch_normalization(
        tf.constant(numbers(2, 4, 4, 3), tf.float32), moving_mean_initializer=weights(tf)
    ),
    "normalized in the middle": lambda tf: tf.layers.batch_normalization(numbers(6, 3, 2), 1, training=True),
    "normalized as fed": lambda tf: tf.layers.batch_normalization(
        numbers(6, 3), training=tf.placeholder_with_default(False, [])
    ),
    "normalized later": lambda tf: tf.layers.batch_normalization(numbers(6, 3), moving_mean_initializer=weights(tf)),
}


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_same_values(name, use_resource):
    """Outputs, gradients by all weights, and what the updates leave."""

    def run(tf):
        with tf.variable_scope("net", initializer=weights(tf), use_resource=use_resource):
            y = VALUES[name](tf)
        variables = tf.trainable_variables()
        gradients = tf.gradients(tf.reduce_sum(y * tf.sin(y)), variables)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = session.run([y, *gradients])
            session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
            return y.shape.as_list(), values + session.run(tf.global_variables())

    theirs, ours = both(run)
    assert ours[0] == theirs[0]
    for mine, other in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)


FIRST = {
    "conv1d": (3, lambda tf, x, **how: tf.layers.conv1d(x, 4, 3, **how)),
    "conv2d": (4, lambda tf, x, **how: tf.layers.conv2d(x, 4, 3, **how)),
    "conv2d transposed": (4, lambda tf, x, **how: tf.layers.conv2d_transpose(x, 4, 3, 2, **how)),
    "max 1d": (3, lambda tf, x, **how: tf.layers.max_pooling1d(x, 2, 2, **how)),
    "mean 2d": (4, lambda tf, x, **how: tf.layers.average_pooling2d(x, 2, 2, **how)),
    "max 3d": (5, lambda tf, x, **how: tf.layers.max_pooling3d(x, 2, 2, **how)),
}


@pytest.mark.parametrize("name", FIRST)
def test_channels_first_are_channels_last_turned(name):
    """TensorFlow's CPU kernels do not have all of these."""
    rank, layer = FIRST[name]
    x = numbers(2, *[4] * (rank - 2), 3).astype(np.float32)
    with tf.Graph().as_default(), tf.variable_scope("net", initializer=weights(tf), reuse=tf.AUTO_REUSE):
        last = layer(tf, tf.constant(x), name="same")
        turned = tf.constant(np.moveaxis(x, -1, 1))
        first = layer(tf, turned, data_format="channels_first", name="same")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            last, first = session.run([last, first])
    np.testing.assert_allclose(np.moveaxis(first, 1, -1), last, rtol=1e-5, atol=1e-6)


# ---- training ----


def test_a_training_program():
    """Batch normalization in training and after it, regularization, momentum: the losses of each step."""

    def losses(tf):
        training = tf.placeholder(tf.bool, [])
        x = tf.placeholder(tf.float32, [None, 6, 6, 2])
        with tf.variable_scope("net", initializer=weights(tf), regularizer=lambda w: 0.01 * tf.nn.l2_loss(w)):
            y = tf.layers.conv2d(x, 4, 3, use_bias=False)
            y = tf.nn.relu(tf.layers.batch_normalization(y, training=training, momentum=0.7))
            y = tf.layers.max_pooling2d(y, 2, 2)
            y = tf.layers.batch_normalization(tf.layers.dense(tf.layers.flatten(y), 3), training=training)
        loss = tf.reduce_mean(tf.square(y - 1.0)) + tf.losses.get_regularization_loss()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        images = numbers(8, 6, 6, 2)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            seen = []
            for step in range(5):
                value = session.run(loss, {x: images * (step + 1), training: True})  # TensorFlow may update first
                session.run(train, {x: images * (step + 1), training: True})
                seen += [value, session.run(loss, {x: images, training: False})]
        return seen

    theirs, ours = both(losses)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert ours[-2] < ours[0]

"""tf.layers: the nodes that TensorFlow makes (tf_keras's legacy layers), variables, collections."""

from __future__ import annotations

import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be removed:UserWarning")
program = Programs()


@program.each()
def test_same_graph(run):
    """The function returns the tensors whose gradients by all trainable variables are asked for."""

    def with_gradients(tf):
        outputs = run(tf)
        if outputs is not None:
            tf.gradients(outputs, tf.trainable_variables())

    assert_same_graph(with_gradients, gradients=True)


@program.each()
def test_same_collections(run):
    def collected(tf):
        run(tf)
        keys = "trainable_variables", "variables", "regularization_losses", "update_ops"
        return {key: [element.name for element in tf.get_collection(key)] for key in keys}

    theirs, ours = both(collected)
    assert ours == theirs


# ---- dense, dropout, flatten ----


@program
def dense(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    hidden = tf.layers.dense(x, 3, activation=tf.nn.relu)
    return tf.layers.dense(hidden, 2, use_bias=False, name="out")


@program
def dense_by_position(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.layers.dense(x, 3, tf.nn.relu, True, tf.zeros_initializer(), tf.ones_initializer())


@program
def dense_with_names_of_keras(tf):
    x = tf.placeholder(tf.float64, [None, 4])
    return tf.layers.dense(x, 3, activation="tanh", kernel_initializer="ones", bias_initializer="ones")


@program
def dense_of_more_axes(tf):
    x = tf.placeholder(tf.float32, [None, 5, 4])
    known = tf.placeholder(tf.float32, [2, 5, 4])
    return [tf.layers.dense(x, 3), tf.layers.dense(known, 3)]


@program
def dense_reused(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    with tf.variable_scope("tower"):
        y = tf.layers.dense(x, 4, name="same")
    with tf.variable_scope("tower", reuse=True):
        y = tf.layers.dense(y, 4, name="same")
    with tf.variable_scope("tower"):
        return tf.layers.dense(y, 4, name="same", reuse=True)


@program
def one_layer_called_twice(tf):
    layer = tf.layers.Dense(4)
    with tf.variable_scope("first"):
        y = layer(tf.ones([2, 4]))
    with tf.variable_scope("second"):
        y = layer.apply(y)
    with tf.name_scope("third"):
        return layer(y)


@program
def two_without_a_name(tf):
    x = tf.ones([2, 4])
    with tf.variable_scope("a"):
        y = tf.layers.dense(x, 4)
        return tf.layers.dense(y, 4)


@program
def dense_with_regularizers(tf):
    def l2(w):
        return 0.1 * tf.nn.l2_loss(w)

    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.layers.dense(
        x, 3, kernel_regularizer=l2, bias_regularizer=lambda b: None, activity_regularizer=tf.reduce_sum, name="d"
    )
    again = tf.layers.dense(x, 3, kernel_regularizer=l2, name="d", reuse=True)
    return [y, again, tf.add_n(tf.get_collection("regularization_losses"))]


@program
def scope_with_defaults(tf):
    with tf.variable_scope("s", initializer=tf.constant_initializer(0.5), regularizer=tf.nn.l2_loss):
        return tf.layers.dense(tf.ones([2, 3]), 2)


@program
def scope_with_resource_variables(tf):
    with tf.variable_scope("s", use_resource=True):
        return tf.layers.dense(tf.ones([2, 3]), 2, activation=tf.sigmoid)


@program
def scope_with_a_partitioner(tf):
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        return tf.layers.dense(tf.ones([2, 4]), 6, kernel_regularizer=tf.nn.l2_loss)


@program
def dense_with_a_constraint(tf):
    y = tf.layers.dense(tf.ones([2, 3]), 2, kernel_constraint=lambda w: tf.clip_by_value(w, 0.0, 1.0))
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))


@program
def frozen_dense(tf):
    return tf.layers.dense(tf.layers.dense(tf.ones([2, 3]), 2, trainable=False), 2)


@program
def dropout(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    tf.layers.dropout(x)
    tf.layers.dropout(x, 0.4, training=True, seed=1)
    tf.layers.dropout(x, tf.placeholder(tf.float32, []), noise_shape=[None, 1], training=tf.placeholder(tf.bool, []))
    tf.layers.dropout(x, 0.0, training=True, name="nothing")


@program
def flatten(tf):
    tf.layers.flatten(tf.placeholder(tf.float32, [None, 4, 5]))
    tf.layers.flatten(tf.placeholder(tf.float32, [3, None, 5]))
    tf.layers.flatten(tf.placeholder(tf.float32, [None, None]))
    tf.layers.flatten(tf.placeholder(tf.float32, [None]), name="vector")
    tf.layers.flatten(tf.placeholder(tf.float32, [None, 4, 5, 6]), data_format="channels_first")


# ---- convolutions and pooling ----


@program
def conv2d(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    y = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
    y = tf.layers.conv2d(y, 4, [3, 2], (2, 1), "same", use_bias=False, name="second")
    return tf.layers.conv2d(y, 2, 1, padding="SAME", kernel_regularizer=tf.nn.l2_loss)


@program
def conv2d_of_unknown_sizes(tf):
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    return [tf.layers.conv2d(x, 4, 3), tf.layers.conv2d(x, 4, 3, padding="same", dilation_rate=2)]


@program
def conv2d_channels_first(tf):
    x = tf.placeholder(tf.float32, [2, 3, 8, 8])
    return tf.layers.conv2d(x, 4, 3, strides=2, data_format="channels_first", activation="tanh")


@program
def conv1d(tf):
    x = tf.placeholder(tf.float32, [None, 8, 3])
    y = tf.layers.conv1d(x, 4, 3, activation=tf.nn.relu)
    return tf.layers.conv1d(y, 4, 3, padding="causal", dilation_rate=2)


@program
def conv1d_channels_first(tf):
    return tf.layers.conv1d(tf.placeholder(tf.float32, [2, 3, 8]), 4, 3, data_format="channels_first")


@program
def conv3d(tf):
    x = tf.placeholder(tf.float32, [None, 4, 4, 4, 2])
    return tf.layers.conv3d(x, 3, 2, padding="same", strides=(1, 2, 1))


@program
def transposed(tf):
    return tf.layers.conv3d_transpose(tf.placeholder(tf.float32, [None, 3, 3, 3, 2]), 3, 2, 2)


@program
def separable(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    y = tf.layers.separable_conv2d(
        x, 4, 3, depth_multiplier=2, activation=tf.nn.relu, pointwise_regularizer=tf.nn.l2_loss
    )
    return tf.layers.separable_conv2d(y, 4, 3, 2, "same", use_bias=False)


@program
def separable_1d(tf):
    x = tf.placeholder(tf.float32, [2, 8, 3])
    return tf.layers.separable_conv1d(x, 4, 3, depth_multiplier=2, activation=tf.nn.relu, name="mine")


@program
def pooling(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    tf.layers.max_pooling2d(x, 2, 2)
    tf.layers.average_pooling2d(x, [3, 2], (2, 1), padding="same", name="mine")
    tf.layers.max_pooling2d(x, 2, 2, data_format="channels_first")
    sequences = tf.placeholder(tf.float32, [None, 8, 3])
    tf.layers.max_pooling1d(sequences, 2, 2)
    tf.layers.average_pooling1d(sequences, 3, 1, "same")
    volumes = tf.placeholder(tf.float32, [None, 4, 4, 4, 3])
    tf.layers.max_pooling3d(volumes, 2, 2)
    tf.layers.average_pooling3d(volumes, 2, 1, data_format="channels_first")


# ---- batch normalization ----


@program
def normalized_in_training(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.layers.batch_normalization(x, training=True, gamma_regularizer=tf.nn.l2_loss)


@program
def normalized_as_fed(tf):
    x = tf.placeholder(tf.float32, [None, 3, 4])
    return tf.layers.batch_normalization(x, 1, training=tf.placeholder(tf.bool, []), momentum=0.9)


@program
def normalized_later(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.layers.batch_normalization(x, center=False, scale=False, name="bn")


@program
def normalized_with_a_partitioner(tf):
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2), use_resource=True):
        return tf.layers.batch_normalization(tf.ones([2, 4]), training=True)


@program
def normalized_over_two_axes(tf):
    return tf.layers.batch_normalization(tf.placeholder(tf.float64, [None, 3, 4]), [1, 2], training=True, epsilon=0.1)


@program
def normalized_but_frozen(tf):
    return tf.layers.batch_normalization(tf.ones([2, 4, 4, 3]), training=True, trainable=False, fused=False)


@program
def normalized_images(tf):
    return tf.layers.batch_normalization(tf.placeholder(tf.float32, [None, 4, 4, 3]), training=True)


@program
def normalized_images_as_fed(tf):
    x = tf.placeholder(tf.float32, [None, 3, 4, 4])
    return tf.layers.batch_normalization(x, 1, scale=False, center=False, training=tf.placeholder(tf.bool, []))


@program
def normalized_images_later(tf):
    return tf.layers.batch_normalization(tf.placeholder(tf.float32, [None, 4, 4, 3]))


@program
def normalized_halves(tf):
    return tf.layers.batch_normalization(tf.placeholder(tf.float16, [None, 4]), training=True)


# ---- together ----


@program
def on_parameter_servers(tf):
    setter = tf.train.replica_device_setter(cluster={"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    with tf.device(setter):
        x = tf.placeholder(tf.float32, [None, 4, 4, 1])
        y = tf.layers.flatten(tf.layers.conv2d(x, 3, 2, name="conv"))
        with tf.device("/gpu:0"):
            y = tf.layers.dense(y, 3, tf.nn.relu)
        with tf.variable_scope("shards", partitioner=tf.fixed_size_partitioner(2)):
            return tf.layers.dense(tf.layers.batch_normalization(y, training=True), 2)


@program
def in_branches(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    layer = tf.layers.Dense(3, use_bias=False)
    first = layer(x)
    pred = tf.placeholder(tf.bool, [])
    return first + tf.cond(pred, lambda: layer(2.0 * x), lambda: tf.layers.dense(x, 3, name="other"))


@program
def a_network(tf):
    x = tf.placeholder(tf.float32, [None, 12, 12, 1])
    y = tf.layers.conv2d(x, 4, 5, activation=tf.nn.relu)
    y = tf.layers.max_pooling2d(y, 2, 2)
    y = tf.layers.flatten(y)
    y = tf.layers.dropout(tf.layers.dense(y, 8, activation=tf.nn.relu), training=True)
    return tf.layers.dense(y, 10)


@program
def a_layer_of_ones_own(tf):
    class Scaled(tf.layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight("scale", input_shape[1:], initializer=tf.ones_initializer())
            self.count = self.add_weight("count", [], tf.int32, tf.zeros_initializer(), trainable=False)
            super().build(input_shape)

        def call(self, inputs, scope=None):
            self.add_loss(tf.reduce_sum(self.scale))
            self.add_update(tf.assign_add(self.count, 1))
            with tf.variable_scope(scope, reuse=False):
                return inputs * self.scale + tf.get_variable("more", [])

    with tf.variable_scope("x"):
        return Scaled()(tf.ones([2, 3]))

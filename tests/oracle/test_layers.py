"""tf.layers: TensorFlow's nodes (tf_keras's legacy layers), variables, collections, and values of training steps."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import dtflab as tf
from tests.oracle.graph_defs import assert_same_graph, both, real_tf

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be removed:UserWarning")
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
def test_same_graph(run):
    """The function returns the tensors whose gradients by all trainable variables are asked for."""

    def with_gradients(tf):
        outputs = run(tf)
        if outputs is not None:
            tf.gradients(outputs, tf.trainable_variables())

    assert_same_graph(with_gradients, gradients=True)


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
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


# ---- values and gradients, with the same weights ----


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


# ---- what a layer says ----


def test_properties():
    def said(tf):
        layer = tf.layers.Dense(3, kernel_regularizer=tf.nn.l2_loss, name="d")
        before = layer.built, layer.dtype, layer.name, layer.weights
        layer(tf.ones([2, 4]))
        weights = [[v.name for v in w] for w in (layer.trainable_variables, layer.non_trainable_weights)]
        layer.trainable = False
        frozen = [[v.name for v in w] for w in (layer.trainable_weights, layer.non_trainable_variables)]
        return before, weights, frozen, len(layer.losses), layer.count_params(), layer.scope_name, str(layer.input_spec)

    theirs, ours = both(said)
    assert ours == theirs


BAD = {
    "rank": lambda tf: tf.layers.dense(tf.ones([3]), 2),
    "depth": lambda tf: tf.layers.dense(tf.placeholder(tf.float32, [3, None]), 2),
    "integers": lambda tf: tf.layers.dense(tf.ones([3, 2], tf.int32), 2),
    "there already": lambda tf: [tf.layers.dense(tf.ones([3, 2]), 2, name="d") for _ in range(2)],
    "not there": lambda tf: tf.layers.dense(tf.ones([3, 2]), 2, name="d", reuse=True),
    "no scope": lambda tf: tf.layers.Dense(3).scope_name,
    "not built": lambda tf: tf.layers.Dense(3).count_params(),
    "units": lambda tf: tf.layers.dense(tf.ones([3, 2]), -1),
    "activation": lambda tf: tf.layers.dense(tf.ones([3, 2]), 2, activation="no"),
    "activation's type": lambda tf: tf.layers.dense(tf.ones([3, 2]), 2, activation=3),
    "argument": lambda tf: tf.layers.Dense(3, foo=3),
    "rate": lambda tf: tf.layers.dropout(tf.ones([3]), 2.0),
    "other depth": lambda tf: [layer(tf.ones([2, n])) for layer in [tf.layers.Dense(3)] for n in (4, 5)],
    "filters": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 0, 3),
    "kernel size": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, (3, 3, 3)),
    "kernel of nothing": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, 0),
    "strides": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, 3, strides="x"),
    "strides and rates": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, 3, strides=2, dilation_rate=2),
    "padding": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, 3, padding="x"),
    "causal images": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, 3, padding="causal"),
    "data format": lambda tf: tf.layers.conv2d(tf.ones([1, 8, 8, 3]), 2, 3, data_format="NHWC"),
    "too small": lambda tf: tf.layers.conv2d(tf.ones([1, 2, 2, 3]), 2, 3),
    "no images": lambda tf: tf.layers.conv2d(tf.ones([2, 2]), 2, 3),
    "channels": lambda tf: tf.layers.conv2d(tf.placeholder(tf.float32, [1, 8, 8, None]), 2, 3),
    "no pool strides": lambda tf: tf.layers.max_pooling2d(tf.ones([1, 8, 8, 3]), 2, None),
    "pool of images": lambda tf: tf.layers.max_pooling1d(tf.ones([1, 8, 8, 3]), 2, 1),
    "axis": lambda tf: tf.layers.batch_normalization(tf.ones([2, 3]), 2),
    "same axis": lambda tf: tf.layers.batch_normalization(tf.ones([2, 3]), [1, -1]),
    "axis's type": lambda tf: tf.layers.batch_normalization(tf.ones([2, 3]), "x"),
    "axis's size": lambda tf: tf.layers.batch_normalization(tf.placeholder(tf.float32, [2, None])),
    "axes": lambda tf: tf.layers.InputSpec(ndim=2, axes={3: 1}),
    "axes' type": lambda tf: tf.layers.InputSpec(axes={"x": 1}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    def error(tf):
        with pytest.raises(Exception) as caught:
            BAD[name](tf)
        return type(caught.value)

    theirs, ours = both(error)
    assert ours is theirs and ours in (ValueError, TypeError)


def test_input_specs():
    def fits(tf):
        found = {}
        for name, spec in {
            "ndim": {"ndim": 2},
            "max": {"max_ndim": 1},
            "min": {"min_ndim": 3},
            "axes": {"axes": {-1: 3, 0: None}},
            "shape": {"shape": [None, 3]},
            "dtype": {"dtype": "float64"},
        }.items():
            for shape in ([2, 3], [2, 4], [2], [2, 3, 4], None):
                layer = tf.layers.Layer()
                layer.input_spec = tf.layers.InputSpec(**spec)
                try:
                    layer(tf.placeholder(tf.float32, shape))
                except ValueError:
                    found[name, str(shape)] = False
                else:
                    found[name, str(shape)] = True
        return found

    theirs, ours = both(lambda tf: fits(tf))
    assert ours == theirs and set(ours.values()) == {True, False}


# ---- arguments ----


def functions_and_classes():
    names = [name for name in dir(real_tf.layers) if not name.startswith("_") and name != "experimental"]
    return names + [f"rnn_cell.{name}" for name in dir(real_tf.nn.rnn_cell) if name[0].isupper()]


@pytest.mark.parametrize("name", functions_and_classes())
def test_same_arguments(name):
    """By name, in the same order; the lab may have more at the end."""

    def arguments(tf):
        found = tf.nn if name.startswith("rnn_cell") else tf.layers
        for part in name.split("."):
            found = getattr(found, part)
        kinds = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
        return [p.name for p in inspect.signature(found).parameters.values() if p.kind not in kinds]

    theirs, ours = arguments(real_tf), arguments(tf)
    if name == "InputSpec":
        theirs = theirs[:6]  # the others are Keras'
    assert ours[: len(theirs)] == theirs


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

"""tf.layers: TensorFlow's nodes (tf_keras's legacy layers), variables, collections, and values of training steps."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from tests.oracle.graph_defs import assert_same_graph, both

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

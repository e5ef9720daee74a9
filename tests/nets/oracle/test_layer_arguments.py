"""tf.layers: the arguments, properties and input specs of TensorFlow's layers, and what they refuse."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab as tf
from tests.oracle.graph_defs import both

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be removed:UserWarning")


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

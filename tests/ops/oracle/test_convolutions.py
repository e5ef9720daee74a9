"""Convolutions and pooling next to TensorFlow: graphs, errors, and what its CPU kernels refuse but dtflab computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_graph(run):
    assert_same_graph(run, gradients=True)


def images(tf: Any, *shape: int | None) -> Any:
    return tf.placeholder(tf.float32, shape or [None, 8, 6, 4])


def weights(tf: Any, *shape: int) -> Any:
    return tf.placeholder(tf.float32, shape)


@program
def small_network(tf):
    x = tf.reshape(tf.placeholder(tf.float32, [None, 64]), [-1, 8, 8, 1])
    labels = tf.placeholder(tf.int64, [None])
    for i, (before, after) in enumerate(((1, 4), (4, 8))):
        with tf.name_scope(f"layer{i}"):
            w = tf.Variable(tf.truncated_normal([3, 3, before, after], stddev=0.1, seed=i))
            b = tf.Variable(tf.constant(0.1, shape=[after]))
            x = tf.nn.relu(tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME") + b)
            x = tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    logits = tf.matmul(tf.reshape(x, [-1, 2 * 2 * 8]), tf.Variable(tf.zeros([32, 10])))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    tf.train.GradientDescentOptimizer(0.1).minimize(loss)


@program
def conv2d(tf):
    x, w = images(tf), weights(tf, 3, 2, 4, 5)
    tf.nn.conv2d(x, w, 2, "SAME")
    tf.nn.conv2d(x, w, [2, 1], "VALID", dilations=2, name="dilated")
    tf.nn.conv2d(x, filters=w, strides=[1, 1, 1, 1], padding=[[0, 0], [1, 2], [0, 1], [0, 0]], use_cudnn_on_gpu=False)
    tf.nn.conv2d(images(tf, 2, 4, 8, 6), w, 1, "SAME", data_format="NCHW", name="first")
    tf.nn.conv2d(np.ones((1, 3, 3, 4), np.float32), w, 1, "SAME")
    tf.nn.conv2d(images(tf, 2, 3, 8, 6, 4), w, 1, "SAME", name="two_batches")
    tf.nn.conv2d(images(tf, None, 3, None, 6, 4), w, 1, "SAME")


@program
def conv2d_gradients(tf):
    x, w = images(tf), weights(tf, 3, 2, 4, 5)
    y = tf.nn.conv2d(x, w, 1, "SAME")
    dx, dw = tf.gradients(y, [x, w])
    tf.gradients([dx, dw], [x, w])


@program
def back_and_transposed(tf):
    y, w = images(tf, 2, 4, 3, 5), weights(tf, 3, 2, 4, 5)
    tf.nn.conv2d_backprop_input([2, 8, 6, 4], w, y, [1, 2, 2, 1], "SAME")
    tf.nn.conv2d_backprop_filter(images(tf, 2, 8, 6, 4), [3, 2, 4, 5], y, [1, 2, 2, 1], "SAME")
    tf.nn.conv2d_transpose(y, w, [2, 8, 6, 4], 2)
    z = tf.nn.conv2d_transpose(input=y, filters=w, output_shape=tf.stack([2, 8, 6, 4]), strides=[1, 2, 2, 1], name="up")
    tf.nn.conv2d_transpose(images(tf, 2, 5, 4, 3), w, [2, 4, 8, 6], 2, data_format="NCHW")
    tf.nn.conv_transpose(y, w, [2, 8, 6, 4], 2)
    tf.gradients(z, [y, w])


@program
def sequences(tf):
    x, w = tf.placeholder(tf.float32, [None, 7, 2]), weights(tf, 3, 2, 4)
    y = tf.nn.conv1d(x, w, 2, "SAME")
    tf.nn.conv1d(tf.placeholder(tf.float32, [None, 2, 7]), w, 1, "VALID", data_format="NCW", name="first")
    tf.nn.conv1d(input=x, filters=w, stride=1, padding="VALID", dilations=2)
    tf.nn.conv1d_transpose(tf.placeholder(tf.float32, [3, 4, 4]), w, [3, 8, 2], 2)
    tf.nn.conv1d_transpose(tf.placeholder(tf.float32, [3, 4, 4]), w, tf.constant([3, 2, 8]), 2, data_format="NCW")
    tf.nn.conv_transpose(tf.placeholder(tf.float32, [3, 4, 4]), w, [3, 8, 2], 2)
    tf.nn.max_pool1d(x, 2, 2, "SAME")
    tf.nn.avg_pool1d(x, [2], [1], "VALID")
    tf.nn.max_pool1d(tf.placeholder(tf.float32, [None, 2, 7]), 3, 1, "VALID", data_format="NCW")
    tf.gradients(y, [x, w])


@program
def volumes(tf):
    x, w = tf.placeholder(tf.float32, [None, 5, 4, 6, 2]), weights(tf, 2, 3, 1, 2, 3)
    y = tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME")
    z = tf.nn.conv3d_transpose(y, w, [1, 5, 4, 6, 2], [1, 2, 1])
    tf.nn.conv_transpose(y, w, [1, 5, 4, 6, 2], [1, 2, 1], name="up")
    tf.nn.conv3d_backprop_filter(x, [2, 3, 1, 2, 3], y, [1, 1, 2, 1, 1], "SAME")
    pooled = [tf.nn.max_pool3d(z, 2, 2, "SAME"), tf.nn.avg_pool3d(z, [1, 2, 2, 1, 1], 2, "VALID", name="mean")]
    dx, dw = tf.gradients([y, *pooled], [x, w])
    tf.gradients([dx, dw], [x, w])


@program
def convolutions(tf):
    tf.nn.convolution(images(tf), weights(tf, 3, 2, 4, 5), "SAME")
    tf.nn.convolution(images(tf), weights(tf, 3, 2, 4, 5), "VALID", strides=[2, 1], name="mine")
    tf.nn.convolution(tf.placeholder(tf.float32, [None, 7, 2]), weights(tf, 3, 2, 4), "SAME", strides=[2])
    tf.nn.convolution(tf.placeholder(tf.float32, [1, 5, 4, 6, 2]), np.ones((2, 3, 1, 2, 3), np.float32), "SAME")


@program
def pools(tf):
    x = images(tf)
    found = [
        tf.nn.max_pool(x, 2, 2, "SAME"),
        tf.nn.max_pool(x, [1, 3, 2, 1], [2, 1], [[0, 0], [1, 1], [0, 1], [0, 0]], name="padded"),
        tf.nn.max_pool(
            input=images(tf, 2, 4, 8, 6), value=None, ksize=2, strides=1, padding="VALID", data_format="NCHW"
        ),
        tf.nn.max_pool_v2(x, 2, 2, "VALID"),
        tf.nn.avg_pool(x, 2, 2, "SAME"),
        tf.nn.avg_pool2d(x, 2, 2, "SAME"),
        tf.nn.avg_pool_v2(x, [2, 1], 2, "SAME", name="mean"),
        tf.nn.max_pool2d(x, 2, 2, "SAME"),
        tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")[0],
        tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID", Targmax=tf.int32)[0],
    ]
    for pooled in found[:1] + found[3:9]:
        (dx,) = tf.gradients(pooled, x)
        if pooled.op.type != "MaxPoolWithArgmax":
            tf.gradients(dx, x)


@program
def depthwise(tf):
    x, w = images(tf), weights(tf, 3, 3, 4, 2)
    y = tf.nn.depthwise_conv2d_native(x, w, [1, 1, 1, 1], "SAME")
    tf.nn.depthwise_conv2d_native(x, w, [1, 2, 2, 1], [[0, 0], [1, 1], [2, 0], [0, 0]], name="padded")
    tf.nn.depthwise_conv2d_native_backprop_input([1, 8, 6, 4], w, y, [1, 1, 1, 1], "SAME")
    tf.nn.depthwise_conv2d_backprop_filter(x, [3, 3, 4, 2], y, [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1])
    dx, dw = tf.gradients(y, [x, w])
    tf.gradients([dx, dw], [x, w])


@program
def normalizations(tf):
    x, ones = images(tf), tf.ones([4])
    y, mean, variance = tf.nn.fused_batch_norm(x, ones, tf.zeros([4]), name="norm")
    found = [
        tf.nn.fused_batch_norm(x, ones, ones, mean, variance, is_training=False, epsilon=0.1)[0],
        tf.nn.fused_batch_norm(
            images(tf, 2, 4, 8, 6), ones, ones, ones, ones, exponential_avg_factor=0.5, data_format="NCHW"
        )[0],
        tf.nn.fused_batch_norm(images(tf, 2, 4, 8, 6), ones, ones, ones, ones, is_training=False, data_format="NCHW")[
            0
        ],
        tf.nn.lrn(x),
        tf.nn.local_response_normalization(x, 2, 1.5, 0.5, 0.75, name="local"),
    ]
    tf.gradients([y, *found], x)


@program
def older_normalizations(tf):
    x, ones = images(tf), tf.ones([4])
    for op in (tf.raw_ops.FusedBatchNorm, tf.raw_ops.FusedBatchNormV2):
        y = op(x=x, scale=ones, offset=ones, mean=[], variance=[]).y
        tf.gradients(y, [x, ones])


@program
def spread(tf):
    x, w = images(tf), weights(tf, 3, 2, 4, 5)
    y = tf.nn.atrous_conv2d(x, w, 2, "SAME")
    tf.nn.atrous_conv2d(images(tf, 2, 9, 7, 4), w, 2, "VALID", name="known")
    tf.nn.convolution(x, w, "VALID", dilations=[1, 3], name="uneven")
    tf.nn.convolution(tf.placeholder(tf.float32, [None, None, 2]), weights(tf, 3, 2, 4), "SAME", dilation_rate=[2])
    tf.nn.convolution(tf.placeholder(tf.float32, [1, 5, 6, 6, 2]), weights(tf, 2, 2, 1, 2, 3), "SAME", dilations=2)
    tf.nn.convolution(images(tf, 2, 4, 9, 7), w, "SAME", dilations=2, data_format="NCHW", name="first")
    tf.gradients(y, [x, w])


@program
def spread_and_transposed(tf):
    y, w = images(tf, 2, 4, 3, 5), weights(tf, 3, 2, 4, 5)
    tf.nn.atrous_conv2d_transpose(y, w, [2, 4, 3, 4], 2, "SAME")
    tf.nn.atrous_conv2d_transpose(y, w, [2, 8, 5, 4], 2, "VALID", name="valid")
    tf.nn.atrous_conv2d_transpose(y, w, [2, 4, 3, 4], 1, "SAME")


@program
def separable(tf):
    x, w = images(tf), weights(tf, 3, 3, 4, 2)
    y = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
    z = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2], name="spread")
    tf.nn.depthwise_conv2d(images(tf, 1, 4, 8, 6), w, [1, 1, 2, 2], "VALID", data_format="NCHW")
    u = tf.nn.separable_conv2d(x, w, weights(tf, 1, 1, 8, 5), [1, 2, 2, 1], "SAME")
    tf.nn.separable_conv2d(x, w, weights(tf, 1, 1, 8, 5), [1, 1, 1, 1], "VALID", rate=[2, 1])
    tf.gradients([y, z, u], [x, w])


@program
def pools_of_any_rank(tf):
    x, t = images(tf, 2, 8, 6, 4), tf.placeholder(tf.float32, [None, 7, 2])
    found = [
        tf.nn.pool(x, [2, 2], "MAX", "SAME"),
        tf.nn.pool(x, [2, 3], "AVG", "VALID", strides=[2, 1], name="mine"),
        tf.nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 1]),
        tf.nn.pool(tf.placeholder(tf.float32, [1, 4, 4, 4, 2]), [2, 2, 2], "AVG", "SAME"),
        tf.nn.pool(tf.placeholder(tf.float32, [2, 4, 8, 6]), [2, 2], "AVG", "SAME", data_format="NCHW"),
    ]
    tf.nn.pool(t, [2], "MAX", "SAME")
    tf.nn.pool(t, [2], "AVG", "VALID", dilations=[2])
    tf.nn.pool(tf.placeholder(tf.float32, [None, 2, 7]), [3], "MAX", "VALID", data_format="NCW")
    tf.gradients(found[:3], x)


@program
def fractional_pools(tf):
    x = images(tf, 2, 8, 6, 4)
    y = tf.nn.fractional_max_pool(x, [1.0, 1.4, 1.5, 1.0], seed=1, seed2=2)[0]
    tf.nn.fractional_avg_pool(images(tf), [1.0, 1.4, 1.5, 1.0], True, True, True, 1, 2, "mean")
    u = tf.nn.fractional_avg_pool(x, [1.0, 1.4, 1.5, 1.0], seed=1, seed2=2)[0]
    tf.gradients([y, u], x)


@program
def dilations(tf):
    x, w = images(tf), weights(tf, 3, 3, 4)
    y = tf.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 2, 2, 1], "SAME")
    z = tf.nn.erosion2d(x, w, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    tf.nn.dilation2d(x, filters=w, strides=[1, 1, 1, 1], dilations=[1, 1, 1, 1], padding="VALID", name="mine")
    tf.gradients([y, z], [x, w])


# -- errors -------------------------------------------------------------------------------------------------------


def _conv(shape: tuple[int, ...] = (1, 8, 8, 4), filters: tuple[int, ...] = (3, 3, 4, 4), **attrs: Any) -> Any:
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", **attrs}
    return lambda tf: tf.raw_ops.Conv2D(input=images(tf, *shape), filter=weights(tf, *filters), **attrs)


def _pool(**attrs: Any) -> Any:
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", **attrs}
    return lambda tf: tf.raw_ops.MaxPool(input=images(tf, 1, 2, 2, 4), **attrs)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "stride 0": _conv(strides=[1, 0, 1, 1]),
    "three strides": _conv(strides=[1, 1, 1]),
    "dilation 0": _conv(dilations=[1, 0, 1, 1]),
    "three dilations": _conv(dilations=[1, 1, 1]),
    "depth": _conv(filters=(3, 3, 3, 4)),
    "groups": _conv(filters=(3, 3, 2, 3)),
    "rank": _conv(shape=(8, 8, 4)),
    "rank of the filter": _conv(filters=(3, 3, 4)),
    "too large": _conv(shape=(1, 2, 2, 4), padding="VALID"),
    "no paddings": _conv(padding="EXPLICIT"),
    "paddings": _conv(explicit_paddings=[0] * 8),
    "negative paddings": _conv(padding="EXPLICIT", explicit_paddings=[0, 0, -1, 0, 0, 0, 0, 0]),
    "padded batch": _conv(padding="EXPLICIT", explicit_paddings=[1, 0, 1, 0, 0, 0, 0, 0]),
    "padded too much": _conv(padding="EXPLICIT", explicit_paddings=[0, 0]),
    "pool too large": _pool(ksize=[1, 3, 3, 1]),
    "pool with stride 0": _pool(strides=[1, 0, 1, 1]),
    "volume": lambda tf: tf.nn.conv3d(tf.zeros([1, 4, 4, 4, 2]), tf.zeros([1, 1, 1, 3, 2]), [1] * 5, "SAME"),
    "three sizes": lambda tf: tf.nn.conv2d_backprop_input(
        [8, 8, 3], tf.zeros([3, 3, 3, 4]), tf.zeros([1, 8, 8, 4]), [1, 1, 1, 1], "SAME"
    ),
    "explicit by word": lambda tf: tf.nn.conv2d(images(tf), weights(tf, 3, 3, 4, 4), 1, "EXPLICIT"),
    "three pairs": lambda tf: tf.nn.conv2d(images(tf), weights(tf, 3, 3, 4, 4), 1, [[0, 0]] * 3),
    "no pairs": lambda tf: tf.nn.max_pool(images(tf), 2, 2, [[0, 0], [1, 1, 1], [0, 0], [0, 0]]),
    "numbers for pairs": lambda tf: tf.nn.max_pool(images(tf), 2, 2, [0, 1, 1, 0]),
    "five strides": lambda tf: tf.nn.conv2d(images(tf), weights(tf, 3, 3, 4, 4), [1, 1, 1], "SAME"),
    "depths apart": lambda tf: tf.nn.depthwise_conv2d_native(images(tf), weights(tf, 3, 3, 3, 2), [1, 1, 1, 1], "SAME"),
    "channels of a vector": lambda tf: tf.nn.fused_batch_norm(images(tf), tf.ones([3]), tf.ones([4])),
    "mean missing": lambda tf: tf.nn.fused_batch_norm(images(tf), tf.ones([4]), tf.ones([4]), is_training=False),
    "not images": lambda tf: tf.nn.lrn(tf.zeros([2, 3, 4])),
    "dilation of other channels": lambda tf: tf.nn.dilation2d(
        images(tf), weights(tf, 3, 3, 5), [1] * 4, [1] * 4, "SAME"
    ),
    "strides and rates": lambda tf: tf.nn.convolution(
        images(tf), weights(tf, 3, 3, 4, 4), "SAME", strides=[2, 2], dilations=[2, 2]
    ),
    "rate 0": lambda tf: tf.nn.convolution(images(tf), weights(tf, 3, 3, 4, 4), "SAME", dilations=[0, 2]),
    "four dimensions": lambda tf: tf.nn.convolution(images(tf), weights(tf, 3, 3, 3, 3, 4, 4), "SAME"),
    "spread pool": lambda tf: tf.nn.pool(images(tf), [2, 2], "MAX", "SAME", dilation_rate=[2, 2]),
    "pool of leaps": lambda tf: tf.nn.pool(images(tf), [2, 2], "MAX", "VALID", strides=[3, 3]),
    "another kind of pool": lambda tf: tf.nn.pool(images(tf), [2, 2], "MIN", "VALID"),
    "window 0": lambda tf: tf.nn.max_pool(images(tf), 0, 1, "SAME"),
    "both names": lambda tf: tf.nn.conv2d(images(tf), 1, 1, "SAME", filters=2),
    "format of sequences": lambda tf: tf.nn.conv1d(
        tf.zeros([1, 4, 2]), tf.zeros([1, 2, 2]), 1, "SAME", data_format="WNC"
    ),
    "argmax of another format": lambda tf: tf.nn.max_pool_with_argmax(images(tf), 2, 2, "SAME", data_format="NCHW"),
    "transposed to a point": lambda tf: tf.nn.conv_transpose(images(tf), weights(tf, 3, 3, 4, 4), [1, 2], 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_while_the_graph_is_built(name):
    def refusal(tf: Any) -> str:
        with pytest.raises(ValueError) as caught:
            REFUSED[name](tf)
        return str(caught.value).partition(" for '{{")[0]

    theirs, ours = both(refusal)
    assert ours == theirs


def _hidden(tf: Any, *shape: int) -> Any:
    return tf.placeholder_with_default(np.ones(shape, np.float32), None)


def _hidden_conv(shape: tuple[int, ...] = (1, 8, 8, 4), filters: tuple[int, ...] = (3, 3, 4, 4), **attrs: Any) -> Any:
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", **attrs}
    return lambda tf: tf.raw_ops.Conv2D(input=_hidden(tf, *shape), filter=_hidden(tf, *filters), **attrs)


def _hidden_pool(shape: tuple[int, ...] = (1, 2, 2, 4), **attrs: Any) -> Any:
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME", **attrs}
    return lambda tf: tf.raw_ops.MaxPool(input=_hidden(tf, *shape), **attrs)


def _hidden_pool_grad(y: tuple[int, ...], dy: tuple[int, ...]) -> Any:
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    return lambda tf: tf.raw_ops.MaxPoolGrad(
        orig_input=_hidden(tf, 1, 8, 8, 3), orig_output=_hidden(tf, *y), grad=_hidden(tf, *dy), **window
    )


RUN: dict[str, Callable[[Any], Any]] = {
    "batch strides": _hidden_conv(strides=[2, 1, 1, 1]),
    "depth dilations": _hidden_conv(dilations=[1, 1, 1, 2]),
    "depth": _hidden_conv(filters=(3, 3, 3, 4)),
    "rank of the filter": _hidden_conv(filters=(3, 3, 4)),
    "too large": _hidden_conv(shape=(1, 1, 1, 4), padding="VALID"),
    "channels": lambda tf: (
        tf.raw_ops.FusedBatchNormV3(
            x=_hidden(tf, 2, 3, 4, 4), **{name: _hidden(tf, 3) for name in ("scale", "offset", "mean", "variance")}
        ).y
    ),
    "rank of what is normalized": lambda tf: (
        tf.raw_ops.FusedBatchNormV3(
            x=_hidden(tf, 2, 3, 4), **{name: _hidden(tf, 4) for name in ("scale", "offset", "mean", "variance")}
        ).y
    ),
    "seeds for what is not to be repeated": lambda tf: tf.nn.fractional_max_pool(
        _hidden(tf, 1, 8, 8, 1), [1.0, 1.4, 1.4, 1.0], seed=1
    )[0],
    "pool over images": _hidden_pool(shape=(4, 2, 2, 4), ksize=[2, 1, 1, 1]),
    "pool of a window of 0": _hidden_pool(ksize=[1, 0, 3, 1]),
    "pool of another output": _hidden_pool_grad((1, 3, 4, 3), (1, 4, 4, 3)),
    "pool of another gradient": _hidden_pool_grad((1, 4, 4, 3), (1, 3, 4, 3)),
}


@pytest.mark.parametrize("name", RUN)
def test_refused_by_the_kernel(name):
    def refusal(tf: Any) -> tuple[str, str]:
        fetched = RUN[name](tf)
        with pytest.raises(tf.errors.OpError) as caught, tf.Session() as session:
            session.run(fetched)
        return type(caught.value).__name__, caught.value.message

    (their_type, theirs), (our_type, ours) = both(refusal)
    assert our_type == their_type
    assert ours.partition("\n")[0] in theirs


# oneDNN says AbortedError for these; TensorFlow's own kernels, which check, InvalidArgumentError.
@pytest.mark.parametrize("shape", [(1, 7, 8, 4), (1, 8, 8, 5), (2, 8, 8, 4)])
def test_gradients_that_do_not_fit_the_convolution_are_refused(shape):
    ways = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    x, w, dy = (_hidden(dtflab, *s) for s in ((1, 8, 8, 3), (3, 3, 3, 4), shape))
    back = [
        dtflab.raw_ops.Conv2DBackpropInput(input_sizes=[1, 8, 8, 3], filter=w, out_backprop=dy, **ways),
        dtflab.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=[3, 3, 3, 4], out_backprop=dy, **ways),
    ]
    for tensor in back:
        with pytest.raises(dtflab.errors.InvalidArgumentError, match="out_backprop"), dtflab.Session() as session:
            session.run(tensor)


# -- what TensorFlow has on some devices only -----------------------------------------------------------------------

WAYS: dict[str, dict[str, Any]] = {
    "plain": {"strides": [1, 1, 1, 1], "padding": "SAME"},
    "strides": {"strides": [1, 2, 3, 1], "padding": "VALID"},
    "dilations": {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 3, 1]},
    "both": {"strides": [1, 3, 2, 1], "padding": "VALID", "dilations": [1, 2, 1, 1]},
    "explicit": {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 3, 2, 0, 0, 0]},
}


def _channels_first(ways: dict[str, Any]) -> dict[str, Any]:
    pairs = {"explicit_paddings": 2}
    moved = {"data_format": "NCHW"}
    for name, values in ways.items():
        if isinstance(values, list):
            n = pairs.get(name, 1)
            values = values[:n] + values[-n:] + values[n:-n]
        moved[name] = values
    return moved


@pytest.mark.parametrize("ways", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_every_way_and_format_agree_with_differences(ways, groups):
    """In float64, where TensorFlow's CPU has neither dilated gradients nor NCHW."""
    random = np.random.default_rng(1)
    x, w = random.uniform(-1, 1, (2, 9, 8, 4)), random.uniform(-1, 1, (3, 2, 4 // groups, 6))
    found = []
    for first in (False, True):
        total = _sum_of_squares(w.shape, _channels_first(ways) if first else ways, first)
        found.append(total(x, w))
        _check_slopes(total, (x, w), found[-1][1:], random)
    for last, first in zip(*found, strict=True):
        np.testing.assert_allclose(last, first, 1e-10)


def _sum_of_squares(w_shape: tuple[int, ...], ways: dict[str, Any], first: bool) -> Callable[..., Any]:
    """A function of images and filter: the sum of the squares of the convolution, and its gradients."""
    with dtflab.Graph().as_default() as graph:
        inputs = [dtflab.placeholder("float64", shape) for shape in ([2, 9, 8, 4], w_shape)]
        seen = dtflab.transpose(inputs[0], [0, 3, 1, 2]) if first else inputs[0]
        total = dtflab.reduce_sum(dtflab.raw_ops.Conv2D(input=seen, filter=inputs[1], **ways) ** 2)
        return dtflab.Session(graph=graph).make_callable([total, *dtflab.gradients(total, inputs)], inputs)


def _check_slopes(function: Any, at: Any, slopes: Any, random: Any) -> None:
    for i, slope in enumerate(slopes):
        way = random.uniform(-1, 1, at[i].shape)
        up, down = (function(*(a + s * 1e-3 * way if j == i else a for j, a in enumerate(at)))[0] for s in (1, -1))
        assert np.isclose((up - down) / 2e-3, np.sum(slope * way), 1e-7)  # of a square, differences are exact


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
def test_pools_of_channels_first_are_those_of_channels_last(op):
    """TensorFlow's CPU has no gradient for that format."""
    x = np.random.default_rng(2).permutation(2 * 7 * 6 * 3).reshape(2, 7, 6, 3).astype(np.float32)
    window = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    found = []
    for first in (False, True):
        seen = dtflab.constant(x.transpose(0, 3, 1, 2) if first else x)
        argument = {"input" if op == "MaxPool" else "value": seen}
        y = getattr(dtflab.raw_ops, op)(**argument, **(_channels_first(window) if first else window))
        (dx,) = dtflab.gradients(y * y, seen)
        with dtflab.Session() as session:
            found.append([v.transpose(0, 2, 3, 1) if first else v for v in session.run([y, dx])])
    for last, first in zip(*found, strict=True):
        np.testing.assert_allclose(last, first, 1e-6)


def test_float32_dilated_and_channels_first_are_tensorflows():
    """Convolutions that oneDNN has: the same program on both."""
    random = np.random.default_rng(3)
    x, w = (random.uniform(-1, 1, s).astype(np.float32) for s in ((2, 3, 9, 8), (3, 2, 3, 5)))

    def run(tf: Any) -> Any:
        a, b = tf.constant(x), tf.constant(w)
        y = tf.nn.conv2d(a, b, 1, "SAME", data_format="NCHW", dilations=[2, 3])
        with tf.Session() as session:
            return session.run([y, *tf.gradients(tf.square(y), [a, b])])

    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


@pytest.mark.parametrize("images", [9, 1])
def test_parts_on_threads_are_the_whole(images):
    """The images, or the rows of a single one, are shared by the intra-op threads; together they give the same."""
    x, w = np.random.default_rng(4).uniform(-1, 1, (images, 40, 30, 8)), np.ones((5, 5, 8, 16))
    found = []
    for threads in (1, 3):
        with dtflab.Graph().as_default():
            a, b = dtflab.constant(x), dtflab.constant(w)
            y = dtflab.nn.max_pool(dtflab.nn.conv2d(a, b, 1, "SAME"), 2, 2, "SAME")
            config = dtflab.ConfigProto(intra_op_parallelism_threads=threads)
            with dtflab.Session(config=config) as session:
                found.append(session.run([y, *dtflab.gradients(y, [a, b])]))
    for one, three in zip(*found, strict=True):
        np.testing.assert_allclose(one, three, 1e-12)


@pytest.mark.parametrize("ways", WAYS.values(), ids=list(WAYS))
def test_depthwise_is_a_convolution_with_a_group_per_channel(ways):
    """Dilated ones, too, of which TensorFlow's CPU makes plain ones; with all gradients."""
    random = np.random.default_rng(5)
    x, w = random.uniform(-1, 1, (2, 9, 8, 3)), random.uniform(-1, 1, (3, 2, 3, 2))
    found = []
    for op, filters in (("DepthwiseConv2dNative", w), ("Conv2D", w.reshape(3, 2, 1, 6))):
        a, b = dtflab.constant(x), dtflab.constant(filters)
        y = getattr(dtflab.raw_ops, op)(input=a, filter=b, **ways)
        dx, dw = dtflab.gradients(y * y, [a, b])
        with dtflab.Session() as session:
            found.append(session.run([y, dx, dtflab.reshape(dw, w.shape)]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, 1e-10)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NDHWC", "NCDHW"])
def test_gradients_of_batch_normalization_are_tensorflows_to_second_order(training, data_format):
    random = np.random.default_rng(6)
    spatial = (3, 2) if len(data_format) == 4 else (3, 1, 2)
    shape = (2, 4, *spatial) if data_format.startswith("NC") else (2, *spatial, 4)
    x = random.uniform(-2, 2, shape).astype(np.float32)
    scale, offset, mean, variance = random.uniform(0.5, 2, (4, 4)).astype(np.float32)
    if data_format.startswith("NC") and not training:
        data_format = data_format.replace("C", "") + "C"  # TensorFlow's CPU refuses the other way round
        x = np.moveaxis(x, 1, -1)

    def run(tf: Any) -> Any:
        inputs = [tf.constant(v) for v in (x, scale, offset)]
        y = tf.raw_ops.FusedBatchNormV3(
            x=inputs[0], scale=inputs[1], offset=inputs[2], mean=mean, variance=variance, epsilon=0.1,
            is_training=training, data_format=data_format,
        ).y  # fmt: skip
        first = tf.gradients(tf.sin(y), inputs)
        second = tf.gradients([tf.reduce_sum(g * g) for g in first], inputs[:2])
        config = tf.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(config=config) as session:
            return session.run([y, *first, *second])

    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, 2e-4, 2e-4)


def test_spread_windows_give_tensorflows_values():
    random = np.random.default_rng(7)
    x, w = (random.uniform(-1, 1, s).astype(np.float32) for s in ((2, 9, 8, 3), (3, 2, 3, 4)))

    def run(tf: Any) -> Any:
        a, b = tf.constant(x), tf.constant(w)
        y = tf.nn.atrous_conv2d(a, b, 2, "SAME")
        z = tf.nn.separable_conv2d(a, b, tf.ones([1, 1, 12, 2]), [1, 1, 1, 1], "SAME", rate=[2, 3])
        u = tf.nn.pool(a, [2, 3], "MAX", "VALID", dilation_rate=[3, 2])
        v = tf.nn.atrous_conv2d_transpose(y, b, [2, 9, 8, 3], 2, "SAME")
        with tf.Session() as session:
            return session.run([y, z, u, v, *tf.gradients([tf.square(t) for t in (y, z, u, v)], [a, b])])

    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-3, 1e-4)


def test_fractional_windows_stay_if_they_are_to_stay():
    x = np.random.default_rng(8).permutation(14 * 11).reshape(1, 14, 11, 1).astype(np.float32)

    def run(tf: Any) -> Any:
        found = tf.nn.fractional_max_pool(x, [1.0, 1.4, 1.6, 1.0], deterministic=True, seed=4, seed2=9)
        with tf.Session() as session:
            return [value for _ in range(2) for value in session.run(list(found))]

    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_fractional_windows_are_drawn_again_otherwise():
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        found = dtflab.nn.fractional_avg_pool(np.ones((1, 40, 40, 1), np.float32), [1.0, 1.4, 1.6, 1.0])
        rows = {tuple(session.run(found[1]).tolist()) for _ in range(8)}
    assert len(rows) > 1 and all(row[0] == 0 and row[-1] == 40 and len(row) == 29 for row in rows)

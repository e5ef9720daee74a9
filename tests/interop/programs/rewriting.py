"""Programs for each rewriting that a TensorFlow master makes in graphs before it sends them to their tasks.

The ops that `makes` names are in the graph that the worker gets. They were found by sending every op of the registry,
with its examples, the graphs of `tests/*/oracle`, and these programs through a TensorFlow master.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.interop.programs.site import WORKER, Site

Program = Callable[[Any], Any]
_SOME = np.linspace(0.1, 1.9, 20, dtype=np.float32).reshape(4, 5) ** 2  # for what must be fed
MADE: dict[str, tuple[Program, set[str]]] = {}  # program, the ops that a TensorFlow master makes of it


def makes(*ops: str) -> Callable[[Program], Program]:
    def register(program: Program) -> Program:
        MADE[program.__name__] = program, set(ops)
        return program

    return register


def rewritten(tf: Any, site: Site, name: str) -> list[Any]:
    """Run one of the programs on the worker: its value, and the ops that the worker was given."""
    with tf.device(WORKER):
        value = MADE[name][0](tf)
    metadata = tf.RunMetadata()
    with tf.Session(site.target) as sess:
        sess.run(tf.global_variables_initializer())
        options = tf.RunOptions(output_partition_graphs=True)
        fed = {op.outputs[0]: _SOME for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"}
        found = sess.run(value, fed, options=options, run_metadata=metadata)
    ops = {node.op for part in metadata.partition_graphs for node in part.node if "/job:worker/" in node.device}
    return [np.asarray(found).astype(np.float64).tolist(), sorted(ops)]


def _values(tf: Any, *shape: int) -> Any:
    """Numbers between 0.1 and 1.9 that no master can fold."""
    value = np.linspace(0.1, 1.9, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return tf.placeholder_with_default(value, shape)


def _dense(tf: Any) -> Any:
    """A product with a bias."""
    weights = tf.get_variable("w", initializer=tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)))
    bias = tf.get_variable("b", initializer=tf.constant([-0.5, 0.0, 0.5]))
    return tf.nn.bias_add(tf.matmul(_values(tf, 8, 4), weights), bias)


_FUSED = "_FusedMatMul"


@makes(_FUSED)
def bias_add(tf: Any) -> Any:
    return _dense(tf)


@makes(_FUSED)
def added_bias(tf: Any) -> Any:
    weights = tf.get_variable("w", initializer=tf.constant(np.ones((4, 3), np.float32)))
    return tf.matmul(_values(tf, 8, 4), weights) + tf.get_variable("b", initializer=tf.constant([-0.5, 0.0, 0.5]))


@makes(_FUSED)
def relu(tf: Any) -> Any:
    return tf.nn.relu(_dense(tf))


@makes(_FUSED)
def relu6(tf: Any) -> Any:
    return tf.nn.relu6(_dense(tf))


@makes(_FUSED)
def elu(tf: Any) -> Any:
    return tf.nn.elu(_dense(tf))


@makes(_FUSED)
def leaky_relu(tf: Any) -> Any:
    return tf.nn.leaky_relu(_dense(tf), alpha=0.3)


@makes(_FUSED)
def tanh(tf: Any) -> Any:
    return tf.tanh(_dense(tf))


@makes(_FUSED)
def sigmoid(tf: Any) -> Any:
    return tf.sigmoid(_dense(tf))


@makes(_FUSED)
def gelu(tf: Any) -> Any:
    x = _dense(tf)
    return 0.5 * x * (1.0 + tf.erf(x / np.float32(np.sqrt(2.0))))


@makes(_FUSED, "Tanh")
def gelu_by_tanh(tf: Any) -> Any:
    x = _dense(tf)
    return 0.5 * x * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3.0))))


@makes("_MklSwish")
def swish(tf: Any) -> Any:
    x = _values(tf, 4, 3)
    return x * tf.sigmoid(x)


@makes("_MklLayerNorm")
def layer_norm(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [4, 5])  # of a shape that the master knows, too
    mean = tf.reduce_mean(x, [1], keepdims=True)
    variance = tf.reduce_mean(tf.squared_difference(x, tf.stop_gradient(mean)), [1], keepdims=True)
    scale = tf.get_variable("scale", initializer=tf.constant(np.linspace(1, 2, 5, dtype=np.float32)))
    shift = tf.get_variable("shift", initializer=tf.constant(np.linspace(0, 1, 5, dtype=np.float32)))
    return (x - mean) * tf.rsqrt(variance + 0.001) * scale + shift


@makes("_MklFusedMish")
def mish(tf: Any) -> Any:
    x = _values(tf, 4, 3)
    return x * tf.tanh(tf.nn.softplus(x))


@makes("_MklFusedBatchMatMulV2")
def scaled_products(tf: Any) -> Any:
    return tf.matmul(_values(tf, 2, 1, 3, 4), _values(tf, 2, 1, 4, 3)) * 0.5 + _values(tf, 2, 1, 3, 3)


@makes("_UnaryOpsComposition")
def one_after_the_other(tf: Any) -> Any:
    return tf.tanh(tf.exp(tf.abs(_values(tf, 6))))


@makes()
def resource_variables(tf: Any) -> Any:
    """The initializer's variables"""
    xs = [tf.get_variable(f"x{i}", initializer=tf.constant([1.0 * i, 2.0]), use_resource=True) for i in range(3)]
    return tf.add_n([x.read_value() * float(i) for i, x in enumerate(xs)])


@makes("SquaredDifference")
def squared_difference(tf: Any) -> Any:
    return tf.square(_values(tf, 3) - _values(tf, 3) * 3.0)


@makes("Square", "Mul")
def power(tf: Any) -> Any:
    return tf.pow(_values(tf, 3), 3.0) + tf.pow(_values(tf, 3), 2.0)


@makes("Rsqrt")
def power_of_a_root(tf: Any) -> Any:
    return tf.pow(_values(tf, 3), -0.5)


@makes("Reciprocal")
def reciprocal(tf: Any) -> Any:
    return tf.pow(_values(tf, 3), -1.0)


@makes()
def transposed_product(tf: Any) -> Any:
    return tf.matmul(tf.transpose(_values(tf, 3, 4)), _values(tf, 3, 2))


@makes()
def common_factor(tf: Any) -> Any:
    x = _values(tf, 5)
    return x * _values(tf, 5) + x * tf.exp(_values(tf, 5))


@makes()
def added_up(tf: Any) -> Any:
    a, b, c = (_values(tf, 4) * float(i) for i in range(3))
    return (a + b) + c + a


@makes()
def conditional(tf: Any) -> Any:
    p = tf.placeholder_with_default(True, [])
    return tf.cond(p, lambda: _values(tf, 3) * 2.0, lambda: _values(tf, 3) + 1.0)


@makes()
def gradients(tf: Any) -> Any:
    loss = tf.reduce_mean(tf.square(tf.nn.softmax(tf.nn.relu(_dense(tf)))))
    return tf.concat([tf.reshape(g, [-1]) for g in tf.gradients(loss, tf.trainable_variables())], 0)


# -- networks of convolutions -------------------------------------------------------------------------------------


def _images(tf: Any) -> Any:
    """Images of a shape that the master knows: it makes one op only of what it is sure of."""
    return tf.reshape(tf.placeholder(tf.float32, [4, 5])[:, :4], [1, 4, 4, 1]) * np.float32([1.0, -0.5])


def _weights(tf: Any, name: str, *shape: int) -> Any:
    values = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return tf.get_variable(name, initializer=tf.constant(values))


def _convolved(tf: Any) -> Any:
    bias = tf.get_variable("b", initializer=tf.constant([-0.5, 0.0, 0.5]))
    return tf.nn.bias_add(tf.nn.conv2d(_images(tf), _weights(tf, "w", 3, 3, 2, 3), 1, "SAME"), bias)


@makes("_FusedConv2D")
def convolution(tf: Any) -> Any:
    return tf.nn.relu(_convolved(tf))


@makes("_FusedConv2D")
def convolution_elu(tf: Any) -> Any:
    return tf.nn.elu(_convolved(tf))


@makes("_FusedConv2D")
def convolution_and_sum(tf: Any) -> Any:
    return tf.nn.relu(_convolved(tf) + tf.placeholder_with_default(np.ones((1, 4, 4, 3), np.float32), [1, 4, 4, 3]))


@makes("_FusedConv2D")
def convolution_normalized(tf: Any) -> Any:
    y = tf.nn.conv2d(_images(tf), _weights(tf, "w", 3, 3, 2, 3), 1, "SAME")
    scale, offset, mean, variance = (tf.constant(v, shape=[3]) for v in (1.5, 0.5, 0.25, 2.0))
    return tf.nn.relu(tf.nn.fused_batch_norm(y, scale, offset, mean, variance, is_training=False)[0])


@makes("_FusedDepthwiseConv2dNative")
def depthwise_convolution(tf: Any) -> Any:
    bias = tf.get_variable("b", initializer=tf.constant([-0.5, 0.0]))
    y = tf.nn.depthwise_conv2d_native(_images(tf), _weights(tf, "w", 3, 3, 2, 1), [1, 1, 1, 1], "SAME")
    return tf.nn.relu(tf.nn.bias_add(y, bias))


@makes("_FusedConv3D")
def convolution_of_volumes(tf: Any) -> Any:
    bias = tf.get_variable("b", initializer=tf.constant([-0.5, 0.0, 0.5]))
    volumes = tf.reshape(_images(tf), [1, 2, 2, 4, 2])
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv3d(volumes, _weights(tf, "w", 2, 2, 2, 2, 3), [1] * 5, "SAME"), bias))


@makes("_FusedBatchNormEx")
def normalized(tf: Any) -> Any:
    scale, offset = (
        tf.get_variable(n, initializer=tf.constant([v, 1.0])) for n, v in (("scale", 2.0), ("offset", 0.5))
    )
    return tf.nn.relu(tf.nn.fused_batch_norm(_images(tf), scale, offset)[0])


@makes()
def trained_convolution(tf: Any) -> Any:
    y = tf.nn.max_pool(tf.nn.relu(_convolved(tf)), 2, 2, "SAME")
    y = tf.nn.relu(tf.nn.fused_batch_norm(y, tf.ones([3]), tf.zeros([3]))[0])
    slopes = tf.gradients(tf.reduce_mean(tf.sin(y)), tf.trainable_variables())
    return tf.concat([tf.reshape(slope, [-1]) for slope in slopes], 0)

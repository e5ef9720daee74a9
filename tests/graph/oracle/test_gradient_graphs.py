"""The gradients of maths and arrays are TensorFlow's node for node, too, not only in value.

One exception: TensorFlow's gradient of a sum over some axes leaves behind nodes that it made to evaluate them at once.
"""

from __future__ import annotations

import re

import numpy as np

from tests.oracle.graph_defs import both, nodes
from tests.oracle.programs import Programs

LEFT_BEHIND = re.compile(r"/(Sum|Mean)(_\d+)?_grad/(Maximum|floordiv)")
program = Programs()


@program.each()
def test_same_gradient_graph(run):
    want, got = both(lambda tf: (run(tf), nodes(tf.get_default_graph().as_graph_def(), gradients=True))[1])
    want = {name: node for name, node in want.items() if not LEFT_BEHIND.search(name)}
    assert sorted(got) == sorted(want)
    for name, node in want.items():
        assert got[name] == node, name


@program
def mlp(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    w, b = tf.constant(np.ones((4, 3), np.float32)), tf.zeros([3])
    return tf.gradients(tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w) + b))), [w, b])


@program
def mlp_of_known_batch(tf):
    x = tf.placeholder(tf.float32, [8, 4])
    w, b = tf.constant(np.ones((4, 3), np.float32)), tf.zeros([3])
    h = tf.tanh(tf.matmul(x, w) + b)
    return tf.gradients(tf.reduce_sum(tf.sigmoid(h) ** 2, [1]), [w, b, x])


@program
def products(tf):
    x, y = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [4, 3])
    z = [tf.matmul(x, y), tf.matmul(x, x, transpose_a=True), tf.matmul(y, y, transpose_b=True)]
    z.append(tf.matmul(x, y, transpose_a=True, transpose_b=True))
    z.append(tf.matmul(tf.reshape(x, [2, 3, 2]), tf.placeholder(tf.float32, [None, 2, 5])))
    return tf.gradients(z, [x, y])


@program
def shapes(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.reshape(tf.transpose(tf.concat([x, x[:, :2]], 1)), [-1])
    y = tf.split(tf.stack([y, y * 2]), 2)[0]
    y = tf.squeeze(tf.expand_dims(y, 0))
    return tf.gradients(y, x)


@program
def gathers(tf):
    x = tf.placeholder(tf.float32, [10, 4])
    y = [tf.gather(x, [1, 2]), tf.gather(x, [0], axis=1), tf.gather_nd(x, [[1, 2]])]
    return tf.gradients([*y, tf.unsorted_segment_sum(x, tf.range(10) // 2, 5)], x)


@program
def functions_of_one(tf):
    y = x = tf.placeholder(tf.float32, [3])
    for name in (
        "exp log sqrt rsqrt sin cos tanh sigmoid square abs negative reciprocal log1p expm1 tan atan asinh erf sinh "
        "cosh asin acos atanh acosh sign floor round"
    ).split():
        y = y + getattr(tf, name)(y)
    return tf.gradients(y, x)


@program
def functions_of_two(tf):
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [3])
    z = x + y - y * x / y + tf.maximum(x, y) - tf.minimum(x, 2.0) + tf.squared_difference(x, y)
    return tf.gradients(z + x**y + x % y + tf.div_no_nan(x, y) + tf.atan2(x, y), [x, y])


@program
def reductions(tf):
    x = tf.placeholder(tf.float32, [None, 3])
    z = tf.reduce_sum(x, 1) + tf.reduce_mean(x, 1) + tf.reduce_max(x, 1) - tf.reduce_min(x, 1)
    return tf.gradients([z, tf.reduce_prod(x, 0), tf.reduce_logsumexp(x, 1)], x)


@program
def second_order(tf):
    x = tf.placeholder(tf.float32, [3])
    (g,) = tf.gradients(tf.tanh(x) * tf.sigmoid(x) * tf.sqrt(x) / tf.rsqrt(x), x)
    return tf.gradients(g, x)


@program
def choices_and_pieces(tf):
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.where(x > 0, x, -x) + tf.where_v2(x > 1, x, 0.0)
    y = tf.slice(tf.reverse(tf.pad(tf.tile(y, [2, 1]), [[0, 0], [1, 1]]), [0]), [0, 1], [-1, 2])
    y = tf.clip_by_value(tf.cumsum(tf.cast(y, tf.float64)), 0.0, 1.0)
    y = tf.identity(tf.broadcast_to(y, [2, 6, 2]))
    return tf.gradients(tf.add_n([y, y, y]), x)


@program
def several_ways(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    ys = [x * 2 + x * x, tf.unstack(x)[0]]
    return tf.gradients(ys, x, grad_ys=[tf.ones([2, 3]), tf.ones([3])], name="back")


@program
def complex_numbers(tf):
    x = tf.placeholder(tf.float32, [3])
    z = tf.complex(x, x * 2)
    return tf.gradients([abs(z * z), tf.real(tf.conj(z) / 2), tf.imag(tf.exp(z)), tf.angle(z)], x)

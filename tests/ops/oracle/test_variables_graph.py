"""Programs with variables: TensorFlow's GraphDef, node for node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_graph(run):
    assert_same_graph(run)


@program.both_kinds
def variables_from_values(tf, use_resource):
    tf.Variable(3.0, use_resource=use_resource)
    tf.Variable([1, 2, 3], name="ints", trainable=False, use_resource=use_resource)
    tf.Variable([[True, False]], use_resource=use_resource)
    tf.Variable("text", name="text", use_resource=use_resource)
    tf.Variable(5, dtype=tf.int64, name="ints", use_resource=use_resource)
    tf.Variable(tf.zeros([2, 3]), name="zeros", use_resource=use_resource)
    tf.Variable(tf.random_normal([2, 3], stddev=0.1, seed=3), name="random", use_resource=use_resource)


@program.both_kinds
def variable_from_function(tf, use_resource):
    with tf.name_scope("layer"), tf.device("/job:ps/task:1"):
        tf.Variable(lambda: tf.truncated_normal([2, 3]), name="w", use_resource=use_resource)
    tf.Variable(lambda: 1.5, dtype=tf.float64, use_resource=use_resource)


@program.both_kinds
def reads_and_writes(tf, use_resource):
    v = tf.Variable([1.0, 2.0], name="v", use_resource=use_resource)
    w = v * 2 + 1 - v / 3.0
    with tf.control_dependencies([v.assign_add([1.0, 1.0])]):
        v.read_value()
        tf.identity(v)
    v.assign(w)
    v.assign_sub(w, read_value=False)
    tf.assign(v, [3.0, 4.0], name="set")
    tf.assign_add(v, [3.0, 4.0])
    -v, abs(v), v[0], 2 - v, v > 1, v**2.0
    tf.stack([v, v])


@program.both_kinds
def caching_device_and_scopes(tf, use_resource):
    with tf.device("/cpu:0"), tf.name_scope("s"):
        v = tf.Variable([1.0], name="v", caching_device="/gpu:0", use_resource=use_resource)
        v + 1
        v.read_value()
    with tf.container("box"):
        tf.Variable(1.0, name="boxed", use_resource=use_resource)


@program.both_kinds
def initializers(tf, use_resource):
    a = tf.Variable(1.0, name="a", use_resource=use_resource)
    b = tf.Variable(2.0, name="b", use_resource=use_resource, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.global_variables_initializer()
    tf.local_variables_initializer()
    tf.variables_initializer([])
    tf.variables_initializer([a, b], name="both")
    tf.initialize_all_variables()
    tf.is_variable_initialized(a)
    tf.report_uninitialized_variables()
    tf.report_uninitialized_variables([a])
    tf.assert_variables_initialized()


@program.both_kinds
def initializers_on_devices(tf, use_resource):
    for task in range(3):
        with tf.device(f"/job:ps/task:{task % 2}"):
            tf.Variable(float(task), use_resource=use_resource)
    tf.global_variables_initializer()


@program.both_kinds
def initial_value_from_another_variable(tf, use_resource):
    v = tf.Variable([1.0, 2.0], name="v", use_resource=use_resource)
    w = tf.Variable(v * 2.0 + v, name="w", use_resource=use_resource)
    tf.Variable(lambda: w + 1.0, name="x", use_resource=use_resource)


@program
def initialized_value(tf):
    v = tf.Variable([1.0, 2.0], name="v")
    tf.Variable(v.initialized_value() * 2.0, name="w")


@program
def unknown_shape(tf):
    x = tf.placeholder(tf.float32)
    v = tf.Variable(x, validate_shape=False, name="v")
    tf.assign(v, [1.0], validate_shape=False)


@program.both_kinds
def scatters(tf, use_resource):
    v = tf.Variable(tf.zeros([3, 2]), use_resource=use_resource)
    tf.scatter_update(v, [0, 1], [[1.0, 1.0], [2.0, 2.0]])
    tf.scatter_add(v, [0], [[1.0, 1.0]])
    tf.scatter_sub(v, tf.constant([0], tf.int64), [[1.0, 1.0]], name="sub")
    v.scatter_add(tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([2])))


@program
def counted(tf):
    v = tf.Variable(0)
    v.count_up_to(3)
    tf.count_up_to(v, 5, name="five")


@program
def groups(tf):
    with tf.device("/job:a"):
        a, b = tf.constant(1.0), tf.constant(2.0)
    with tf.device("/job:b"):
        c = tf.constant(3.0)
    tf.group()
    tf.group(a, b, name="same_device")
    tf.group(a, [b, c])
    tf.tuple([a, b, None, c.op])
    tf.tuple([a, 1.0], name="t", control_inputs=[c])
    tf.no_op()


@program
def checks(tf):
    x = tf.constant([1.0, 2.0])
    tf.Assert(tf.reduce_all(tf.shape(x) > 0), [tf.shape(x), "text"], summarize=2)
    tf.Assert(tf.constant(True), [1.0])
    p = tf.placeholder(tf.float32, [])
    with tf.device("/job:a"), tf.control_dependencies([tf.no_op()]):
        check = tf.Assert(p > 0, [p, "text", tf.constant(3), p, 1.5], name="guarded")
        with tf.control_dependencies([check]):
            tf.identity(p)
    tf.check_numerics(x, "not a number")
    tf.Print(x, [x, tf.shape(x)], message="x = ", first_n=2, summarize=3)
    tf.print(x, [x, 1, "a"], {"b": x, "a": (1, x)}, sep="|", name="shown")
    tf.print("only text")


@program
def random_numbers(tf):
    tf.set_random_seed(7)
    tf.random_normal([2, 3])
    tf.random_normal([2, 3], 1.0, 2.0, seed=3, name="n")
    tf.random_uniform([4])
    tf.random_uniform([4], -1, 1, dtype=tf.float64, seed=1)
    tf.random_uniform([4], 0, 5)
    tf.random_uniform([4], maxval=10, dtype=tf.int32)
    tf.random_uniform(tf.constant([2]), -1.0, 1.0, name="u")
    tf.truncated_normal([], stddev=0.1)
    tf.random_shuffle(tf.range(5), seed=2)


@program
def initializer_objects(tf):
    for i, make in enumerate(
        [
            tf.zeros_initializer(), tf.ones_initializer(dtype=tf.int32), tf.constant_initializer([1, 2, 3]),
            tf.random_uniform_initializer(-1, 1), tf.random_normal_initializer(1.0, 0.1, seed=3),
            tf.truncated_normal_initializer(stddev=0.2), tf.uniform_unit_scaling_initializer(),
            tf.variance_scaling_initializer(2.0, "fan_out", "uniform"), tf.glorot_uniform_initializer(),
            tf.glorot_normal_initializer(seed=1),
            tf.variance_scaling_initializer(distribution="untruncated_normal"),
        ]
    ):  # fmt: skip
        tf.Variable(lambda make=make: make([3, 4]), name=f"v{i}")


@program
def nn_functions(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 4])
    n = tf.placeholder(tf.int32, [None])
    z = tf.placeholder(tf.float32, [2, 3, 4])
    nn = tf.nn
    for f in (
        nn.relu,
        nn.relu6,
        nn.elu,
        nn.selu,
        nn.softplus,
        nn.softsign,
        nn.sigmoid,
        nn.tanh,
        nn.leaky_relu,
    ):
        f(x)
        f(x, name="named")
    nn.leaky_relu([1, 2], alpha=0.3)
    nn.crelu(x)
    nn.softmax(x)
    nn.softmax(z, axis=1)
    nn.log_softmax(z, dim=0, name="ls")
    nn.softmax(z, -2)
    nn.softmax_cross_entropy_with_logits(labels=y, logits=x)
    nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x, name="xent")
    nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=z, axis=1)
    nn.sparse_softmax_cross_entropy_with_logits(labels=n, logits=x)
    nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros([2, 3], tf.int64), logits=z, name="sparse")
    nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x)
    nn.bias_add(x, [1.0, 2.0, 3.0, 4.0])
    nn.bias_add(tf.zeros([1, 2, 3, 3]), [1.0, 2.0], data_format="NCHW")
    nn.xw_plus_b(x, tf.zeros([4, 2]), tf.zeros([2]))
    nn.relu_layer(x, tf.zeros([4, 2]), tf.zeros([2]))
    nn.l2_loss(x)
    nn.l2_normalize(x, 1)
    nn.in_top_k(x, n, 2)
    nn.top_k(x, 2)
    nn.dropout(x, 0.5)
    nn.dropout(x, keep_prob=tf.constant(0.8), seed=3)
    nn.dropout(z, rate=0.25, noise_shape=[None, 1, 4], name="drop")
    nn.dropout(x, 1.0)


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_same_variable_def(use_resource):
    def protos(tf: Any) -> list[bytes]:
        with tf.name_scope("s"):
            made = [
                tf.Variable([1.0, 2.0], name="v", use_resource=use_resource),
                tf.Variable(3, trainable=False, caching_device="/cpu:0", use_resource=use_resource),
            ]
        return [v.to_proto(scope).SerializeToString() for v in made for scope in (None, "s")]

    theirs, ours = both(protos)
    assert ours == theirs

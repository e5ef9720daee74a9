"""Whole programs of the kind that books print: TensorFlow's GraphDef, node for node, gradient scopes included."""

from __future__ import annotations

import numpy as np

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_graph(run):
    assert_same_graph(run, gradients=True)


@program
def softmax_regression(tf):
    x = tf.placeholder(tf.float32, [None, 784], name="x")
    w, b = tf.Variable(tf.zeros([784, 10]), name="w"), tf.Variable(tf.zeros([10]), name="b")
    y = tf.nn.softmax(tf.matmul(x, w) + b)
    labels = tf.placeholder(tf.float32, [None, 10])
    loss = tf.reduce_mean(-tf.reduce_sum(labels * tf.log(y), reduction_indices=[1]))
    tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(labels, 1))
    tf.reduce_mean(tf.cast(correct, tf.float32), name="accuracy")
    tf.global_variables_initializer()


def perceptron(tf, use_resource):
    with tf.name_scope("input"):
        x = tf.placeholder(tf.float32, [None, 64], name="x")
        y = tf.placeholder(tf.int64, [None], name="y")
    last, width = x, 64
    for i, units in enumerate((32, 10)):
        with tf.name_scope(f"layer{i}"):
            start = tf.truncated_normal([width, units], stddev=width**-0.5, seed=i)
            w = tf.Variable(start, name="w", use_resource=use_resource)
            b = tf.Variable(tf.zeros([units]), name="b", use_resource=use_resource)
            last = tf.nn.xw_plus_b(last, w, b)
            last = tf.nn.relu(last) if i == 0 else last
            width = units
    with tf.name_scope("loss"):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=last)
        loss = tf.reduce_mean(losses) + 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
    step = tf.train.get_or_create_global_step()
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    tf.reduce_mean(tf.cast(tf.nn.in_top_k(last, y, 1), tf.float32))
    tf.global_variables_initializer()


@program
def perceptron_with_reference_variables(tf):
    perceptron(tf, False)


@program
def perceptron_with_resource_variables(tf):
    perceptron(tf, True)


@program
def between_graph_replication(tf):
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:1")):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w1, w2 = tf.Variable(tf.ones([4, 3])), tf.Variable(tf.ones([3, 1]))
        b = tf.Variable(0.5)
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.tanh(tf.matmul(x, w1)), w2) + b))
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        pairs = optimizer.compute_gradients(loss)
        optimizer.apply_gradients([(g * 0.5, v) for g, v in pairs], global_step=step)
        tf.global_variables_initializer()


@program
def towers_on_devices(tf):
    v = tf.Variable([1.0, 2.0], name="v")
    gradients = []
    for i in range(3):
        with tf.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}"):
            x = tf.placeholder(tf.float32, [2])
            loss = tf.reduce_sum(v * x) + tf.reduce_prod(v)
            gradients.append(tf.gradients(loss, v, colocate_gradients_with_ops=True)[0])
    with tf.device("/cpu:0"):
        mean = tf.add_n(gradients) / 3
        v.assign_sub(0.1 * mean)


@program
def devices_and_functions(tf):
    def round_robin(op):
        return f"/job:ps/task:{len(op.name) % 3}" if op.type == "VariableV2" else "/job:worker"

    with tf.device(round_robin):
        a = tf.Variable([1.0], name="a", use_resource=False)
        with tf.device("/cpu:1"):
            b = tf.Variable([2.0], name="bb", use_resource=False)
        with tf.device(None), tf.name_scope("free"):
            c = a + b
        with tf.colocate_with(b):
            c * 2.0
    with tf.device(tf.DeviceSpec(job="worker", task=0)), tf.device("/gpu:1"):
        tf.reduce_max(c)


@program
def control_dependencies(tf):
    counter = tf.Variable(0, name="counter", use_resource=False)
    x = tf.placeholder(tf.float32, name="x")
    with tf.control_dependencies([counter.assign_add(1), tf.identity(x)]):
        y = x * 2
        with tf.control_dependencies([y]):
            z = tf.identity(y, name="z")
            with tf.control_dependencies(None):
                tf.constant(3.0, name="free")
            tf.group(z, counter.initializer, name="all")
    tf.tuple([y, z, None], control_inputs=[counter.op])


@program
def slices_and_shapes(tf):
    x = tf.placeholder(tf.float32, [None, 8, 3], name="x")
    n = tf.shape(x)[0]
    parts = [x[0], x[:, 1:3], x[..., -1], x[:, tf.newaxis, ::2], x[1:n, 0, 0], x[-1, :, 1]]
    tf.concat([tf.reshape(p, [-1]) for p in parts], 0)
    tf.stack(tf.unstack(x, axis=2), axis=1)
    a, b = tf.split(x, 2, axis=1)
    tf.gradients(tf.reduce_sum(a * b) + tf.reduce_sum(parts[1]), x)
    tf.transpose(tf.tile(tf.expand_dims(tf.range(n), 1), [1, 2]))
    tf.zeros_like(x), tf.ones_like(a), tf.fill([n, 2], 7.0), tf.zeros([n])
    tf.gather(x, [0, 0]), tf.one_hot([1, 2], 3), tf.where(x > 0, x, -x), tf.squeeze(x[:1], 0)


@program
def arithmetic_with_python_numbers(tf):
    x = tf.placeholder(tf.float64, [2, 2], name="x")
    k = tf.placeholder(tf.int32, [2], name="k")
    [x + 1, 1 - x, x * 2.5, 3 / x, x**2, -x, abs(x), x // 2, x % 3, x @ x, x > 0, x <= 1, np.float64(2) * x]
    [k + 1, k // 2, k % 2, k / 2, ~(k > 1), (k > 0) & (k < 5), (k > 0) | (k < 5), tf.div(k, 2), tf.cast(k, tf.float32)]
    tf.add(x, x, name="sum"), tf.reduce_mean(x, 0), tf.reduce_sum(x, axis=[0, 1], keepdims=True)


@program
def scopes_nest(tf):
    for _ in range(2):
        with tf.name_scope("tower") as scope:
            v = tf.Variable([1.0, 2.0], name="v", use_resource=False)
            with tf.name_scope("inner"):
                tf.square(v)
            with tf.name_scope(scope):
                tf.square(v)
            with tf.name_scope(None):
                tf.square(v, name="outside")
            with tf.name_scope("values", values=[v]):
                tf.reduce_sum(v), v[0] + v[-1]


@program
def containers_and_seeds(tf):
    tf.set_random_seed(42)
    with tf.container("box"):
        a = tf.Variable(tf.random_normal([2, 2]), name="a", use_resource=False)
        b = tf.Variable(tf.random_uniform([2], -1, 1, seed=5), name="b", use_resource=True)
    tf.random_shuffle(tf.range(10), seed=1)
    tf.truncated_normal([3], mean=1.0, dtype=tf.float64) + tf.cast(tf.reduce_sum(a.read_value()) + b[0], tf.float64)
    tf.variables_initializer([a, b])


@program
def export_and_import(tf):
    with tf.Graph().as_default() as inner:
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.device("/job:ps"), tf.control_dependencies([x]):
            y = tf.multiply(x, 3.0, name="y")
        with tf.colocate_with(y):
            tf.identity(y, name="z")
        tf.Variable([1.0], name="v")
    v = tf.Variable(2.0, name="v")
    message = inner.as_graph_def()
    for prefix in (None, "again", "again", "", ""):
        tf.import_graph_def(message, name=prefix)
    with tf.device("/task:3"), tf.control_dependencies([v.op]), tf.name_scope("outer"):
        (z,) = tf.import_graph_def(message, {"x:0": tf.ones([2])}, ["z:0"], name="mapped")
        tf.import_graph_def(message, {"y": [3.0]}, name="from_values")
    tf.gradients(z, tf.get_default_graph().get_tensor_by_name("outer/ones:0"))


@program
def gradients_in_all_their_forms(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    y = tf.placeholder(tf.float32, [None, 3], name="y")
    table = tf.Variable(tf.ones([5, 3]), name="table")
    a = tf.nn.sigmoid(x * y) + tf.exp(x)
    b = tf.gather(table, [1, 2, 1]) * a[:3]
    (first,) = tf.gradients(a, x)
    tf.gradients(first, x, name="second")
    tf.gradients([a, b], [x, y, table], grad_ys=[tf.ones_like(a), 2.0 * b])
    tf.gradients(b, [table], gate_gradients=True, colocate_gradients_with_ops=True)
    tf.gradients(b + tf.gather(table, 0), [table])
    tf.gradients(b + tf.gather(table, [0, 1, 4]), [table], aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE)
    tf.gradients(a * a + a, [x, a], stop_gradients=[a])
    tf.gradients(a, [x, tf.zeros([2000]), tf.constant(1.0)], unconnected_gradients="zero", name="zero")
    x0, x1 = tf.unstack(tf.stack([x, x * 2]))
    tf.gradients(x0 * 3 + tf.stop_gradient(x1), x)
    tf.gradients(tf.maximum(x, 0.5) / tf.sqrt(x) - tf.log(x) ** 2, x)


@program
def gradients_that_stay_sparse(tf):
    a, b = tf.placeholder(tf.float32, [3, 2], name="a"), tf.placeholder(tf.float32, [2, 2], name="b")
    joined = tf.gather(tf.concat([a, b], 0), [0, 4, 3])
    tf.gradients(joined, [a, b], gate_gradients=True)
    tf.gradients(joined, [a, b], gate_gradients=True, colocate_gradients_with_ops=True)
    y, z = tf.gather(a, [0]) + tf.gather(a, [1]), tf.gather(a, tf.constant([1], tf.int64))
    tf.gradients([y, z], [a], gate_gradients=True)
    tf.gradients([y, z], [a], grad_ys=[y, None])
    v = tf.Variable(tf.ones([3, 2]), use_resource=True)
    read = tf.gather(v, [0]) + tf.gather(v, [1])
    (slices,) = tf.gradients(read, [v])
    tf.gradients(slices.values, [v])
    tf.gradients(read + v[:1], [v])
    tf.gradients(tf.ones([2]), [v], unconnected_gradients="zero")
    tf.gradients([tf.split(v * 2, 2, axis=1)[0]], [v])


@program
def gradients_of_other_dtypes(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    c = tf.complex(x, x * 2)
    tf.gradients(tf.real(c * tf.conj(c)), x)
    tf.gradients(c, x, grad_ys=[c])
    tf.gradients(tf.nn.top_k(x, 1)[0], x)
    tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32) * x, x)
    tf.gradients([x, x * 2, x], [x, x])
    tf.gradients(tf.cast(x, tf.float64) ** 3, x)


def test_static_shapes_are_exported_alike():
    def shapes(tf):
        perceptron(tf, True)
        message = tf.get_default_graph().as_graph_def(add_shapes=True)
        return {n.name: n.attr["_output_shapes"].list.SerializeToString() for n in message.node}

    theirs, ours = both(shapes)
    assert ours == theirs


def test_versions_are_tensorflows():
    theirs, ours = both(lambda tf: tf.get_default_graph().as_graph_def().SerializeToString())
    assert ours == theirs

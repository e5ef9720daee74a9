"""Programs that train: TensorFlow's GraphDef outside gradient scopes, and its values over steps of SGD."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@program.each()
def test_same_graph(run, use_resource):
    assert_same_graph(lambda tf: run(tf, use_resource))


def line(tf: Any, use_resource: bool) -> tuple[Any, Any, Any]:
    """The loss of a straight line, its slope and its offset."""
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    a = tf.Variable(1.0, name="a", use_resource=use_resource)
    b = tf.Variable(0.5, name="b", use_resource=use_resource)
    return tf.reduce_mean(tf.square(a * x + b - y), name="loss"), a, b


@program
def minimized(tf, use_resource):
    loss, _, _ = line(tf, use_resource)
    step = tf.Variable(0, name="step", trainable=False, use_resource=use_resource)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train = optimizer.minimize(loss, global_step=step)
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]
    optimizer.minimize(loss, name="again")
    assert optimizer.get_name() == "GradientDescent"


@program
def applied_by_hand(tf, use_resource):
    loss, a, b = line(tf, use_resource)
    rate = tf.placeholder(tf.float64, [], name="rate")
    optimizer = tf.train.GradientDescentOptimizer(rate, use_locking=True, name="SGD")
    pairs = optimizer.compute_gradients(loss, [a, b])
    half = [(g / 2.0, v) for g, v in pairs]
    optimizer.apply_gradients([*half[:1], (None, b)])
    optimizer.apply_gradients([(3.0, b)], global_step=tf.train.get_or_create_global_step())


@program
def rate_from_function(tf, use_resource):
    loss, _, _ = line(tf, use_resource)
    tf.train.GradientDescentOptimizer(lambda: tf.constant(0.5, name="half")).minimize(loss)


@program
def gates(tf, use_resource):
    loss, a, b = line(tf, use_resource)
    kind = tf.train.Optimizer
    for gate in (kind.GATE_NONE, kind.GATE_OP, kind.GATE_GRAPH):
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[b, a], gate_gradients=gate)


@program
def constrained(tf, use_resource):
    v = tf.Variable([1.0, -1.0], name="v", constraint=tf.nn.relu, use_resource=use_resource)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v * v))


@program
def rows(tf, use_resource):
    table = tf.Variable(tf.ones([5, 2]), name="table", use_resource=use_resource)
    loss = tf.reduce_sum(tf.gather(table, [0, 3, 0]))
    tf.train.GradientDescentOptimizer(0.1).minimize(loss)


@program
def global_steps(tf, use_resource):
    with tf.name_scope("somewhere"):
        step = tf.train.create_global_step()
    assert tf.train.get_global_step() is step
    assert tf.train.get_or_create_global_step() is step
    with pytest.raises(ValueError, match="already exists"):
        tf.train.create_global_step()


@program
def mlp_on_parameter_servers(tf, use_resource):
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}
    setter = tf.train.replica_device_setter(worker_device="/job:worker/task:1", cluster=cluster)
    with tf.device(setter):
        x = tf.placeholder(tf.float32, [None, 8], name="x")
        y = tf.placeholder(tf.float32, [None, 3], name="y")
        w1 = tf.Variable(tf.truncated_normal([8, 5], stddev=0.1, seed=1), name="w1", use_resource=use_resource)
        b1 = tf.Variable(tf.zeros([5]), name="b1", use_resource=use_resource)
        w2 = tf.Variable(lambda: tf.random_normal([5, 3], seed=2), name="w2", use_resource=use_resource)
        b2 = tf.Variable(tf.zeros([3]), name="b2", use_resource=use_resource)
        with tf.device("/job:worker/task:0/cpu:0"):
            hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
        logits = tf.nn.xw_plus_b(hidden, w2, b2)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        step = tf.train.get_or_create_global_step()
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, colocate_gradients_with_ops=True)
        tf.global_variables_initializer()


@program
def device_setters(tf, use_resource):
    setters = [
        tf.train.replica_device_setter(ps_tasks=2),
        tf.train.replica_device_setter(ps_tasks=0),
        tf.train.replica_device_setter(ps_tasks=2, ps_device="/job:server/cpu:0", worker_device="/gpu:0"),
        tf.train.replica_device_setter(ps_tasks=3, ps_ops=["Const"], worker_device=None),
        tf.train.replica_device_setter(ps_tasks=3, ps_strategy=lambda op: 2),
        tf.train.replica_device_setter(cluster={"worker": ["a:1"]}),
    ]
    for i, setter in enumerate(setters):
        with tf.device("/job:outer/cpu:1"), tf.device(setter), tf.name_scope(f"s{i}"):
            tf.Variable(1.0, use_resource=use_resource)
            with tf.device("/job:ps"):
                tf.Variable(2.0, use_resource=use_resource)
            with tf.device("/gpu:1"):
                tf.Variable(3.0, use_resource=use_resource)
                tf.constant(1.0)


@program
def slots(tf, use_resource):
    class Momentous(tf.train.GradientDescentOptimizer):
        def _create_slots(self, var_list):
            for v in var_list:
                self._zeros_slot(v, "m", self._name)
                self._get_or_make_slot_with_initializer(
                    v, tf.ones_initializer(), v.shape, v.dtype.base_dtype, "n", "ones"
                )
                self._get_or_make_slot(v, tf.fill(v.shape, 2.0), "k", "twos")
            self._create_non_slot_variable(0.9, "power", var_list[0])

    with tf.name_scope("model"):
        loss, a, _ = line(tf, use_resource)
        optimizer = Momentous(0.1)
        optimizer.minimize(loss)
    assert optimizer.get_slot_names() == ["k", "m", "n"]
    assert optimizer.get_slot(a, "m").name == "model/a/GradientDescent:0"
    assert optimizer.get_slot(a, "other") is None
    assert [v.name for v in optimizer.variables()][-1] == "model/power:0"


# -- values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh", "elu", "softplus"])
def test_same_values_over_steps(use_resource, activation):
    random = np.random.default_rng(1)
    images, labels = random.normal(size=(40, 6)).astype(np.float32), random.integers(0, 3, 40)

    def trained(tf):
        tf.set_random_seed(11)
        x, y = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.int64, [None])
        w1 = tf.Variable(tf.truncated_normal([6, 7], stddev=0.4), use_resource=use_resource)
        b1 = tf.Variable(tf.zeros([7]), use_resource=use_resource)
        w2 = tf.Variable(tf.random_uniform([7, 3], -0.5, 0.5), use_resource=use_resource)
        hidden = getattr(tf.nn, activation)(tf.matmul(x, w1) + b1)
        logits = tf.matmul(hidden, w2)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses) + 1e-3 * tf.nn.l2_loss(w1)
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            seen = []
            for _ in range(20):
                seen.append(session.run(loss, {x: images, y: labels}))
                session.run(train, {x: images, y: labels})
            assert tf.train.global_step(session, step) == 20
            return seen, session.run([w1, b1, w2])

    (theirs, their_weights), (ours, our_weights) = both(trained)
    assert ours[-1] < ours[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    for a, b in zip(our_weights, their_weights):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_rows_are_updated_alone(use_resource):
    def trained(tf):
        table = tf.Variable(tf.ones([4, 2]), use_resource=use_resource)
        loss = tf.reduce_sum(tf.gather(table, [0, 3, 0]) ** 2)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session() as session:
            session.run(table.initializer)
            for _ in range(3):
                session.run(train)
            return session.run(table)

    theirs, ours = both(trained)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)

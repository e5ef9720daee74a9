"""Optimizers, the global step and device setters, without TensorFlow next to them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph.apply_op import apply_op


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


both_kinds = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@both_kinds
def test_a_parabola_is_descended(use_resource):
    x = tf.Variable(10.0, use_resource=use_resource)
    train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(x - 3.0))
    with tf.Session() as session:
        session.run(x.initializer)
        for _ in range(20):
            session.run(train)
        assert session.run(x) == pytest.approx(3.0, abs=1e-4)


def test_the_rate_may_be_fed():
    x, rate = tf.Variable(1.0), tf.placeholder(tf.float32, [])
    train = tf.train.GradientDescentOptimizer(rate).minimize(x * 1.0)
    with tf.Session() as session:
        session.run(x.initializer)
        session.run(train, {rate: 0.5})
        session.run(train, {rate: 0.25})
        assert session.run(x) == 0.25


def test_gradients_may_be_changed_in_between():
    x, y = tf.Variable(1.0), tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(3.0 * x + 5.0 * y)
    train = optimizer.apply_gradients([(tf.minimum(g, 4.0), v) for g, v in pairs])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([x, y]) == [-2.0, -3.0]


def test_a_variable_that_does_not_matter_is_left_alone():
    x, y = tf.Variable(1.0, name="x"), tf.Variable(1.0, name="y")
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(2.0 * x)
    assert [g is None for g, _ in pairs] == [False, True]
    train = optimizer.apply_gradients(pairs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([x, y]) == [-1.0, 1.0]


@both_kinds
def test_constraints_hold_after_every_step(use_resource):
    v = tf.Variable([0.5, 0.5], constraint=lambda x: tf.maximum(x, 0.0), use_resource=use_resource)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(v * [1.0, -1.0]))
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(train)
        assert session.run(v).tolist() == [0.0, 1.5]


def test_the_global_step_is_one_variable_of_the_graph(graph):
    assert tf.train.get_global_step() is None
    step = tf.train.get_or_create_global_step()
    assert step.name == "global_step:0"
    assert step.dtype.base_dtype == tf.int64
    assert tf.train.get_global_step(graph) is step
    assert step not in tf.trainable_variables()
    with tf.Session() as session:
        session.run(step.initializer)
        assert tf.train.global_step(session, step) == 0


def test_the_steps_done_may_be_counted_in_a_vector_of_one():
    """TF1 accepts it; NumPy, and with it TensorFlow, refuses today."""
    step = tf.Variable([123])
    with tf.Session() as session:
        session.run(step.initializer)
        assert tf.train.global_step(session, step) == 123


def test_a_tensor_may_be_the_global_step_but_not_any():
    tf.constant(3, tf.int64, name="global_step")
    assert tf.train.get_global_step().name == "global_step:0"
    with pytest.raises(TypeError, match="integer"):
        tf.train.assert_global_step(tf.constant(1.0))
    with pytest.raises(TypeError, match="scalar"):
        tf.train.assert_global_step(tf.constant([1]))
    with pytest.raises(TypeError, match="Variable or Tensor"):
        tf.train.assert_global_step(3)


def test_two_global_steps_are_none(caplog):
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, tf.constant(1))
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, tf.constant(2))
    assert tf.train.get_global_step() is None
    assert "Multiple tensors" in caplog.text


def test_subclasses_say_what_one_update_is():
    class SignDescent(tf.train.Optimizer):
        def __init__(self):
            super().__init__(use_locking=False, name="Sign")

        def _create_slots(self, var_list):
            for v in var_list:
                self._zeros_slot(v, "count", self._name)

        def _apply_dense(self, grad, var):
            count = self.get_slot(var, "count")
            return tf.group(tf.assign_sub(var, tf.sign(grad)), tf.assign_add(count, tf.ones_like(grad)))

    x = tf.Variable([5.0, -5.0])
    optimizer = SignDescent()
    train = optimizer.minimize(tf.reduce_sum(x * x))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        assert session.run(x).tolist() == [2.0, -2.0]
        assert session.run(optimizer.variables()[0]).tolist() == [3.0, 3.0]


def test_an_optimizer_needs_a_name():
    with pytest.raises(ValueError, match="name"):
        tf.train.Optimizer(False, "")


def test_the_setter_needs_a_callable_strategy():
    with pytest.raises(TypeError, match="callable"):
        tf.train.replica_device_setter(ps_tasks=1, ps_strategy=3)


def test_turns_are_taken_over_the_whole_graph():
    setter = tf.train.replica_device_setter(ps_tasks=3)
    with tf.device(setter):
        first = [tf.Variable(1.0) for _ in range(2)]
    with tf.device(setter):
        later = [tf.Variable(1.0) for _ in range(2)]
    assert [v.device for v in first + later] == [f"/job:ps/task:{i}" for i in (0, 1, 2, 0)]
    assert first[0].initializer.device == "/job:ps/task:0"
    assert first[0].initial_value.device == "/job:worker"


def test_the_same_seed_gives_the_same_training():
    def weights():
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            w = tf.Variable(tf.random_normal([4, 2]))
            train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.nn.l2_loss(w))
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(train)
                return session.run(w)

    np.testing.assert_array_equal(weights(), weights())


@both_kinds
def test_steps_of_many_threads_all_count(use_resource):
    w = tf.Variable(tf.zeros([50]), use_resource=use_resource)
    optimizer = tf.train.MomentumOptimizer(0.0, 1.0)
    train = optimizer.apply_gradients([(tf.ones([50]), w)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=lambda: [session.run(train) for _ in range(40)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert session.run(optimizer.get_slot(w, "momentum")).tolist() == [160.0] * 50


@both_kinds
def test_what_was_fetched_stays_as_it_was(use_resource):
    """Updates work in place only where nobody else holds the array."""
    w = tf.Variable(tf.ones([3, 2]), use_resource=use_resource)
    optimizer = tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(w * w) + tf.reduce_sum(tf.gather(w, [1, 1])))
    slots = [optimizer.get_slot(w, name) for name in optimizer.get_slot_names()]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        held = session.run([w, *slots])
        copies = [np.array(value) for value in held]
        session.run(train)
        for value, copy, now in zip(held, copies, session.run([w, *slots]), strict=True):
            np.testing.assert_array_equal(value, copy)
            assert (now != copy).all()


def test_rows_that_repeat_come_one_after_the_other():
    """TensorFlow's kernels do so; optimizers sum them before."""
    w, accum = tf.Variable([[1.0], [1.0]]), tf.Variable([[0.0], [0.0]])
    step = apply_op(
        "SparseApplyMomentum", var=w, accum=accum, lr=0.5, grad=[[1.0], [2.0]], indices=[1, 1], momentum=0.5
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(step).tolist() == [[1.0], [1.0 - 0.5 * 1.0 - 0.5 * (0.5 * 1.0 + 2.0)]]
        assert session.run(accum).tolist() == [[0.0], [2.5]]

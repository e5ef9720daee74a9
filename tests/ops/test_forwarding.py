"""Forwarding: which buffers element-wise kernels write into, and that nobody notices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab.graph.node import make_node
from dtflab.machine.devices import Device
from dtflab.ops import forwarding
from tests import graphs


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def bound(op, inputs):
    """The kernel as the executor gets it, and as it calls it: `kernel(*args)` of a list of the values of the edges."""
    node = make_node("n", op, [(f"x{i}", 0) for i in range(inputs)], T=tf.float32)
    return Device("/job:a/replica:0/task:0/device:CPU:0").bind(node)


def floats(*shape):
    return np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape).copy()


UNARY = ["Neg", "Exp", "Tanh", "Sqrt", "Relu", "Square", "Floor"]
BINARY = ["AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "ReluGrad"]


@pytest.mark.parametrize("op", UNARY)
def test_a_buffer_that_nobody_else_holds_takes_the_result(op):
    kernel = bound(op, 1)
    args = [floats(3, 4)]
    also_mine = args[0]
    expected = kernel(*args)
    np.testing.assert_array_equal(also_mine, floats(3, 4))
    del also_mine
    where = args[0].ctypes.data
    found = kernel(*args)
    assert found.ctypes.data == where != expected.ctypes.data
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("op", BINARY)
def test_of_two_either_may_take_the_result(op, position):
    kernel = bound(op, 2)
    args = [floats(3, 4), floats(3, 4)]
    expected = kernel(*[x + 0 for x in args])
    where, held = args[position].ctypes.data, args[1 - position]
    found = kernel(*args)
    assert found.ctypes.data == where
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(held, floats(3, 4))


def test_the_smaller_one_is_repeated_into_the_larger():
    args = [floats(4), floats(3, 4)]
    where = args[1].ctypes.data
    assert bound("AddV2", 2)(*args).ctypes.data == where
    args = [floats(3, 4), floats(4)]
    where = args[0].ctypes.data
    assert bound("BiasAdd", 2)(*args).ctypes.data == where


def test_neither_has_the_shape_of_the_result():
    args = [floats(3, 1), floats(1, 3)]
    assert bound("Mul", 2)(*args).shape == (3, 3)
    args = [floats(2, 1, 3), floats(4, 3)]
    assert bound("Mul", 2)(*args).shape == (2, 4, 3)


@pytest.mark.parametrize("holder", ["name", "view", "read-only", "part of another"])
def test_what_somebody_else_could_see_is_left_alone(holder):
    whole = floats(5, 4)
    args = [whole[1:] if holder == "part of another" else whole]
    others = [whole] if holder == "name" else [whole[:2]] if holder == "view" else []
    if holder == "read-only":
        whole.flags.writeable = False
    if holder != "part of another":
        del whole
    before = args[0].copy()
    found = bound("Neg", 1)(*args)
    np.testing.assert_array_equal(args[0], before)
    np.testing.assert_array_equal(found, -before)
    assert not any(np.shares_memory(found, other) for other in others)


def test_an_array_that_is_both_inputs_is_left_alone():
    x = floats(3)
    args = [x, x]
    del x
    np.testing.assert_array_equal(bound("Mul", 2)(*args), [1, 4, 9])
    np.testing.assert_array_equal(args[0], [1, 2, 3])


def buffers_made(monkeypatch, fetches, feed):
    """How many results of a run took an input's buffer, and the values."""
    taken = []
    is_own = forwarding._is_own
    monkeypatch.setattr(forwarding, "_is_own", lambda x: is_own(x) and not taken.append(x.shape))
    with tf.Session() as session:
        values = session.run(fetches, feed)
        taken.clear()
        again = session.run(fetches, feed)
    monkeypatch.setattr(forwarding, "_is_own", is_own)
    for a, b in zip(values, again, strict=True):
        np.testing.assert_array_equal(a, b)
    return len(taken), again


def test_a_chain_in_a_step_needs_one_buffer(monkeypatch):
    x = tf.placeholder(tf.float32, [None, 3])
    chain = [tf.matmul(x, tf.ones([3, 3]))]
    for op in (tf.exp, tf.nn.relu, lambda y: y * 2.0, lambda y: tf.nn.bias_add(y, [1.0, 2.0, 3.0]), tf.tanh):
        chain.append(op(chain[-1]))
    feed = {x: floats(4, 3) / 10}
    taken, _ = buffers_made(monkeypatch, [chain[-1]], feed)
    assert taken == 5
    taken, _ = buffers_made(monkeypatch, chain, feed)  # all of them are somebody's
    assert taken == 0


def test_feeds_constants_and_variables_are_nobodys_buffers(monkeypatch):
    x = tf.placeholder(tf.float32, [3])
    constant, variable = tf.constant(floats(3)), tf.Variable(floats(3))
    fed = floats(3)
    sums = [tf.exp(x), tf.exp(constant), tf.exp(variable), -x, constant - 1.0, variable * 2.0]
    with tf.Session() as session:
        session.run(variable.initializer)
        for _ in range(3):
            before = session.run(sums, {x: fed})
            np.testing.assert_array_equal(before[0], np.exp(floats(3)))
            np.testing.assert_array_equal(before[0], before[1])
            np.testing.assert_array_equal(before[0], before[2])
        np.testing.assert_array_equal(session.run(variable), floats(3))
    np.testing.assert_array_equal(fed, floats(3))


@settings(deadline=None, max_examples=100)
@given(graphs.recipes)
def test_the_bits_are_the_same_without_it(recipe):
    """All values of a random program: each alone, and all at once, with forwarding and without."""
    built = graphs.build(recipe, lambda place: "")

    def runs():
        with tf.Session(graph=built.graph) as session:
            session.run(built.initializers)
            return [session.run(built.values), *([session.run(value)] for value in built.values)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forwarding, "SOLE_ARGUMENT", 0)
        without = runs()
    for plain, other in zip(without, runs(), strict=True):
        for a, b in zip(plain, other, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("combine", [lambda x, v: x + v, lambda x, v: v * x, lambda x, v: tf.nn.bias_add(x, v)])
def test_a_variable_beside_it_hinders_no_buffer(combine):
    x = tf.placeholder(tf.float32, [None, 3])
    variable = tf.Variable([1.0, 2.0, 3.0])
    product = tf.matmul(x, tf.ones([3, 3]))
    total = combine(product, variable)
    feed = {x: floats(4, 3) / 10}
    with tf.Session() as session:
        session.run(variable.initializer)
        trace = session.trace(tf.reduce_sum(total), feed_dict=feed)
        made = {s.node_name: len(s.memory) for d in trace.step_stats.dev_stats for s in d.node_stats if s.memory}
        assert product.op.name in made and total.op.name not in made
        found, factors = session.run([total, product], feed)
        assert not np.shares_memory(found, factors)
        np.testing.assert_array_equal(session.run(total, feed), found)
        assert session.run(variable).tolist() == [1.0, 2.0, 3.0]

"""The ops that a function of elements may make, and the errors for all others."""

from __future__ import annotations

import pytest

import dtflab as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_that_map_makes_is_an_error_at_once(use_resource):
    def scaled(x):
        return x * tf.get_variable("w", [], initializer=tf.ones_initializer(), use_resource=use_resource)

    with pytest.raises(ValueError, match=r"map\(\) makes the variable 'w' in .*test_functions.py:\d+, in scaled"):
        tf.data.Dataset.from_tensor_slices([1.0]).map(scaled)


@pytest.mark.parametrize(("use_resource", "later"), [(False, 4), (True, 10)])
def test_a_variable_is_read_when_the_iterator_begins_or_if_it_is_a_resource_at_each_call(use_resource, later):
    weight = tf.Variable(2.0, use_resource=use_resource)
    iterator = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * weight).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(weight.initializer)
        session.run(iterator.initializer)
        assert session.run(element) == 2
        session.run(weight.assign(5.0))
        assert session.run(element) == later


def test_a_table_that_map_makes_is_initialized_with_the_others():
    def looked_up(word):
        words = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([7], tf.int64))
        return tf.lookup.StaticHashTable(words, -1).lookup(word)

    iterator = tf.data.Dataset.from_tensor_slices(["a", "b"]).map(looked_up).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run([tf.tables_initializer(), iterator.initializer])
        assert [session.run(element) for _ in range(2)] == [7, -1]

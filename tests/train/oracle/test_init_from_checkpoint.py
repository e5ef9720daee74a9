"""Initial values out of checkpoints, side by side with TensorFlow: assignments, warm starts."""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest

import dtflab as tf
from tests.oracle.checkpoints import assert_same_at_home, session, tried
from tests.oracle.graph_defs import assert_same_graph
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run, tmp_path):
    assert_same_at_home(run, tmp_path)


@pytest.fixture(autouse=True, scope="module")
def checkpoint_to_start_from(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("start") / "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        values = {"a/x": [1.0, 2.0], "a/y": [3.0, 4.0], "a/p": np.arange(8.0).reshape(4, 2), "n": [7]}
        made = [tf.get_variable(n, initializer=np.array(v, "f")) for n, v in values.items()]
        sess.run(tf.global_variables_initializer())
        tf.train.Saver(made).save(sess, path)
    os.environ["DTFLAB_TEST_CHECKPOINT"] = path
    yield
    del os.environ["DTFLAB_TEST_CHECKPOINT"]


def initializing_from_a_checkpoint(tf):
    path = os.environ["DTFLAB_TEST_CHECKPOINT"]
    with tf.variable_scope("s"):
        tf.get_variable("x", [2])
        tf.get_variable("y", [2], use_resource=True)
        tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.train.init_from_checkpoint(path, {"a/": "s/"})
    tf.train.init_from_checkpoint(path, {"a/x": "s/x"})


def test_same_graph(monkeypatch):
    folder, name = os.path.split(os.environ["DTFLAB_TEST_CHECKPOINT"])
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DTFLAB_TEST_CHECKPOINT", name)  # the graph holds it
    assert_same_graph(initializing_from_a_checkpoint)


@program
def initial_values_from_a_checkpoint(tf, home):
    path = os.environ["DTFLAB_TEST_CHECKPOINT"]
    found = []
    for assignment in (
        {"a/x": "s/x", "a/p": "s/p"}, {"a/": "s/"}, [("a/y", "s/y")], {"a/x": "s/y", "a/y": "s/x"}, {"/": "/"},
        {"none": "s/x"}, {"n": "s/x"}, {"a/": "t/"}, {"a": "t/"}, {"none/": "s/"}, {"a/x": "s/none"}, {},
    ):  # fmt: skip
        with tf.Graph().as_default():
            with tf.variable_scope("s"):
                x = tf.get_variable("x", [2], initializer=tf.zeros_initializer())
                y = tf.get_variable("y", [2], initializer=tf.zeros_initializer(), use_resource=True)
                p = tf.get_variable("p", [4, 2], initializer=tf.zeros_initializer(),
                                    partitioner=tf.fixed_size_partitioner(2))  # fmt: skip
            words = ("is not found in", "doesn't match with shape of tensor", "scope only name")
            found.append(tried(lambda a=assignment: tf.train.init_from_checkpoint(path, a), *words))
            with session(tf) as sess:
                found.append(sess.run([x, y, *p]))
    with tf.Graph().as_default():
        x, y = tf.get_variable("x", [2]), tf.get_variable("y", [2], use_resource=True)
        p = tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        tf.train.init_from_checkpoint(os.path.dirname(path), {"a/x": x, "a/y": y, "a/p": list(p)})
        with session(tf) as sess:
            found.append((sess.run([x, y, *p]), x.initial_value.shape.as_list()))
    return found


@program
def warm_starts(tf, home):
    path = os.environ["DTFLAB_TEST_CHECKPOINT"]
    found = []
    words = ("must be a `list` or `str`", "it must be all `Variable`", "that were not used", "is not found in")
    for chosen, renamed in (
        (".*", None), (None, None), ("a/x", None), (["a/x", "a/f"], None), ("nothing", None), (["b"], {"b": "a/x"}),
        ("a", {"a/x": "a/y", "a/y": "a/x"}), ("a", {"none": "a/x"}), (5, None), (["a/x", 5], None), ("b", None),
    ):  # fmt: skip
        with tf.Graph().as_default():
            with tf.variable_scope("a", initializer=tf.zeros_initializer()):
                x, y = tf.get_variable("x", [2]), tf.get_variable("y", [2], use_resource=True)
                p = tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
            if chosen in ("b", ["b"]):
                x = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
            start = functools.partial(tf.train.warm_start, path, chosen, var_name_to_prev_var_name=renamed)
            found.append(tried(start, *words))
            with session(tf) as sess:
                found.append(sess.run([x, y, *p]))
    with tf.Graph().as_default():
        made = [tf.get_variable(f"a/{name}", [2]) for name in "xy"]
        tf.train.warm_start(os.path.dirname(path), made)
        with session(tf) as sess:
            return found, sess.run(made)

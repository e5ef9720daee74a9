"""A student's answers hold in TensorFlow, too: those to placement/q1 put every op where they put it there."""

from __future__ import annotations

import contextlib
import runpy

import pytest

import dtflab
from dtflab.grading.catalogue import find
from tests.grading.answers import SOLUTIONS, answer_cell

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

Q1 = find("placement/q1")
WORKER = "/job:worker/task:0"


def program(folder, library, text):
    """The names that a program makes, with `tf` from one of the libraries."""
    path = folder / "program.py"
    path.write_text(f"import {library} as tf\n{text.replace('import dtflab as tf', '')}\n", encoding="utf-8")
    return runpy.run_path(str(path))


def devices(tf, device_function, use_resource):
    """The device of each op of a model with its gradients and optimizer."""
    with tf.Graph().as_default() as graph, tf.device(device_function):
        x = tf.placeholder(tf.float32, [None, 30], name="x")
        for i, (inputs, outputs) in enumerate([(30, 200), (200, 7), (7, 1)]):
            w = tf.get_variable(
                f"w{i}", [inputs, outputs], tf.float32, tf.zeros_initializer(), use_resource=use_resource
            )
            b = tf.get_variable(f"b{i}", [outputs], tf.float32, tf.zeros_initializer(), use_resource=use_resource)
            x = tf.nn.relu(tf.matmul(x, w) + b)
        tf.get_variable("mask", [900], tf.bool, tf.zeros_initializer(), use_resource=use_resource)
        tf.get_variable("mean", [100], tf.float64, tf.zeros_initializer(), use_resource=use_resource)
        tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(x))
    return {op.name: op.device for op in graph.get_operations() if not op.name.startswith("gradients/")}


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", ["solution", *(mistake.name for mistake in Q1.mistakes)])
def test_answers_place_as_in_tensorflow(name, use_resource, tmp_path):
    text = (SOLUTIONS / "wrong" / "placement" / "q1.py").read_text(encoding="utf-8")
    if name == "solution":
        text, name = answer_cell(Q1), Q1.answer
    found = []
    for library, tf in (("tensorflow.compat.v1", real_tf), ("dtflab", dtflab)):
        function = program(tmp_path, library, text)[name](3, WORKER)
        found.append(devices(tf, function, use_resource))
    assert found[0] == found[1]
    if name == Q1.answer:
        assert {f"/job:ps/task:{task}" for task in range(3)} | {WORKER} <= set(found[1].values())


# -- what of device blocks reaches what is colocated ------------------------------------------------------------


@pytest.mark.parametrize("entered", [False, True])
@pytest.mark.parametrize("use_resource", [False, True])
def test_slots_of_a_variable_without_a_device_take_that_of_the_block_around_the_optimizer(entered, use_resource):
    """TensorFlow's init_scope brings back the device blocks that colocate_with has put away."""
    found = []
    for tf in (real_tf, dtflab):
        tf.reset_default_graph()
        graph = tf.Graph() if entered else tf.get_default_graph()
        asked: list[str] = []

        def noting(op, asked=asked):
            asked.append(op.name)
            return op.device or "/device:CPU:1"

        with graph.as_default() if entered else contextlib.nullcontext():
            zeros = tf.zeros_initializer()
            w = tf.get_variable("w", [3], initializer=zeros, use_resource=use_resource)
            with tf.device(noting):
                tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w))
                with tf.colocate_with(w.op):
                    tf.get_variable("u", [3], initializer=zeros, use_resource=use_resource)
                    tf.constant(1.0, name="c")
                    tf.FIFOQueue(3, [tf.float32])
        outside = [op for op in graph.get_operations() if not op.name.startswith("gradients/")]
        found.append(({op.name: op.device for op in outside}, [name for name in asked if "gradients/" not in name]))
    assert found[0] == found[1]
    assert "w/Adam" in found[1][1] and found[1][0]["w/Adam"] == "/device:CPU:1"

"""The graphs that a Saver makes: TensorFlow's, node for node."""

from __future__ import annotations

from typing import Any

from tests.oracle.graph_defs import assert_same_graph
from tests.oracle.programs import Programs

graph = Programs()


@graph.each("build")
def test_same_graph(build):
    assert_same_graph(build)


def variables(tf: Any) -> list[Any]:
    with tf.device("/job:ps/task:0"):
        a = tf.Variable([1.0, 2.0], name="a")
    with tf.device("/job:ps/task:1/device:GPU:1"):
        b = tf.Variable([1, 2], name="b", use_resource=True)
    c = tf.Variable(1, name="c", validate_shape=False)
    d = tf.Variable(tf.placeholder_with_default([1.0], [None]), name="d", validate_shape=False, use_resource=True)
    return [a, b, c, d]


@graph
def plain_saver(tf):
    variables(tf)
    tf.train.Saver()


@graph
def several_savers(tf):
    a, b, c, d = variables(tf)
    tf.train.Saver([b, a], name="first")
    tf.train.Saver({"x/y": c, "z": b}, filename="elsewhere")
    with tf.name_scope("scope"):
        tf.train.Saver({"a": a}, restore_sequentially=True)
    tf.train.Saver((d, a))
    tf.train.Saver({a, b})


@graph
def saver_with_reshape(tf):
    variables(tf)
    tf.train.Saver(reshape=True)


@graph
def sharded_saver(tf):
    variables(tf)
    tf.train.Saver(sharded=True)
    tf.train.Saver(sharded=True, reshape=True, max_to_keep=2, name="again")


@graph
def savers_of_the_old_format(tf):
    variables(tf)
    tf.train.Saver(write_version=tf.train.SaverDef.V1)
    tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=True, reshape=True)


@graph
def saver_of_partitioned_variables(tf):
    for resource in (False, True):
        with tf.variable_scope(f"scope{resource:d}", partitioner=tf.fixed_size_partitioner(3), use_resource=resource):
            whole = tf.get_variable("v", [7, 2])
        tf.train.Saver()
        tf.train.Saver([whole])
        tf.train.Saver({"other": whole})
        tf.train.Saver({"list": list(whole)}, sharded=True)
    tf.train.Saver(reshape=True)


@graph
def deferred_saver(tf):
    saver = tf.train.Saver(defer_build=True)
    variables(tf)
    saver.build()
    saver.build()

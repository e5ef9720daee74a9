"""Critical sections, side by side with TensorFlow: their graphs, what they keep apart, and what they refuse."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import dtflab
from tests.oracle.programs import Programs

program = Programs()
test_same_answer = program.same_answers()


def increments(tf: Any, count: int, section: Any, v: Any) -> list[Any]:
    """`count` executions that read `v`, add to it and read it again."""

    def step():
        before = v.read_value()
        with tf.control_dependencies([before]), tf.control_dependencies([v.assign_add(1.0)]):
            return v.read_value() - before

    return [section.execute(step) for _ in range(count)]


def graph_of(tf: Any) -> list[Any]:
    return [
        (op.name, op.type, [t.name for t in op.inputs], sorted(c.name for c in op.control_inputs), op.device)
        for op in tf.get_default_graph().get_operations()
    ]


@program
def one_at_a_time(tf):
    v = tf.Variable(0.0, use_resource=True, name="v")
    outputs = increments(tf, 4, tf.CriticalSection(shared_name="section"), v)
    nodes = graph_of(tf)
    with tf.Session() as sess:
        sess.run(v.initializer)
        return nodes, [float(x) for x in sess.run(outputs)], float(sess.run(v))


@program
def structures_and_operations(tf):
    section = tf.CriticalSection(name="here")
    outputs = section.execute(lambda: {"a": tf.constant(1.0), "b": [tf.constant(2)]}, name="run")
    nodes = graph_of(tf)
    with tf.Session() as sess:
        return section.name, nodes, sess.run(outputs)


@program
def an_error_leaves_the_section(tf):
    section = tf.CriticalSection()
    x = tf.placeholder(tf.float32)
    checked = section.execute(lambda: tf.check_numerics(x, "not a number"))
    seen = []
    with tf.Session() as sess:
        for value in (1.0, float("nan"), 2.0, float("nan"), 3.0):
            try:
                seen.append(float(sess.run(checked, {x: value})))
            except tf.errors.InvalidArgumentError:
                seen.append("wrong")
    return seen


@program
def refusals(tf):
    v = tf.Variable(0.0, use_resource=True)
    first, second = tf.CriticalSection(shared_name="a"), tf.CriticalSection(shared_name="b")
    first.execute(v.read_value)
    seen = []
    for wrong in (
        lambda: first.execute(lambda: first.execute(v.read_value)),
        lambda: second.execute(v.read_value),
        lambda: tf.CriticalSection(critical_section_def=object()),
    ):
        with pytest.raises(ValueError) as caught:
            wrong()
        seen.append(str(caught.value).split(" (")[0][:40])
    first.execute(v.read_value)
    return seen


def test_two_sessions_of_a_cluster_keep_apart():
    """Each adds 1 to a reference variable by reading and writing it; none is lost."""
    with dtflab.Cluster(ps=1) as cluster:
        results: list[float] = []

        def client() -> None:
            with dtflab.Graph().as_default(), dtflab.Session(cluster.target) as sess:
                v = dtflab.Variable(0.0, name="v", use_resource=True)
                (added,) = increments(dtflab, 1, dtflab.CriticalSection(shared_name="s"), v)
                results.extend(float(sess.run(added)) for _ in range(50))

        with dtflab.Graph().as_default(), dtflab.Session(cluster.target) as sess:
            v = dtflab.Variable(0.0, name="v", use_resource=True)
            sess.run(v.initializer)
            threads = [threading.Thread(target=client) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert results == [1.0] * 200 and sess.run(v) == 200

"""Conditionals and loops that TensorFlow built (`tf.cond`, `tf.while_loop`) run here, on one device and over many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle import answers
from tests.oracle.programs import Programs

Where = Callable[[int], Any]  # a number → the device block that stands for it
program = Programs()
LAYOUTS: dict[str, Where] = {
    "one device": lambda i: None,
    "three devices": lambda i: f"/cpu:{i}",
    "three tasks": lambda i: f"/job:worker/task:{i}",
    "two tasks of two devices": lambda i: f"/job:worker/task:{i % 2}/cpu:{(i + 1) // 2}",
}
FEEDS = {
    "x:0": np.float32([[1.5, -2.0], [0.25, 3.0]]),
    "n:0": np.int32(3),
    "yes:0": np.bool_(True),
    "no:0": np.bool_(False),
}


def build(tf: Any, function: Callable[..., Any], where: Where) -> tuple[Any, list[Any]]:
    """TensorFlow's graph of a program: placeholders x, n, yes, no are the arguments, tensors the result."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(where(0)):
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        n = tf.placeholder(tf.int32, [], name="n")
        yes, no = tf.placeholder(tf.bool, [], name="yes"), tf.placeholder(tf.bool, [], name="no")
        fetches = [tf.identity(t) for t in function(tf, where, x, n, yes, no)]
        tf.global_variables_initializer()
    return graph, fetches


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    config = dtflab.ConfigProto(device_count={"CPU": 3})
    with dtflab.Cluster(worker=3, config=config) as cluster:
        yield cluster


@pytest.mark.parametrize("layout", LAYOUTS)
@program.each("function")
def test_same_values(function, layout, cluster):
    def values(tf):
        graph, fetches = build(tf, function, LAYOUTS["one device"])
        with tf.Session(graph=graph) as session:
            session.run("init")
            return [session.run(fetches, FEEDS) for _ in range(2)]

    def exported(tf):
        graph, fetches = build(tf, function, LAYOUTS[layout])
        return graph.as_graph_def().SerializeToString(deterministic=True), [t.name for t in fetches]

    expected = answers.theirs(values)
    graph_def, fetches = answers.theirs(exported)
    with dtflab.Graph().as_default() as ours:
        dtflab.import_graph_def(dtflab.GraphDef.FromString(graph_def), name="")
    config = dtflab.ConfigProto(device_count={"CPU": 3}, operation_timeout_in_ms=60_000)
    target = cluster.target if "task" in layout else ""
    with dtflab.Session(target, graph=ours, config=config) as session:
        session.run("init")
        found = [session.run(fetches, FEEDS) for _ in range(2)]
    for theirs, own in zip(expected, found, strict=True):
        for a, b in zip(theirs, own, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, strict=True)
    dtflab.Session.reset(cluster.target)


# -- conditionals -----------------------------------------------------------------------------------------------


@program
def cond(tf, where, x, n, yes, no):
    return [tf.cond(pred, lambda: x + 1.0, lambda: tf.matmul(x, x)) for pred in (yes, no)]


@program
def cond_with_branches_elsewhere(tf, where, x, n, yes, no):
    def then():
        with tf.device(where(1)):
            return tf.negative(x) * 3.0

    def otherwise():
        with tf.device(where(2)):
            return tf.matmul(x, x) + tf.constant(2.0)

    return [tf.cond(pred, then, otherwise) for pred in (yes, no)]


@program
def cond_of_several_values(tf, where, x, n, yes, no):
    def swap():
        with tf.device(where(1)):
            return tf.identity(x[1]), tf.constant(5.0), n

    chosen = [tf.cond(pred, swap, lambda: (x[0], tf.constant(7.0), n + 1)) for pred in (yes, no)]
    return [t for values in chosen for t in values]


@program
def cond_inside_cond(tf, where, x, n, yes, no):
    def inner(pred):
        with tf.device(where(1)):
            return tf.cond(pred, lambda: x * 2.0, lambda: x * 3.0)

    return [tf.cond(a, lambda: inner(b), lambda: inner(a) + 1.0) for a in (yes, no) for b in (yes, no)]  # noqa: B023


@program
def a_case_of_many(tf, where, x, n, yes, no):
    def branch(factor):
        def make():
            with tf.device(where(factor % 3)):
                return x * tf.constant(float(factor))

        return make

    pairs = [(tf.equal(n, 1), branch(1)), (tf.equal(n, 3), branch(2)), (tf.equal(n, 4), branch(3))]
    return [tf.case(pairs, default=branch(4)), tf.case(pairs[::2], default=branch(5))]


@program
def a_branch_that_assigns(tf, where, x, n, yes, no):
    with tf.device(where(1)):
        v = tf.Variable(tf.zeros([2, 2]), use_resource=False)
        r = tf.Variable(tf.ones([2, 2]), use_resource=True)
    done = tf.cond(yes, lambda: tf.group(v.assign_add(x), r.assign_sub(x)), lambda: tf.no_op())
    not_done = tf.cond(no, lambda: tf.group(v.assign(x * 9.0), r.assign(x * 9.0)), lambda: tf.no_op())
    with tf.control_dependencies([done, not_done]):
        return [v.read_value(), r.read_value()]


@program
def a_variable_chosen(tf, where, x, n, yes, no):
    with tf.device(where(1)):
        a = tf.Variable(tf.fill([2, 2], 4.0), use_resource=False)
    return [tf.cond(pred, lambda: a, lambda: x) for pred in (yes, no)]


@program
def gradients_of_cond(tf, where, x, n, yes, no):
    def square():
        with tf.device(where(1)):
            return tf.square(x)

    return [tf.gradients(tf.cond(pred, square, lambda: x * 4.0), x)[0] for pred in (yes, no)]


@program
def switch_and_merge(tf, where, x, n, yes, no):
    control_flow_ops = answers.module_of(tf, "python.ops.control_flow_ops", None)
    found = []
    for pred in (yes, no):
        otherwise, then = control_flow_ops.switch(x, pred)
        with tf.device(where(2)):
            then = tf.exp(then)
        found += control_flow_ops.merge([otherwise, then])
    return found


# -- loops ------------------------------------------------------------------------------------------------------


@program
def counting(tf, where, x, n, yes, no):
    return [tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0)])]


@program
def no_turn_at_all(tf, where, x, n, yes, no):
    def body(i, a):
        with tf.device(where(1)):
            return i + 1, a * 2.0

    return tf.while_loop(lambda i, a: i < 0, body, [tf.constant(0), x])


@program
def a_body_elsewhere(tf, where, x, n, yes, no):
    def body(i, a):
        with tf.device(where(1)):
            return i + 1, tf.tanh(tf.matmul(a, x))

    return tf.while_loop(lambda i, a: i < n, body, [tf.constant(0), x])


@program
def a_body_in_three_places(tf, where, x, n, yes, no):
    def body(i, a, b):
        with tf.device(where(1)):
            c = tf.tanh(a + b)
        with tf.device(where(2)):
            d = tf.matmul(c, x)
        return i + 1, c - d, d * 0.5

    return tf.while_loop(lambda i, a, b: i < 7, body, [tf.constant(0), x, x + 1.0])


@program
def a_condition_elsewhere(tf, where, x, n, yes, no):
    def going(i, a):
        with tf.device(where(2)):
            return tf.reduce_sum(tf.abs(a)) < 1000.0

    return tf.while_loop(going, lambda i, a: (i + 1, a * 2.0), [tf.constant(0), x])


@program
def one_iteration_at_a_time(tf, where, x, n, yes, no):
    def body(i, a):
        with tf.device(where(1)):
            return i + 1, a + tf.cast(i, tf.float32)

    return tf.while_loop(lambda i, a: i < 25, body, [tf.constant(0), x], parallel_iterations=1)


@program
def many_iterations(tf, where, x, n, yes, no):
    def body(i, a):
        with tf.device(where(1)):
            return i + 1, a * 1.01

    return tf.while_loop(lambda i, a: i < 100, body, [tf.constant(0), x], parallel_iterations=32)


@program
def a_value_that_grows(tf, where, x, n, yes, no):
    def body(i, a):
        with tf.device(where(1)):
            return i + 1, tf.concat([a, a[-1:]], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    return tf.while_loop(lambda i, a: i < n, body, [tf.constant(0), x], shape_invariants=shapes)


@program
def loop_inside_loop(tf, where, x, n, yes, no):
    def outer(i, a):
        def inner(j, b):
            with tf.device(where(2)):
                return j + 1, tf.tanh(b + tf.cast(i * j, tf.float32))

        with tf.device(where(1)):
            _, b = tf.while_loop(lambda j, b: j < i, inner, [tf.constant(0), a])
        return i + 1, b + 1.0

    return tf.while_loop(lambda i, a: i < 4, outer, [tf.constant(0), x])


@program
def three_loops_deep(tf, where, x, n, yes, no):
    def nest(depth, a):
        def body(i, b):
            with tf.device(where(depth)):
                return i + 1, nest(depth - 1, b) if depth else tf.sin(b + 1.0)

        return tf.while_loop(lambda i, b: i < 2, body, [tf.constant(0), a])[1]

    return [nest(2, x)]


@program
def cond_inside_loop(tf, where, x, n, yes, no):
    def body(i, a):
        def even():
            with tf.device(where(1)):
                return a * 2.0

        def odd():
            with tf.device(where(2)):
                return a - 3.0

        return i + 1, tf.cond(tf.equal(i % 2, 0), even, odd)

    return tf.while_loop(lambda i, a: i < 5, body, [tf.constant(0), x])


@program
def loop_inside_cond(tf, where, x, n, yes, no):
    def body(i, a):
        with tf.device(where(1)):
            return i + 1, tf.matmul(a, x)

    def loop():
        return tf.while_loop(lambda i, a: i < n, body, [tf.constant(0), x])[1]

    return [tf.cond(pred, loop, lambda: x) for pred in (yes, no)]


@program
def loop_inside_cond_inside_loop(tf, where, x, n, yes, no):
    def body(i, a):
        def inner(j, b):
            with tf.device(where(2)):
                return j + 1, tf.cos(b)

        def loop():
            with tf.device(where(1)):
                return tf.while_loop(lambda j, b: j < 3, inner, [tf.constant(0), a])[1]

        return i + 1, tf.cond(tf.equal(i, 1), loop, lambda: a * 0.5)

    return tf.while_loop(lambda i, a: i < n, body, [tf.constant(0), x])


@program
def a_loop_that_assigns(tf, where, x, n, yes, no):
    with tf.device(where(1)):
        v = tf.Variable(tf.zeros([2, 2]), use_resource=False)
        r = tf.Variable(tf.ones([2, 2]), use_resource=True)

    def body(i):
        with tf.control_dependencies([v.assign_add(x), r.assign_sub(x)]):
            return i + 1

    turns = tf.while_loop(lambda i: i < n, body, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([turns]):
        return [turns, v.read_value(), r.read_value()]


@program
def loops_one_after_another(tf, where, x, n, yes, no):
    for place in (1, 2, 0):

        def body(i, a, place=place):
            with tf.device(where(place)):
                return i + 1, tf.tanh(a) + tf.cast(i, tf.float32)

        _, x = tf.while_loop(lambda i, a: i < n, body, [tf.constant(0), x])
    return [x]


@program
def a_loop_over_nested_values(tf, where, x, n, yes, no):
    def body(i, pair):
        with tf.device(where(1)):
            return i + 1, {"a": pair["b"], "b": (pair["a"][0] + 1.0, pair["a"][1])}

    start = {"a": (x, x * 2.0), "b": (x * 3.0, x * 4.0)}
    i, pair = tf.while_loop(lambda i, pair: i < n, body, [tf.constant(0), start])
    return [i, *pair["a"], *pair["b"]]

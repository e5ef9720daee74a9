from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import by_name
from dtflab.runtime.prune import prune

CPU = "/job:a/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def pruned(feeds=(), fetches=(), targets=()):
    nodes = by_name(tf.get_default_graph().nodes())
    return by_name(prune(nodes, feeds, fetches, targets, CPU))


def test_only_what_is_needed_remains():
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    c = tf.add(a, b, name="c")
    tf.negative(c, name="d")
    assert set(pruned(fetches=["c:0"])) == {"a", "b", "c", "_retval_c_0_0"}
    assert set(pruned(targets=["a"])) == {"a"}
    assert set(pruned(fetches=["b:0"], targets=["a"])) == {"a", "b", "_retval_b_0_0"}


def test_feeds_and_fetches_are_nodes_on_the_clients_device():
    a = tf.placeholder(tf.float32, name="a")
    first, second = tf.split(a, 2, name="s")
    tf.add(first, second, name="c")
    nodes = pruned(feeds=["a:0", "s:1"], fetches=["c:0", "s:0", "c:0"])
    assert {n: str(nodes[n]) for n in nodes if n.startswith("_")} == {
        "_arg_a_0_0": f"_arg_a_0_0 = _Arg() @ {CPU}",
        "_arg_s_1_1": f"_arg_s_1_1 = _Arg() @ {CPU}",
        "_retval_c_0_0": f"_retval_c_0_0 = _Retval(c) @ {CPU}",
        "_retval_s_0_1": f"_retval_s_0_1 = _Retval(s) @ {CPU}",
        "_retval_c_0_2": f"_retval_c_0_2 = _Retval(c) @ {CPU}",
    }
    assert nodes["c"].inputs == [("s", 0), ("_arg_s_1_1", 0)]
    assert [nodes[f"_retval_{name}"]["index"] for name in ("c_0_0", "s_0_1", "c_0_2")] == [0, 1, 2]


def test_what_only_a_fed_tensor_needs_is_not_run():
    a = tf.constant(1.0, name="a")
    b = tf.negative(a, name="b")
    tf.negative(b, name="c")
    assert set(pruned(feeds=["b:0"], fetches=["c:0"])) == {"_arg_b_0_0", "c", "_retval_c_0_0"}


def test_a_feed_that_nobody_needs_is_no_node():
    tf.placeholder(tf.float32, name="a")
    tf.constant(1.0, name="b")
    assert set(pruned(feeds=["a:0"], fetches=["b:0"])) == {"b", "_retval_b_0_0"}


def test_a_fed_tensor_may_be_fetched():
    tf.placeholder(tf.float32, name="a")
    assert pruned(feeds=["a:0"], fetches=["a:0"])["_retval_a_0_0"].inputs == [("_arg_a_0_0", 0)]


def test_waiting_for_a_fed_placeholder_means_nothing():
    a = tf.placeholder(tf.float32, name="a")
    c = tf.negative(tf.constant(1.0), name="c")
    with tf.control_dependencies([a, c]):
        tf.no_op(name="b")
    assert pruned(feeds=["a:0"], targets=["b"])["b"].controls == ["c"]
    assert pruned(targets=["b"])["b"].controls == ["a", "c"]


def test_control_inputs_are_needed():
    with tf.control_dependencies([tf.no_op(name="a")]):
        tf.constant(1.0, name="b")
    assert set(pruned(fetches=["b:0"])) == {"a", "b", "_retval_b_0_0"}


def test_what_nobody_reads_is_waited_for_but_not_computed():
    a = tf.placeholder(tf.float32, [2, 2], name="a")
    b = tf.matmul(a, a, name="b")
    c = tf.negative(b, name="c")
    with tf.control_dependencies([c]):
        tf.no_op(name="d")
    nodes = pruned(feeds=["a:0"], targets=["d"])
    assert [nodes[name].op for name in "bcd"] == ["NoOp"] * 3 and nodes["c"].controls == ["b"]
    assert pruned(feeds=["a:0"], fetches=["c:0"], targets=["d"])["b"].op == "MatMul"
    assert pruned(feeds=["a:0"], targets=["c"])["c"].op == "Neg"


def test_what_has_an_effect_is_always_run():
    v = tf.Variable(1.0, name="v")
    assign, random = v.assign(2.0), tf.random_uniform([], name="random")
    check = tf.check_numerics(v, "no number", name="check")
    with tf.control_dependencies([assign, random, check]):
        tf.no_op(name="d")
    nodes = pruned(targets=["d"])
    assert {nodes[c].op for c in nodes["d"].controls} >= {"Assign", "CheckNumerics"}
    assert nodes["random/RandomUniform"].op == "RandomUniform"


def test_what_may_be_dead_still_is():
    _, yes = apply_op("Switch", data=tf.constant(1.0), pred=tf.constant(True))
    anchor = tf.identity(yes, name="anchor")
    with tf.control_dependencies([anchor]):
        tf.constant(1.0, name="b")
    assert pruned(fetches=["b:0"])["anchor"].op == "Identity"


def test_names_that_are_not_there():
    tf.constant(1.0, name="a")
    for fetch in ("b:0", "a:1"):
        with pytest.raises(errors.NotFoundError, match=f"FetchOutputs.*{fetch}"):
            pruned(fetches=[fetch])
        with pytest.raises(errors.InvalidArgumentError, match=f"FeedInputs.*{fetch}"):
            pruned(feeds=[fetch], fetches=["a:0"])
    with pytest.raises(errors.NotFoundError, match="Some target nodes not found: b"):
        pruned(targets=["b"])


def test_loops_and_deep_graphs_are_no_trouble():
    a = tf.constant(1.0)
    for _ in range(3000):
        a = -a
    assert len(pruned(fetches=[a.name])) == 3002
    enter = apply_op("Enter", data=tf.constant(1.0), frame_name="loop")
    merge = apply_op("Merge", inputs=[enter, enter])[0]
    merge.op._update_input(1, apply_op("NextIteration", "next", data=merge))
    assert "next" in pruned(fetches=[merge.name])

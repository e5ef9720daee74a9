"""tf.cond and tf.case: what they refuse, what can't be fetched, and their contexts as messages; next to TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from tests.oracle.graph_defs import assert_same_graph, both


def raised(call: Callable[[], Any]) -> Any:
    try:
        call()
    except Exception as error:
        text = str(error).partition("\n")[0].partition(" for '{{node")[0]
        structure = "don't have the same nested structure"
        return type(error).__name__, structure if structure in text else text.partition(":")[0]
    return "nothing"


def test_what_cond_refuses():
    def tried(tf):
        p, x = tf.placeholder(tf.bool, []), tf.constant([1.0])
        sparse = tf.SparseTensor([[0]], [1.0], [2])
        return [
            raised(lambda: tf.cond(True, lambda: x, lambda: x)),
            raised(lambda: tf.cond(p, lambda: x)),
            raised(lambda: tf.cond(p, false_fn=lambda: x)),
            raised(lambda: tf.cond(p, x, lambda: x)),
            raised(lambda: tf.cond(p, lambda: x, x)),
            raised(lambda: tf.cond(p, lambda: x, lambda: x, fn1=lambda: x)),
            raised(lambda: tf.cond(p, lambda: x, lambda: x, fn2=lambda: x)),
            raised(lambda: tf.cond(p, lambda: None, lambda: x)),
            raised(lambda: tf.cond(p, lambda: x, lambda: None)),
            raised(lambda: tf.cond(p, lambda: [None], lambda: [None])),
            raised(lambda: tf.cond(p, list, list)),
            raised(lambda: tf.cond(p, lambda: [x, x], lambda: [x])),
            raised(lambda: tf.cond(p, lambda: [x, x], lambda: (x, x))),
            raised(lambda: tf.cond(p, lambda: {"a": x}, lambda: {"b": x})),
            raised(lambda: tf.cond(p, lambda: x, lambda: 1)),
            raised(lambda: tf.cond(p, lambda: x, tf.no_op)),
            raised(lambda: tf.cond(p, lambda: sparse, lambda: x)),
            raised(lambda: tf.cond(1, lambda: x, lambda: x)),
            raised(lambda: tf.cond(None, lambda: x, lambda: x)),
            raised(lambda: tf.cond(tf.constant([True]), lambda: x, lambda: x)),
        ]

    compare(tried)


def compare(tried: Callable[[Any], Any]) -> None:
    theirs, ours = both(tried)
    assert ours == theirs


def test_what_case_refuses():
    def tried(tf):
        p, n, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, []), tf.constant([1.0])
        good = lambda: x  # noqa: E731
        return [
            raised(lambda: tf.case(5, good)),
            raised(lambda: tf.case([p, good], good)),
            raised(lambda: tf.case([[p, good]], good)),
            raised(lambda: tf.case([(True, good)], good)),
            raised(lambda: tf.case([(n, good)], good)),
            raised(lambda: tf.case([(p, x)], good)),
            raised(lambda: tf.case([(p, good)], x)),
            raised(lambda: tf.switch_case(1, [good])),
            raised(lambda: tf.switch_case(x, [good])),
            raised(lambda: tf.switch_case(n, [])),
            raised(lambda: tf.switch_case(n, good)),
            raised(lambda: tf.switch_case(n, [x])),
            raised(lambda: tf.switch_case(n, [("0", good)])),
            raised(lambda: tf.switch_case(n, {0: good, 2: good})),
            raised(lambda: tf.switch_case(n, [(0, good), (0, good)])),
            raised(lambda: tf.switch_case(n, {0: x})),
        ]

    compare(tried)


def test_a_case_that_does_not_come_true():
    def tried(tf):
        p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
        pairs = [(p, lambda: tf.constant(1)), (q, lambda: tf.constant(2))]
        runs = [tf.case(pairs), tf.case(pairs, default=lambda: tf.constant(3), exclusive=True)]
        found = []
        with tf.Session() as session:
            for value in runs:
                for feed in ((False, False), (True, False), (False, True), (True, True)):
                    try:
                        found.append(int(session.run(value, {p: feed[0], q: feed[1]})))
                    except tf.errors.InvalidArgumentError as error:
                        said = "None of conditions" in str(error), "more than 1 conditions (p:0, q:0)" in str(error)
                        found.append(said)
        return found

    compare(tried)


def test_what_is_inside_is_not_fetched():
    def fetched(tf):
        p = tf.placeholder_with_default(True, [])
        inside = []

        def branch():
            inside.append(tf.constant(1.0) + 1.0)
            return inside[0]

        z = tf.cond(p, branch, lambda: tf.constant(5.0))
        with tf.Session() as session:
            return [raised(lambda: session.run(inside[0]))[0], float(session.run(z)), float(session.run(inside[0] + z))]

    compare(fetched)


def test_a_constant_predicate_is_fed():
    def fed(tf):
        pred, value = tf.constant(True), tf.constant(37.0)
        result = tf.identity(tf.cond(pred, lambda: tf.constant(0.0), lambda: value))
        with tf.Session() as session:
            return [float(session.run(result, feed)) for feed in ({pred: False}, {pred: True}, {})]

    compare(fed)


def test_gradients_after_a_run():
    def run_twice(tf):
        x = tf.constant(10.0)
        y = tf.cond(tf.less(1, 2), lambda: tf.square(x * x), lambda: x * x)
        with tf.Session() as session:
            return [float(session.run(y)), float(session.run(tf.gradients(y, [x])[0]))]

    compare(run_twice)


def test_an_error_in_a_branch_leaves_the_context():
    def tried(tf):
        p = tf.placeholder(tf.bool, [])
        error = raised(lambda: tf.cond(p, lambda: 1 / 0, lambda: 1))
        y = tf.constant(1.0, name="after")
        return [error, len(y.op.control_inputs)]

    compare(tried)


def test_a_variable_initialized_by_a_branch_s_tensor_is_refused():
    def tried(tf):
        p = tf.placeholder(tf.bool, [])
        return [
            raised(
                lambda use=use: tf.cond(
                    p, lambda: tf.Variable(tf.constant(1.0), use_resource=use).read_value(), lambda: tf.constant(0.0)
                )
            )[0]
            for use in (False, True)
        ]

    compare(tried)


# ---- contexts as messages ----


def test_contexts_are_kept_as_messages():
    def message(tf):
        p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
        x = tf.placeholder(tf.float32, [3], name="x")
        with tf.name_scope("scope"):
            tf.cond(p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x), lambda: x + 1.0)
        kept = tf.get_collection(tf.GraphKeys.COND_CONTEXT)
        return [real(c.to_proto()) for c in kept], [c.to_proto("other") for c in kept]

    from tensorflow.core.protobuf.control_flow_pb2 import CondContextDef

    def real(m):
        return CondContextDef.FromString(m.SerializeToString())

    compare(message)


def test_contexts_come_back_from_messages():
    from dtflab.ops.control.cond_context import CondContext

    tf = dtflab
    with tf.Graph().as_default() as graph:
        p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
        x = tf.placeholder(tf.float32, [3], name="x")
        y = tf.cond(p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x), lambda: x * x, name="c")
        messages = [c.to_proto() for c in tf.get_collection(tf.GraphKeys.COND_CONTEXT)]
        (want,) = tf.gradients(y, x)
        definition = graph.as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="again")
        contexts = [CondContext.from_proto(m, import_scope="again") for m in messages]
        assert [c.to_proto("again") for c in contexts] == messages
        x, y = (graph.get_tensor_by_name(f"again/{name}") for name in (x.name, y.name))
        (got,) = tf.gradients(y, x)
        with tf.Session() as session:
            for a, b in ((True, True), (True, False), (False, True)):
                feed = {"again/p:0": a, "again/q:0": b, x: [1.0, 2.0, 3.0]}
                grads = session.run([got, graph.get_tensor_by_name(f"again/{want.name}")], feed)
                assert grads[0].tolist() == grads[1].tolist()


def test_a_graph_is_imported_into_a_branch():
    def imported(tf):
        with tf.Graph().as_default() as graph:
            a = tf.placeholder(tf.float32, [], name="a")
            with tf.control_dependencies([tf.constant(3.0, name="c")]):
                tf.add(a, tf.constant(2.0, name="b"), name="sum")
        definition = graph.as_graph_def()
        p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [], name="x")

        def branch():
            return tf.import_graph_def(definition, input_map={"a:0": x}, return_elements=["sum:0"], name="in")

        tf.cond(p, branch, lambda: [x])

    assert_same_graph(imported)


def test_gradients_of_variables_in_branches_have_shapes():
    def shapes(tf):
        with tf.Graph().as_default():
            a, b = (tf.Variable([1.0, 2.0], use_resource=True) for _ in "ab")
            chosen = tf.cond(tf.placeholder(tf.bool, []), lambda: a, lambda: b)
            return [g.shape.as_list() for g in tf.gradients(chosen, [a, b])]

    assert shapes(dtflab) == shapes(real_tf) == [[2], [2]]


def test_a_merge_names_its_results():
    from tensorflow.python.ops import control_flow_ops as theirs

    from dtflab.ops.control import functions as ours

    for tf, module in ((real_tf, theirs), (dtflab, ours)):
        with tf.Graph().as_default(), tf.Session() as session:
            off, on = module.switch(tf.constant([5.0]), tf.constant(True))
            merged = module.merge([off, on])
            assert session.run([merged.output, merged.value_index]) == [[5.0], 1]

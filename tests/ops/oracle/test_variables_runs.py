"""Variables, checks and random numbers when they run: TensorFlow's values, error classes and texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

from dtflab.graph.apply_op import apply_op
from tests.oracle.graph_defs import both

PROGRAMS: list[Callable[..., Any]] = []
FAILURES: list[Callable[..., Any]] = []


def both_kinds(cases: list[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for use_resource in (False, True):

            def run(tf: Any, session: Any, use_resource: bool = use_resource) -> Any:
                return function(tf, session, use_resource)

            run.__name__ = f"{function.__name__}_{'resource' if use_resource else 'reference'}"
            cases.append(run)
        return function

    return register


def one(cases: list[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda function: (cases.append(function), function)[1]


def in_session(run: Callable[..., Any]) -> Callable[[Any], Any]:
    def program(tf: Any) -> Any:
        with tf.Session() as session:
            return run(tf, session)

    return program


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
def test_same_values(run):
    theirs, ours = both(in_session(run))
    assert len(theirs) == len(ours)
    for want, got in zip(theirs, ours):
        np.testing.assert_allclose(got, want, rtol=1e-5) if np.asarray(want).dtype.kind == "f" else (
            np.testing.assert_array_equal(got, want)
        )
        assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("run", FAILURES, ids=lambda f: f.__name__)
def test_same_error(run):
    def program(tf: Any) -> tuple[str, str]:
        try:
            with tf.Session() as session:
                return "nothing", str(run(tf, session))
        except Exception as error:
            return type(error).__name__, getattr(error, "message", str(error))

    (their_class, their_text), (our_class, our_text) = both(program)
    assert our_class == their_class, our_text
    said = core(their_text)
    assert core(our_text).startswith(said), f"{our_text!r} instead of {said!r}"


def core(text: str) -> str:
    """The line that says what is wrong; TensorFlow puts it between lines on where."""
    framing = ("Graph execution error", "Detected at", "Node:", "    File", "\t [[", "WARNING")
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith(framing)]
    return lines[0].split(" for '{{node")[0].split(", status error message=")[0]


def raw(tf: Any, op_type: str, name: str | None = None, **arguments: Any) -> Any:
    """One op without its Python function."""
    if tf is real_tf:
        return getattr(tf.raw_ops, op_type)(**arguments, name=name)
    return apply_op(op_type, name, **arguments)


# -- values -------------------------------------------------------------------------------------------


@both_kinds(PROGRAMS)
def assignments(tf, session, use_resource):
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    session.run(v.initializer)
    first = session.run(v)
    after = session.run(v.assign_add([1.0, 1.0]))
    again = session.run(tf.assign_sub(v, [0.5, 0.5]))
    session.run(v.assign([7.0, 8.0], read_value=False))
    v.load([9.0, 9.5], session)
    return first, after, again, session.run(v.read_value()), v.eval(session), session.run(v.initial_value)


@both_kinds(PROGRAMS)
def operators(tf, session, use_resource):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=use_resource)
    session.run(v.initializer)
    ones = np.ones(2, np.float32)
    results = [v + 1, 2 - v, v * v, v / 2, v // 2, v % 3, -v, abs(-v), v**2, v[1], v[:, 0], v[-1, ::-1]]
    return session.run([*results, v > 2, v <= 2, ones + v, tf.matmul(v, v)])


@both_kinds(PROGRAMS)
def scatters(tf, session, use_resource):
    v = tf.Variable(np.arange(8.0, dtype=np.float32).reshape(4, 2), use_resource=use_resource)
    session.run(v.initializer)
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    results = []
    for scatter in (tf.scatter_update, tf.scatter_add, tf.scatter_sub, tf.scatter_mul, tf.scatter_div):
        results.append(session.run(scatter(v, [0, 3, 1], rows)))
    results.append(session.run(tf.scatter_add(v, [0, 0, 2], rows)))
    results.append(session.run(tf.scatter_min(v, [[0, 1], [2, 3]], np.ones((2, 2, 2), np.float32))))
    results.append(session.run(tf.scatter_max(v, 2, [50.0, 0.0])))
    results.append(session.run(tf.gather(v, [[0, 3], [1, 1]])))
    return results


@both_kinds(PROGRAMS)
def initialization_state(tf, session, use_resource):
    a = tf.Variable(1, name="a", use_resource=use_resource)
    b = tf.Variable(2, name="b", use_resource=use_resource)
    missing, is_set = tf.report_uninitialized_variables(), tf.is_variable_initialized(a)
    results = [session.run(missing), session.run(is_set)]
    session.run(a.initializer)
    results += [session.run(missing), session.run(is_set)]
    session.run(b.initializer)
    return [*results, session.run(missing)]


@one(PROGRAMS)
def initialized_from_each_other(tf, session):
    v = tf.Variable(tf.random_normal([3], seed=1), name="v")
    w = tf.Variable(v.initialized_value() * 2.0, name="w")
    x = tf.Variable(v + w, name="x")
    session.run(x.initializer)
    session.run(v.initializer)
    session.run(w.initializer)
    a, b, c = session.run([v, w, x])
    return a, b, b - 2 * a, c


@both_kinds(PROGRAMS)
def shared_by_name(tf, session, use_resource):
    results = []
    if use_resource:
        a = raw(tf, "VarHandleOp", dtype=tf.float32, shape=[], shared_name="s", name="a")
        b = raw(tf, "VarHandleOp", dtype=tf.float32, shape=[], shared_name="s", name="b")
        c = raw(tf, "VarHandleOp", dtype=tf.float32, shape=[], shared_name="s", container="other", name="c")
        session.run(raw(tf, "AssignVariableOp", resource=a, value=3.0))
        results += session.run([raw(tf, "VarIsInitializedOp", resource=h) for h in (a, b, c)])
        results += session.run(
            [raw(tf, "ReadVariableOp", resource=b, dtype=tf.float32), raw(tf, "VariableShape", input=b)]
        )
        session.run(raw(tf, "DestroyResourceOp", resource=b))
        results.append(session.run(raw(tf, "VarIsInitializedOp", resource=a)))
    else:
        a = raw(tf, "VariableV2", dtype=tf.float32, shape=[], shared_name="s", name="a")
        b = raw(tf, "VariableV2", dtype=tf.float32, shape=[], shared_name="s", name="b")
        c = raw(tf, "VariableV2", dtype=tf.float32, shape=[], shared_name="s", container="other", name="c")
        session.run(raw(tf, "Assign", ref=a, value=3.0))
        results += session.run([raw(tf, "IsVariableInitialized", ref=r) for r in (a, b, c)])
        results.append(session.run(b))
    return results


@one(PROGRAMS)
def changing_shape(tf, session):
    v = tf.Variable([1.0, 2.0], name="v")
    session.run(v.initializer)
    session.run(tf.assign(v, tf.placeholder_with_default([1.0], [None]), validate_shape=False))
    return [session.run(v)]


@both_kinds(PROGRAMS)
def counting(tf, session, use_resource):
    v = tf.Variable(0, use_resource=use_resource)
    session.run(v.initializer)
    count = tf.count_up_to(v, 3)
    return [session.run(count) for _ in range(3)]


@both_kinds(PROGRAMS)
def dtypes_of_variables(tf, session, use_resource):
    results = []
    for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int64, tf.uint8, tf.int8, tf.complex64):
        v = tf.Variable(tf.cast([1, 2], dtype), use_resource=use_resource)
        session.run(v.initializer)
        results += [
            session.run(tf.cast(v.assign_add(tf.cast([2, 1], dtype)), tf.float64 if dtype != tf.complex64 else dtype))
        ]
    for value in ("text", True):
        v = tf.Variable(value, use_resource=use_resource)
        session.run(v.initializer)
        results.append(session.run(v))
    return results


@one(PROGRAMS)
def a_reference_variable_is_read_where_its_reader_runs(tf, session):
    """TF1 programs rely on this: `v` after an update, in the same step, is the new value."""
    v = tf.Variable([0.0, 1.0])
    added = tf.assign_add(v, [1.0, 1.0])
    with tf.control_dependencies([added]):
        same, plus = tf.identity(v), v + 0.5
    replaced = tf.assign(v, plus * 2.0)
    with tf.control_dependencies([replaced]):
        later = v * 1.5
    session.run(v.initializer)
    return session.run([same, plus, replaced, later]) + session.run([v])


@one(PROGRAMS)
def a_fetched_reference_variable_has_its_value_at_the_end_of_the_step(tf, session):
    v = tf.Variable([0.0, 1.0])
    old = v.read_value()
    with tf.control_dependencies([old]):
        new = v.assign_add([1.0, 1.0])
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v), global_step=step)
    session.run(tf.global_variables_initializer())
    first = session.run([old, new, v])
    return first + session.run([train, step])[1:] + session.run([step, train])[:1]


@both_kinds(PROGRAMS)
def a_loss_is_computed_from_the_weights_before_their_update(tf, session, use_resource):
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    loss = tf.reduce_sum(tf.exp(v * 0.1))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session.run(v.initializer)
    return [session.run([train, loss])[1] for _ in range(3)]


@one(PROGRAMS)
def seeded_random_numbers(tf, session):
    tf.set_random_seed(5)
    numbers = [
        tf.random_uniform([3, 2]), tf.random_uniform([5], -2, 3, dtype=tf.float64, seed=1),
        tf.random_uniform([7], maxval=9, dtype=tf.int32), tf.random_uniform([7], -5, 9, dtype=tf.int64, seed=2),
        tf.random_shuffle(tf.range(9)), tf.random_shuffle([["a", "b"], ["c", "d"], ["e", "f"]], seed=3),
    ]  # fmt: skip
    return session.run(numbers) + session.run(numbers)


@one(PROGRAMS)
def seeded_normal_numbers(tf, session):
    normal = [
        tf.random_normal([100], seed=1), tf.random_normal([3, 3], 2.0, 0.5, dtype=tf.float64, seed=4),
        tf.truncated_normal([100], seed=2), tf.truncated_normal([5], stddev=0.1, dtype=tf.float64, seed=3),
    ]  # fmt: skip
    return [np.round(x, 4) for x in session.run(normal) + session.run(normal)]


@one(PROGRAMS)
def dropout(tf, session):
    x = tf.ones([6, 5])
    kept = [tf.nn.dropout(x, 0.5, seed=3), tf.nn.dropout(x, rate=0.3, noise_shape=[6, 1], seed=4)]
    return session.run(kept) + session.run(kept)


# -- errors -------------------------------------------------------------------------------------------


@both_kinds(FAILURES)
def uninitialized_read(tf, session, use_resource):
    v = tf.Variable([1.0, 2.0], name="v", use_resource=use_resource)
    session.run(v.read_value() if use_resource else v + 1.0)


@one(FAILURES)
def uninitialized_fetch(tf, session):
    session.run(tf.Variable(1.0, name="v"))


@one(FAILURES)
def uninitialized_update(tf, session):
    session.run(tf.assign_add(tf.Variable(1.0, name="v"), 1.0))


def placeholder(tf: Any, dtype: Any = None) -> Any:
    return tf.placeholder(dtype or tf.float32)


@both_kinds(FAILURES)
def update_of_another_shape(tf, session, use_resource):
    v, p = tf.Variable([1.0, 2.0], use_resource=use_resource), placeholder(tf)
    session.run(v.initializer)
    session.run(v.assign_add(p).op, {p: [1.0, 2.0, 3.0]})


@both_kinds(FAILURES)
def assignment_of_another_shape(tf, session, use_resource):
    v, p = tf.Variable([1.0, 2.0], use_resource=use_resource), placeholder(tf)
    session.run(v.initializer)
    session.run(v.assign(p).op, {p: [1.0, 2.0, 3.0]})


@both_kinds(FAILURES)
def row_out_of_range(tf, session, use_resource):
    v, p = tf.Variable([[1.0], [2.0]], use_resource=use_resource), placeholder(tf, tf.int32)
    session.run(v.initializer)
    session.run(tf.scatter_add(v, p, [[1.0], [1.0]]).op, {p: [0, 2]})


@one(FAILURES)
def rows_of_another_shape(tf, session):
    v, p = tf.Variable([[1.0], [2.0]]), placeholder(tf)
    session.run(v.initializer)
    session.run(tf.scatter_add(v, [0, 1], p), {p: [0.0, 2.0, 3.0]})


@one(FAILURES)
def gathered_row_out_of_range(tf, session):
    v, p = tf.Variable([[1.0], [2.0]], use_resource=True), placeholder(tf, tf.int32)
    session.run(v.initializer)
    session.run(tf.gather(v, p), {p: [0, 2]})


@both_kinds(FAILURES)
def descent_of_another_shape(tf, session, use_resource):
    v, p = tf.Variable([1.0, 2.0], use_resource=use_resource), placeholder(tf)
    session.run(v.initializer)
    op = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(p, v)])
    session.run(op, {p: [1.0, 2.0, 3.0]})


@one(FAILURES)
def counted_past_the_limit(tf, session):
    v = tf.Variable(3)
    session.run(v.initializer)
    session.run(v.count_up_to(3))


@one(FAILURES)
def read_as_another_dtype(tf, session):
    a = raw(tf, "VarHandleOp", dtype=tf.float32, shape=[], shared_name="s", name="a")
    b = raw(tf, "VarHandleOp", dtype=tf.int32, shape=[], shared_name="s", name="b")
    session.run(raw(tf, "AssignVariableOp", resource=a, value=3.0))
    session.run(raw(tf, "ReadVariableOp", resource=b, dtype=tf.int32))


@one(FAILURES)
def assertion(tf, session):
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    session.run(tf.Assert(tf.reduce_all(x > 2), [x, "text", tf.shape(x)], summarize=4))


@one(FAILURES)
def guarded_assertion(tf, session):
    x = placeholder(tf)
    check = tf.Assert(tf.reduce_all(x > 0), [x, "text"])
    session.run(check, {x: [1.0, 2.0]})
    session.run(check, {x: [-1.0, 2.0]})


@one(FAILURES)
def numerics_nan(tf, session):
    x = placeholder(tf)
    session.run(tf.check_numerics(x, "bad"), {x: [np.nan, 1.0]})


@one(FAILURES)
def numerics_both(tf, session):
    x = placeholder(tf)
    session.run(tf.check_numerics(x, "bad"), {x: [np.nan, np.inf]})


@one(FAILURES)
def label_out_of_range(tf, session):
    p = placeholder(tf, tf.int32)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=p, logits=tf.zeros([2, 3]))
    session.run(loss, {p: [1, 3]})


@one(FAILURES)
def classes_that_do_not_fit(tf, session):
    p = placeholder(tf)
    loss = raw(tf, "SoftmaxCrossEntropyWithLogits", features=tf.zeros([2, 3]), labels=p)
    session.run(loss[0], {p: np.zeros((2, 2))})


@one(FAILURES)
def biases_that_do_not_fit(tf, session):
    p = placeholder(tf)
    session.run(tf.nn.bias_add(tf.ones([2, 3]), p), {p: [1.0, 2.0]})


@both_kinds(FAILURES)
def no_initial_value(tf, session, use_resource):
    tf.Variable(use_resource=use_resource)


@one(FAILURES)
def initial_value_of_unknown_shape(tf, session):
    tf.Variable(placeholder(tf))


@one(FAILURES)
def conversion_to_another_dtype(tf, session):
    tf.convert_to_tensor(tf.Variable(1.0), dtype=tf.int32)


@one(FAILURES)
def nothing_to_optimize(tf, session):
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


@one(FAILURES)
def no_gradient(tf, session):
    v = tf.Variable(1.0)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0), var_list=[v])


@one(FAILURES)
def integers_can_not_be_trained(tf, session):
    v = tf.Variable(1)
    tf.train.GradientDescentOptimizer(0.1).minimize(v * 2)


@one(FAILURES)
def a_gate_that_does_not_exist(tf, session):
    v = tf.Variable(1.0)
    tf.train.GradientDescentOptimizer(0.1).minimize(v * 2.0, gate_gradients=5)


@one(FAILURES)
def collections_that_are_no_list(tf, session):
    tf.Variable(1.0, collections="mine")


def test_printed_text(capfd):
    """TensorFlow prints from C++; dtflab from Python."""

    def printed(tf: Any) -> str:
        x = tf.constant([[1.5, 2.0, 1e10], [-1.0, 0.25, 3.0]])
        words = tf.constant([["a", "b"], ['q"', "d\n"]])
        ops = [
            tf.Print(x, [x, words], message="x: ", summarize=4, first_n=2),
            tf.print(x, [x[0], 1], {"k": words}, summarize=1),
            tf.print("only", "text", 3, sep="-"),
            tf.print(tf.constant(True), tf.range(10), tf.constant(2.5, tf.float64), summarize=2),
        ]
        capfd.readouterr()
        with tf.Session() as session:
            for op in ops:
                for _ in range(3):
                    session.run(op)
        lines = capfd.readouterr().err.splitlines()
        logged = re.compile("[IWE][0-9]{4} |WARNING: All log messages")  # TensorFlow's and gRPC's own
        return [line for line in lines if "tensorflow/" not in line and not logged.match(line)]

    theirs, ours = both(printed)
    assert ours == theirs

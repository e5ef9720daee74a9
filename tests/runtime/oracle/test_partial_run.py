"""Partial runs and callables, side by side with TensorFlow's on a server (a local one breaks after its first error)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle import answers
from tests.oracle.programs import Programs

program = Programs()


@cache
def their_target(tf: Any) -> str:
    return tf.train.Server.create_local_server().target


@pytest.mark.parametrize("where", ["local", "server"])
@program.each()
def test_same_answer(run, where):
    def on_a_server(tf):
        with tf.Graph().as_default(), tf.Session(their_target(tf)) as sess:
            return run(tf, sess)

    theirs = answers.theirs(on_a_server)
    with dtflab.Graph().as_default():
        if where == "local":
            with dtflab.Session() as sess:
                assert run(dtflab, sess) == theirs
        else:
            server = dtflab.train.Server.create_local_server()
            try:
                with dtflab.Session(server.target) as sess:
                    assert run(dtflab, sess) == theirs
            finally:
                server.stop()


def tried(tf: Any, call: Callable[[], Any], words: str = "") -> Any:
    """The value of a call, or the class of its error and whether it has these words."""
    try:
        value = call()
    except (tf.errors.OpError, RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, words in str(error)
    return np.asarray(value).tolist()


def sums(tf: Any) -> Any:
    a, b, c = (tf.placeholder(tf.float32, [], name=name) for name in "abc")
    total = tf.add(a, b, name="total")
    return a, b, c, total, tf.multiply(total, c, name="product")


@program
def feeds_and_fetches_in_turn(tf, sess):
    a, b, c, total, product = sums(tf)
    handle = sess.partial_run_setup([total, product], [a, b, c])
    first = sess.partial_run(handle, total, {a: 1, b: 2})
    return type(handle).__name__, float(first), float(sess.partial_run(handle, product, {c: first * 17}))


@program
def structures_names_and_nothing(tf, sess):
    a, b, c, total, _ = sums(tf)
    handle = sess.partial_run_setup([total, "product:0"], ["a:0", b, c])
    nothing = sess.partial_run(handle, [], {a: 1, "b:0": 2})
    return nothing, sess.partial_run(handle, {"t": [total]}), sess.partial_run(handle, ["product:0"], {c: 2})


@program
def what_is_ready_may_be_fetched_later(tf, sess):
    a, b, c, total, product = sums(tf)
    handle = sess.partial_run_setup([total, product], [a, b, c])
    return float(sess.partial_run(handle, product, {a: 1, b: 2, c: 3})), float(sess.partial_run(handle, total))


@program
def a_target_runs_with_its_step(tf, sess):
    a = tf.placeholder(tf.float32, [])
    v = tf.Variable(10.0)
    sess.run(v.initializer)
    doubled = a * 2.0
    handle = sess.partial_run_setup([doubled, v.assign_add(a).op], [a])
    return float(sess.partial_run(handle, doubled, {a: 1})), float(sess.run(v))


@program
def two_at_the_same_time(tf, sess):
    a, b, c, total, product = sums(tf)
    handles = [sess.partial_run_setup([total, product], [a, b, c]) for _ in range(2)]
    firsts = [float(sess.partial_run(h, total, {a: i, b: 2})) for i, h in enumerate(handles)]
    return firsts, [float(sess.partial_run(h, product, {c: 10})) for h in handles]


@program
def mistakes(tf, sess):
    a, b, c, total, product = sums(tf)
    other = tf.placeholder(tf.float32, [], name="other")
    group = tf.group(total)

    def fresh(*feeds):
        return sess.partial_run_setup([total, product], list(feeds) or [a, b, c])

    fed = fresh()
    sess.partial_run(fed, total, {a: 1, b: 2})
    done = fresh()
    sess.partial_run(done, [total, product], {a: 1, b: 2, c: 3})
    cases = [
        (lambda: sess.partial_run(fed, product, {a: 1, c: 1}), "The feed a:0 has already been fed."),
        (lambda: sess.partial_run(fresh(), product, {a: 1, b: 2}), "Fetch c:0 can't be computed from the feeds that"),
        (lambda: sess.partial_run(done, total), "before performing partial runs"),
        (lambda: sess.partial_run("nobody's", total), "before performing partial runs"),
        (lambda: sess.partial_run(fresh(), a + b, {a: 1, b: 2}), "was not specified in partial_run_setup."),
        (lambda: sess.partial_run(fresh(), total, {a: 1, b: 2, other: 3}), "was not specified in partial_run_setup."),
        (lambda: sess.partial_run(fresh(a, b), product, {a: 1, b: 2}), "placeholder tensor 'c' with dtype float"),
        (lambda: sess.partial_run(fresh(), group), "requires empty `target_list`"),
        (lambda: sess.partial_run_setup([total], [total]), "total:0 is both fed and fetched."),
        (lambda: sess.partial_run_setup([], [a]), "Must specify at least one target to fetch or execute."),
    ]
    return [tried(tf, *case) for case in cases]


@program
def an_error_ends_the_step(tf, sess):
    a = tf.placeholder(tf.float32, [None])
    b = tf.placeholder(tf.float32, [None])
    checked = tf.check_numerics(a, "not a number")
    both = checked + b
    handle = sess.partial_run_setup([checked, both], [a, b])
    first = tried(tf, lambda: sess.partial_run(handle, checked, {a: [np.nan]}), "not a number")
    return first, tried(tf, lambda: sess.partial_run(handle, both, {b: [1.0]}))[0]


@program
def callables(tf, sess):
    a, b, c, total, product = sums(tf)
    v = tf.Variable(1.0)
    sess.run(v.initializer)
    return [
        tried(tf, lambda: sess.make_callable(total, [a, b])(1, 2)),
        tried(tf, lambda: sess.make_callable([total, (product,)], [a, b, c])(1, 2, 3)[1]),
        sess.make_callable({"total": total}, ["a:0", b])(1, 2),
        sess.make_callable(v.assign_add(1.0).op)(),
        float(sess.make_callable(v)()),
        tried(tf, lambda: sess.make_callable(total, [a, b])(1), "placeholder tensor 'b' with dtype float"),
        tried(tf, lambda: sess.make_callable(total, [a, b])("x", 2)),
        tried(tf, lambda: sess.make_callable(total, a)),
        sess.make_callable([], [])(),
    ]


@program
def a_callable_with_options(tf, sess):
    a, b, _, total, _ = sums(tf)
    metadata = tf.RunMetadata()
    call = sess.make_callable(total, [a, b], accept_options=True)
    value = call(1, 2, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    return float(value), len(metadata.step_stats.dev_stats) > 0


@program
def nothing_of_it_on_a_closed_session(tf, sess):
    a, b, _, total, _ = sums(tf)
    handle = sess.partial_run_setup([total], [a, b])
    call = sess.make_callable(total, [a, b])
    sess.close()
    late = [
        lambda: call(1, 2),
        lambda: sess.make_callable(total, [a, b])(1, 2),
        lambda: sess.partial_run(handle, total, {a: 1, b: 2}),
        lambda: sess.partial_run_setup([total], [a, b]),
    ]
    return [tried(tf, call, "closed Session") for call in late]

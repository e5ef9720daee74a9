from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from tests.runtime.ops import op


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def run(fetches, feeds=None, **kwargs):
    with tf.Session() as session:
        return session.run(fetches, feeds, options=tf.RunOptions(timeout_in_ms=60_000), **kwargs)


def loop(start, going, body, frame="loop", parallel=10, constants=()):
    """`while_loop` by its seven ops: start values in, the values after the last turn out."""
    attrs = {"frame_name": frame, "parallel_iterations": parallel}
    entered = [apply_op("Enter", data=t, **attrs) for t in start]
    fixed = [apply_op("Enter", data=t, is_constant=True, **attrs) for t in constants]
    with tf.control_dependencies(None):
        merged = [apply_op("Merge", inputs=[t, t])[0] for t in entered]
        with tf.control_dependencies([merged[0]]):  # the constants of the condition
            go_on = apply_op("LoopCond", input=going(*merged, *fixed))
        sides = [apply_op("Switch", data=t, pred=go_on) for t in merged]
        inside = [tf.identity(side[1]) for side in sides]
        with tf.control_dependencies([inside[0]]):
            following = body(*inside, *fixed)
        for merge, value in zip(merged, following, strict=True):
            merge.op._update_input(1, apply_op("NextIteration", data=value))
        return [apply_op("Exit", data=side[0]) for side in sides]


def turns(count, body=lambda x: x + 1.0, x=0.0, **kwargs):
    """The value after `count` turns."""
    return loop(
        [tf.constant(0), tf.convert_to_tensor(x)],
        lambda i, x, *fixed: tf.less(i, count),
        lambda i, x, *fixed: (i + 1, body(x, *fixed)),
        **kwargs,
    )[1]


def choose(pred, data, yes, no):
    otherwise, then = apply_op("Switch", data=data, pred=pred)
    return apply_op("Merge", inputs=[no(otherwise), yes(then)])[0]


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
@pytest.mark.parametrize("parallel", [1, 2, 32])
def test_a_loop(count, parallel):
    assert run(turns(count, parallel=parallel)) == count


def test_a_loop_runs_again_in_each_step():
    n = tf.placeholder(tf.int32, [])
    result = loop(
        [tf.constant(0), tf.constant(1.0), n], lambda i, x, n: tf.less(i, n), lambda i, x, n: (i + 1, x * 2.0, n)
    )
    with tf.Session() as session:
        assert [session.run(result[1], {n: count}) for count in (3, 0, 5, 3)] == [8, 1, 32, 8]


def test_every_iteration_sees_a_loop_constant():
    fixed = tf.placeholder_with_default(3.0, [])
    assert run(turns(5, lambda x, c: x + c, constants=[fixed])) == 15


def test_loops_inside_loops():
    def middle(x):
        return turns(3, lambda y: turns(2, lambda z: z + 1.0, y, frame="inner"), x, frame="middle")

    assert run(turns(4, middle, frame="outer")) == 24


def test_an_inner_loop_may_turn_differently_often():
    def body(i, x):
        (_, inner, _) = loop(
            [tf.constant(0), x, i], lambda j, y, n: tf.less(j, n), lambda j, y, n: (j + 1, y + 1.0, n), frame="inner"
        )
        return i + 1, inner

    assert run(loop([tf.constant(0), tf.constant(0.0)], lambda i, x: tf.less(i, 5), body))[1] == 0 + 1 + 2 + 3 + 4


@pytest.mark.parametrize("taken", [True, False])
def test_a_loop_on_a_branch(taken):
    pred = tf.placeholder_with_default(taken, [])
    assert run(choose(pred, tf.constant(1.0), lambda x: turns(3, x=x), tf.negative)) == (4 if taken else -1)


@pytest.mark.parametrize("taken", [True, False])
def test_loops_inside_loops_on_a_branch(taken):
    def nested(x):
        return turns(2, lambda y: turns(2, lambda z: z * 2.0, y, frame="inner"), x, frame="outer")

    pred = tf.placeholder_with_default(taken, [])
    assert run(choose(pred, tf.constant(1.0), nested, lambda x: x - 1.0)) == (16 if taken else 0)


def test_a_branch_in_a_loop():
    def body(i, x):
        return i + 1, choose(tf.equal(i % 2, 0), x, lambda y: y + 10.0, lambda y: y * 2.0)

    assert run(loop([tf.constant(0), tf.constant(1.0)], lambda i, x: tf.less(i, 4), body))[1] == 64


def test_a_loop_on_a_branch_in_a_loop():
    def body(i, x):
        return i + 1, choose(tf.equal(i, 1), x, lambda y: turns(3, x=y, frame="inner"), lambda y: y * 10.0)

    assert run(loop([tf.constant(0), tf.constant(1.0)], lambda i, x: tf.less(i, 3), body))[1] == 130


def test_a_dead_loop_kills_what_comes_after_it():
    otherwise, then = apply_op("Switch", data=tf.constant(1.0), pred=tf.placeholder_with_default(False, []))
    after = turns(3, x=then) + 1.0
    with pytest.raises(errors.InvalidArgumentError, match="does not have value"):
        run([after, otherwise])


def test_the_trigger_runs_though_what_it_waits_for_is_dead():
    ran = []
    with op("Note() -> ()", lambda: ran.append(1), stateful=True):
        otherwise, then = apply_op("Switch", data=tf.constant(1.0), pred=tf.placeholder_with_default(False, []))
        with tf.control_dependencies([tf.negative(then)]):
            trigger = apply_op("ControlTrigger")
        with tf.control_dependencies([trigger]):
            note = apply_op("Note")
        run([note, otherwise])
    assert ran == [1]


def test_a_merge_says_which_input_came():
    found = []
    for pred in (False, True):
        found.append(run(apply_op("Merge", inputs=apply_op("Switch", data=tf.constant(5.0), pred=tf.constant(pred)))))
    assert [[v.item() for v in pair] for pair in found] == [[5, 0], [5, 1]]


@pytest.mark.parametrize("parallel", [1, 3, 10])
def test_no_more_iterations_are_alive_than_allowed(parallel):
    """The counter could run ahead of a body that waits; it may do so by `parallel_iterations` only."""
    waiting, most = {}, []

    def body(ctx, i, x, done):
        waiting[int(i)] = lambda: done(x + np.float32(1))
        most.append(len(waiting))
        while waiting and (len(waiting) == parallel or i == 19):
            waiting.pop(min(waiting))()

    with op("Body(i: int32, x: float) -> (y: float)", body, is_async=True):
        x = tf.placeholder_with_default(0.0, [])
        _, total, _ = loop(
            [tf.constant(0), tf.constant(0.0), x],
            lambda i, total, x: tf.less(i, 20),
            lambda i, total, x: (i + 1, apply_op("Body", i=i, x=x), x),
            parallel=parallel,
        )
        assert run(total) == 1
    assert max(most) == parallel


def test_a_loop_without_end_can_be_stopped():
    forever = loop([tf.constant(0)], lambda i: tf.less(i, 1), lambda i: (i * 1,))
    with tf.Session() as session:
        with pytest.raises(errors.DeadlineExceededError):
            session.run(forever, options=tf.RunOptions(timeout_in_ms=20))
        assert session.run(tf.constant(5)) == 5


def test_an_error_in_a_loop_ends_it():
    x = tf.placeholder_with_default(1.0, [])
    wrong = turns(1000, lambda x: tf.check_numerics(x / 0.0, "in the body", name="check"), x)
    with pytest.raises(errors.InvalidArgumentError, match=r"in the body.*Inf(.|\n)*node check"):
        run([wrong, turns(10, frame="another")])


def test_an_error_says_in_which_turn():
    def inner(j, x):
        return j + 1, x + tf.gather(tf.constant([1.0, 2.0, 3.0]), j)

    def outer(i, x):
        return i + 1, tf.while_loop(lambda j, x: j < i, inner, [tf.constant(0), x])[1]

    result = tf.while_loop(lambda i, x: i < 9, outer, [tf.constant(0), tf.constant(0.0)])
    turn = "iteration 3 of while/while/while_context in iteration 4 of while/while_context"
    with pytest.raises(errors.InvalidArgumentError, match=rf"3 is not in .*(.|\n)*CPU:0 in {turn}\n") as caught:
        run(result)
    assert caught.value.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    shown = " ".join("".join(caught.value._render_traceback_()).split())
    assert f" loop {turn} " in shown and shown.count("iteration 4") == 1


@pytest.mark.parametrize("count", [2, 3])
def test_a_merge_in_a_loop_may_have_many_inputs_or_be_asked(count):
    def body(x):
        otherwise, then = apply_op("Switch", data=x, pred=tf.less(x, 5.0))
        merged = apply_op("Merge", inputs=[otherwise * 2.0, then + 3.0, then + 3.0][:count])
        return merged[0] + (tf.cast(merged[1], tf.float32) if count == 2 else 0.0)

    assert run(turns(3, body)) == {2: 16, 3: 12}[count]


def test_a_traced_loop_shows_every_turn():
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(turns(3, lambda x: tf.sin(x, name="body")), options=full, run_metadata=metadata)
    names = [n.node_name for n in metadata.step_stats.dev_stats[0].node_stats]
    assert names.count("body") == 3

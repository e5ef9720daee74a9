"""Values that stay in a session, by their handles: side by side with TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle.answers import both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run):
    def answer(tf):
        with tf.Graph().as_default(), tf.Session() as sess:
            return run(tf, sess)

    theirs, ours = both(answer)
    assert ours == theirs


def kept(tf: Any, sess: Any, value: float = 5.0) -> Any:
    return sess.run(tf.get_session_handle(tf.constant(value) * 10.0))


def refused(tf: Any, call: Callable[[], Any]) -> str:
    with pytest.raises((tf.errors.OpError, TypeError)) as caught:
        call()
    return caught.type.__name__


@program
def a_value_is_taken_up_by_another_step(tf, sess):
    handle = kept(tf, sess)
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    return type(handle).__name__, float(sess.run(value + 1.0, {holder: handle.handle})), float(handle.eval())


@program
def the_graph(tf, sess):
    handle = kept(tf, sess)
    tf.get_session_tensor(handle.handle, tf.float32, name="back")
    tf.delete_session_tensor(handle.handle, name="gone")
    handle.eval()
    handle.eval()
    handle.delete()
    return [(op.name, op.type, op.device) for op in tf.get_default_graph().get_operations()]


@program
def a_handle_is_fed_where_its_value_belongs(tf, sess):
    handle = kept(tf, sess)
    x, n = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    return float(sess.run(x + 1.0, {x: handle})), refused(tf, lambda: sess.run(n + 1, {n: handle}))


@program
def handles_among_other_fetches(tf, sess):
    c = tf.constant([1.0, 2.0])
    found = sess.run({"h": [tf.get_session_handle(c)], "c": c})
    return type(found["h"][0]).__name__, found["h"][0].eval().tolist(), found["c"].tolist()


@program
def deleted(tf, sess):
    first, second = kept(tf, sess), kept(tf, sess)
    holder, value = tf.get_session_tensor(first.handle, tf.float32)
    first.delete()
    gone, deleter = tf.delete_session_tensor(second.handle)
    sess.run(deleter, {gone: second.handle})
    return [
        refused(tf, first.eval),
        refused(tf, lambda: sess.run(value, {holder: first.handle})),
        refused(tf, second.eval),
        refused(tf, lambda: sess.run(deleter, {gone: second.handle})),
    ]


@program
def a_raw_handle_outlives_its_object(tf, sess):
    name = kept(tf, sess).get_raw_handle()
    for _ in range(30):
        kept(tf, sess)
    holder, value = tf.get_session_tensor(name, tf.float32)
    return float(sess.run(value, {holder: name}))


@program
def another_session_knows_nothing_of_it(tf, sess):
    handle = kept(tf, sess)
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    with tf.Session() as other:
        return refused(tf, lambda: other.run(value, {holder: handle.handle}))


@program
def only_tensors(tf, sess):
    return refused(tf, lambda: tf.get_session_handle(5.0))


@program
def a_loop_in_python_over_kept_values(tf, sess):
    handle = sess.run(tf.get_session_handle(tf.constant(np.float32([1, 2]))))
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    doubled = tf.get_session_handle(value * 2.0)
    for _ in range(20):
        handle = sess.run(doubled, {holder: handle.handle})
    return handle.eval().tolist()


def test_what_nobody_can_name_is_deleted():
    with dtflab.Graph().as_default(), dtflab.Session() as sess:
        handle = dtflab.get_session_handle(dtflab.constant(1.0))
        names = [sess.run(handle).handle for _ in range(35)]
        holder, value = dtflab.get_session_tensor(names[0], dtflab.float32)
        with pytest.raises(dtflab.errors.InvalidArgumentError, match="not in the session store"):
            sess.run(value, {holder: names[0]})


def test_over_a_cluster_it_stays_where_it_was_made():
    with dtflab.Cluster(ps=1, worker=1, engine="process") as cluster, dtflab.Graph().as_default():
        with dtflab.device("/job:ps/task:0"):
            handle = dtflab.get_session_handle(dtflab.constant(3.0) * 2.0)
        with dtflab.Session(cluster.target) as sess:
            kept = sess.run(handle)
            assert kept.handle.endswith("/job:ps/replica:0/task:0/device:CPU:0") and kept.eval() == 6.0

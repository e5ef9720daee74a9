"""SessionManager: who initializes, who restores, who waits, and what is said of it."""

from __future__ import annotations

import threading

import pytest

from tests.oracle.programs import Programs
from tests.oracle.trainings import both, failure, heard, local_server

program = Programs()


@program.each()
def test_same_answer(run, tmp_path):
    expected, found = both(run, tmp_path)
    assert found == expected


def checkpoint_of(tf, home, value):
    """A checkpoint in which the variable `v` has that value."""
    with tf.Graph().as_default():
        v = tf.Variable(value, name="v")
        with tf.Session() as sess:
            sess.run(v.initializer)
            return tf.train.Saver({"v": v}).save(sess, f"{home}/model")


def local(tf, value, name="w"):
    return tf.Variable(value, name=name, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])


# -- prepare ----------------------------------------------------------------------------------------------------


@program
def ways_to_initialize(tf, home):
    p = tf.placeholder(tf.float32, [2])
    v, w = tf.Variable(p, name="v"), tf.Variable([3.0], name="w")
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    feed = {p: [1.0, 2.0]}

    def by_hand(sess):
        sess.run([v.initializer, w.initializer], feed)

    answers = []
    for arguments in (
        {"init_op": tf.global_variables_initializer(), "init_feed_dict": feed},
        {"init_op": [v.initializer, w.initializer], "init_feed_dict": feed},
        {"init_fn": by_hand},
        {"init_op": w.initializer, "init_fn": lambda sess: sess.run(v.initializer, {p: sess.run(w)[[0, 0]]})},
    ):
        with manager.prepare_session("", **arguments) as sess:
            answers.append(sess.run([v, w]))
    return answers


@program
def nothing_to_initialize_with(tf, home):
    tf.Variable(1, name="v")
    return failure(lambda: tf.train.SessionManager().prepare_session(""))


@program
def initialization_that_does_not_suffice(tf, home):
    v, w = tf.Variable(1, name="v"), tf.Variable(2, name="w")
    tf.Variable(2, name="x")
    ready = tf.report_uninitialized_variables()
    plain = tf.train.SessionManager(ready_op=ready)
    local = tf.train.SessionManager(ready_op=ready, local_init_op=w.initializer, ready_for_local_init_op=ready)
    return [
        failure(lambda: plain.prepare_session("", init_op=v.initializer)),
        failure(lambda: plain.prepare_session("", init_op=[v.initializer])),
        failure(lambda: plain.prepare_session("", init_op=v))[0],
        failure(lambda: plain.prepare_session("", init_fn=lambda sess: None)),
        failure(lambda: local.prepare_session("", init_op=v.initializer)),
        failure(lambda: local.prepare_session("")),
    ]


@program
def local_variables_come_last(tf, home):
    v = tf.Variable(1, name="v")
    w, p = local(tf, 3 * v), tf.placeholder(tf.int32, [])
    x = local(tf, p + v, "x")
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
        local_init_op=[w.initializer, x.initializer],
        local_init_feed_dict={p: 4},
        local_init_run_options=tf.RunOptions(timeout_in_ms=60_000),
    )
    with manager.prepare_session("", init_op=v.initializer, init_fn=lambda sess: sess.run(v.assign(7))) as sess:
        return sess.run([v, w, x])


@program
def nobody_asks_whether_it_is_ready(tf, home):
    v = tf.Variable(1, name="v")
    w = local(tf, 5)
    with tf.train.SessionManager(local_init_op=w.initializer).prepare_session("") as sess:
        return sess.run([w, tf.report_uninitialized_variables([v])])


@program
def ready_op_of_old(tf, home):
    v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager(ready_op=tf.assert_variables_initialized())
    with manager.prepare_session("", init_op=v.initializer) as sess:
        value = sess.run(v)
    with pytest.raises(RuntimeError, match="uninitialized value v"):
        manager.prepare_session("", init_fn=lambda sess: None)
    return value


@program
def ready_op_that_fails(tf, home):
    v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager(ready_op=tf.check_numerics(tf.constant([float("nan")]), "broken"))
    return failure(lambda: manager.prepare_session("", init_op=v.initializer))[0]


@program
def arguments_that_are_refused(tf, home):
    v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager()
    return [
        failure(lambda: tf.train.SessionManager(ready_for_local_init_op=v.initializer))[0],
        failure(lambda: tf.train.SessionManager(ready_for_local_init_op=tf.constant(["x"], name="c"))),
        failure(
            lambda: manager.prepare_session(
                "", v.initializer, tf.train.Saver(), checkpoint_dir=home, checkpoint_filename_with_path=f"{home}/model"
            )
        ),
    ]


@program
def another_graph(tf, home):
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager(graph=graph)
    with manager.prepare_session("", init_op=v.initializer, config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        return sess.graph is graph, sess.run(v), len(sess.list_devices())


# -- checkpoints ------------------------------------------------------------------------------------------------


@program
def a_checkpoint_is_preferred_to_initializers(tf, home):
    path = checkpoint_of(tf, home, 10)
    v = tf.Variable(1, name="v")
    called = []
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    answers = []
    for where in ({"checkpoint_dir": home}, {"checkpoint_filename_with_path": path}):
        saver = tf.train.Saver({"v": v})
        with manager.prepare_session("", v.initializer, saver, init_fn=called.append, **where) as sess:
            answers += [sess.run(v), saver.last_checkpoints]
    with manager.prepare_session("", v.initializer, None, checkpoint_dir=home) as sess:
        answers.append(sess.run(v))
    with manager.prepare_session("", v.initializer, tf.train.Saver()) as sess:
        answers.append(sess.run(v))
    return answers, called


@program
def a_checkpoint_that_does_not_come(tf, home):
    v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager(recovery_wait_secs=0.01)
    saver = tf.train.Saver()
    wait = {"checkpoint_dir": home, "wait_for_checkpoint": True, "max_wait_secs": 0.03}
    text = failure(lambda: manager.prepare_session("", None, saver, **wait))
    with manager.prepare_session("", v.initializer, saver, **wait) as sess:
        value = sess.run(v)
    sess, recovered = manager.recover_session("", saver, checkpoint_dir=home)
    sess.close()
    return text, value, recovered


@program
def recovery(tf, home):
    v, w = tf.Variable(1, name="v"), local(tf, 2)
    everything = tf.report_uninitialized_variables()
    shared = tf.report_uninitialized_variables(tf.global_variables())
    answers = []
    for arguments in (
        {"ready_op": shared},
        {"ready_op": everything},
        {"ready_op": everything, "local_init_op": w.initializer},
        {"ready_op": everything, "local_init_op": w.initializer, "ready_for_local_init_op": shared},
        {"ready_op": everything, "local_init_op": w.initializer, "ready_for_local_init_op": everything},
    ):
        manager = tf.train.SessionManager(**arguments)
        for folder in (f"{home}/none", home):
            saver = tf.train.Saver({"v": v})
            checkpoint_of(tf, home, 10)
            sess, recovered = manager.recover_session("", saver, checkpoint_dir=folder)
            with sess:
                answers.append((recovered, sess.run(everything)))
    return answers


# -- waiting ----------------------------------------------------------------------------------------------------


@program
def ready_already(tf, home):
    v = tf.Variable(1, name="ready_already_v")
    w = local(tf, 2 * v, "ready_already_w")
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
        local_init_op=w.initializer,
    )
    with local_server(tf) as target:
        with tf.Session(target) as sess:
            sess.run(v.initializer)
        with manager.wait_for_session(target, max_wait_secs=3) as sess:
            return sess.run([v, w])


@program
def never_ready(tf, home):
    v = tf.Variable(1, name="v")
    w = local(tf, v)
    ready = tf.report_uninitialized_variables()
    plain = tf.train.SessionManager(ready_op=ready)
    guarded = tf.train.SessionManager(ready_op=ready, local_init_op=w.initializer, ready_for_local_init_op=ready)
    return [
        failure(lambda: plain.wait_for_session("", max_wait_secs=0)),
        failure(lambda: guarded.wait_for_session("", max_wait_secs=0)),
    ]


@program
def ready_after_a_while(tf, home):
    v = tf.Variable(1, name="ready_after_a_while_v")
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.01)
    asked = threading.Event()

    def make_ready(target):
        assert asked.wait(60)
        with tf.Session(target, graph=v.graph) as sess:
            sess.run(v.initializer)

    with local_server(tf) as target, heard("Waiting for model to be ready.", lambda line: asked.set()):
        chief = threading.Thread(target=make_ready, args=[target])
        chief.start()
        with manager.wait_for_session(target) as sess:
            value = sess.run(v)
        chief.join()
    return value


@program
def no_time_limit(tf, home):
    v = tf.Variable(1, name="v")
    w = local(tf, 3)
    manager = tf.train.SessionManager(local_init_op=w.initializer)
    with manager.wait_for_session("", max_wait_secs=None) as sess:
        return sess.run([w, tf.is_variable_initialized(v)])

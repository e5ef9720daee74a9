"""shared/q1 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.grading.answers import full_marks

Q1 = "shared/q1"


def with_the_report(target, build, path):
    with tf.Graph().as_default():
        build()
        report = tf.report_uninitialized_variables()
        with tf.Session(target) as sess:
            lost = {name.decode() for name in sess.run(report)}
            tf.train.Saver([v for v in tf.global_variables() if v.op.name not in lost]).save(sess, path)
    return lost


def by_trying(target, build, path):
    build()
    left = {}
    with tf.Session(target) as sess:
        for variable in tf.global_variables():
            try:
                sess.run(variable)
                left[variable.op.name] = variable
            except tf.errors.FailedPreconditionError:
                pass
        tf.train.Saver(left).save(sess, path)
    return [v.op.name for v in tf.global_variables() if v.op.name not in left]


def through_another_graph(target, build, path):
    """Fetches the values, and saves variables of its own that have them."""
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        has = {v: tf.is_variable_initialized(v) for v in tf.global_variables()}
        has = dict(zip(has, sess.run(list(has.values()))))
        values = {v.op.name: sess.run(v) for v in has if has[v]}
    with tf.Graph().as_default(), tf.Session() as sess:
        for name, value in values.items():
            tf.get_variable(name, initializer=tf.constant(value))
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, path)
    return tuple(v.op.name for v in has if not has[v])


def in_a_session_of_its_graph(target, build, path):
    graph = tf.Graph()
    with graph.as_default():
        build()
        names = tf.report_uninitialized_variables(tf.global_variables())
    sess = tf.InteractiveSession(target, graph=graph)
    try:
        lost = [str(name, "utf-8") for name in names.eval()]
        tf.train.Saver(var_list=[v for v in tf.global_variables() if v.op.name not in lost]).save(sess, path)
    finally:
        sess.close()
    return iter(lost)


def supervised(target, build, path):
    """Asks for each name alone."""
    build()
    lost = []
    with tf.Session(target) as sess:
        for variable in tf.global_variables():
            lost += map(bytes.decode, sess.run(tf.report_uninitialized_variables([variable])).tolist())
        left = [v for v in tf.global_variables() if v.op.name not in lost]
        tf.train.Saver(left, write_version=tf.train.SaverDef.V2).save(sess, path, write_meta_graph=False)
    return lost


RIGHT = [with_the_report, by_trying, through_another_graph, in_a_session_of_its_graph, supervised]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q1, answer, monkeypatch, seeds="012")


BAD = {
    "nothing": (lambda target, build, path: None, "rescue returned None; expected: a list of names"),
    "a text": (lambda target, build, path: "weights1", "expected: a list of names"),
    "all is lost": (lambda target, build, path: [], "There is no checkpoint at `path`."),
}


def test_a_checkpoint_with_keys_of_its_own_is_read_as_it_is():
    def rescue(target, build, path):
        build()
        with tf.Session(target) as sess:
            lost = sess.run(tf.report_uninitialized_variables()).astype(str).tolist()
            tf.train.Saver({v.name: v for v in tf.global_variables() if v.op.name not in lost}).save(sess, path)
        return lost

    score = tf.grade(Q1, rescue)
    assert score == 3 and "The checkpoint has layer0/" in score.text and ":0; expected: layer0/" in score.text


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score == 0 and message in score.text, score.text

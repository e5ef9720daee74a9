"""Answers to shared/q1 by a second author, who had seen the exercise alone."""

import numpy as np

import dtflab as tf


def _all():
    return list(dict.fromkeys(tf.global_variables() + tf.local_variables()))


def ask_then_save(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        variables = _all()
        there = [bool(sess.run(tf.is_variable_initialized(variable))) for variable in variables]
        kept = [variable for variable, ok in zip(variables, there) if ok]
        if kept:
            tf.train.Saver(kept).save(sess, path)
        return [variable.op.name for variable, ok in zip(variables, there) if not ok]


def by_report(target, build, path):
    graph = tf.Graph()
    with graph.as_default():
        build()
        variables = _all()
        report = tf.report_uninitialized_variables(variables)
        with tf.Session(target, graph=graph) as sess:
            lost = [name.decode() for name in sess.run(report)]
            kept = [variable for variable in variables if variable.op.name not in lost]
            if kept:
                tf.train.Saver(var_list=kept).save(sess, path, write_meta_graph=False)
    return lost


def by_trying_to_read(target, build, path):
    kept, lost = [], []
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        for variable in _all():
            try:
                sess.run(variable)
                kept.append(variable)
            except tf.errors.FailedPreconditionError:
                lost.append(variable.op.name)
        if kept:
            tf.train.Saver(kept).save(sess, path)
    return lost


def _rescue(target, build, path, variables_of_graph=None, before=None, after=None, names=None):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        variables = (variables_of_graph or tf.global_variables)()
        if before:
            sess.run(before())
        there = sess.run([tf.is_variable_initialized(variable) for variable in variables])
        kept = [variable for variable, ok in zip(variables, there) if ok]
        lost = [variable for variable, ok in zip(variables, there) if not ok]
        if after:
            kept += lost
            sess.run(tf.variables_initializer(lost))
        if kept:
            tf.train.Saver(kept).save(sess, path)
        return names(kept, lost) if names else [variable.op.name for variable in lost]


def initializes_first(target, build, path):
    return _rescue(target, build, path, before=tf.global_variables_initializer)


def initializes_the_lost(target, build, path):
    return _rescue(target, build, path, after=True)


def saves_all_without_asking(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        tf.train.Saver().save(sess, path)
        return []


def trainable_only(target, build, path):
    return _rescue(target, build, path, variables_of_graph=tf.trainable_variables)


def returns_the_saved(target, build, path):
    return _rescue(target, build, path, names=lambda kept, lost: [variable.op.name for variable in kept])


def worker_variables_are_lost(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        kept = [variable for variable in tf.global_variables() if "ps" in variable.device]
        tf.train.Saver(kept).save(sess, path)
        return [variable.op.name for variable in tf.global_variables() if "ps" not in variable.device]


def local_session(target, build, path):
    return _rescue("", build, path)


def saves_numpy(target, build, path):
    values, lost = {}, []
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        for variable in tf.global_variables():
            if sess.run(tf.is_variable_initialized(variable)):
                values[variable.op.name] = sess.run(variable)
            else:
                lost.append(variable.op.name)
    np.savez(path, **values)
    return lost


RIGHT = [ask_then_save, by_report, by_trying_to_read]
WRONG = {
    # Runs the initializer, as in every program: overwrites the trained values.
    initializes_first: "initializes",
    # Gives the lost variables a new value, so that a Saver can save all.
    initializes_the_lost: "saves_what_is_lost",
    # A Saver of all variables: fails as soon as one has no value.
    saves_all_without_asking: "saves_all",
    # Looks at trainable variables only: a step counter is neither saved nor lost.
    trainable_only: "forgets_what_is_not_trainable",
    # Returns the names of the variables that were saved.
    returns_the_saved: "names_what_is_left",
    # Decides by the device: ps is kept, worker is lost, whatever happened.
    worker_variables_are_lost: "saves_all",
    # Opens a local session, not one at target: finds nothing.
    local_session: "opens_a_local_session",
    # Saves NumPy arrays to a .npz, not a checkpoint.
    saves_numpy: "saves_no_checkpoint",
}

"""Answers to shared/q1 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def asks_each_variable(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        variables = tf.global_variables()
        variables += [variable for variable in tf.local_variables() if variable not in variables]
        there = sess.run([tf.is_variable_initialized(variable) for variable in variables])
        kept = [variable for variable, has_value in zip(variables, there) if has_value]
        if kept:
            tf.train.Saver(kept).save(sess, path)
        return [variable.op.name for variable, has_value in zip(variables, there) if not has_value]


def initializes_what_is_lost(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        lost = [variable for variable in tf.global_variables() if not sess.run(tf.is_variable_initialized(variable))]
        sess.run(tf.variables_initializer(lost))  # else the saver fails
        tf.train.Saver().save(sess, path)
        return [variable.op.name for variable in lost]


def names_as_reported(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        lost = list(sess.run(tf.report_uninitialized_variables()))
        kept = [variable for variable in tf.global_variables() if variable.op.name.encode() not in lost]
        if kept:
            tf.train.Saver(kept).save(sess, path)
        return lost


def trainable_ones_only(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        kept, lost = [], []
        for variable in tf.trainable_variables():
            if sess.run(tf.is_variable_initialized(variable)):
                kept.append(variable)
            else:
                lost.append(variable.op.name)
        if kept:
            tf.train.Saver(kept).save(sess, path)
        return lost


RIGHT = [asks_each_variable]
WRONG = {
    # Gives the names as the session does, as bytes.
    names_as_reported: "names_them_otherwise",
    # Initializes the lost variables so that the saver can save all: they look trained on the cluster and in the
    # checkpoint.
    initializes_what_is_lost: "saves_what_is_lost",
    # Looks at trainable variables alone: others, such as a global step, are neither saved nor named as lost.
    trainable_ones_only: "forgets_what_is_not_trainable",
}

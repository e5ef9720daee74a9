"""Answers of an eighteenth author to shared/q1: what is left of a model that nobody saved."""

import dtflab as tf


def reported_eighteenth(target, build, path):
    """Let the graph report the names of the variables without a value, and save the others."""
    with tf.Graph().as_default() as graph:
        build()
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        report = tf.report_uninitialized_variables(list(variables.values()))
        with tf.Session(target, graph=graph) as sess:
            lost = [name.decode() for name in sess.run(report)]
            kept = {name: variable for name, variable in variables.items() if name not in lost}
            tf.train.Saver(kept).save(sess, path)
    return lost


def starts_the_lost_again_eighteenth(target, build, path):
    """Initialize what has no value, so that one Saver can save the whole model."""
    with tf.Graph().as_default():
        build()
        saver = tf.train.Saver()
        with tf.Session(target) as sess:
            lost = [var for var in tf.global_variables() if not sess.run(tf.is_variable_initialized(var))]
            sess.run(tf.variables_initializer(lost))
            saver.save(sess, path)
            return [var.op.name for var in lost]


def one_saver_each_eighteenth(target, build, path):
    """Try to save the variables one by one, and note which of them can't be read."""
    lost = []
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:
            for variable in tf.global_variables():
                try:
                    tf.train.Saver([variable]).save(sess, path)
                except tf.errors.FailedPreconditionError:
                    lost.append(variable.op.name)
    return lost


def only_trainable_eighteenth(target, build, path):
    """Look at all variables that training changes: the trainable ones."""
    with tf.Graph().as_default():
        build()
        trained = tf.trainable_variables()
        flags = [tf.is_variable_initialized(variable) for variable in trained]
        with tf.Session(target) as sess:
            there = sess.run(flags)
            tf.train.Saver([variable for variable, flag in zip(trained, there) if flag]).save(sess, path)
    return [variable.op.name for variable, flag in zip(trained, there) if not flag]


RIGHT = [reported_eighteenth]
WRONG = {
    starts_the_lost_again_eighteenth: "saves_what_is_lost",
    one_saver_each_eighteenth: "saves_one_by_one",
    only_trainable_eighteenth: "forgets_what_is_not_trainable",
}

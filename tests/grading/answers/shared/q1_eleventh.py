"""Answers to shared/q1: rescue a model that nobody saved."""

import dtflab as tf


def keep_what_can_be_read_eleven(target, build, path):
    """Lost names, found by an attempt to read each variable."""
    with tf.Graph().as_default() as graph:
        build()
        kept, lost = [], []
        with tf.Session(target, graph=graph) as sess:
            for variable in tf.global_variables():
                try:
                    sess.run(variable)
                except tf.errors.FailedPreconditionError:
                    lost.append(variable.op.name)
                else:
                    kept.append(variable)
            tf.train.Saver(kept).save(sess, path, write_meta_graph=False)
    return lost


def only_trainable_eleven(target, build, path):
    """Rescue of the variables that an optimizer changes."""
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:
            variables = tf.trainable_variables()
            there = sess.run([tf.is_variable_initialized(variable) for variable in variables])
            tf.train.Saver([v for v, yes in zip(variables, there) if yes]).save(sess, path)
    return [v.op.name for v, yes in zip(variables, there) if not yes]


def whole_tasks_eleven(target, build, path):
    """Rescue of the variables of the tasks that have all of theirs."""
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:
            variables = tf.global_variables()
            there = sess.run([tf.is_variable_initialized(variable) for variable in variables])
            broken = {v.device for v, yes in zip(variables, there) if not yes}
            tf.train.Saver([v for v in variables if v.device not in broken]).save(sess, path)
    return [v.op.name for v in variables if v.device in broken]


def made_whole_again_eleven(target, build, path):
    """Rescue, then new values for what is lost, so that training can go on."""
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:
            variables = tf.global_variables()
            there = sess.run([tf.is_variable_initialized(variable) for variable in variables])
            lost = [v for v, yes in zip(variables, there) if not yes]
            tf.train.Saver([v for v, yes in zip(variables, there) if yes]).save(sess, path)
            sess.run(tf.variables_initializer(lost))
    return [v.op.name for v in lost]


RIGHT = [keep_what_can_be_read_eleven]
WRONG = {
    only_trainable_eleven: "forgets_what_is_not_trainable",
    whole_tasks_eleven: "gives_up_whole_tasks",
    made_whole_again_eleven: "gives_new_values",
}

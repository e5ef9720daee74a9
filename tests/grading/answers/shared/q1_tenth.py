"""Answers to shared/q1, the rescue of a model that nobody saved, by a tenth author."""

import dtflab as tf


def sorts_by_one_vector_of_flags_ten(target, build, path):
    """Ask for all variables in one step, and save those that have a value by a dict of their names."""
    with tf.Graph().as_default() as graph:
        build()
        names = {variable.op.name: variable for variable in tf.global_variables()}
        flags = {name: tf.is_variable_initialized(variable) for name, variable in names.items()}
        with tf.Session(target, graph=graph) as sess:
            has_value = sess.run(flags)
            saver = tf.train.Saver({name: names[name] for name in names if has_value[name]})
            saver.save(sess, path, write_meta_graph=False)
    return [name for name in names if not has_value[name]]


def all_or_nothing_per_device_ten(target, build, path):
    """Save the variables of each device that has all of its values; the others count as lost."""
    with tf.Graph().as_default():
        build()
        by_device = {}
        for variable in tf.global_variables():
            by_device.setdefault(variable.device, []).append(variable)
        kept, lost = [], []
        with tf.Session(target) as sess:
            for there in by_device.values():
                flags = sess.run([tf.is_variable_initialized(variable) for variable in there])
                (kept if all(flags) else lost).extend(there)
            tf.train.Saver(kept).save(sess, path)
    return [variable.op.name for variable in lost]


def tidies_up_behind_itself_ten(target, build, path):
    """Save what has a value, and then clear the containers of the cluster for the next program."""
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:
            kept, lost = [], []
            for variable in tf.global_variables():
                (kept if sess.run(tf.is_variable_initialized(variable)) else lost).append(variable)
            tf.train.Saver(kept).save(sess, path)
    tf.Session.reset(target)
    return [variable.op.name for variable in lost]


def only_what_was_trained_ten(target, build, path):
    """Look through the trainable variables, save those with a value, and return the names of the others."""
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:
            kept, lost = [], []
            for variable in tf.trainable_variables():
                (kept if sess.run(tf.is_variable_initialized(variable)) else lost).append(variable)
            tf.train.Saver(kept).save(sess, path)
    return [variable.op.name for variable in lost]


RIGHT = [sorts_by_one_vector_of_flags_ten]
WRONG = {
    all_or_nothing_per_device_ten: "gives_up_whole_tasks",
    tidies_up_behind_itself_ten: "empties_the_cluster",
    only_what_was_trained_ten: "forgets_what_is_not_trainable",
}

import dtflab as tf


# "save all variables that still have a value (some always have)": not only those that an optimizer trains.
def rescue_what_is_trainable(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        kept, lost = [], []
        for variable in tf.trainable_variables():
            (kept if sess.run(tf.is_variable_initialized(variable)) else lost).append(variable)
        tf.train.Saver(kept).save(sess, path)
        return [variable.op.name for variable in lost]


# "save all variables that still have a value": a task can have lost one container and still have the rest.
def rescue_by_task(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        alive = {}
        for variable in tf.global_variables():
            if variable.device not in alive:
                alive[variable.device] = sess.run(tf.is_variable_initialized(variable))
        kept, lost = [], []
        for variable in tf.global_variables():
            if alive[variable.device] and sess.run(tf.is_variable_initialized(variable)):
                kept.append(variable)
            else:
                lost.append(variable.op.name)
        tf.train.Saver(kept).save(sess, path)
        return lost


# "leave the cluster as it is": after the reset, nothing is left on it.
def rescue_and_clear(target, build, path):
    with tf.Graph().as_default():
        build()
        variables = tf.global_variables()
        flags = [tf.is_variable_initialized(variable) for variable in variables]
        with tf.Session(target) as sess:
            there = sess.run(flags)
            tf.train.Saver([v for v, flag in zip(variables, there) if flag]).save(sess, path)
    tf.Session.reset(target)  # everything is in the checkpoint now: free the memory of the tasks
    return [v.op.name for v, flag in zip(variables, there) if not flag]


def rescue_by_reading(target, build, path):
    """Read each variable; the ones that cannot be read are lost."""
    graph = tf.Graph()
    with graph.as_default():
        build()
        saved = {variable.op.name: variable for variable in tf.global_variables()}
        lost = []
        with tf.Session(target, graph=graph) as sess:
            for name in list(saved):
                try:
                    sess.run(saved[name])
                except tf.errors.FailedPreconditionError:
                    lost.append(name)
                    del saved[name]
            tf.train.Saver(saved).save(sess, path)
    return lost


RIGHT = [rescue_by_reading]
WRONG = {
    # Variables with trainable=False, such as a global step, are neither saved nor reported.
    rescue_what_is_trainable: "forgets_what_is_not_trainable",
    # It takes one variable's word for its whole task: if that one was in a container that was reset, the others of the
    # task are given up although they still have their values.
    rescue_by_task: "gives_up_whole_tasks",
    # It clears the containers of the tasks after saving, so the cluster is not left as it is.
    rescue_and_clear: "empties_the_cluster",
}

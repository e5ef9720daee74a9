"""Answers to shared/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


# "save all variables that still have a value": only those that an optimizer trains are looked at, so a step counter
# or a moving average is neither saved nor named.
def rescue_trainable_only(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        variables = tf.trainable_variables()
        there = [sess.run(tf.is_variable_initialized(variable)) for variable in variables]
        saved = [variable for variable, alive in zip(variables, there) if alive]
        if saved:
            tf.train.Saver(saved).save(sess, path)
        return [variable.op.name for variable, alive in zip(variables, there) if not alive]


# "leave the cluster as it is": when all is saved, the variables are removed from the cluster.
def rescue_and_reset(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        saved, lost = [], []
        for variable in tf.global_variables():
            alive = sess.run(tf.is_variable_initialized(variable))
            (saved if alive else lost).append(variable)
        if saved:
            tf.train.Saver(saved).save(sess, path)
    tf.Session.reset(target)  # the model is in the file now: free the memory
    return [variable.op.name for variable in lost]


# "return a list of the names of the others: those are lost": if all are lost, Saver([]) raises ValueError, and no
# list is returned.
def rescue_nothing_left(target, build, path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        variables = tf.global_variables()
        there = sess.run([tf.is_variable_initialized(variable) for variable in variables])
        saver = tf.train.Saver([variable for variable, alive in zip(variables, there) if alive])
        saver.save(sess, path)
        return [variable.op.name for variable, alive in zip(variables, there) if not alive]


# Right: reads what can be read, and saves the values from a graph and a session of its own, far from the cluster.
def rescue_by_values(target, build, path):
    values, lost = {}, []
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        for variable in tf.global_variables():
            try:
                values[variable.op.name] = sess.run(variable)
            except tf.errors.FailedPreconditionError:
                lost.append(variable.op.name)
    if values:
        with tf.Graph().as_default(), tf.Session() as sess:
            copies = {}
            for number, (name, value) in enumerate(values.items()):
                copies[name] = tf.Variable(value, name=f"copy{number}")
            sess.run(tf.global_variables_initializer())
            tf.train.Saver(copies).save(sess, path)
    return lost


RIGHT = [rescue_by_values, rescue_nothing_left]
WRONG = {
    # Variables that are not trainable, such as a step counter, are neither saved nor reported.
    rescue_trainable_only: "forgets_what_is_not_trainable",
    # It resets the cluster's containers after saving, so the variables are gone afterwards.
    rescue_and_reset: "empties_the_cluster",
}

"""Wrong answers to shared/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import numpy as np

import dtflab as tf


def save_what_is_left(sess, path):
    lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
    left = [variable for variable in tf.global_variables() if variable.op.name not in lost]
    if left:
        tf.train.Saver(left).save(sess, path)
    return lost


def initializes(target, build, path):
    build()
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        return save_what_is_left(sess, path)


def saves_what_is_lost(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
        sess.run(tf.variables_initializer([v for v in tf.global_variables() if v.op.name in lost]))
        tf.train.Saver().save(sess, path)
        return lost


def looks_elsewhere(target, build, path):
    with tf.variable_scope("rescued"):
        build()
    with tf.Session(target) as sess:
        return [name.removeprefix("rescued/") for name in save_what_is_left(sess, path)]


def empties_the_cluster(target, build, path):
    build()
    tf.Session.reset(target)
    with tf.Session(target) as sess:
        return save_what_is_left(sess, path)


def names_them_otherwise(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = save_what_is_left(sess, path)
        return [variable.name for variable in tf.global_variables() if variable.op.name in lost]


def opens_a_local_session(target, build, path):
    build()
    with tf.Session() as sess:
        return save_what_is_left(sess, path)


def saves_all(target, build, path):
    build()
    with tf.Session(target) as sess:
        tf.train.Saver().save(sess, path)
    return []


def names_what_is_left(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = save_what_is_left(sess, path)
    return [variable.op.name for variable in tf.global_variables() if variable.op.name not in lost]


def returns_variables(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = save_what_is_left(sess, path)
    return [variable for variable in tf.global_variables() if variable.op.name in lost]


def numbers_the_checkpoint(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
        left = [variable for variable in tf.global_variables() if variable.op.name not in lost]
        tf.train.Saver(left).save(sess, path, global_step=1000)
        return lost


def gives_new_values(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = save_what_is_left(sess, path)
        sess.run(tf.variables_initializer([v for v in tf.global_variables() if v.op.name in lost]))
        return lost


def saves_one_by_one(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
        for variable in tf.global_variables():
            if variable.op.name not in lost:
                tf.train.Saver([variable]).save(sess, path)
        return lost


def forgets_what_is_not_trainable(target, build, path):
    build()
    with tf.Session(target) as sess:
        missing = tf.report_uninitialized_variables(tf.trainable_variables())
        lost = [name.decode() for name in sess.run(missing)]
        tf.train.Saver([v for v in tf.trainable_variables() if v.op.name not in lost]).save(sess, path)
        return lost


def names_all(target, build, path):
    build()
    with tf.Session(target) as sess:
        save_what_is_left(sess, path)
    return [variable.op.name for variable in tf.global_variables()]


def returns_their_number(target, build, path):
    build()
    with tf.Session(target) as sess:
        return len(save_what_is_left(sess, path))


def saves_elsewhere(target, build, path):
    build()
    with tf.Session(target) as sess:
        return save_what_is_left(sess, path + ".rescued")


def saves_no_checkpoint(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
        left = {v.op.name: v for v in tf.global_variables() if v.op.name not in lost}
        np.savez(path, **sess.run(left))
        return lost


def gives_up_whole_tasks(target, build, path):
    build()
    with tf.Session(target) as sess:
        gone = {name.decode() for name in sess.run(tf.report_uninitialized_variables())}
        hit = {variable.device for variable in tf.global_variables() if variable.op.name in gone}
        left = [variable for variable in tf.global_variables() if variable.device not in hit]
        if left:
            tf.train.Saver(left).save(sess, path)
        return [variable.op.name for variable in tf.global_variables() if variable.device in hit]


def changes_the_type(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
        left = sess.run({v.op.name: v for v in tf.global_variables() if v.op.name not in lost})
    with tf.Graph().as_default(), tf.Session() as sess:
        copies = {name: tf.Variable(value.astype(np.float32)) for name, value in left.items()}
        sess.run(tf.global_variables_initializer())
        tf.train.Saver(copies).save(sess, path)
    return lost

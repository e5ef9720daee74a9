"""Answers to shared/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.shared.q1 import save_what_is_left


def reads_all(target, build, path):
    """A failure without a Saver: the first lost variable stops it."""
    build()
    with tf.Session(target) as sess:
        values = {v.op.name: sess.run(v) for v in tf.global_variables()}
        tf.train.Saver([v for v in tf.global_variables() if v.op.name in values]).save(sess, path)
    return []


def counts_them(target, build, path):
    build()
    with tf.Session(target) as sess:
        return len(save_what_is_left(sess, path))


def initializes_when_done(target, build, path):
    build()
    with tf.Session(target) as sess:
        lost = save_what_is_left(sess, path)
        sess.run(tf.global_variables_initializer())
        return lost


def saves_next_to_it(target, build, path):
    build()
    with tf.Session(target) as sess:
        return save_what_is_left(sess, path + "/rescued")


def trusts_the_ps(target, build, path):
    """Takes all that is on a ps for kept: the container is forgotten."""
    build()
    lost = [v.op.name for v in tf.global_variables() if "worker" in v.device]
    with tf.Session(target) as sess:
        tf.train.Saver([v for v in tf.global_variables() if v.op.name not in lost]).save(sess, path)
    return lost


RIGHT: list = []
WRONG = {
    reads_all: "saves_all",
    counts_them: "returns_their_number",
    initializes_when_done: "initializes",
    saves_next_to_it: "saves_elsewhere",
    trusts_the_ps: "saves_all",
}

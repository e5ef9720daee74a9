"""Answers to welcome/q1 that a review found: wrong ones with the hint of another mistake."""

import dtflab as tf
from solutions.wrong.welcome.q1 import add_many, counted, make_counter


def initializes_nothing_and_stops_by_hand(workers, steps):
    cluster = tf.Cluster(ps=1, worker=workers)
    cluster.run(lambda client: add_many(client.target, make_counter(), steps))
    with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        value = sess.run(make_counter())
    cluster.stop()
    return value


def reads_before_the_initializer(workers, steps):
    cluster = tf.Cluster(ps=1, worker=workers)
    with tf.Graph().as_default():
        counter = make_counter()
        with tf.Session(cluster.target) as sess:
            sess.run(counter)
            sess.run(counter.initializer)
        cluster.run(lambda client: add_many(client.target, make_counter(), steps))
        with tf.Session(cluster.target) as sess:
            value = sess.run(counter)
    cluster.stop()
    return value


def counts_on_the_ps(workers, steps):
    """Right: as the catalogue's answers, without a mistake."""
    return counted(workers, steps, lambda client, counter: add_many(client.target, counter, steps))


RIGHT = [counts_on_the_ps]
WRONG = dict.fromkeys([initializes_nothing_and_stops_by_hand, reads_before_the_initializer], "forgets_the_initializer")

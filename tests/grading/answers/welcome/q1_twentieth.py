"""Answers of a twentieth author to welcome/q1: workers that count together."""

import time

import dtflab as tf


def _counter():
    """The counter on the ps task, in the current graph."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def _begin(cluster):
    """Give the counter its first value, in a graph of its own."""
    with tf.Graph().as_default():
        counter = _counter()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)


def _value(cluster):
    """The counter's value now."""
    with tf.Graph().as_default():
        counter = _counter()
        with tf.Session(cluster.target) as sess:
            return int(sess.run(counter))


def last_worker_begins_twentieth(workers, steps):
    """Let the last worker give the first value while the others ask until there is one, then subtract -1."""

    def work(client):
        counter = _counter()
        there = tf.is_variable_initialized(counter)
        more = tf.assign_sub(counter, -1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == workers - 1:
                sess.run(counter.initializer)
            while not sess.run(there):
                time.sleep(0.01)
            for _ in range(steps):
                sess.run(more)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        return _value(cluster)


def everybody_begins_twentieth(workers, steps):
    """Run the initializer in each worker before its first addition."""

    def work(client):
        counter = _counter()
        more = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(more)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        return _value(cluster)


def all_three_ops_on_the_ps_twentieth(workers, steps):
    """Read, add and write on the ps task, with a lock for the writing."""

    def work(client):
        counter = _counter()
        with tf.device("/job:ps/task:0"):
            more = tf.assign(counter, counter + 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(more)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        _begin(cluster)
        cluster.run(work)
        return _value(cluster)


def one_door_for_all_twentieth(workers, steps):
    """Open each worker's session with the cluster's server."""
    with tf.Cluster(ps=1, worker=workers) as cluster:
        _begin(cluster)

        def work(client):
            more = tf.assign_add(_counter(), 1, use_locking=True)
            with tf.Session(cluster.target) as sess:
                for _ in range(steps):
                    sess.run(more)

        cluster.run(work)
        return _value(cluster)


RIGHT = [last_worker_begins_twentieth]
WRONG = {
    everybody_begins_twentieth: "initializes_in_each",
    all_three_ops_on_the_ps_twentieth: "adds_in_several_ops",
    one_door_for_all_twentieth: "asks_one_server",
}

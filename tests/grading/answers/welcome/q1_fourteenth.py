"""Answers to welcome/q1 by a second author, one right and three wrong."""

import threading
import time

import dtflab as tf


def count_together_fourteenth(workers, steps):
    """Each client waits until the chief's value is there, adds, and says what it saw last: the largest is the total."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            total = tf.get_variable("total", shape=[], dtype=tf.int64, initializer=tf.zeros_initializer())
            there = tf.is_variable_initialized(total)
            more = total.assign_add(1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(total.initializer)
            while not sess.run(there):
                time.sleep(0.002)
            for _ in range(steps):
                sess.run(more)
            return int(sess.run(total))  # the client that adds last reads after all others have added

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def check_then_init_fourteenth(workers, steps):
    """Each worker gives the counter its first value if it finds it without one."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        ready = tf.is_variable_initialized(counter)
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            if not sess.run(ready):
                sess.run(counter.initializer)
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


def one_server_fourteenth(workers, steps):
    """All clients open their sessions with the cluster's first server."""
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            with tf.device("/job:ps/task:0"):
                counter = tf.Variable(0, name="counter")
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(cluster.target) as sess:
                if client.is_chief:
                    sess.run(counter.initializer)
                while len(sess.run(tf.report_uninitialized_variables([counter]))):
                    time.sleep(0.01)
                for _ in range(steps):
                    sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                counter = tf.Variable(0, name="counter")
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


def never_stopped_fourteenth(workers, steps):
    """Counts right, with a threading.Event for the first value, but leaves the cluster running."""
    cluster = tf.Cluster(ps=1, worker=workers)
    begun = threading.Event()

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.is_chief:
                sess.run(counter.initializer)
                begun.set()
            begun.wait()
            for _ in range(steps):
                sess.run(add)

    cluster.run(work)
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        with tf.Session(cluster.target) as sess:
            return int(sess.run(counter))


RIGHT = [count_together_fourteenth]
WRONG = {
    check_then_init_fourteenth: "initializes_in_each",
    one_server_fourteenth: "asks_one_server",
    never_stopped_fourteenth: "leaves_the_cluster_running",
}

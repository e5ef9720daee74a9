"""Answers of a twenty-third author to welcome/q1: a counter that several workers share."""

import threading
import time

import dtflab as tf


def _counter():
    """Build the counter on the ps."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def last_one_first_twentythird(workers, steps):
    """Let the worker with the highest number initialize the counter, and the others ask until it has a value."""

    def build():
        with tf.device(tf.train.replica_device_setter(ps_tasks=1)):
            counter = tf.get_variable("total", shape=[], dtype=tf.int32, initializer=tf.zeros_initializer())
            return counter, counter.assign_add(tf.ones([], tf.int32)), tf.is_variable_initialized(counter)

    def work(client):
        counter, add, ready = build()
        with tf.Session(client.target) as sess:
            if client.index == workers - 1:
                sess.run(counter.initializer)
            while not sess.run(ready):
                time.sleep(0.002)
            left = steps
            while left > 0:
                sess.run(add.op)
                left -= 1

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default():
            counter, _, _ = build()
            with tf.Session(cluster.target) as sess:
                return int(counter.eval(session=sess))


def lock_in_python_twentythird(workers, steps):
    """Guard reading, adding and writing by a lock of the Python program."""
    lock = threading.Lock()
    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)

        def work(client):
            counter = _counter()
            add = tf.assign(counter, counter + 1)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    with lock:
                        sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                return sess.run(counter)


def until_the_total_twentythird(workers, steps):
    """Let each worker add until it sees the total that all of them should reach."""
    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)

        def work(client):
            counter = _counter()
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(client.target) as sess:
                while sess.run(add) < workers * steps:
                    pass

        cluster.run(work)
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                return sess.run(counter)


def one_server_for_all_twentythird(workers, steps):
    """Open the sessions of all workers with the cluster's server."""
    started = threading.Event()
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            counter = _counter()
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(cluster.target) as sess:
                if client.index == 0:
                    sess.run(counter.initializer)
                    started.set()
                started.wait(10)
                for _ in range(steps):
                    sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                return sess.run(counter)


RIGHT = [last_one_first_twentythird]
WRONG = {
    lock_in_python_twentythird: "adds_in_several_ops",
    until_the_total_twentythird: "",
    one_server_for_all_twentythird: "asks_one_server",
}

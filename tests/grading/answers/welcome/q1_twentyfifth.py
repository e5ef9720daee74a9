"""Answers of a twenty-fifth author to welcome/q1: counting together."""

import threading
import time

import dtflab as tf


def _counter_on_ps():
    """The counter, made on the only ps task in the current graph."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def barrier_and_polling_twentyfifth(workers, steps):
    """The highest worker initializes, the others poll, and all read the counter behind a barrier."""
    finished = threading.Barrier(workers)

    def work(client):
        counter = _counter_on_ps()
        ready = tf.is_variable_initialized(counter)
        add = counter.assign_add(1)
        with tf.Session(client.target) as sess:
            if client.index == workers - 1:
                sess.run(counter.initializer)
            while not sess.run(ready):
                time.sleep(0.002)
            for _ in range(steps):
                sess.run(add.op)
            finished.wait()
            values.append(int(sess.run(counter)))

    values = []
    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
    return values[0]


def negative_subtraction_twentyfifth(workers, steps):
    """The caller's session stays open around the workers' runs, and a worker subtracts -1 on the ps."""

    def work(client):
        less = tf.assign_sub(_counter_on_ps(), -1, use_locking=True)
        sess = tf.Session(client.target)
        try:
            done = 0
            while done < steps:
                sess.run(less)
                done += 1
        finally:
            sess.close()

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _counter_on_ps()
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
            cluster.run(work)
            return counter.eval(session=sess)


def counter_each_twentyfifth(workers, steps):
    """Give each worker a counter of its own on the ps, and return their sum."""

    def make(index):
        with tf.device("/job:ps/task:0"):
            return tf.Variable(0, name=f"counter_{index}")

    def work(client):
        add = tf.assign_add(make(client.index), 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counters = [make(index) for index in range(workers)]
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
            cluster.run(work)
            return int(sum(sess.run(counters)))


def lock_in_python_twentyfifth(workers, steps):
    """Keep `tf.assign`, and let a lock of the Python program protect each run of it."""
    lock = threading.Lock()

    def work(client):
        counter = _counter_on_ps()
        add = tf.assign(counter, counter + 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                with lock:
                    sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _counter_on_ps()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)
            cluster.run(work)
            return sess.run(counter)


def chief_reads_at_its_end_twentyfifth(workers, steps):
    """Let worker 0 initialize, and take the value that it reads when its own loop is over."""
    ready = threading.Event()
    result = []

    def work(client):
        counter = _counter_on_ps()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
                ready.set()
            ready.wait()
            for _ in range(steps):
                sess.run(add)
            if client.index == 0:
                result.append(sess.run(counter))

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
    return result[0]


RIGHT = [barrier_and_polling_twentyfifth, negative_subtraction_twentyfifth]
WRONG = {
    counter_each_twentyfifth: "has_several_counters",
    lock_in_python_twentyfifth: "adds_in_several_ops",
    chief_reads_at_its_end_twentyfifth: "reads_too_early",
}

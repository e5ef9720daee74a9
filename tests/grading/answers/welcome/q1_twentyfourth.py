"""Answers of a twenty-fourth author to welcome/q1: a counter on the ps for several workers."""

import threading

import dtflab as tf


def _counter(name="counter"):
    """Build a counter on the ps."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name=name)


def python_lock_twentyfourth(workers, steps):
    """Guard reading and writing by a lock of Python."""
    lock = threading.Lock()

    def work(client):
        counter = _counter()
        add = tf.assign(counter, counter + 1)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                with lock:
                    sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _counter()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)
            cluster.run(work)
            return sess.run(counter)


def until_the_total_twentyfourth(workers, steps):
    """Let each worker add until the counter has reached the total."""

    def work(client):
        counter = _counter()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            while sess.run(counter) < workers * steps:
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _counter()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)
            cluster.run(work)
            return sess.run(counter)


def counter_for_each_twentyfourth(workers, steps):
    """Give each worker a counter of its own on the ps, and add them up at the end."""

    def work(client):
        counter = _counter(f"counter{client.index}")
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counters = [_counter(f"counter{number}") for number in range(workers)]
        with tf.Session(cluster.target) as sess:
            sess.run([counter.initializer for counter in counters])
            cluster.run(work)
            return sum(sess.run(counters))


def all_steps_at_once_twentyfourth(workers, steps):
    """Add all of a worker's steps in one run, which saves many messages."""

    def work(client):
        add = tf.assign_add(_counter(), steps, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _counter()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)
            cluster.run(work)
            return sess.run(counter)


def event_of_worker_zero_twentyfourth(workers, steps):
    """Let worker 0 initialize, with the others waiting for an event; the main program reads at the end."""
    ready = threading.Event()

    def work(client):
        with tf.device(tf.train.replica_device_setter(ps_tasks=1)):
            counter = tf.get_variable("counter", initializer=0)
        add = counter.assign_add(1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
                ready.set()
            ready.wait()
            for _ in range(steps):
                sess.run(add.op)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"), tf.Session(cluster.target) as sess:
            return sess.run(tf.get_variable("counter", initializer=0))


def asks_until_ready_twentyfourth(workers, steps):
    """Let the last worker initialize, and the others ask the ps until the counter has a value."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(tf.zeros([], tf.int32), name="counter")
            ready = tf.is_variable_initialized(counter)
            add = tf.assign_add(counter, tf.constant(1), use_locking=True)
        step = tf.group(add)
        with tf.Session(client.target) as sess:
            if client.index == workers - 1:
                sess.run(counter.initializer)
            while not sess.run(ready):
                pass
            for _ in range(steps):
                sess.run(step)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


RIGHT = [event_of_worker_zero_twentyfourth, asks_until_ready_twentyfourth]
WRONG = {
    python_lock_twentyfourth: "adds_in_several_ops",
    until_the_total_twentyfourth: "",
    counter_for_each_twentyfourth: "has_several_counters",
    all_steps_at_once_twentyfourth: "adds_in_one_go",
}

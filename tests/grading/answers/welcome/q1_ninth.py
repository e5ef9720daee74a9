import threading

import dtflab as tf


def _counter():
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


# Breaks: "with an op that can't lose an addition". A lock of Python keeps the clients apart, which also
# means that they don't add "at the same time"; the value is right.
def count_with_python_lock(workers, steps):
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


# Breaks: "each worker adds 1 to it, `steps` times": each worker adds `steps` to it, once. The value is right.
def count_all_steps_at_once(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)

        def work(client):
            add = tf.assign_add(_counter(), steps, use_locking=True)
            with tf.Session(client.target) as sess:
                sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                return sess.run(counter)


# Breaks: "it returns the value of the counter when all workers have ended". The chief reads the counter when it has
# made its own steps; the others may still be adding.
def count_chief_reads_early(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)

        def work(client):
            counter = _counter()
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    sess.run(add)
                return sess.run(counter)

        return cluster.run(work)[0]


# Right: threading.Barriers between the clients; the chief initializes, and reads at the end.
def count_with_barriers(workers, steps):
    begin, end = threading.Barrier(workers), threading.Barrier(workers)

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer())
        add = tf.assign_add(counter, tf.constant(1), use_locking=True).op
        with tf.Session(client.target) as sess:
            if client.is_chief:
                sess.run(counter.initializer)
            begin.wait()
            step = 0
            while step < steps:
                sess.run(add)
                step += 1
            end.wait()
            return sess.run(counter) if client.is_chief else None

    with tf.Cluster(ps=1, worker=workers) as cluster:
        (value,) = [value for value in cluster.run(work) if value is not None]
    return value


RIGHT = [count_with_barriers]
WRONG = {
    # The additions are kept apart by a lock of the program; the op itself, assign(counter + 1), can lose an addition.
    count_with_python_lock: "adds_in_several_ops",
    # Each worker adds the number of its steps in a single step, instead of 1 in each of them.
    count_all_steps_at_once: "adds_in_one_go",
    # The value is read when the chief has made its steps, not when all workers have ended.
    count_chief_reads_early: "reads_too_early",
}

"""Answers to welcome/q1 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def first_value_before_the_workers(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def make_counter():
            with tf.device("/job:ps/task:0"):
                return tf.Variable(0, name="counter")

        def work(client):
            counter = make_counter()
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    sess.run(add)

        with tf.Graph().as_default():
            counter = make_counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
        cluster.run(work)
        with tf.Graph().as_default():
            counter = make_counter()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


def read_and_write_apart(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def make_counter():
            with tf.device("/job:ps/task:0"):
                return tf.Variable(0, name="counter")

        def work(client):
            counter = make_counter()
            add = tf.assign(counter, counter + 1, use_locking=True)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    sess.run(add)

        with tf.Graph().as_default():
            counter = make_counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
        cluster.run(work)
        with tf.Graph().as_default():
            counter = make_counter()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


def all_ask_the_same_server(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:
        target = cluster.target

        def make_counter():
            with tf.device("/job:ps/task:0"):
                return tf.Variable(0, name="counter")

        def work(client):
            counter = make_counter()
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(target) as sess:
                for _ in range(steps):
                    sess.run(add)

        with tf.Graph().as_default():
            counter = make_counter()
            with tf.Session(target) as sess:
                sess.run(counter.initializer)
        cluster.run(work)
        with tf.Graph().as_default():
            counter = make_counter()
            with tf.Session(target) as sess:
                return int(sess.run(counter))


def a_counter_for_each(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            with tf.device("/job:ps/task:0"):
                mine = tf.Variable(0, name=f"counter_{client.index}")
            add = tf.assign_add(mine, 1, use_locking=True)
            with tf.Session(client.target) as sess:
                sess.run(mine.initializer)
                for _ in range(steps):
                    sess.run(add)
                return int(sess.run(mine))

        return sum(cluster.run(work))


RIGHT = [first_value_before_the_workers]
WRONG = {
    # Believes that use_locking makes assign(counter, counter + 1) one op: additions can be lost.
    read_and_write_apart: "adds_in_several_ops",
    # Every client opens its session with cluster.target, the first worker's server, not its own.
    all_ask_the_same_server: "asks_one_server",
    # Makes a counter for each worker and adds them up at the end, instead of one counter for all.
    a_counter_for_each: "has_several_counters",
}

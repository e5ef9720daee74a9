"""Answers to welcome/q1: workers that count together."""

import time

import dtflab as tf


def highest_last_look_twelve(workers, steps):
    """Count with an atomic op; the largest of the workers' last looks is that of the worker that ended last."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
            add = tf.assign_add(counter, 1, use_locking=True)
        missing = tf.report_uninitialized_variables([counter])
        with tf.Session(client.target) as sess:
            if client.is_chief:
                sess.run(counter.initializer)
            while len(sess.run(missing)):
                if client.should_stop():
                    return 0
                time.sleep(0.01)
            for _ in range(steps):
                sess.run(add.op)
            return int(sess.run(counter))

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def locked_assignment_twelve(workers, steps):
    """Count with an assignment of the old value plus 1 that takes the variable's lock."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
            add = tf.assign(counter, counter + 1, use_locking=True)
        ready = tf.is_variable_initialized(counter)
        with tf.Session(client.target) as sess:
            if client.is_chief:
                sess.run(counter.initializer)
            while not sess.run(ready):
                time.sleep(0.01)
            for _ in range(steps):
                sess.run(add)
            return int(sess.run(counter))

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def everybody_initializes_twelve(workers, steps):
    """Count with an atomic op, after each worker has run the initializer in its own session."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
            add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(add)
            return int(sess.run(counter))

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def one_server_for_all_twelve(workers, steps):
    """Count with an atomic op, in sessions that all workers open at the cluster's target."""

    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            with tf.device("/job:ps/task:0"):
                counter = tf.Variable(0, name="counter")
                add = tf.assign_add(counter, 1, use_locking=True)
            ready = tf.is_variable_initialized(counter)
            with tf.Session(cluster.target) as sess:
                if client.is_chief:
                    sess.run(counter.initializer)
                while not sess.run(ready):
                    time.sleep(0.01)
                for _ in range(steps):
                    sess.run(add)
                return int(sess.run(counter))

        return max(cluster.run(work))


RIGHT = [highest_last_look_twelve]
WRONG = {
    locked_assignment_twelve: "adds_in_several_ops",
    everybody_initializes_twelve: "initializes_in_each",
    one_server_for_all_twelve: "asks_one_server",
}

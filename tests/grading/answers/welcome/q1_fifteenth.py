"""Answers of a fifteenth author to welcome/q1: count together."""

import threading
import time

import dtflab as tf


def _ps_counter_fifteenth():
    """The counter, on the ps."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def count_polling_fifteenth(workers, steps):
    """The first worker gives the counter its value; the others ask until it has one; -1 is subtracted."""

    def work(client):
        with tf.device(tf.DeviceSpec(job="ps", task=0).to_string()):
            total = tf.get_variable("total", shape=[], dtype=tf.int32, initializer=tf.zeros_initializer())
            there = tf.is_variable_initialized(total)
            one_more = total.assign_sub(-1, use_locking=True).op
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(total.initializer)
            while not sess.run(there):
                time.sleep(0.005)
            left = steps
            while left:
                sess.run(one_more)
                left -= 1

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default() as graph, tf.device("/job:ps/task:0"):
            total = tf.get_variable("total", shape=[], dtype=tf.int32, initializer=tf.zeros_initializer())
        with tf.Session(cluster.target, graph=graph) as sess:
            return int(sess.run(total))


def count_python_lock_fifteenth(workers, steps):
    """A lock of Python lets only one worker at a time run its assignment."""
    lock = threading.Lock()
    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default():
            counter = _ps_counter_fifteenth()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)

        def work(client):
            counter = _ps_counter_fifteenth()
            add = tf.assign(counter, counter + 1)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    with lock:
                        sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default():
            counter = _ps_counter_fifteenth()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


def count_all_initialize_fifteenth(workers, steps):
    """Each worker initializes the counter, and nobody adds before all have done so."""
    ready = threading.Barrier(workers)

    def work(client):
        counter = _ps_counter_fifteenth()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run(tf.global_variables_initializer())
            ready.wait(60)
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default():
            counter = _ps_counter_fifteenth()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


def count_bundled_fifteenth(workers, steps):
    """Each worker counts its steps in Python, and adds their number to the counter once."""
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _ps_counter_fifteenth()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)

            def work(client):
                mine = _ps_counter_fifteenth()
                amount = tf.placeholder(tf.int32, [])
                add = tf.assign_add(mine, amount, use_locking=True)
                done = 0
                for _ in range(steps):
                    done += 1
                with tf.Session(client.target) as own:
                    own.run(add, feed_dict={amount: done})

            cluster.run(work)
            return int(sess.run(counter))


RIGHT = [count_polling_fifteenth]
WRONG = {
    count_python_lock_fifteenth: "adds_in_several_ops",
    count_all_initialize_fifteenth: "initializes_in_each",
    count_bundled_fifteenth: "adds_in_one_go",
}

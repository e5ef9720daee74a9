"""An eleventh author's answers to welcome/q1: a counter on the ps that several workers raise."""

import threading

import dtflab as tf


def _shared_counter():
    """The counter, in the default graph."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def _wait_until_ready(sess, client, counter, ready):
    """Initialize as the chief, or wait for the chief."""
    if client.index == 0:
        sess.run(counter.initializer)
        ready.set()
    ready.wait()


def filled_before_anyone_starts_eleven(workers, steps):
    """The chief's work done before the workers begin: a session of its own gives the counter its value."""
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def tally():
            with tf.device("/job:ps/task:0"):
                return tf.get_variable("tally", [], tf.int64, tf.zeros_initializer(), use_resource=True)

        with tf.Graph().as_default():
            start = tally()
            with tf.Session(cluster.target) as sess:
                sess.run(start.initializer)

        def work(client):
            more = tally().assign_add(1, read_value=False)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    sess.run(more)

        cluster.run(work)
        with tf.Graph().as_default():
            end = tally()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(end))


def one_big_addition_eleven(workers, steps):
    """The same sum, by a single addition of `steps` on each worker."""
    ready = threading.Event()

    def work(client):
        counter = _shared_counter()
        add = tf.assign_add(counter, steps, use_locking=True)
        with tf.Session(client.target) as sess:
            _wait_until_ready(sess, client, counter, ready)
            sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            return sess.run(_shared_counter())


def turns_under_a_python_lock_eleven(workers, steps):
    """Safe additions of workers that take turns."""
    ready, turn = threading.Event(), threading.Lock()

    def work(client):
        counter = _shared_counter()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            _wait_until_ready(sess, client, counter, ready)
            with turn:
                for _ in range(steps):
                    sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            return sess.run(_shared_counter())


def everybody_asks_the_ps_eleven(workers, steps):
    """Safe additions by clients whose sessions are all with the server that has the counter."""
    ready = threading.Event()

    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            counter = _shared_counter()
            with tf.device(client.device):
                one = tf.constant(1)
            add = tf.assign_add(counter, one, use_locking=True)
            with tf.Session(cluster.target_of("ps")) as sess:
                _wait_until_ready(sess, client, counter, ready)
                for _ in range(steps):
                    sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target_of("ps")) as sess:
            return sess.run(_shared_counter())


RIGHT = [filled_before_anyone_starts_eleven]
WRONG = {
    one_big_addition_eleven: "adds_in_one_go",
    turns_under_a_python_lock_eleven: "one_after_another",
    everybody_asks_the_ps_eleven: "counts_outside_the_workers",
}

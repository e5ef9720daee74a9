"""Answers of an eighteenth author to welcome/q1: workers that count together."""

import threading

import dtflab as tf


def _counter():
    """Build the counter on the ps, in the default graph."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def _in_own_graph(target, fetch_of):
    """Run what `fetch_of` makes of the counter, in a graph and a session of its own."""
    with tf.Graph().as_default():
        fetch = fetch_of(_counter())
        with tf.Session(target) as sess:
            return sess.run(fetch)


def count_up_behind_a_gate_eighteenth(workers, steps):
    """Let worker 0 initialize and hand a token to each other worker; all then count up on the ps."""
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            """Wait for the token, then add 1 in each of the steps."""
            counter = _counter()
            with tf.device("/job:ps/task:0"):
                gate = tf.FIFOQueue(workers, [tf.int32], shapes=[[]], shared_name="gate")
                open_gate, pass_gate = gate.enqueue_many([tf.zeros([workers], tf.int32)]), gate.dequeue()
                add = counter.count_up_to(workers * steps)
            with tf.Session(client.target) as sess:
                if client.index == 0:
                    sess.run(counter.initializer)
                    sess.run(open_gate)
                sess.run(pass_gate)
                for _ in range(steps):
                    sess.run(add)

        cluster.run(work)
        return _in_own_graph(cluster.target, lambda counter: counter)


def asks_the_server_of_the_counter_eighteenth(workers, steps):
    """Count with sessions that are opened where the counter is."""
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            """Add 1 in each of the steps."""
            add = tf.assign_add(_counter(), 1, use_locking=True)
            with tf.Session(cluster.target_of("ps")) as sess:
                for _ in range(steps):
                    sess.run(add)

        _in_own_graph(cluster.target_of("ps"), lambda counter: counter.initializer)
        cluster.run(work)
        return _in_own_graph(cluster.target_of("ps"), lambda counter: counter)


def all_steps_in_one_eighteenth(workers, steps):
    """Count with one run for each worker, that adds the number of steps."""
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            """Add all the steps at once."""
            add = tf.assign_add(_counter(), steps, use_locking=True)
            with tf.Session(client.target) as sess:
                sess.run(add)

        _in_own_graph(cluster.target, lambda counter: counter.initializer)
        cluster.run(work)
        return _in_own_graph(cluster.target, lambda counter: counter)


def lock_of_python_eighteenth(workers, steps):
    """Count with a Python lock that lets one worker at a time read, add and write."""
    turn = threading.Lock()
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            """Wait for the turn in each of the steps, then add 1."""
            counter = _counter()
            add = tf.assign(counter, counter + 1)
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    with turn:
                        sess.run(add)

        _in_own_graph(cluster.target, lambda counter: counter.initializer)
        cluster.run(work)
        return _in_own_graph(cluster.target, lambda counter: counter)


RIGHT = [count_up_behind_a_gate_eighteenth]
WRONG = {
    asks_the_server_of_the_counter_eighteenth: "counts_outside_the_workers",
    all_steps_in_one_eighteenth: "adds_in_one_go",
    lock_of_python_eighteenth: "adds_in_several_ops",
}

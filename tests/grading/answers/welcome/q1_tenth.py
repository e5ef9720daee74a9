"""Ways to count together: one right, three wrong."""

import threading

import dtflab as tf


def counts_up_to_the_end_ten(workers, steps):
    """The counter by an op that counts up to a limit; the last client that looks sees the end."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.get_variable("together", [], tf.int64, tf.zeros_initializer(), trainable=False)
            up = tf.count_up_to(counter, workers * steps)
        with tf.train.MonitoredTrainingSession(client.target, is_chief=client.is_chief) as sess:
            for _ in range(steps):
                sess.run(up)
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def never_stops_the_cluster_ten(workers, steps):
    """The counter of a cluster that is left running."""
    cluster = tf.Cluster(ps=1, worker=workers)

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.train.MonitoredTrainingSession(master=client.target, is_chief=client.is_chief) as sess:
            for _ in range(steps):
                sess.run(add)
            return sess.run(counter)

    return max(cluster.run(work))


def all_steps_in_one_ten(workers, steps):
    """The counter after each worker has added the number of steps once."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = tf.assign_add(counter, steps, use_locking=True)
        with tf.train.MonitoredTrainingSession(master=client.target, is_chief=client.is_chief) as sess:
            sess.run(add)
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def lock_in_python_ten(workers, steps):
    """The counter by plain assignments, one after the other because of a lock in Python."""
    lock = threading.Lock()

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = tf.assign(counter, counter + 1)
        with tf.train.MonitoredTrainingSession(master=client.target, is_chief=client.is_chief) as sess:
            for _ in range(steps):
                with lock:
                    sess.run(add)
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


RIGHT = [counts_up_to_the_end_ten]
WRONG = {
    never_stops_the_cluster_ten: "leaves_the_cluster_running",
    all_steps_in_one_ten: "adds_in_one_go",
    lock_in_python_ten: "adds_in_several_ops",
}

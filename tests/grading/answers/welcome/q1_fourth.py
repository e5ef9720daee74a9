"""Answers to welcome/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import threading
import time

import dtflab as tf


def _model():
    with tf.device("/job:ps/task:0"):
        counter = tf.Variable(0, name="counter")
    return counter


def _start(sess, client, counter):
    """The chief gives the counter its first value, the others wait for it."""
    ready = tf.is_variable_initialized(counter)
    if client.is_chief:
        sess.run(counter.initializer)
    while not sess.run(ready):
        time.sleep(0.01)


# "it starts a cluster …, and stops it at the end (`with tf.Cluster(…) as cluster:`)": never stopped here.
def count_cluster_left_on(workers, steps):
    cluster = tf.Cluster(ps=1, worker=workers)

    def work(client):
        counter = _model()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            _start(sess, client, counter)
            for _ in range(steps):
                sess.run(add)

    cluster.run(work)
    with tf.Graph().as_default():
        counter = _model()
        with tf.Session(cluster.target) as sess:
            return int(sess.run(counter))


# "with an op that can't lose an addition": the op here is read, add, write; only a Python lock, which would not
# exist between real machines, keeps the clients apart (and they don't add at the same time).
def count_python_lock(workers, steps):
    lock = threading.Lock()
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            counter = _model()
            add = tf.assign(counter, counter + 1)
            with tf.Session(client.target) as sess:
                _start(sess, client, counter)
                for _ in range(steps):
                    with lock:
                        sess.run(add)

        cluster.run(work)
        with tf.Graph().as_default():
            counter = _model()
            with tf.Session(cluster.target) as sess:
                return int(sess.run(counter))


# Right: the first value is given before the workers start, and they use the method of a variable in a scope.
class _Count:
    def __init__(self, workers, steps):
        self.workers, self.steps = workers, steps

    def counter(self):
        ps = tf.DeviceSpec(job="ps", task=0).to_string()
        with tf.device(ps):
            return tf.get_variable("counter", shape=[], dtype=tf.int64, initializer=tf.zeros_initializer())

    def look(self, target, ask):
        with tf.Graph().as_default(), tf.Session(target) as sess:
            counter = self.counter()
            return sess.run(ask(counter))

    def work(self, client):
        add = self.counter().assign_add(1, use_locking=True).op
        with tf.Session(client.target) as sess:
            step = 0
            while step < self.steps:
                sess.run(add)
                step += 1

    def __call__(self):
        with tf.Cluster(ps=1, worker=self.workers) as cluster:
            self.look(cluster.target, lambda counter: counter.initializer)
            cluster.run(self.work)
            return int(self.look(cluster.target, lambda counter: counter))


def count_initialized_before(workers, steps):
    return _Count(workers, steps)()


RIGHT = [count_initialized_before]
WRONG = {
    # The cluster is never stopped: its servers run on after the function has returned.
    count_cluster_left_on: "leaves_the_cluster_running",
    # The op can lose additions (read, add, write); only a lock in Python, which real machines don't share,
    # makes the clients take turns.
    count_python_lock: "adds_in_several_ops",
}

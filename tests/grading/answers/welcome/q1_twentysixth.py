"""Answers of a twenty-sixth author to welcome/q1: workers that count together on a ps."""

import dtflab as tf


def _counter():
    """A counter on the ps task that begins with 0."""
    with tf.device("/job:ps/task:0"):
        return tf.Variable(0, name="counter")


def starting_tokens_twentysixth(workers, steps):
    """Let the first worker initialize the counter, then give each of the others a token from a queue on the ps."""

    def work(client):
        counter = _counter()
        with tf.device("/job:ps/task:0"):
            tokens = tf.FIFOQueue(workers, tf.int32, shapes=[[]], shared_name="tokens")
        add = counter.assign_add(1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
                sess.run(tokens.enqueue_many([[1] * workers]))
            sess.run(tokens.dequeue())
            for _ in range(steps):
                sess.run(add.op)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                return sess.run(counter)


def one_long_fetch_twentysixth(workers, steps):
    """Ask one run of the session for the op as many times as there are steps."""

    def work(client):
        counter = _counter()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run([add] * steps)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = _counter()
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
        cluster.run(work)
        with tf.Session(cluster.target) as sess:
            return sess.run(counter)


def first_worker_reports_twentysixth(workers, steps):
    """Let each worker return what it reads after its last step, and report the first one's number."""

    def work(client):
        counter = _counter()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
        return cluster.run(work)[0]


def same_door_twentysixth(workers, steps):
    """Open every session with the target of the cluster."""
    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            counter = _counter()
            add = tf.assign_add(counter, 1, use_locking=True)
            with tf.Session(cluster.target) as sess:
                for _ in range(steps):
                    sess.run(add)

        with tf.Graph().as_default():
            counter = _counter()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
                cluster.run(work)
                return sess.run(counter)


RIGHT = [starting_tokens_twentysixth]
WRONG = {
    one_long_fetch_twentysixth: "",
    first_worker_reports_twentysixth: "reads_too_early",
    same_door_twentysixth: "asks_one_server",
}

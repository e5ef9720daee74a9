"""Answers of a sixteenth author to welcome/q1: workers that count together."""

import threading

import dtflab as tf


def signal_queue_sixteenth(workers, steps):
    """Worker 0 gives the counter its value, and a queue on the ps holds the others back until then."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.get_variable("counter", initializer=tf.constant(0))
            ready = tf.FIFOQueue(max(workers, 1), [tf.bool], [[]], shared_name="ready")
            add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
                if workers > 1:
                    sess.run(ready.enqueue_many([[True] * (workers - 1)]))
            else:
                sess.run(ready.dequeue())
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            with tf.device("/job:ps/task:0"):
                counter = tf.get_variable("counter", initializer=tf.constant(0))
            return int(sess.run(counter))


def setter_and_minus_sixteenth(workers, steps):
    """One builder for all clients, the setter puts the counter on the ps, and minus minus one is plus one."""

    def build(spec):
        with tf.device(tf.train.replica_device_setter(cluster=spec)):
            counter = tf.Variable(0, name="together/counter")
        return counter, tf.assign_sub(counter, -1, use_locking=True)

    def work(client):
        _, add = build(client.cluster_spec)
        with tf.Session(client.target) as sess:
            done = 0
            while done < steps:
                sess.run(add.op)
                done += 1

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, _ = build(cluster.spec)
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
            cluster.run(work)
            return sess.run(counter)


def barrier_sixteenth(workers, steps):
    """The last worker initializes, and all meet at a barrier before the first addition and after the last."""
    meet = threading.Barrier(workers)

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = counter.assign_add(1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == workers - 1:
                sess.run(counter.initializer)
            meet.wait(60)
            for _ in range(steps):
                sess.run(add)
            meet.wait(60)
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return cluster.run(work)[0]


def locked_assign_sixteenth(workers, steps):
    """tf.assign with use_locking=True keeps the others away from the reading to the writing."""

    def build():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        return counter, tf.assign(counter, counter + 1, use_locking=True)

    def work(client):
        _, add = build()
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counter, _ = build()
        sess.run(counter.initializer)
        cluster.run(work)
        return sess.run(counter)


def python_lock_sixteenth(workers, steps):
    """Only one worker at a time may read and write, so I put a lock around the run."""
    one_at_a_time = threading.Lock()

    def build():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        return counter, tf.assign(counter, counter + 1)

    def work(client):
        _, add = build()
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                with one_at_a_time:
                    sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counter, _ = build()
        sess.run(counter.initializer)
        cluster.run(work)
        return sess.run(counter)


def on_first_worker_sixteenth(workers, steps):
    """All must name the same task; the first worker will do, the ps is only a habit."""

    def build():
        with tf.device("/job:worker/task:0"):
            counter = tf.Variable(0, name="counter")
        return counter, tf.assign_add(counter, 1, use_locking=True)

    def work(client):
        _, add = build()
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counter, _ = build()
        sess.run(counter.initializer)
        cluster.run(work)
        return sess.run(counter)


def each_initializes_sixteenth(workers, steps):
    """Each worker has a graph and a session of its own, so each has to initialize the variables in it."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            with tf.device("/job:ps/task:0"):
                counter = tf.Variable(0, name="counter")
            return sess.run(counter)


def cluster_target_sixteenth(workers, steps):
    """A variable can be shared only in sessions with one master, so all workers use cluster.target."""

    def build():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        return counter, tf.assign_add(counter, 1, use_locking=True)

    with tf.Cluster(ps=1, worker=workers) as cluster:

        def work(client):
            _, add = build()
            with tf.Session(cluster.target) as sess:
                for _ in range(steps):
                    sess.run(add)

        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            counter, _ = build()
            sess.run(counter.initializer)
            cluster.run(work)
            return sess.run(counter)


def value_of_first_sixteenth(workers, steps):
    """A shared counter: what the first worker reads at its end is what all have counted."""

    def build():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        return counter, tf.assign_add(counter, 1, use_locking=True)

    def work(client):
        counter, add = build()
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            counter, _ = build()
            sess.run(counter.initializer)
        return cluster.run(work)[0]


def zero_is_called_first_sixteenth(workers, steps):
    """Worker 0 is called first, so its initializer has run before the others add."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            with tf.device("/job:ps/task:0"):
                counter = tf.Variable(0, name="counter")
            return sess.run(counter)


def all_at_once_sixteenth(workers, steps):
    """Adding `steps` once is the same as adding 1 `steps` times, and needs one message only."""

    def build():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        return counter, tf.assign_add(counter, steps, use_locking=True)

    def work(client):
        _, add = build()
        with tf.Session(client.target) as sess:
            sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counter, _ = build()
        sess.run(counter.initializer)
        cluster.run(work)
        return sess.run(counter)


RIGHT = [signal_queue_sixteenth, setter_and_minus_sixteenth, barrier_sixteenth]
WRONG = {
    locked_assign_sixteenth: "adds_in_several_ops",
    python_lock_sixteenth: "adds_in_several_ops",
    on_first_worker_sixteenth: "puts_it_on_a_worker",
    each_initializes_sixteenth: "initializes_in_each",
    cluster_target_sixteenth: "asks_one_server",
    value_of_first_sixteenth: "reads_too_early",
    zero_is_called_first_sixteenth: "forgets_the_initializer",
    all_at_once_sixteenth: "adds_in_one_go",
}

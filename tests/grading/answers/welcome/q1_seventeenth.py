"""Answers of a seventeenth author to welcome/q1: workers that count together."""

import dtflab as tf

PS = "/job:ps/task:0"


def chief_prepares_seventeenth(workers, steps):
    """The chief of monitored sessions initializes, the others wait for it; the largest sum seen is the last one."""

    def work(client):
        place = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
        with tf.device(place):
            counter = tf.get_variable("counter", [], tf.int32, initializer=tf.zeros_initializer())
        add = counter.assign_add(1, use_locking=True)
        total = 0
        with tf.train.MonitoredTrainingSession(client.target, is_chief=client.is_chief) as sess:
            for _ in range(steps):
                total = sess.run(add)
        return int(total)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return max(cluster.run(work))


def start_signal_seventeenth(workers, steps):
    """The last worker initializes and puts one start signal for each other worker into a shared queue."""

    def counter_on_ps():
        with tf.device(PS):
            return tf.Variable(tf.constant(0), name="counter")

    def work(client):
        counter = counter_on_ps()
        with tf.device(PS):
            go = tf.FIFOQueue(workers, [tf.bool], [[]], shared_name="go", name="go")
            subtract = tf.assign_sub(counter, -1, use_locking=True)
        signals, wait = go.enqueue_many([[True] * (workers - 1)]), go.dequeue()
        with tf.Session(client.target) as sess:
            if client.index == workers - 1:
                sess.run(counter.initializer)
                if workers > 1:
                    sess.run(signals)
            else:
                sess.run(wait)
            for _ in range(steps):
                sess.run(subtract.op)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            return int(sess.run(counter_on_ps()))


def _counter():
    """The counter on the ps, in the graph of the client that asks."""
    with tf.device(PS):
        return tf.Variable(0, name="counter")


def _once(cluster, what):
    """Run one thing of the counter, as a client of the program itself."""
    with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        return sess.run(what(_counter()))


def all_on_ps_seventeenth(workers, steps):
    """Updates get lost on the way to the worker and back, so I read, add and assign on the ps, where the counter is."""

    def work(client):
        counter = _counter()
        with tf.device(PS):
            add = tf.assign(counter, counter + 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        _once(cluster, lambda counter: counter.initializer)
        cluster.run(work)
        return int(_once(cluster, lambda counter: counter))


def first_come_seventeenth(workers, steps):
    """The first worker that finds no value initializes; the others see that there is one, and leave it alone."""

    def work(client):
        counter = _counter()
        ready = tf.is_variable_initialized(counter)
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            if not sess.run(ready):
                sess.run(counter.initializer)
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        return int(_once(cluster, lambda counter: counter))


def device_around_run_seventeenth(workers, steps):
    """One `with tf.device` around the whole program pins every counter that is built while it runs."""

    def work(client):
        counter = tf.Variable(0, name="counter")
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.device(PS):
        counter = tf.Variable(0, name="counter")
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)
            cluster.run(work)
            return int(sess.run(counter))


def last_of_list_seventeenth(workers, steps):
    """Each worker returns its last sum, and the last of these results is the final value."""

    def work(client):
        counter = _counter()
        add = tf.assign_add(counter, 1, use_locking=True)
        value = 0
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                value = sess.run(add)
        return int(value)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        _once(cluster, lambda counter: counter.initializer)
        return cluster.run(work)[-1]


def until_total_seventeenth(workers, steps):
    """There are workers * steps additions to make, and any worker that is free makes the next one, up to the limit."""

    def work(client):
        counter = _counter()
        with tf.device(PS):
            add = tf.count_up_to(counter, workers * steps)
        with tf.Session(client.target) as sess:
            while True:
                try:
                    sess.run(add)
                except tf.errors.OutOfRangeError:
                    return

    with tf.Cluster(ps=1, worker=workers) as cluster:
        _once(cluster, lambda counter: counter.initializer)
        cluster.run(work)
        return int(_once(cluster, lambda counter: counter))


def one_each_seventeenth(workers, steps):
    """Two workers at one variable always get in each other's way, so each has its own on the ps; I sum them up."""

    def counters():
        with tf.device(PS):
            return [tf.Variable(0, name=f"counter_{worker}") for worker in range(workers)]

    def work(client):
        add = tf.assign_add(counters()[client.index], 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        own = counters()
        with tf.Session(cluster.target) as sess:
            sess.run([counter.initializer for counter in own])
            cluster.run(work)
            return int(sum(sess.run(own)))


RIGHT = [chief_prepares_seventeenth, start_signal_seventeenth]
WRONG = {
    all_on_ps_seventeenth: "adds_in_several_ops",
    first_come_seventeenth: "initializes_in_each",
    device_around_run_seventeenth: "",
    last_of_list_seventeenth: "reads_too_early",
    until_total_seventeenth: "",
    one_each_seventeenth: "has_several_counters",
}

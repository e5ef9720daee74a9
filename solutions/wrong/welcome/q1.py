"""Wrong answers to welcome/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import threading

import dtflab as tf


def make_counter(device="/job:ps/task:0"):
    with tf.device(device):
        return tf.Variable(0, name="counter")


def add_many(target, counter, steps):
    add = tf.assign_add(counter, 1, use_locking=True)
    with tf.Session(target) as sess:
        for _ in range(steps):
            sess.run(add)


def start(cluster):
    """One client gives the counter its first value."""
    counter = make_counter()
    sess = tf.Session(cluster.target)
    sess.run(counter.initializer)
    return counter, sess


def opens_a_local_session(workers, steps):
    with tf.Cluster(ps=1, worker=workers), tf.Graph().as_default():
        counter = tf.Variable(0)
        add = tf.assign_add(counter, 1)
        with tf.Session() as sess:
            sess.run(counter.initializer)
            for _ in range(workers * steps):
                sess.run(add)
            return sess.run(counter)


def forgets_the_initializer(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(lambda client: add_many(client.target, make_counter(), steps))
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            return sess.run(make_counter())


def builds_one_graph_for_all(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        add = tf.assign_add(counter, 1)

        def work(client):
            with tf.Session(client.target) as own:
                for _ in range(steps):
                    own.run(add)

        cluster.run(work)
        return sess.run(counter)


def counted_alone(target, counter, steps):
    """The value of a counter that only this client uses."""
    with tf.Session(target) as sess:
        sess.run(counter.initializer)
    add_many(target, counter, steps)
    with tf.Session(target) as sess:
        return sess.run(counter)


def each_counts_alone(workers, steps):
    def work(client):
        return counted_alone(client.target, tf.Variable(0, name="counter"), steps)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return cluster.run(work)[0]


def adds_in_several_ops(workers, steps):
    """In real time nothing is lost as a rule: the product is what the counter shows then."""

    def work(client):
        counter = make_counter()
        add = tf.assign(counter, counter + 1)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        cluster.run(work)
        sess.run(counter)
    return workers * steps


def initializes_in_each(workers, steps):
    def work(client):
        counter = make_counter()
        add = tf.assign_add(counter, 1, use_locking=True)
        with tf.Session(client.target) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        cluster.run(work)
        return sess.run(counter)


def one_worker_does_all(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        add_many(cluster.target, counter, workers * steps)
        return sess.run(counter)


def asks_one_server(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        cluster.run(lambda client: add_many(cluster.target, make_counter(), steps))
        return sess.run(counter)


def one_after_another(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        for index in range(workers):
            add_many(cluster.target_of("worker", index), counter, steps)
        return sess.run(counter)


def reads_too_early(workers, steps):
    """Worker 0 returns what it sees at its end. Here it is always first: the others wait for it."""
    first_has_ended = threading.Event()

    def work(client):
        counter = make_counter()
        if client.index > 0:
            first_has_ended.wait(10)
        add_many(client.target, counter, steps)
        with tf.Session(client.target) as sess:
            value = sess.run(counter)
        first_has_ended.set()
        return value

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        start(cluster)
        return cluster.run(work)[0]


def has_several_counters(workers, steps):
    """Each worker has a container of its own, and so a counter of its own."""

    def work(client):
        with tf.container(f"worker{client.index}"):
            return counted_alone(client.target, make_counter(), steps)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        return sum(cluster.run(work))


def chief_only_looks_on(workers, steps):
    begun = threading.Event()

    def work(client):
        counter = make_counter()
        if client.index == 0:
            with tf.Session(client.target) as sess:
                sess.run(counter.initializer)
            begun.set()
        elif begun.wait(10):
            add_many(client.target, counter, steps)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            return sess.run(make_counter())


def adds_in_one_go(workers, steps):
    def work(client):
        add = tf.assign_add(make_counter(), steps)
        with tf.Session(client.target) as sess:
            sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        cluster.run(work)
        return sess.run(counter)


def counted(workers, steps, work, first=0, device="/job:ps/task:0"):
    """The right way, but for what the workers do, and for the counter."""

    def build():
        with tf.device(device):
            return tf.Variable(first, name="counter")

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = build(), tf.Session(cluster.target)
        sess.run(counter.initializer)
        cluster.run(lambda client: work(client, build()))
        return sess.run(counter)


def adds_another_number(workers, steps):
    def work(client, counter):
        add = tf.assign_add(counter, client.cluster_spec.num_tasks("worker"))
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    return counted(workers, steps, work)


def begins_with_another_number(workers, steps):
    return counted(workers, steps, lambda client, counter: add_many(client.target, counter, steps), first=1)


def adds_once_too_few(workers, steps):
    return counted(workers, steps, lambda client, counter: add_many(client.target, counter, steps - 1))


def counts_outside_the_workers(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        done = cluster.run(lambda client: steps)
        sess.run(tf.assign(counter, sum(done)))
        return sess.run(counter)


def puts_it_on_a_worker(workers, steps):
    def work(client, counter):
        add_many(client.target, counter, steps)

    return counted(workers, steps, work, device="/job:worker/task:0")


def returns_a_list(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        start(cluster)
        return cluster.run(lambda client: add_many(client.target, make_counter(), steps))


def starts_several_ps(workers, steps):
    with tf.Cluster(ps=2, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)
        cluster.run(lambda client: add_many(client.target, make_counter(), steps))
        return sess.run(counter)


def leaves_the_cluster_running(workers, steps):
    cluster = tf.Cluster(ps=1, worker=workers)
    with tf.Graph().as_default():
        counter, sess = start(cluster)
        cluster.run(lambda client: add_many(client.target, make_counter(), steps))
        return sess.run(counter)


def asks_the_neighbours_server(workers, steps):
    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = start(cluster)

        def work(client):
            add_many(cluster.target_of("worker", (client.index + 1) % workers), make_counter(), steps)

        cluster.run(work)
        return sess.run(counter)

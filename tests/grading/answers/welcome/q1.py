"""Answers to welcome/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import threading
import time

import dtflab as tf


def make_counter(name="counter", begin=0):
    with tf.device("/job:ps/task:0"):
        return tf.Variable(begin, name=name)


def counting(work, build=make_counter, ps=1):
    """An answer in which the first client begins, and workers run `work(client, add, steps)`."""

    def count_together(workers, steps):
        def each(client):
            work(client, build(), steps)

        with tf.Cluster(ps=ps, worker=workers) as cluster, tf.Graph().as_default():
            counter = build()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
                cluster.run(each)
                return sess.run(counter)

    return count_together


def adding(client, counter, steps, by=1):
    add = tf.assign_add(counter, by)
    with tf.Session(client.target) as sess:
        for _ in range(steps):
            sess.run(add)


def with_own_threads(workers, steps):
    """In place of cluster.run."""

    def work(target):
        with tf.Graph().as_default(), tf.Session(target) as sess:
            add = tf.assign_add(make_counter(), 1).op
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter, sess = make_counter(), tf.Session(cluster.target_of("ps"))
        sess.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=work, args=(cluster.target_of("worker", i),)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return int(sess.run(counter))


def in_virtual_time(workers, steps):
    with tf.Cluster(ps=1, worker=workers, clock="virtual") as cluster:

        def work(client):
            counter = make_counter()
            with tf.Session(client.target) as sess:
                for _ in range(steps):
                    sess.run(tf.assign_add(counter, 1))

        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            counter = make_counter()
            sess.run(counter.initializer)
            cluster.run(work)
            return sess.run(counter)


def by_subtracting(workers, steps):
    def work(client, counter, steps):
        step = tf.assign_sub(counter, -1, use_locking=True)
        with tf.Session(client.target) as sess:
            list(map(sess.run, [step] * steps))

    return counting(work)(workers, steps)


def adds_two_and_multiplies(workers, steps):
    counting(lambda client, counter, steps: adding(client, counter, steps, by=2))(workers, steps)
    return workers * steps


def counts_in_python(workers, steps):
    """The workers run steps that do nothing; Python counts, and the variable gets the sum at the end."""
    counted, lock = [0], threading.Lock()

    def work(client):
        nothing = tf.no_op()
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(nothing)
                with lock:
                    counted[0] += 1

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counter = make_counter()
        sess.run(counter.initializer)
        cluster.run(work)
        sess.run(tf.assign(counter, counted[0]))
        return sess.run(counter)


def one_step_too_few(workers, steps):
    return counting(lambda client, counter, steps: adding(client, counter, steps - 1))(workers, steps)


def begins_with_one(workers, steps):
    return counting(adding, lambda: make_counter(begin=1))(workers, steps)


def a_name_for_each(workers, steps):
    def work(client):
        adding(client, make_counter(f"counter{client.index}"), steps)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counters = [make_counter(f"counter{i}") for i in range(workers)]
        sess.run(tf.global_variables_initializer())
        cluster.run(work)
        return sum(sess.run(counters))


def counter_on_worker_0(workers, steps):
    def build():
        with tf.device("/job:worker/task:0"):
            return tf.Variable(0, name="counter")

    return counting(adding, build)(workers, steps)


def forgets_the_pin(workers, steps):
    return counting(adding, lambda: tf.Variable(0, name="counter"))(workers, steps)


def list_of_values(workers, steps):
    def work(client):
        adding(client, make_counter(), steps)
        return steps

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        sess.run(make_counter().initializer)
        return cluster.run(work)


def lost_updates_and_the_product(workers, steps):
    """Assigning is not adding, whatever is returned."""

    def work(client, counter, steps):
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                counter.load(sess.run(counter) + 1, sess)

    counting(work)(workers, steps)
    return workers * steps


def on_the_second_ps(workers, steps):
    """One counter, on the last of two ps tasks."""

    def build():
        with tf.device("/job:ps/task:1"):
            return tf.Variable(0, name="counter")

    return counting(adding, build, ps=2)(workers, steps)


def a_counter_on_each_ps(workers, steps):
    """Each worker adds on one of two ps tasks, and both counters are added up."""

    def build(index):
        with tf.device(f"/job:ps/task:{index}"):
            return tf.Variable(0, name=f"counter{index}")

    with tf.Cluster(ps=2, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counters = [build(i) for i in range(2)]
        sess.run(tf.global_variables_initializer())
        cluster.run(lambda client: adding(client, build(client.index % 2), steps))
        return sum(sess.run(counters))


def sleeps_until_it_should_be_there(workers, steps):
    """Worker 0 gives the counter its first value; the others sleep, and hope."""

    def work(client):
        counter = make_counter()
        add = tf.assign_add(counter, 1)
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
            else:
                time.sleep(0.6)
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        counter = make_counter()
        cluster.run(work)
        return sess.run(counter)


def worker_0_reads_after_a_while(workers, steps):
    """The value that worker 0 sees, when it has added and slept."""

    def work(client):
        counter = make_counter()
        adding(client, counter, steps)
        time.sleep(0.6)
        with tf.Session(client.target) as sess:
            return sess.run(counter)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        sess.run(make_counter().initializer)
        return cluster.run(work)[0]


RIGHT = [with_own_threads, in_virtual_time, by_subtracting]
WRONG = {
    adds_two_and_multiplies: "adds_another_number",
    counts_in_python: "counts_outside_the_workers",
    one_step_too_few: "adds_once_too_few",
    begins_with_one: "begins_with_another_number",
    a_name_for_each: "has_several_counters",
    counter_on_worker_0: "puts_it_on_a_worker",
    forgets_the_pin: "each_counts_alone",
    list_of_values: "returns_a_list",
    on_the_second_ps: "starts_several_ps",
    a_counter_on_each_ps: "starts_several_ps",
    sleeps_until_it_should_be_there: "forgets_the_initializer",
    worker_0_reads_after_a_while: "reads_too_early",
    lost_updates_and_the_product: "adds_in_several_ops",
}

"""Partial runs where TensorFlow does not help: over tasks, in seeded orders, and when they are given up."""

from __future__ import annotations

import threading

import pytest

import dtflab as tf

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def spread():
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [])
        doubled = x * 2.0
    with tf.device(WORKER):
        y = tf.placeholder(tf.float32, [])
        product = doubled * y
    return x, y, doubled, product


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_over_two_tasks(engine):
    x, y, doubled, product = spread()
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster, tf.Session(cluster.target) as sess:
        for start in (1.0, 2.0):
            handle = sess.partial_run_setup([doubled, product], [x, y])
            between = sess.partial_run(handle, doubled, {x: start})
            assert sess.partial_run(handle, product, {y: between + 1}) == 2 * start * (2 * start + 1)


def test_nothing_is_left_of_it():
    x, y, doubled, product = spread()
    with tf.Cluster(ps=1, worker=1) as cluster, tf.Session(cluster.target) as sess:
        handle = sess.partial_run_setup([doubled, product], [x, y])
        sess.partial_run(handle, doubled, {x: 1})
        assert len(cluster.waits()) == 1, "the worker's half waits for y, its other input has come"
        sess.partial_run(handle, product, {y: 1})
        assert cluster.waits() == []
        sess.partial_run_setup([doubled, product], [x, y])
        sess.close()
        assert cluster.waits() == []


def test_a_value_that_never_comes_takes_no_longer_than_the_session_allows():
    with tf.Cluster(ps=1, worker=1) as cluster:
        q = tf.FIFOQueue(1, tf.float32, shapes=[[]])
        x = tf.placeholder(tf.float32, [])
        total = q.dequeue() + x
        with tf.Session(cluster.target, config=tf.ConfigProto(operation_timeout_in_ms=50)) as sess:
            handle = sess.partial_run_setup([total], [x])
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.partial_run(handle, total, {x: 1})
            with pytest.raises(tf.errors.InvalidArgumentError, match="before performing partial runs"):
                sess.partial_run(handle, total)


def test_closing_the_session_ends_a_call_that_waits():
    q = tf.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="q")
    x = tf.placeholder(tf.float32, [])
    total = q.dequeue() + x
    seen = []

    def wait():
        with pytest.raises(tf.errors.CancelledError) as caught:
            sess.partial_run(handle, total, {x: 1})
        seen.append(caught.value)

    with tf.Cluster(worker=1) as cluster:
        sess = tf.Session(cluster.target)
        handle = sess.partial_run_setup([total], [x])
        thread = threading.Thread(target=wait)
        thread.start()
        while not any("q" in line for line in cluster.waits()):
            assert thread.is_alive()
        sess.close()
        thread.join(60)
        assert len(seen) == 1


def test_many_threads_share_a_session():
    """Ordinary runs, callables and partial runs side by side."""
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    total, product = x + y, x * y
    wrong: list[object] = []
    with tf.Session() as sess:
        add = sess.make_callable(total, [x, y])

        def work(n: float) -> None:
            for i in range(20):
                handle = sess.partial_run_setup([total, product], [x, y])
                found = [
                    sess.run(product, {x: n, y: i}), add(n, i),
                    sess.partial_run(handle, total, {x: n, y: i}), sess.partial_run(handle, product),
                ]  # fmt: skip
                if found != [n * i, n + i, n + i, n * i]:
                    wrong.append((n, i, found))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert wrong == []

"""A step of several tasks leaves nothing that only the garbage collector would find: it comes to running threads."""

from __future__ import annotations

import gc
import threading

import pytest

import dtflab as tf
from tests.cluster.two_tasks import cluster_over, open_links, using

PS, FIRST, SECOND = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture(params=["in process", "link", "socket"])
def cluster(request):
    if request.param == "in process":
        with tf.Cluster(ps=1, worker=2) as cluster:
            yield cluster
        return
    with cluster_over(request.param, ps=1, worker=2) as cluster, using(request.param):
        open_links(cluster)
        yield cluster


@pytest.fixture
def found():
    """A function that collects and lists what was found; nobody else collects meanwhile."""
    gc.collect()
    gc.disable()

    def collected():
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        garbage = [type(thing).__name__ for thing in gc.garbage]
        gc.garbage.clear()
        return garbage

    yield collected
    gc.set_debug(0)
    gc.enable()


def training_in_step():
    """One training step of two workers that wait for each other, and the token that ends it."""
    with tf.device(PS):
        w = tf.get_variable("w", [40, 40], initializer=tf.ones_initializer())
        sums = tf.ConditionalAccumulator(tf.float32, [40, 40])
        tokens = tf.FIFOQueue(10, tf.int32, [[]])
    steps = []
    for worker in (FIRST, SECOND):
        with tf.device(worker):
            gradient = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ w * 0.01), [0, w])[1]
        with tf.device(PS), tf.control_dependencies([sums.apply_grad(gradient, local_step=1000)]):
            steps.append(tokens.dequeue())
    with tf.device(PS), tf.control_dependencies([w.assign_sub(sums.take_grad(2))]):
        update = tokens.enqueue_many([[1, 2]])
    return [update, *steps]


def test_a_step_leaves_nothing_to_the_collector(cluster, found):
    with tf.Graph().as_default():
        steps = training_in_step()
        with tf.Session(cluster.target) as session:
            session.run(tf.global_variables_initializer())

            def all_at_once():
                threads = [threading.Thread(target=session.run, args=(step,)) for step in steps]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

            for _ in range(3):
                all_at_once()
            found()
            for _ in range(3):
                all_at_once()
            assert found() == []

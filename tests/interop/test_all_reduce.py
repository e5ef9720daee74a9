"""Workers that reduce between their graphs, dtflab's clients on real TensorFlow servers: each message is plain ops."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.train.collectives.schedule import ALGORITHMS
from tests.interop.peer import addresses

WORKERS, STEPS = 3, 3
SECONDS = 120.0


@pytest.fixture(scope="module")
def cluster(tensorflow):
    spec = addresses(worker=WORKERS)
    return spec, ["grpc://" + tensorflow.serve(spec, "worker", index) for index in range(WORKERS)]


def trained(spec, target, index, algorithm):
    """A worker's state in the end: a dense variable, rows, the step."""
    with tf.Graph().as_default(), tf.device(f"/job:worker/task:{index}"):
        step = tf.train.get_or_create_global_step()
        w = tf.Variable(np.full((3, 2), float(index)), name="w")
        rows = tf.Variable(np.zeros((4, 2)), name="rows")
        loss = tf.reduce_sum(tf.square(w - index)) + tf.reduce_sum(tf.gather(rows, [index]))
        optimizer = tf.train.AllReduceOptimizer(
            tf.train.GradientDescentOptimizer(0.1), spec, index, algorithm=algorithm, timeout=SECONDS
        )
        train = optimizer.minimize(loss, global_step=step)
        hooks = [optimizer.make_session_run_hook()]
        with tf.train.MonitoredTrainingSession(target, hooks=hooks, log_step_count_steps=None) as session:
            for _ in range(STEPS):
                session.run(train)
            return session.run([w, rows, step])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training(algorithm, cluster):
    spec, targets = cluster
    found = {}
    work = lambda index: found.update({index: trained(spec, targets[index], index, algorithm)})  # noqa: E731
    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(found) == list(range(WORKERS))
    w = 0.0  # from the first worker's zeros towards the mean target, which is 1
    for _ in range(STEPS):
        w -= 0.1 * 2 * (w - 1.0)
    for weights, rows, steps in found.values():
        np.testing.assert_allclose(weights, w, rtol=1e-7)
        np.testing.assert_allclose(rows, [[-0.1, -0.1]] * 3 + [[0, 0]], rtol=1e-7)
        assert steps == STEPS

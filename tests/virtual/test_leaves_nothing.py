"""A step in virtual time leaves nothing behind, so the collector need not look for it."""

from __future__ import annotations

import gc

import dtflab as tf
from dtflab.base.garbage import RARE_COLLECTION


def test_a_step_over_three_devices_leaves_no_cycles():
    found = []

    def program(client):
        with tf.device("/job:ps/cpu:0"):
            weights = tf.get_variable("w", [4, 4])
        with tf.device(f"{client.device}/gpu:0"):
            train_op = weights.assign_sub(tf.matmul(weights, tf.ones([4, 4]))).op
        with tf.Session(client.target) as session:
            session.run(tf.global_variables_initializer())
            session.run(train_op)
            gc.disable()
            try:
                for _ in range(5):  # what threads of earlier tests leave as they end is not there each time
                    gc.collect()
                    for _ in range(5):
                        session.run(train_op)
                    found.append(gc.collect())
            finally:
                gc.enable()

    with tf.Cluster(ps=1, worker=1, gpu="K40", network="10Gb/s", clock="virtual") as cluster:
        cluster.run(program)
    assert min(found) == 0


def test_the_collector_comes_as_often_as_before_when_the_last_step_is_over():
    before = gc.get_threshold()
    with RARE_COLLECTION:
        rarely = gc.get_threshold()
        with RARE_COLLECTION:
            assert gc.get_threshold() == rarely
        assert gc.get_threshold() == rarely
    assert gc.get_threshold() == before
    assert rarely[0] == 100 * before[0] and rarely[1:] == before[1:]

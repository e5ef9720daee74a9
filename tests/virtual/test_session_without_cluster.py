"""A session without a cluster, in a program that has a virtual one."""

from __future__ import annotations

import time

import pytest

import dtflab as tf


@pytest.fixture
def cluster():
    with tf.Cluster(worker=1, clock="virtual") as cluster:
        yield cluster


def test_it_waits_for_threads_that_go_by_virtual_time(cluster, tmp_path):
    """Queue runners are the program's threads, so theirs is the cluster's clock."""
    (tmp_path / "lines.txt").write_text("a\nb\n")
    with tf.Session() as sess:
        names = tf.train.string_input_producer([str(tmp_path / "lines.txt")], num_epochs=1)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 3))
        take = queue.dequeue()
        sess.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        taken = [sess.run(take), sess.run(take)]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(take)
        coord.request_stop()
        coord.join(threads)
    assert sorted(taken) == [b"a", b"b"]


def test_what_it_computes_takes_real_time_only(cluster):
    with tf.Session() as sess:
        began = time.perf_counter()
        steps = sess.trace(tf.matmul(tf.ones([300, 300]), tf.ones([300, 300]))).step_stats
        most = time.perf_counter() - began
        assert cluster.now() == 0
    took = [node.all_end_rel_micros for device in steps.dev_stats for node in device.node_stats]
    assert 0 < max(took) <= 1e6 * most


def test_a_step_that_nobody_ends_is_a_time_out(cluster):
    with tf.Session() as sess, pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(tf.FIFOQueue(1, tf.float32).dequeue(), options=tf.RunOptions(timeout_in_ms=50))

"""A cluster attached to TensorFlow servers that run already, and to a cluster of both kinds of tasks."""

from __future__ import annotations

import contextlib

import pytest

import dtflab as tf
from tests.interop.peer import addresses


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@contextlib.contextmanager
def served(peers, *kinds):
    """The workers of a cluster, each in a process of its kind; their addresses."""
    spec = addresses(worker=len(kinds))
    with contextlib.ExitStack() as each:
        for index, kind in enumerate(kinds):
            peer = peers.another(kind)
            each.callback(peer.kill)
            peer.serve(spec, "worker", index)
        yield spec["worker"]


def counts(client):
    with tf.device("/job:worker/task:0"):
        v = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
    with tf.device(client.device):
        one = tf.identity(tf.constant(1.0))
    more = v.assign_add(one, use_locking=True)
    with tf.train.MonitoredTrainingSession(client.target, is_chief=client.is_chief) as session:
        for _ in range(5):
            session.run(more)
    return client.index


def test_tensorflow_servers(peers):
    with served(peers, "TensorFlow", "TensorFlow") as workers:
        with tf.Cluster(workers, engine="attached") as cluster:
            assert cluster.spec.as_dict() == {"worker": workers} and {row[2] for row in cluster.rows()} == {"running"}
            assert cluster.status().count("CPU:0") == 2
            assert cluster.run(counts) == [0, 1]
            assert "do not report what they wait for" in cluster.waits()[-1]
            with pytest.raises(NotImplementedError, match="do not report their variables"):
                cluster.variables()
        with pytest.raises(ValueError, match="lead to one task, /job:worker/task:0"):
            tf.Cluster([workers[0], workers[0].replace("localhost", "127.0.0.1")], engine="attached")


def test_one_dtflab_task_knows_the_tensorflow_ones(peers):
    with served(peers, "TensorFlow", "dtflab") as workers, tf.Cluster(workers[1:], engine="attached") as cluster:
        assert cluster.spec.as_dict() == {"worker": workers}
        assert cluster.run(counts) == [0, 1]

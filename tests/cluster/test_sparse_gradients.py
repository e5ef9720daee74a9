"""Rows of a large matrix on parameter servers: only rows travel to the worker, and only their gradients back."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf

ROWS, WIDTH = 20_000, 8
IDS = [3, 19_999, 7, 3, 12_345]


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default() as graph:
        yield graph


def bytes_of(cluster, before):
    """The bytes of tensors that have crossed since `before` calls."""
    return sum(call.nbytes for call in cluster.calls()[before:] if call.method == "RecvTensor")


@pytest.mark.parametrize("optimizer", ["GradientDescent", "Adagrad"])
@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("num_shards", [1, 2, 3])
def test_only_rows_travel(num_shards, use_resource, optimizer):
    with tf.Cluster(ps=2, worker=1) as cluster:
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            partitioner = tf.fixed_size_partitioner(num_shards) if num_shards > 1 else None
            with tf.variable_scope("", use_resource=use_resource):
                matrix = tf.get_variable(
                    "matrix", [ROWS, WIDTH], initializer=tf.ones_initializer(), partitioner=partitioner
                )
            ids = tf.placeholder(tf.int64, [None])
            rows = tf.nn.embedding_lookup(matrix, ids, partition_strategy="div")
            loss = tf.reduce_sum(rows * rows)
            kind = getattr(tf.train, f"{optimizer}Optimizer")
            train = kind(0.25).minimize(loss)
        with tf.Session(cluster.target) as session:
            session.run(tf.global_variables_initializer())
            before = len(cluster.calls())
            session.run([loss, train], {ids: IDS})
            crossed = bytes_of(cluster, before)
            values = session.run(rows, {ids: IDS})
        assert rows.device == "/job:worker" if num_shards > 1 else True
    rows_of_one_step = len(IDS) * WIDTH * 4
    assert rows_of_one_step < crossed < 10 * rows_of_one_step < ROWS * WIDTH * 4 / 100
    if optimizer == "GradientDescent":  # row 3 twice: two gradients of 2
        expected = np.array([0.0, 0.5, 0.5, 0.0, 0.5], np.float32)
        np.testing.assert_allclose(values, np.repeat(expected[:, None], WIDTH, 1))


def test_bags_of_ids_travel_as_bags():
    with tf.Cluster(ps=2, worker=1) as cluster:
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            matrix = tf.get_variable("matrix", [ROWS, WIDTH], partitioner=tf.fixed_size_partitioner(2))
            bags = tf.sparse_placeholder(tf.int64)
            loss = tf.reduce_sum(tf.nn.safe_embedding_lookup_sparse(matrix, bags))
            train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        fed = tf.SparseTensorValue(np.array([[0, 0], [0, 1], [2, 0]]), np.array([5, 9, 15_000]), np.array([4, 2]))
        with tf.Session(cluster.target) as session:
            session.run(tf.global_variables_initializer())
            before = len(cluster.calls())
            session.run(train, {bags: fed})
            assert 0 < bytes_of(cluster, before) < 4_000

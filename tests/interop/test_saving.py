"""Checkpoints of mixed clusters: any library can read them, no matter which is the client and which holds the
variables.
"""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.interop.peer import addresses
from tests.interop.programs.calls import saved

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
VALUES = [[[1.5, 2.5]], ["text", ""]]


@pytest.fixture(scope="module")
def tensorflow_servers(tensorflow):
    cluster = addresses(ps=1, worker=1)
    tensorflow.serve(cluster, "ps", 0)
    return "grpc://" + tensorflow.serve(cluster, "worker", 0)


@pytest.fixture(scope="module")
def our_servers():
    with tf.Cluster(ps=1, worker=1, engine="process", token=None) as cluster:
        yield cluster.target


def by_dtflab(target, prefix, act):
    return saved(tf, target, PS, WORKER, prefix, act)


def test_shards_of_any_cluster_are_read_by_any_other(tensorflow, tensorflow_servers, our_servers, tmp_path):
    def by_tensorflow(target, prefix, act):
        return tensorflow.run("saved", target=target, here=PS, there=WORKER, prefix=prefix, act=act)

    ways = [(client, target) for client in (by_dtflab, by_tensorflow) for target in (our_servers, tensorflow_servers)]
    for i, (client, target) in enumerate(ways):
        assert client(target, str(tmp_path / f"m{i}"), "save") == VALUES
    for i in range(len(ways)):
        for client, target in ways:
            assert client(target, str(tmp_path / f"m{i}"), "restore") == VALUES

"""Data sets across the two libraries: a client of either kind, its pipeline on servers of the other."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.interop.peer import addresses
from tests.interop.programs import calls

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
each_kind_of_iterator = pytest.mark.parametrize("one_shot", [False, True])


def expected(one_shot: bool) -> list[object]:
    return calls.batches(tf, "", "", "", one_shot)


@each_kind_of_iterator
def test_a_tensorflow_client_on_dtflab_servers(tensorflow, one_shot):
    with tf.Cluster(ps=1, worker=1, engine="process", token=None) as cluster:
        assert tensorflow.run("batches", target=cluster.target, here=WORKER, there=PS, one_shot=one_shot) == expected(
            one_shot
        )


@pytest.fixture(scope="module")
def target(tensorflow):
    cluster = addresses(ps=1, worker=1)
    tensorflow.serve(cluster, "ps", 0)
    return "grpc://" + tensorflow.serve(cluster, "worker", 0)


@each_kind_of_iterator
def test_a_dtflab_client_on_tensorflow_servers(target, one_shot):
    found = calls.batches(tf, target, WORKER, PS, one_shot)
    assert found == expected(one_shot) and len(found) == 7


@each_kind_of_iterator
@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_a_dtflab_client_on_dtflab_servers(engine, one_shot):
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster:
        assert calls.batches(tf, cluster.target, WORKER, PS, one_shot) == expected(one_shot)

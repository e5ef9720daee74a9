"""What tf.watch sees of calls that go over gRPC: those that this process makes, and those that come to it."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.cluster import inprocess
from dtflab.cluster.grpc_transport import MasterStub, WorkerStub
from dtflab.cluster.stubs import ELSEWHERE


def test_a_client_of_another_process_sees_its_own_calls():
    with tf.Cluster(worker=1, engine="process") as cluster:
        x = tf.placeholder(tf.float32, [3])
        y = x + 1.0
        with tf.watch() as seen, tf.Session(cluster.target) as sess:
            sess.run(y, {x: [1.0, 2.0, 3.0]})
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(y)
        for held in (cluster.variables, cluster.queues, lambda: tf.variables_of(sess)):
            with pytest.raises(NotImplementedError):
                held()
    calls = [(call.method, call.source, call.target, call.sent, call.nbytes, call.error) for call in seen.calls]
    worker = "/job:worker/replica:0/task:0"
    assert calls == [
        ("CreateSession", "client", worker, 0, 0, ""),
        ("RunStep", "client", worker, 12, 24, ""),
        ("RunStep", "client", worker, 0, 0, "InvalidArgumentError"),
        ("CloseSession", "client", worker, 0, 0, ""),
    ]


@pytest.fixture
def over_the_wire(monkeypatch):
    """A cluster whose tasks are in this process and yet call each other over gRPC, as those of two processes do."""
    with tf.Cluster(ps=1, worker=1, listen=True) as cluster:
        for task in cluster.tasks:
            inprocess.withdraw(task.address, task.server.task)
        yield cluster
        for task in cluster.tasks:
            inprocess.publish(task.address, task.server.task)


def test_calls_that_come_over_the_wire_and_those_that_go_over_it(over_the_wire):
    worker, ps = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
    with tf.device("/job:ps"):
        v = tf.constant([1.0] * 100)
        w = tf.Variable(v)
    with tf.device("/job:worker"):
        y = w + 1.0
    with tf.Session(over_the_wire.target) as sess:
        assert isinstance(over_the_wire.tasks[0].server.task._way_to(worker), WorkerStub)
        with tf.watch() as seen:
            sess.run(w.initializer)
            sess.run(y)
        assert isinstance(sess._master, MasterStub)
    ends = {(call.method, call.source, call.target) for call in seen.calls}
    assert {("RunStep", "client", worker), ("RunStep", ELSEWHERE, worker)} <= ends  # as sent, and as received
    assert {("RunGraph", worker, ps), ("RunGraph", ELSEWHERE, ps)} <= ends
    (pulled, answered) = sorted((c for c in seen.calls if c.method == "RecvTensor"), key=lambda call: call.turn)
    assert pulled[2:4] == answered[2:4] == (worker, ps)  # the key tells who receives
    assert pulled.nbytes > 400 and pulled.step == answered.step != 0
    assert pulled.turn < answered.turn < answered.answered < pulled.answered
    assert "RecvTensor" in str(tf.viz.wire(seen))

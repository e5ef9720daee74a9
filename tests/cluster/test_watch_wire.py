"""Calls over a wire as tf.watch sees them: those that this process makes, and those that come to it."""

from __future__ import annotations

import os
import queue
import signal
from functools import partial
from unittest import mock

import numpy as np
import pytest

import dtflab as tf
from dtflab.cluster.call_events import ELSEWHERE
from dtflab.cluster.master_stub import MasterStub
from dtflab.cluster.worker_stub import WorkerStub
from tests.cluster.two_tasks import cluster_over, lab_over


def test_a_client_of_another_process_sees_its_own_calls():
    with tf.Cluster(worker=1, engine="process") as cluster:
        x = tf.placeholder(tf.float32, [3])
        y = x + 1.0
        with tf.watch() as seen, tf.Session(cluster.target) as sess:
            sess.run(y, {x: [1.0, 2.0, 3.0]})
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(y)
        with pytest.raises(NotImplementedError):
            tf.variables_of(sess)
    calls = [(call.method, call.source, call.target, call.sent, call.nbytes, call.error) for call in seen.calls]
    worker = "/job:worker/replica:0/task:0"
    assert calls == [
        ("CreateSession", "client", worker, 0, 0, ""),
        ("RunStep", "client", worker, 12, 24, ""),
        ("RunStep", "client", worker, 0, 0, "InvalidArgumentError"),
        ("CloseSession", "client", worker, 0, 0, ""),
    ]


def of_kind(picture, method):
    """The rows of the table of calls and bytes: from, to, times, bytes."""
    return sorted(row[1:] for row in picture.tables[0][2] if row[0] == method)


def matrix_to(*workers):
    """A 4×4 matrix of float32 on ps, 64 bytes, and what each worker makes of it."""
    with tf.device("/job:ps"):
        matrix = tf.Variable(tf.ones([4, 4]), name="matrix")
    made = []
    for worker in workers:
        with tf.device(worker):
            made.append(matrix + 1.0)
    return matrix, made


def test_the_bytes_of_a_matrix_are_counted_once_for_each_worker_and_step():
    matrix, made = matrix_to(*(f"/job:worker/task:{n}" for n in range(3)))
    with tf.Cluster(ps=1, worker=3) as cluster, tf.Session(cluster.target) as sess:
        sess.run(matrix.initializer)
        before = len(cluster.calls())
        with tf.watch() as seen:
            sess.run(made)
            sess.run(made)
        picture = tf.viz.wire(seen)
        pulled = [call.nbytes for call in cluster.calls()[before:] if call.method == "RecvTensor"]
    assert of_kind(picture, "RecvTensor") == [
        ["worker:0", "ps:0", 2, "128"],
        ["worker:0", "worker:1", 2, "128"],
        ["worker:0", "worker:2", 2, "128"],
        ["worker:1", "ps:0", 2, "128"],
        ["worker:2", "ps:0", 2, "128"],
    ]
    assert of_kind(picture, "RunStep") == [["client", "worker:0", 2, "384"]]
    assert pulled == [64] * 10
    assert "1.0 kB of tensors" in picture.sentence  # 2 × 8 × 64


@pytest.fixture(params=["link", "socket", "tcp", "grpc"])
def over_the_wire(request):
    """A cluster whose tasks are in this process and yet call each other over a wire."""
    with cluster_over(request.param, ps=1, worker=1) as cluster:
        yield cluster


def test_calls_that_come_over_the_wire_and_those_that_go_over_it(over_the_wire):
    worker, ps = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
    with tf.device("/job:ps"):
        v = tf.constant([1.0] * 100)
        w = tf.Variable(v)
    with tf.device("/job:worker"):
        y = w + 1.0
    with tf.Session(over_the_wire.target) as sess:
        assert isinstance(over_the_wire.tasks[0].server.task.members.way_to(worker), WorkerStub)
        with tf.watch() as seen:
            sess.run(w.initializer)
            sess.run(y)
        assert isinstance(sess._master, MasterStub)
    ends = {(call.method, call.source, call.target) for call in seen.calls}
    assert {("RunStep", "client", worker), ("RunStep", ELSEWHERE, worker)} <= ends  # as sent, and as received
    assert {("RunGraph", worker, ps), ("RunGraph", ELSEWHERE, ps)} <= ends
    first, second = sorted((c for c in seen.calls if c.method == "RecvTensor"), key=lambda call: call.turn)
    assert first[2:4] == second[2:4] == (worker, ps)  # the key tells who receives
    assert first.nbytes > 400 and first.step == second.step != 0
    assert first.pushed is second.pushed
    if first.pushed:  # noted by its sender, then by its receiver
        assert first.answered < second.turn
    else:  # asked, answered, come
        assert first.turn < second.turn < second.answered < first.answered
    assert "RecvTensor" in str(tf.viz.wire(seen))


@pytest.mark.parametrize("key", ["no key", "/job:ps;x;:;b;0:0"])
def test_a_call_that_failed_says_so_at_both_ends(over_the_wire, key):
    ps, worker = (task.server.task for task in over_the_wire.tasks)
    answers = queue.SimpleQueue()
    with tf.watch() as seen:
        worker.members.way_to(ps.name).recv_tensor(1, key, lambda *answer: answers.put(answer))
        value, error = answers.get(timeout=60)
    assert value is None and isinstance(error, tf.errors.InvalidArgumentError)
    assert [(call.method, call.error) for call in seen.calls] == [("RecvTensor", "InvalidArgumentError")] * 2


def test_a_pull_from_a_task_that_has_stopped_is_a_call_that_failed():
    with tf.Cluster(ps=1, worker=1) as cluster:
        ps, worker = (task.server.task for task in cluster.tasks)
        peer = worker.members.peer(ps.name)
        cluster.kill("ps", 0)
        with tf.watch() as seen, pytest.raises(tf.errors.UnavailableError):
            peer.recv_tensor(1, f"{ps.name}/device:CPU:0;1;{worker.name}/device:CPU:0;x;0:0", lambda *_: None)
    assert [(call.method, call.error) for call in seen.calls] == [("RecvTensor", "UnavailableError")]


def test_the_bytes_of_a_matrix_over_the_wire_are_those_of_its_message(over_the_wire):
    matrix, made = matrix_to("/job:worker")
    with tf.Session(over_the_wire.target) as sess:
        sess.run(matrix.initializer)
        with tf.watch() as seen:
            sess.run(made)
    ends = [call for call in seen.calls if call.method == "RecvTensor"]
    assert [call.nbytes - call.sent for call in ends] == [64 + 16] * 2  # dtype and shape besides; seen at both ends
    assert of_kind(tf.viz.wire(seen), "RecvTensor") == [["worker:0", "ps:0", 2, f"{sum(c.nbytes for c in ends):,}"]]
    assert ["client", "worker:0", 1, "64"] in of_kind(tf.viz.wire(seen), "RunStep")


SHORT = tf.ConfigProto(graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_the_bytes_of_a_matrix_in_bfloat16_are_half(clock):
    matrix, made = matrix_to("/job:worker/task:0", "/job:worker/task:1")
    with tf.Cluster(ps=1, worker=2, clock=clock) as cluster, tf.Session(cluster.target, config=SHORT) as sess:
        sess.run(matrix.initializer)
        before = len(cluster.calls())
        with tf.watch() as seen:
            sess.run(made)
        pulled = [call.nbytes for call in cluster.calls()[before:] if call.method == "RecvTensor"]
    pairs = [["worker:0", "ps:0"], ["worker:0", "worker:1"], ["worker:1", "ps:0"]]
    assert of_kind(tf.viz.wire(seen), "RecvTensor") == [[*pair, 1, "32"] for pair in pairs]
    assert pulled == [32] * 3


def test_the_bytes_of_a_matrix_in_bfloat16_over_the_wire_are_half(over_the_wire):
    matrix, made = matrix_to("/job:worker")
    with tf.Session(over_the_wire.target, config=SHORT) as sess:
        sess.run(matrix.initializer)
        with tf.watch() as seen:
            sess.run(made)
    ends = [call for call in seen.calls if call.method == "RecvTensor"]
    assert [call.nbytes - call.sent for call in ends] == [32 + 16] * 2
    assert of_kind(tf.viz.wire(seen), "RecvTensor") == [["worker:0", "ps:0", 2, f"{sum(c.nbytes for c in ends):,}"]]


def test_half_the_bytes_take_half_the_time():
    def seconds(config):
        """From handing over a matrix of 4 MB until it is there."""
        with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, clock="virtual") as cluster:
            with tf.device("/job:ps"):
                matrix = tf.ones([1000, 1000])
            with tf.device("/job:worker"):
                made = tf.identity(matrix).op
            with tf.Session(cluster.target, config=config) as sess, tf.watch() as seen:
                sess.run(made)
            (there,) = (call.ended for call in seen.calls if call.method == "RecvTensor")
            (sent,) = (call.at for call in cluster.calls() if call.method == "RecvTensor")
        return there - sent

    assert 1.9 < seconds(None) / seconds(SHORT) < 2.0  # the rest is latency


def kept_in(cluster, steps):
    """The calls that a cluster keeps of some steps with one tensor: their methods, ends, bytes, and who pushed."""
    worker, ps = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
    matrix, made = matrix_to("/job:worker")
    with tf.Session(cluster.target) as sess:
        sess.run(matrix.initializer)  # and the tasks know each other
        before = len(cluster.calls())
        for _ in range(steps):
            sess.run(made)
    calls = cluster.calls()[before:]
    assert [call.ended for call in calls] == [call.at for call in calls] == sorted(call.at for call in calls)
    assert {(call.source, call.target) for call in calls} == {(worker, ps)}
    return [(call.method, call.nbytes, call.pushed) for call in calls], tf.viz.wire(calls)


@pytest.mark.parametrize("wire, pushed", [("", True), ("grpc", False)])
def test_the_processes_of_a_cluster_keep_their_calls(wire, pushed, monkeypatch):
    monkeypatch.setenv("DTFLAB_WIRE", wire)
    with tf.Cluster(ps=1, worker=1, engine="process") as cluster:
        calls, picture = kept_in(cluster, 3)
        cluster.kill("ps")
        assert cluster.calls() == []  # the worker was not called
    assert calls == [("RunGraph", 0, False), ("RecvTensor", 64, pushed)] * 3
    assert ("pushed" in str(picture)) is ("pushed" in picture.svg) is pushed


def test_calls_over_the_wire_are_kept_as_those_that_are_direct(over_the_wire):
    calls, _ = kept_in(over_the_wire, 2)
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1) as cluster:
        direct, _ = kept_in(cluster, 2)
    assert [call[:2] for call in calls] == [call[:2] for call in direct] == [("RunGraph", 0), ("RecvTensor", 64)] * 2


def test_a_pushed_tensor_is_kept_once_though_its_link_is_lost():
    key, kept = "/a/device:CPU:0;1;/b/device:CPU:0;edge_0_x;0:0", []
    with lab_over("link") as lab:
        table = lab.tasks[0].worker.rendezvous
        lab.tasks[0].note = lambda *what, pushed: kept.append((*what, pushed))
        table.find(1).send(key, np.float32(5))
        for _ in range(2):  # links
            table.push_to("/b", partial(lab.serving[0]._push, "/b", mock.Mock()))
    assert kept == [("RecvTensor", "/b", key, 5, True)]


def test_a_process_that_does_not_say_what_it_kept_is_named(monkeypatch):
    monkeypatch.setattr(WorkerStub.view, "__defaults__", (0.1,))
    with tf.Cluster(worker=1, engine="process") as cluster:
        (task,) = cluster.tasks
        os.kill(task.pid, signal.SIGSTOP)
        try:
            with pytest.raises(tf.errors.UnavailableError, match=f"Task {task.name} at .* (did|does) not answer"):
                cluster.calls()
        finally:
            os.kill(task.pid, signal.SIGCONT)

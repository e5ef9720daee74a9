"""`Cluster(engine="tensorflow")`: real TensorFlow servers, as a Cluster. What it shares with engine="process" is tested
there (tests/cluster/test_process_ends.py); TensorFlow takes seconds to start, so these share one cluster.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.engines import Processes
from dtflab.notebook import cluster_view
from tests.cluster.test_cluster import ended
from tests.cluster.two_tasks import interrupt_main

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install dtflab[tensorflow]")
PS, WORKER = "/job:ps/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(ps=1, worker=2, engine="tensorflow", name="theirs") as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def test_its_tasks_are_tensorflow(cluster):
    for task in cluster.tasks:
        assert "tensorflow" in Path(f"/proc/{task.pid}/maps").read_text()
        with task._asked() as stub, pytest.raises(errors.UnimplementedError):  # a method of dtflab's own
            stub.view("Calls")


def test_clients_train_one_variable_together(cluster):
    def work(client):
        with tf.device(PS):
            v = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
        with tf.device(client.device):
            one = tf.identity(tf.constant(1.0))
        more = v.assign_add(one, use_locking=True)
        with tf.train.MonitoredTrainingSession(client.target, is_chief=client.is_chief) as session:
            for _ in range(20):
                session.run(more)
        return client.job, client.index

    assert cluster.run(work) == [("worker", 0), ("worker", 1)]
    with tf.device(PS):
        v = tf.get_variable("counter", [])
    with tf.Session(cluster.target) as session:
        assert session.run(v) == 40


def test_a_timeline_of_its_steps(cluster):
    x = tf.placeholder(tf.float32, [50, 50])
    with tf.device(PS):
        a = tf.matmul(x, x, name="made_on_ps")
    with tf.device(WORKER):
        b = tf.reduce_sum(tf.nn.softmax(a), name="made_on_worker")
    with tf.Session(cluster.target) as session:
        svg = tf.viz.timeline(session.trace(b, {x: np.ones((50, 50))})).svg
    assert "made_on_ps" in svg and "made_on_worker" in svg


def test_what_it_does_not_report_is_one_sentence(cluster):
    for ask, what in ((cluster.calls, "calls"), (cluster.variables, "variables"), (cluster.queues, "queues")):
        with pytest.raises(NotImplementedError) as caught:
            ask()
        assert str(caught.value) == (
            f"The tasks of theirs are TensorFlow servers, which do not report their {what}. "
            "Look at them in a cluster with engine='inprocess'."
        )
    (line,) = cluster.waits()
    assert line.startswith("In TensorFlow servers, which do not report what they wait for: /job:ps/replica:0/task:0, ")


def test_how_it_is_shown(cluster):
    assert repr(cluster) == "<Cluster theirs: 1 ps, 2 worker; tensorflow; running>"
    assert cluster.status().count("running  CPU:0") == 3
    assert "theirs: 3 tasks, each a TensorFlow server in a process of its own, " in cluster_view.text(cluster)


def test_a_lost_task_and_its_restart():
    v = tf.Variable(1.0)
    with tf.Cluster(worker=1, engine="tensorflow") as cluster:
        with tf.Session(cluster.target) as session:
            session.run(v.initializer)
            cluster.kill("worker")
            assert [state for _, _, state in cluster.rows()] == ["killed"]
            with pytest.raises(errors.UnavailableError):
                session.run(v)
            address = cluster.task("worker").address
            cluster.restart("worker")
            assert cluster.task("worker").address == address
        with tf.Session(cluster.target) as session:
            with pytest.raises(errors.FailedPreconditionError):
                session.run(v)
            session.run(v.initializer)
            assert session.run(v) == 1


def test_chaos_kills_and_stops_them():
    with tf.Cluster(worker=1, ps=1, engine="tensorflow") as cluster:
        with tf.device(PS):
            v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        with pytest.raises(
            ValueError, match=r"slow='ps=4x': the tasks of .* are TensorFlow servers, which can be killed"
        ):
            tf.chaos(cluster, slow="ps=4x")
        session = tf.Session(cluster.target)
        session.run(v.initializer)
        with tf.chaos(cluster, stop="ps=0.3s", kill="ps@step3") as chaos:
            began = cluster.now()
            assert session.run(v.assign_add(1.0)) == 1.0
            assert cluster.now() - began > 0.2
            assert session.run(v) == 1.0
            with pytest.raises(errors.UnavailableError):
                session.run(v)
        assert [event.what for event in chaos.events] == ["stopped", "goes on", "killed"]
        cluster.restart("ps")  # closing a session with a lost task would wait for it
        session.close()


def test_its_tasks_end_with_their_parent_whatever_happens():
    program = """
import dtflab as tf, sys
cluster = tf.Cluster(ps=1, worker=1, engine="tensorflow")
print(*[task.pid for task in cluster.tasks], flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate(timeout=300)
    assert len(pids) == 2
    ended(pids)


def test_ctrl_c_while_it_starts(monkeypatch):
    started, start = [], Processes.start

    def noted(*arguments):
        started.append(start(*arguments))
        return started[-1]

    monkeypatch.setattr(Processes, "start", noted)
    thread = threading.Thread(target=interrupt_main, args=("wait_ready",))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tf.Cluster(worker=2, engine="tensorflow")
    thread.join()
    assert [task.state for task in started] == ["killed"] * 2

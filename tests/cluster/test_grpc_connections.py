"""Ports, connections and processes that come, stop, die and come back."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.cluster import connection, grpc_transport, wire
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.endpoint import Endpoint
from dtflab.cluster.master_stub import MasterStub
from dtflab.cluster.worker_stub import WorkerStub
from tests.cluster.two_tasks import THERE, Task, edge_key, never, until


def port_of(address):
    return int(address.rpartition(":")[2])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is kept by listening only")
def test_a_free_address_is_nobody_else_s_until_it_is_used():
    """A request for any port meanwhile gets another one; a request for this one gets it, and again after its end."""
    (address,) = free_addresses(1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port_of(address)))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("localhost", port_of(address)))
    for _ in range(2):
        server = tf.train.Server({"worker": [address]}, "worker", 0)
        assert WorkerStub.at("t", address).get_status()
        server.stop()


def test_a_call_over_a_channel_that_was_closed_meanwhile_ends_like_one_under_way():
    channel, ended = grpc_transport.Channel("localhost:1", Credentials()), []
    channel.close()
    channel.request("/a/b", b"", lambda *end: ended.append(end))()
    assert ended == [channel.ask("/a/b", b"")] == [(errors.CANCELLED, grpc_transport.CLOSED, b"")]


def test_a_port_in_use(lab):
    (address,) = free_addresses(1)
    refused = pytest.raises(errors.UnknownError, match=f"Could not start gRPC server.*{address}")
    with socket.create_server(("127.0.0.1", port_of(address))), refused:
        Endpoint(lab.tasks[0], address)
    with pytest.raises(errors.UnknownError, match="Could not start gRPC server"):
        Endpoint(lab.tasks[0], lab.addresses[1])
    Endpoint(lab.tasks[0], address).stop()  # free again


def test_a_stopped_server_s_port_is_free(lab):
    lab.serving[0].stop()
    again = Endpoint(lab.tasks[0], lab.addresses[0])
    try:
        assert WorkerStub.at("t", lab.addresses[0]).get_status()
    finally:
        again.stop()


def test_nobody_there():
    (address,) = free_addresses(1)
    with pytest.raises(errors.UnavailableError, match=f"Task /job:x/replica:0/task:3 at {address}"):
        WorkerStub.at("/job:x/replica:0/task:3", address).get_status()
    with pytest.raises(
        errors.UnavailableError, match=rf"The server at {address} does not answer \(connection refused\)"
    ):
        MasterStub.at(address).reset([])


def test_a_target_where_nobody_listens_is_told_once(monkeypatch):
    (address,) = free_addresses(1)
    monkeypatch.setattr(tf.timeouts, "connect", 0.05)
    with tf.Session(f"grpc://{address}") as session, pytest.raises(errors.UnavailableError) as it:
        session.run(tf.constant(1.0))
    first, _, advice = it.value.message.partition("). ")
    assert first == f"The session's target {address} did not answer within 0.05 s (connection refused"
    assert advice.startswith("Is that its address") and advice.endswith("task_index=…).")


def test_the_reason_is_the_end_of_grpcs_chain_of_causes():
    resolving = (
        "errors resolving x:1: [field:hostname lookup error:address lookup failed for x:1: Domain name not found]"
    )
    assert wire._reason(resolving) == "domain name not found"
    assert wire._reason("Received http2 header with status: 404") == "Received http2 header with status: 404"


def test_who_has_just_come_up_is_asked_though_the_last_attempt_failed(monkeypatch):
    """gRPC tries again only after a pause, here of a minute; till then it says what it met before."""
    kept = [option for option in grpc_transport._CHANNEL_OPTIONS if "backoff" not in option[0]]
    pauses = [(f"grpc.{which}_reconnect_backoff_ms", 60_000) for which in ("initial", "min", "max")]
    monkeypatch.setattr(grpc_transport, "_CHANNEL_OPTIONS", kept + pauses)
    (address,) = free_addresses(1)
    worker = WorkerStub.at("/job:worker/replica:0/task:0", address)
    with pytest.raises(errors.UnavailableError):
        worker.get_status()
    server = tf.train.Server({"worker": [address]}, "worker", 0)
    try:
        key = edge_key(server.task)
        answer = queue.Queue()
        worker.recv_tensor(7, key, lambda *answered: answer.put(answered))
        server.task.worker.rendezvous.find(7).send(key, np.float32(3.0))
        assert answer.get(timeout=60) == (3.0, None)
    finally:
        server.stop()


def test_somebody_there_who_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        worker = WorkerStub.at("/job:x/task:3", f"localhost:{silent.getsockname()[1]}")
        with pytest.raises(errors.UnavailableError, match="/job:x/task:3"):
            worker.get_status(timeout=0.2)


def test_a_placer_can_t_travel(lab):
    with pytest.raises(ValueError, match="placer"):
        lab.master(0).create_session([], None, placer=print)


def test_a_connection_is_shared_and_closed_with_its_last_user(lab):
    connections = connection._connections
    a, b = (WorkerStub.at("t", lab.addresses[1]) for _ in range(2))
    a.get_status()
    assert a._wire._connection is b._wire._connection
    a.close()
    b.get_status()
    with pytest.raises(errors.CancelledError, match="closed"):
        a.get_status()
    b.close()
    assert lab.addresses[1] not in [address for address, _, _ in connections]


@pytest.mark.parametrize("token", ["", "sixteen-letters-or-more"])
def test_a_ping_keeps_no_connection_open(token):
    """One that nobody answers would, and its threads, for a minute and a half."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        pinging = connection.connect(f"127.0.0.1:{silent.getsockname()[1]}", Credentials(token=token))
        pinging.ping()
        silent.accept()[0].close()  # the ping is under way
        gone = weakref.ref(pinging)
        del pinging
        assert gone() is None


@pytest.fixture
def cluster():
    with tf.Cluster(worker=2, engine="process") as cluster:
        yield cluster


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_task_that_dies_within_a_step(cluster, victim, how):
    far = "/job:worker/task:1"
    with tf.device("/job:worker/task:0"):
        v = tf.Variable(0.0)
    with tf.device(far):
        one = tf.constant(1.0) * 1.0
    begun = tf.assign(v, one)
    with tf.device(far), tf.control_dependencies([begun]):
        waits = tf.add(never(far), one)
    caught = []

    def client(sess):
        try:
            sess.run(waits)
        except errors.OpError as error:
            caught.append(error)

    with tf.Session(cluster.target) as sess, tf.Session(cluster.target) as other:
        sess.run(v.initializer)
        thread = threading.Thread(target=client, args=(sess,), daemon=True)
        thread.start()
        until(lambda: other.run(v) == 1, "the step has begun")
        getattr(cluster.task("worker", victim), how)()
        thread.join(60)
        assert isinstance(caught[0], errors.UnavailableError | errors.AbortedError), caught
        assert f"/job:worker/replica:0/task:{victim}" in str(caught[0])


def test_a_task_that_died_before(cluster):
    with tf.device("/job:worker/task:1"):
        a = tf.constant(1.0)
    b = tf.constant(2.0)
    with tf.Session(cluster.target) as sess:
        assert sess.run(a) == 1
        os.kill(cluster.task("worker", 1).pid, signal.SIGKILL)
        until(lambda: cluster.task("worker", 1).state != "running", "it is dead")
        with pytest.raises(errors.UnavailableError, match="/job:worker/replica:0/task:1 at localhost"):
            sess.run(a)
        assert sess.run(b) == 2  # what does not need it still runs


def test_a_worker_that_came_back_is_not_the_old_one(lab):
    with tf.device(THERE):
        v = tf.Variable(1.0)
    with lab.session() as sess:
        sess.run(v.initializer)
        assert sess.run(v) == 1
        lab.serving[1].stop()
        lab.tasks[1] = Task(1, lab.worker)
        lab.serving[1] = Endpoint(lab.tasks[1], lab.addresses[1])
        with pytest.raises(errors.AbortedError, match="restarted"):
            sess.run(v)
    with lab.session() as sess:
        with pytest.raises(errors.FailedPreconditionError):
            sess.run(v)
        sess.run(v.initializer)
        assert sess.run(v) == 1


def test_a_fork_writes_nothing():
    """`!ls` in a notebook forks the kernel, in which servers and sessions live."""
    program = (
        "import dtflab as tf, multiprocessing, os\n"
        "from tests.cluster.two_tasks import *\n"
        "with lab_over('grpc') as lab, tf.Graph().as_default():\n"
        "    x = tf.constant(5)\n"
        "    with lab.session() as sess:\n"
        "        sess.run(x)\n"
        "        os.system('echo shell')\n"
        "        child = multiprocessing.get_context('fork').Process(target=int)\n"
        "        child.start(), child.join()\n"
        "        print(sess.run(x), child.exitcode)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("shell\n5 0\n", "")


def test_a_value_of_a_worker_as_it_was_before_a_restart_is_not_waited_for(lab):
    """The consumer outlives the restart, and asks under the key that the old task was to send under."""
    asker, answers = lab.worker(1), queue.Queue()
    old, before = edge_key(lab.tasks[1]), lab.tasks[1].worker.devices[0].incarnation
    lab.serving[1].stop()
    lab.tasks[1] = Task(1, lab.worker)
    lab.serving[1] = Endpoint(lab.tasks[1], lab.addresses[1])
    asker.recv_tensor(7, old, lambda *answered: answers.put(answered))
    _, error = answers.get(timeout=60)
    assert isinstance(error, errors.AbortedError)
    assert error.message.startswith(
        f"RecvTensor expects a different device incarnation: {before} vs. "
        f'{lab.tasks[1].worker.devices[0].incarnation}. Your worker job ("/job:lab/replica:0/task:1") was probably'
    )
    new = edge_key(lab.tasks[1])
    asker.recv_tensor(7, new, lambda *answered: answers.put(answered))
    until(lambda: lab.waiting() == 1, "the request has arrived")
    lab.tasks[1].worker.rendezvous.find(7).send(new, np.float32(3.0))
    assert answers.get(timeout=60) == (3.0, None)

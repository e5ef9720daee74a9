"""Clusters of tasks that somebody else started: who they are, what works on them, and what is refused."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest

import dtflab as tf
from dtflab.base.credentials import Credentials
from dtflab.cluster import inprocess
from dtflab.cluster.addresses import free_addresses
from dtflab.runtime.session import Session
from tests.cluster.test_serve import served
from tests.cluster.two_tasks import cluster_over, until

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def attached(*addresses, **options):
    return tf.Cluster(list(addresses), engine="attached", **options)


@pytest.fixture
def others():
    """A cluster whose tasks are only reached over the wire, as those of another program."""
    with cluster_over("", ps=1, worker=2) as cluster:
        yield cluster


@contextlib.contextmanager
def elsewhere(spec, job):
    """A server that is only reached over the wire."""
    server = tf.train.Server(spec, job, 0)
    inprocess.withdraw(server.task.address, server.task)
    try:
        yield
    finally:
        inprocess.publish(server.task.address, server.task)
        server.stop()


def answers(target):
    with tf.Graph().as_default(), tf.Session(target) as session:
        return session.run(tf.constant(1)) == 1


@pytest.mark.parametrize("address", [lambda others: others.tasks[0].address, lambda others: others.target])
def test_one_address_is_enough(others, address):
    with attached(address(others)) as cluster:
        assert cluster.spec.as_dict() == others.spec.as_dict()
        assert {row[2] for row in cluster.rows()} == {"running"}
        assert "CPU:0" in cluster.status() and "attached" in cluster.status()


def test_programs_and_views_work(others):
    with attached(others.tasks[0].address) as cluster:

        def client(of):
            with tf.device("/job:ps/task:0"):
                w = tf.get_variable("w", initializer=[1.0, 2.0])
            with tf.device(of.device), tf.Session(of.target) as session:
                if of.is_chief:
                    session.run(w.initializer)
                return of.index

        assert cluster.run(client) == [0, 1]
        (held,) = cluster.variables()
        assert (held.task, held.name) == (PS, "w")
        assert cluster.queues() == [] and cluster.waits() == []
        assert any(call.method == "RunGraph" for call in cluster.calls())
        assert tf.viz.machines(cluster).svg
    Session.reset(others.target)


def test_stop_leaves_the_tasks_running_and_says_so(others, capsys):
    cluster = attached(others.tasks[0].address, name="theirs")
    cluster.stop()
    said = "theirs is detached from /job:ps/task:0, /job:worker/task:0, /job:worker/task:1: started elsewhere, they run"
    assert said in capsys.readouterr().err
    assert {row[2] for row in cluster.rows()} == {"detached"}
    with tf.Graph().as_default(), tf.Session(others.target) as session:
        assert session.run(tf.constant(3)) == 3
    cluster.stop()
    assert capsys.readouterr().err == ""  # once


@pytest.mark.parametrize("what", ["kill", "restart"])
def test_nothing_is_ended_or_started(others, what):
    with attached(others.tasks[0].address) as cluster:
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"was started elsewhere, and can't be {what}ed"):
            getattr(cluster, what)("worker", 0)
        assert {row[2] for row in cluster.rows()} == {"running"}


def test_tasks_that_a_shell_has_started(monkeypatch):
    """One is killed: its state says so, and a session is not refused for it, since it may come again."""
    monkeypatch.setattr("dtflab.cluster.attached._FRESH_S", 0.0)
    ps, worker = free_addresses(2)
    spec = json.dumps({"ps": [ps], "worker": {"3": worker}})
    with contextlib.ExitStack() as programs:
        one = programs.enter_context(served("--cluster", spec, "--job", "ps"))
        programs.enter_context(served("--cluster", spec, "--job", "worker", "--task", "3"))
        with attached(worker) as cluster:
            assert cluster.rows() == [
                (PS, ps, "running"), (WORKER.replace("task:0", "task:3"), worker, "running")
            ]  # fmt: skip
            one.kill()
            until(lambda: cluster.rows()[0][2] == "does not answer", "the ps is gone")
            filters = tf.ConfigProto(device_filters=["/job:worker"])
            with tf.Graph().as_default(), tf.Session(cluster.target, config=filters) as session:
                assert session.run(tf.constant(1)) == 1


def test_a_token(others):
    token = Credentials(token="a-token-of-this-test")
    with cluster_over("", worker=1, credentials=token) as guarded:
        address = guarded.tasks[0].address
        with pytest.raises(tf.errors.UnauthenticatedError, match="asks each caller for its token"):
            attached(address)
        for options in ({"credentials": token}, {"token": token.token}):
            with attached(address, **options) as cluster:
                assert answers(cluster.target)  # the session finds the token by the address
        with pytest.raises(tf.errors.UnauthenticatedError):
            answers(f"grpc://{address}")


def test_an_address_that_does_not_answer(others):
    (nobody,) = free_addresses(1)
    with pytest.raises(tf.errors.UnavailableError, match=rf"No task to attach to at {nobody}: .*refused.* Start it"):
        attached(others.tasks[0].address, nobody)


def test_a_task_that_hangs_is_awaited_as_long_as_the_timeout_says(monkeypatch, capsys):
    monkeypatch.setattr("dtflab.cluster.attached._ANSWER_S", 0.1)
    monkeypatch.setattr(tf.timeouts, "notice", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as hung:  # it accepts connections: the kernel does
        address = f"127.0.0.1:{hung.getsockname()[1]}"
        says = rf"No task to attach to at {address}: .* but does not answer: is it stopped\? It had 1 s"
        with pytest.raises(tf.errors.UnavailableError, match=says):
            attached(address, timeout=1)
    assert f"still waiting for the task at {address}, which accepts connections but does" in capsys.readouterr().err


def test_a_lost_member_is_named(others):
    addresses = free_addresses(2)
    with (
        elsewhere({"ps": addresses[:1], "worker": addresses[1:]}, "ps"),
        pytest.raises(tf.errors.UnavailableError, match=f"No task to attach to at {addresses[1]}"),
    ):
        attached(addresses[0])


def test_twice_the_same_task(others):
    address = others.tasks[0].address
    with pytest.raises(ValueError, match=f"{address} and 127.0.0.1:.* lead to one task, /job:ps/task:0"):
        attached(address, address.replace("localhost", "127.0.0.1"))


def test_tasks_of_two_clusters(others):
    with cluster_over("", ps=1) as more, cluster_over("", chief=1) as different:
        with pytest.raises(ValueError, match="both are /job:ps/task:0, each in a cluster of its own"):
            attached(others.tasks[0].address, more.tasks[0].address)
        with pytest.raises(
            ValueError, match=r"/job:ps/task:0 at .* and /job:chief/task:0 at .* belong to two clusters"
        ):
            attached(others.tasks[0].address, different.tasks[0].address)


def test_an_address_that_means_another_task_from_here(others):
    """A tunnel leads to one task of another machine, say, whose cluster is on that machine's loopback."""
    (own,) = free_addresses(1)
    with (
        elsewhere({"chief": [own], "ps": [others.tasks[1].address]}, "chief"),
        pytest.raises(ValueError, match=r"/job:ps/task:0 of its cluster is at .* from here /job:worker/task:0 is"),
    ):
        attached(own)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        (None, {}),
        (None, {"ps": 1}),
        ("localhost:2222", {}),
        ({"ps": ["localhost:2222"]}, {"worker": 1}),
        ([], {}),
        ([1], {}),
    ],
)
def test_wrong_arguments_say_how_to_attach(spec, options):
    with pytest.raises(ValueError, match=r"takes a list of addresses.*engine='attached'"):
        tf.Cluster(spec, engine="attached", **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gpus": 1}, "gpus=… simulates"),
        ({"listen": True}, "leave listen=…, insecure=… and allow_files=… out"),
        ({"config": tf.ConfigProto()}, "are for tasks that a cluster starts"),
        ({"visible_devices": {"ps": "0"}}, "are for tasks that a cluster starts"),
    ],
)
def test_what_is_said_when_a_task_starts_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        attached("localhost:1", **options)


def test_port_0_and_words():
    for text in ("localhost", "localhost:x"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="host-port pair"):
            attached(text)

"""tf.train.Server: what binds, what is only a name, and what outlives whom."""

from __future__ import annotations

import io
import re
import socket
import subprocess
import sys
import threading

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import inprocess
from dtflab.cluster.addresses import free_addresses
from tests.cluster.two_tasks import never, until


@pytest.fixture
def serve():
    """Makes servers that are stopped at the end of the test."""
    servers = []

    def make(*args, **kwargs):
        servers.append(tf.train.Server(*args, **kwargs))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


def answers(address):
    """True if somebody listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except OSError:
        return False
    return True


# -- addresses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_loopback_address_is_bound(serve, host, capfd):
    try:
        probe = socket.create_server(("::1", 0), family=socket.AF_INET6) if host == "[::1]" else None
    except OSError:
        pytest.skip("this machine has no IPv6")
    if probe is not None:
        probe.close()
    server = serve({"worker": [f"{host}:0"]})
    port = int(server.target.rpartition(":")[2])
    assert server.target == f"grpc://{host}:{port}" and port > 0
    assert answers(f"{host.strip('[]')}:{port}")
    with tf.Session(server.target) as session:
        assert session.run(tf.constant(1.0)) == 1
    assert capfd.readouterr() == ("", "")


def test_any_other_address_is_a_name_and_says_so(serve, capfd):
    server = serve({"worker": ["machine-a.example.com:2222"]})
    assert server.target == "grpc://machine-a.example.com:2222"
    said = capfd.readouterr().err
    assert "machine-a.example.com:2222 is a name in this process" in said and "insecure=True" in said
    assert max(map(len, said.splitlines())) <= 95, "a notebook would break the line"
    with tf.Session(server.target) as session:
        assert session.run(tf.constant(1.0)) == 1


def test_a_books_cluster_runs_as_printed(serve, capfd):
    cluster = tf.train.ClusterSpec(
        {"ps": ["machine-a.example.com:2221"], "worker": ["machine-a.example.com:2222", "machine-b.example.com:2222"]}
    )
    servers = [serve(cluster, job_name=job, task_index=i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(20.0)
    with tf.device("/job:worker/task:1"):
        y = v + 1.0
    with tf.Session(servers[1].target) as session:
        session.run(v.initializer)
        assert session.run(y) == 21
        assert len(session.list_devices()) == 3


def test_insecure_binds_any_address(serve):
    server = serve({"worker": ["some.name.invalid:2222"]}, bind="0.0.0.0:0", insecure=True)
    assert server.target == "grpc://some.name.invalid:2222"
    assert answers(f"127.0.0.1:{server.task.endpoint.port}")


def test_bind_may_be_a_loopback_address_for_another_name(serve):
    (address,) = free_addresses(1)
    serve({"worker": ["some.name.invalid:2222"]}, bind=address)
    assert answers(address)


def test_not_listening(serve):
    (address,) = free_addresses(1)
    server = serve({"worker": [address]}, listen=False)
    assert not answers(address)
    with tf.Session(server.target) as session:
        assert session.run(tf.constant(1.0)) == 1


HOSTS = ["localhost", "127.0.0.1", "machine-a.example.com", "10.1.2.3", "0.0.0.0"]


def one_plus_one(target):
    """The sum that a session at a server computes."""
    with tf.Graph().as_default(), tf.Session(target) as session:
        return session.run(tf.constant(1.0) + 1.0)


@pytest.mark.parametrize("listen", [True, False])
@pytest.mark.parametrize("host", HOSTS)
def test_servers_with_port_0_have_targets_of_their_own_that_work(serve, host, listen):
    """TensorFlow binds a free port for each, on whatever host, and names it in the target."""
    servers = [serve({"worker": [f"{host}:0"]}, listen=listen) for _ in range(3)]
    found = [re.fullmatch(rf"grpc://{re.escape(host)}:([1-9]\d*)", server.target) for server in servers]
    assert all(found) and len({match[1] for match in found}) == 3
    assert [one_plus_one(server.target) for server in servers] == [2, 2, 2]
    for server in servers:
        assert server.target.removeprefix("grpc://") in repr(server) and f"{host}:0" not in repr(server)
        assert server.server_def.cluster.job[0].tasks[0] == f"{host}:0"  # as in TensorFlow, what was given


def test_the_notice_of_a_name_says_the_port_that_was_found(serve, capfd):
    server = serve({"worker": ["machine-a.example.com:0"]})
    line, *_ = capfd.readouterr().err.splitlines()
    assert f"{server.target.removeprefix('grpc://')} is a name in this process" in line


def test_tasks_of_one_spec_with_port_0_are_servers_of_their_own(serve):
    spec = {"ps": ["localhost:0"], "worker": ["localhost:0", "localhost:0"]}
    servers = [serve(spec, job, index) for job, index in (("ps", 0), ("worker", 0), ("worker", 1))]
    assert len({server.target for server in servers}) == 3
    alone = tf.ConfigProto(device_filters=["/job:worker/task:1"])
    with tf.Session(servers[2].target, config=alone) as session:
        assert [device.name for device in session.list_devices()] == ["/job:worker/replica:0/task:1/device:CPU:0"]


@pytest.mark.parametrize("host", ["localhost", "machine-a.invalid"])
def test_a_task_with_port_0_is_not_found_by_others_and_that_is_said(serve, monkeypatch, host):
    """TensorFlow waits forever: the spec that both have does not say which port it was."""
    monkeypatch.setattr(tf.timeouts, "tasks", 0.05)
    servers = [serve({"worker": [f"{host}:0", f"{host}:0"]}, "worker", index) for index in (0, 1)]
    with tf.Session(servers[0].target) as session, pytest.raises(errors.UnavailableError) as it:
        session.run(tf.constant(1.0))
    assert f"task:1 at {host}:0 did not answer" in str(it.value)
    assert "give it a port in the cluster spec" in str(it.value)


@pytest.mark.parametrize("host", HOSTS)
def test_a_server_knows_its_port_before_it_is_started(serve, host):
    """So does TensorFlow's, which has bound it."""
    first, second = (serve({"worker": [f"{host}:0"]}, start=False) for _ in range(2))
    targets = [first.target, second.target]
    assert ":0" not in "".join(targets) and targets[0] != targets[1]
    second.start()
    first.start()
    assert [first.target, second.target] == targets
    assert [one_plus_one(target) for target in targets] == [2, 2]


def test_port_0_and_another_address_to_bind(serve):
    (address,) = free_addresses(1)
    port = address.rpartition(":")[2]
    assert serve({"worker": ["some.name.invalid:0"]}, bind=address).target == f"grpc://some.name.invalid:{port}"
    server = serve({"worker": ["some.name.invalid:0"]}, bind="127.0.0.1:0")
    port = server.target.rpartition(":")[2]
    assert answers(f"127.0.0.1:{port}") and one_plus_one(server.target) == 2


@pytest.mark.parametrize("port", [0, None])
def test_a_server_that_is_started_later_listens_at_the_port_of_its_target(serve, port):
    """Also if it is reached by another name than the one that it binds."""
    bind = f"127.0.0.1:{free_addresses(1)[0].rpartition(':')[2] if port is None else port}"
    server = serve({"worker": ["some.name.invalid:0"]}, bind=bind, start=False)
    target = server.target
    server.start()
    port = server.target.rpartition(":")[2]
    assert server.target == target and server.task.endpoint.port == int(port) > 0 and answers(f"127.0.0.1:{port}")


@pytest.mark.parametrize("port", ["0", "00"])
def test_port_0_is_not_a_target(port):
    said = pytest.raises(errors.UnavailableError, match=r"Nobody can listen at port 0.*server\.target")
    with tf.Session(f"grpc://localhost:{port}") as session, said:
        session.run(tf.constant(1.0))


@pytest.mark.parametrize("host", ["localhost", "machine-a.example.com"])
def test_what_a_stopped_server_says_names_its_port(serve, host):
    server = serve({"worker": [f"{host}:0"]})
    with tf.Session(server.target) as session, pytest.raises(errors.OpError) as it:
        waits = never("/job:worker/task:0")
        stops = threading.Thread(target=lambda: (until(server.task.worker.rendezvous.waiting, "waits"), server.stop()))
        stops.start()
        try:
            session.run(waits)
        finally:
            stops.join(60)
    assert f"Task {server.task.name} at {server.target.removeprefix('grpc://')} was stopped" in str(it.value)


def test_a_server_that_is_stopped_gives_its_port_back(serve):
    first = serve({"worker": ["machine-a.example.com:0"]})
    first.stop()
    again = serve({"worker": [first.target.removeprefix("grpc://")]})
    assert again.target == first.target and one_plus_one(again.target) == 2


def test_an_address_in_use(serve):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        with pytest.raises(errors.UnknownError, match=f"Could not start gRPC server.*{address}"):
            serve({"worker": [address]})
    first = serve({"worker": ["a.invalid:1"]})
    with pytest.raises(errors.UnknownError, match=r"a\.invalid:1 is in use by /job:worker/replica:0/task:0"):
        serve({"worker": ["a.invalid:1"]})
    first.stop()
    serve({"worker": ["a.invalid:1"]})


def test_a_server_that_can_t_have_its_name_lets_its_port_go(serve):
    serve({"worker": ["a.invalid:1"]})
    (address,) = free_addresses(1)
    with pytest.raises(errors.UnknownError, match=r"a\.invalid:1 is in use"):
        serve({"worker": ["a.invalid:1"]}, bind=address)
    assert not answers(address)


# -- starting and stopping --------------------------------------------------------------------------------------


def test_a_server_may_be_started_later(serve):
    server = serve({"worker": ["later.invalid:1"]}, start=False)
    assert "not started" in repr(server) and inprocess.find("later.invalid:1") is None
    server.start()
    server.start()
    assert "running" in repr(server) and inprocess.find("later.invalid:1") is server.task


def test_a_stopped_server(serve):
    (address,) = free_addresses(1)  # which nobody takes when it is free again
    server = serve({"worker": [address]})
    waits = never("/job:worker/task:0")
    with tf.Session(server.target) as session:
        assert session.run(tf.constant(1.0)) == 1
        found = []

        def client():
            try:
                session.run(waits)
            except errors.OpError as error:
                found.append(error)

        thread = threading.Thread(target=client)
        thread.start()
        until(lambda: server.task.worker.rendezvous.waiting(), "the step waits")
        server.stop()
        server.stop()
        thread.join(60)
        assert isinstance(found[0], errors.UnavailableError | errors.CancelledError | errors.AbortedError), found
        with pytest.raises(errors.OpError, match=r"(?i)stopped|reset|restarted"):
            session.run(tf.constant(1.0))
    assert not answers(address) and "stopped" in repr(server)
    with pytest.raises(errors.FailedPreconditionError, match="make a new one"):
        server.start()


def test_join_waits_until_the_server_is_stopped(serve):
    server = serve({"worker": ["join.invalid:1"]})
    server.join(timeout=0.01)  # TensorFlow's has no timeout
    thread = threading.Thread(target=server.join)
    thread.start()
    server.stop()
    thread.join(60)
    assert not thread.is_alive()


def test_create_local_server():
    server = tf.train.Server.create_local_server(config=tf.ConfigProto(device_count={"CPU": 2}))
    try:
        with tf.device("/job:localhost/task:0/cpu:1"):
            a = tf.constant(1.0)
        with tf.Session(server.target) as session:
            assert session.run(a) == 1
            names = [d.name for d in session.list_devices()]
        assert names == [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in (0, 1)]
    finally:
        server.stop()


# -- arguments --------------------------------------------------------------------------------------------------


def test_server_def(serve):
    spec = {"ps": ["a.invalid:1"], "worker": ["b.invalid:1", "c.invalid:1"]}
    server = serve(tf.train.ClusterSpec(spec), job_name="worker", task_index=1)
    definition = server.server_def
    assert (definition.job_name, definition.task_index, definition.protocol) == ("worker", 1, "grpc")
    assert tf.train.ClusterSpec(definition.cluster).as_dict() == spec
    server.stop()
    assert serve(definition).server_def == definition


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((5,), TypeError, "server_or_cluster_def"),
        (({"a": ["x:1"], "b": ["y:1"]},), ValueError, "explicit job_name"),
        (({"a": ["x:1"]}, "b", 0), errors.InvalidArgumentError, 'Job "b" was not defined'),
        (({"a": ["x:1"]}, "a", 1), errors.InvalidArgumentError, 'Task 1 was not defined in job "a"'),
    ],
)
def test_arguments_that_are_refused(serve, arguments, error, text):
    with pytest.raises(error, match=text):
        serve(*arguments)


# -- what outlives whom -----------------------------------------------------------------------------------------


@pytest.fixture
def pair(serve):
    """Two servers that know each other, the second one bound, too."""
    (address,) = free_addresses(1)
    spec = {"worker": ["first.invalid:1", address]}
    return [serve(spec, "worker", index) for index in (0, 1)]


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_outlive_sessions_and_are_shared_by_name(pair, use_resource):
    def counter(graph):
        with graph.as_default(), tf.device("/job:worker/task:1"):
            v = tf.Variable(0.0, name="shared", use_resource=use_resource)
            return v, v.assign_add(1.0)

    for number in range(4):  # each time another client with a graph of its own, at one and the other master
        graph = tf.Graph()
        v, more = counter(graph)
        with tf.Session(pair[number % 2].target, graph=graph) as session:
            if number == 0:
                session.run(v.initializer)
            session.run(more)
            assert session.run(v) == number + 1


def test_an_unpinned_variable_lives_on_its_masters_task(pair):
    v = tf.Variable(5.0)
    with tf.Session(pair[0].target) as session:
        session.run(v.initializer)
        assert session.run(v) == 5
    with tf.Session(pair[1].target) as session, pytest.raises(errors.FailedPreconditionError):
        session.run(v)


@pytest.mark.parametrize("use_resource", [False, True])
def test_containers_keep_variables_apart_and_are_reset_by_name(pair, use_resource):
    graphs = []
    for container in ("mine", "yours", ""):
        graph = tf.Graph()
        with graph.as_default(), graph.container(container), tf.device("/job:worker/task:1"):
            graphs.append((graph, tf.Variable(float(len(graphs)), name="v", use_resource=use_resource)))
    target = pair[0].target

    def values():
        found = []
        for graph, v in graphs:
            with tf.Session(target, graph=graph) as session:
                try:
                    found.append(float(session.run(v)))
                except errors.FailedPreconditionError:
                    found.append(None)
        return found

    for graph, v in graphs:
        with tf.Session(target, graph=graph) as session:
            session.run(v.initializer)
    assert values() == [0, 1, 2]
    tf.Session.reset(target, ["mine"])
    assert values() == [None, 1, 2]
    tf.Session.reset(target, ["nobody's"])
    tf.Session.reset(target)
    assert values() == [None, 1, None]  # the default container alone, as in TensorFlow


def test_reset_closes_the_masters_sessions(pair):
    a = tf.constant(1.0)
    with tf.Session(pair[0].target) as mine, tf.Session(pair[1].target) as other:
        assert mine.run(a) == other.run(a) == 1
        tf.Session.reset(pair[0].target)
        with pytest.raises(errors.AbortedError, match="is not found"):
            mine.run(a)
        assert other.run(a) == 1


def test_a_member_that_comes_late_is_waited_for(serve, monkeypatch, capfd):
    monkeypatch.setattr(tf.timeouts, "notice", 0.05)
    spec = {"worker": ["early.invalid:1", "late.invalid:1"]}
    early = serve(spec, "worker", 0)
    with tf.device("/job:worker/task:1"):
        a = tf.constant(1.0)
    found = []
    with tf.Session(early.target) as session:
        thread = threading.Thread(target=lambda: found.append(session.run(a)))
        thread.start()
        said = io.StringIO()  # a line may come in two parts
        line = "CreateSession still waiting for response from worker: /job:worker/replica:0/task:1 at late.invalid:1"
        until(lambda: said.write(capfd.readouterr().err) and line in said.getvalue(), "it waits")
        serve(spec, "worker", 1)
        thread.join(60)
    assert found == [1]


def test_a_member_that_never_comes(serve, monkeypatch):
    monkeypatch.setattr(tf.timeouts, "tasks", 0.05)
    early = serve({"worker": ["early.invalid:1", "never.invalid:1"]}, "worker", 0)
    with (
        tf.Session(early.target) as session,
        pytest.raises(errors.UnavailableError, match=r"task:1 at never.invalid:1 did not answer within 0.05 s") as it,
    ):
        session.run(tf.constant(1.0))
    assert "tf.train.Server(cluster_spec" in str(it.value)
    assert "Is it still running" not in str(it.value)  # that is for tasks that were there
    only_here = tf.ConfigProto(device_filters=["/job:worker/task:0"])
    with tf.Session(early.target, config=only_here) as session:
        assert session.run(tf.constant(1.0)) == 1


def test_a_target_that_appears_while_somebody_waits_for_it(serve, monkeypatch):
    monkeypatch.setattr(tf.timeouts, "connect", 60)
    found = []
    a = tf.constant(1.0)
    with tf.Session("grpc://soon.invalid:1") as session:
        thread = threading.Thread(target=lambda: found.append(session.run(a)))
        thread.start()
        serve({"worker": ["soon.invalid:1"]})
        thread.join(60)
    assert found == [1]


ENDS_WHEN_TOLD = """
import atexit, sys
atexit.register(sys.stdin.read)  # the last of all: a process that takes long to end
import dtflab as tf
server = tf.train.Server({"ps": [sys.argv[1]]}, "ps", 0)
told = tf.FIFOQueue(1, tf.int32, shapes=[[]], shared_name="told").dequeue()
print(tf.Session(server.target).run(told), flush=True)
"""


def test_a_program_that_ends_lets_its_answers_out(monkeypatch):
    """Nobody stops its server or joins it: at its end, however long that takes, others' calls get an error."""
    monkeypatch.setattr(tf.timeouts, "connect", 60)  # it has yet to start
    address = free_addresses(1)[0]
    program = subprocess.Popen(
        [sys.executable, "-c", ENDS_WHEN_TOLD, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    caught = []

    def wait():
        try:
            while True:  # one fits in; one comes out below, when the other waits already
                session.run(push_two)
        except errors.OpError as error:
            caught.append(error)

    with tf.Graph().as_default():
        tell = tf.FIFOQueue(1, tf.int32, shapes=[[]], shared_name="told").enqueue(7)
        small = tf.FIFOQueue(1, tf.int32, shapes=[[]], shared_name="small")
        push_two, take = small.enqueue_many([[1, 2]]), small.dequeue()
        with tf.Session(f"grpc://{address}") as session:
            waiting = threading.Thread(target=wait)
            waiting.start()
            session.run(take)
            session.run(tell)
            waiting.join(60)
            assert not waiting.is_alive() and program.poll() is None
            assert program.communicate(timeout=60)[0] == "7\n"
            assert program.returncode == 0
    assert isinstance(caught[0], errors.UnavailableError) and address in str(caught[0])


@pytest.mark.parametrize("address", ["localhost", "localhost:x", "localhost:70000", "a/b:1"])
def test_what_is_no_address_is_told(address):
    with pytest.raises(errors.InvalidArgumentError, match="as a host-port pair"):
        tf.train.Server({"ps": [address]})

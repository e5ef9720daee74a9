"""What only a wire can do: carry nonsense, keep many waiting, break."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.cluster import grpc_transport, stubs
from dtflab.cluster.process import free_addresses
from dtflab.cluster.tensor_codec import parse
from dtflab.graph import errors
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.runtime.rendezvous import full_key
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import HERE, THERE, Task, in_threads, lab_over, never, until


@pytest.fixture
def lab():
    with lab_over("grpc") as lab:
        yield lab


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default() as graph:
        yield graph


class Raw:
    """A client that sends whatever it is told to."""

    def __init__(self, address: str) -> None:
        self.wire = grpc_transport._Wire(address, None)

    def __call__(self, method, request, timeout=None):
        """The answer to a request message, named after its method."""
        name = type(request).__name__.removesuffix("Request")
        assert name == method
        data = self.wire.call(self.path(method), request.SerializeToString(), timeout)
        return getattr(self.module(method), method + "Response").FromString(data)

    def path(self, method):
        service = "Master" if self.module(method) is master_messages else "Worker"
        return f"/tensorflow.{service}Service/{method}"

    @staticmethod
    def module(method):
        return master_messages if hasattr(master_messages, method + "Request") else worker_messages


@pytest.fixture
def raw(lab):
    return Raw(lab.addresses[0])


def a_session(raw, graph):
    request = master_messages.CreateSessionRequest(graph_def=nodes_to_proto(graph.nodes()))
    return raw("CreateSession", request).session_handle


def a_graph(text: str) -> GraphDef:
    """`name = Op(inputs)` per line, attributes of type float where there are inputs."""
    graph_def = GraphDef()
    for line in text.strip().splitlines():
        name, _, call = line.strip().partition(" = ")
        op, _, inputs = call.rstrip(")").partition("(")
        node = graph_def.node.add(name=name, op=op, input=[i.strip() for i in inputs.split(",") if i.strip()])
        if op in ("Identity", "Neg"):
            node.attr["T"].type = 1
        elif op == "Placeholder":
            node.attr["dtype"].type = 1
    return graph_def


# -- nonsense -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["CreateSession", "RunStep", "RunGraph", "RecvTensor", "RegisterGraph", "Reset"])
@pytest.mark.parametrize("data", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x05ab", os.urandom(50_000)])
def test_bytes_that_are_no_message(raw, method, data):
    with pytest.raises(errors.OpError) as caught:
        raw.wire.call(raw.path(method), data)
    assert isinstance(caught.value, errors.InvalidArgumentError | errors.AbortedError), caught.value
    assert raw("GetStatus", worker_messages.GetStatusRequest()).device_attributes


BAD_GRAPHS = {
    "a = Nonsense()": (errors.NotFoundError, "Nonsense"),
    "a = NoOp(^missing)": (errors.InvalidArgumentError, "Node 'a': Unknown input node '^missing'"),
    "a = Identity(missing)": (errors.InvalidArgumentError, "Node 'a': Unknown input node 'missing'"),
    "a = Identity(missing:3)": (errors.InvalidArgumentError, "Unknown input node 'missing:3'"),
    "p = Placeholder()\na = Identity(p:1)": (errors.InvalidArgumentError, "invalid output 1 of source node p"),
    "p = Placeholder()\na = Identity(p, p)": (errors.InvalidArgumentError, "2 inputs"),
    "p = Placeholder()\na = LogicalNot(p)": (errors.InvalidArgumentError, "Input 0 of node a was passed float"),
    "p = Placeholder()\na = Identity(^p, p)": (errors.InvalidArgumentError, "must come after"),
    "a = NoOp()\na = NoOp()": (errors.InvalidArgumentError, "Node 'a' is not unique"),
    "a b = NoOp()": (errors.InvalidArgumentError, "Illegal op name 'a b'"),
    "a = Identity(b)\nb = Neg(a)": (errors.InvalidArgumentError, "2 nodes in a cycle: "),
    "a = StatelessIf()": (errors.InvalidArgumentError, "NodeDef missing attr 'Tcond' from Op<name=StatelessIf>"),
    "a = PartitionedCall()": (errors.InvalidArgumentError, "NodeDef missing attr 'Tin' from Op<name=PartitionedCall>"),
}


@pytest.mark.parametrize("text", BAD_GRAPHS)
def test_graphs_that_are_none(raw, text):
    kind, message = BAD_GRAPHS[text]
    graph_def = a_graph(text)
    calls = {
        "CreateSession": master_messages.CreateSessionRequest(graph_def=graph_def),
        "RegisterGraph": worker_messages.RegisterGraphRequest(graph_def=graph_def, session_handle="s"),
    }
    raw("CreateWorkerSession", worker_messages.CreateWorkerSessionRequest(session_handle="s"))
    for method, request in calls.items():
        with pytest.raises(kind) as caught:
            raw(method, request)
        assert message in caught.value.message


def test_a_missing_attribute(raw):
    graph_def = GraphDef()
    graph_def.node.add(name="a", op="Placeholder")
    with pytest.raises(errors.InvalidArgumentError, match="dtype"):
        raw("CreateSession", master_messages.CreateSessionRequest(graph_def=graph_def))


def test_a_partition_for_a_device_of_another_task(raw):
    raw("CreateWorkerSession", worker_messages.CreateWorkerSessionRequest(session_handle="s"))
    graph_def = a_graph("a = NoOp()")
    graph_def.node[0].device = "/job:lab/replica:0/task:1/device:CPU:0"
    with pytest.raises(errors.InvalidArgumentError, match=r"task:1.*'a'"):
        raw("RegisterGraph", worker_messages.RegisterGraphRequest(graph_def=graph_def, session_handle="s"))


def test_what_is_not_there_says_so(raw):
    with pytest.raises(errors.UnimplementedError, match="Tracing"):
        raw("Tracing", worker_messages.TracingRequest())


@pytest.mark.parametrize("method", ["RecvBuf", "CompleteGroup", "CompleteInstance", "GetStepSequence"])
def test_no_collectives(raw, method):
    with pytest.raises(errors.UnimplementedError, match="collective"):
        raw.wire.call(f"/tensorflow.WorkerService/{method}", b"")
    with pytest.raises(errors.UnimplementedError):
        raw.wire.call("/tensorflow.WorkerService/Unheard", b"")


def test_harmless_calls(raw):
    raw("Logging", worker_messages.LoggingRequest(enable_rpc_logging=True))
    raw("MarkRecvFinished", worker_messages.MarkRecvFinishedRequest(request_id=3))
    raw("CleanupGraph", worker_messages.CleanupGraphRequest(step_id=3))
    raw("CleanupAll", worker_messages.CleanupAllRequest(container=["none"]))


def test_a_bad_rendezvous_key(raw):
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key: zz"):
        raw("RecvTensor", worker_messages.RecvTensorRequest(step_id=3, rendezvous_key="zz"))


def test_who_asks_late_for_a_tensor_of_a_failed_step_is_told(raw):
    """The step fails before it has sent anything, and its master has not cleaned up yet."""
    device = "/job:lab/replica:0/task:0/device:CPU:0"
    raw("CreateWorkerSession", worker_messages.CreateWorkerSessionRequest(session_handle="s"))
    graph_def = GraphDef()
    node = graph_def.node.add(name="p", op="Placeholder", device=device)
    node.attr["dtype"].type = 1
    registered = raw("RegisterGraph", worker_messages.RegisterGraphRequest(graph_def=graph_def, session_handle="s"))
    run = worker_messages.RunGraphRequest(session_handle="s", graph_handle=registered.graph_handle, step_id=77)
    with pytest.raises(errors.InvalidArgumentError, match="must feed a value"):
        raw("RunGraph", run)
    key = f"{device};0000000000000001;{device};edge;0:0"
    with pytest.raises(errors.InvalidArgumentError, match="must feed a value"):
        raw("RecvTensor", worker_messages.RecvTensorRequest(step_id=77, rendezvous_key=key))
    raw("CleanupGraph", worker_messages.CleanupGraphRequest(step_id=77))


# -- sessions -------------------------------------------------------------------------------------------------


def test_versions_of_a_graph(raw, fresh_graph):
    tf.constant(1.0, name="a")
    handle = a_session(raw, fresh_graph)
    tf.constant(2.0, name="b")
    more = master_messages.ExtendSessionRequest(
        session_handle=handle, graph_def=nodes_to_proto(fresh_graph.nodes(1)), current_graph_version=0
    )
    assert raw("ExtendSession", more).new_graph_version == 1
    with pytest.raises(errors.AbortedError, match="Current version is 1 but caller expected 0"):
        raw("ExtendSession", more)
    more.current_graph_version = 1
    with pytest.raises(errors.InvalidArgumentError, match="includes node 'b'"):
        raw("ExtendSession", more)


def test_an_extension_that_fails_leaves_the_graph_as_it_was(raw, fresh_graph):
    tf.constant(1.0, name="a")
    handle = a_session(raw, fresh_graph)
    with tf.device("/job:nowhere"):
        tf.constant(2.0, name="b")
    more = master_messages.ExtendSessionRequest(
        session_handle=handle, graph_def=nodes_to_proto(fresh_graph.nodes(1)), current_graph_version=0
    )
    with pytest.raises(errors.InvalidArgumentError, match="b"):
        raw("ExtendSession", more)
    more.graph_def.node[0].device = ""
    assert raw("ExtendSession", more).new_graph_version == 1
    answer = raw("RunStep", master_messages.RunStepRequest(session_handle=handle, fetch=["b:0"]))
    assert answer.tensor[0].name == "b:0"


def test_an_error_in_the_answer_or_as_a_status(raw, fresh_graph):
    tf.constant(1.0, name="a")
    request = master_messages.RunStepRequest(session_handle=a_session(raw, fresh_graph), fetch=["zz:0"])
    with pytest.raises(errors.NotFoundError, match="zz"):
        raw("RunStep", request)
    request.store_errors_in_response_body = True
    answer = raw("RunStep", request)
    assert (answer.status_code, "zz" in answer.status_error_message) == (errors.NOT_FOUND, True)


def test_a_long_error_is_cut_where_a_status_carries_it(raw):
    name = "n" * 20_000
    with pytest.raises(errors.InvalidArgumentError, match=r"truncated"):
        raw("CreateSession", master_messages.CreateSessionRequest(graph_def=a_graph(f"{name} = Identity(x)")))


def test_nothing_to_run(raw, fresh_graph):
    tf.constant(1.0)
    handle = a_session(raw, fresh_graph)
    with pytest.raises(errors.InvalidArgumentError, match="at least one target"):
        raw("RunStep", master_messages.RunStepRequest(session_handle=handle))
    with pytest.raises(errors.InvalidArgumentError, match="before performing partial runs"):
        raw("RunStep", master_messages.RunStepRequest(session_handle=handle, partial_run_handle="p", fetch=["a:0"]))


def test_closing_twice(raw, fresh_graph):
    tf.constant(1.0)
    request = master_messages.CloseSessionRequest(session_handle=a_session(raw, fresh_graph))
    raw("CloseSession", request)
    with pytest.raises(errors.AbortedError, match="not found"):
        raw("CloseSession", request)


def test_callables(raw, fresh_graph):
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.multiply(x, 3.0, name="y")
    handle = a_session(raw, fresh_graph)
    make = master_messages.MakeCallableRequest(session_handle=handle)
    make.options.feed.append("x:0")
    make.options.fetch.append("y:0")
    number = raw("MakeCallable", make).handle
    run = master_messages.RunCallableRequest(session_handle=handle, handle=number)
    run.feed.add(dtype=1, float_val=[1, 2]).tensor_shape.dim.add(size=2)
    data = raw.wire.call(raw.path("RunCallable"), run.SerializeToString())
    _, values = parse(master_messages.RunCallableResponse, data, "fetch")
    np.testing.assert_array_equal(values[0], [3, 6])
    del run.feed[:]
    with pytest.raises(errors.InvalidArgumentError, match="1 feed"):
        raw("RunCallable", run)
    release = master_messages.ReleaseCallableRequest(session_handle=handle, handle=number)
    raw("ReleaseCallable", release)
    with pytest.raises(errors.InvalidArgumentError, match="callable"):
        raw("ReleaseCallable", release)


def test_a_master_that_comes_back_loses_its_old_sessions(raw):
    def create(session, incarnation):
        request = worker_messages.CreateWorkerSessionRequest(
            session_handle=session, master_task="/job:lab/replica:0/task:1", master_incarnation=incarnation
        )
        raw("CreateWorkerSession", request)

    def register(session):
        request = worker_messages.RegisterGraphRequest(session_handle=session)
        request.graph_def.node.add(name="n", op="NoOp", device="/job:lab/replica:0/task:0/device:CPU:0")
        return raw("RegisterGraph", request).graph_handle

    create("old", 1)
    create("beside", 1)
    register("old"), register("beside")
    create("new", 2)
    with pytest.raises(errors.AbortedError, match="Session handle is not found: old"):
        register("old")
    register("new")


def test_values_sent_with_a_graph_and_asked_back(lab, raw, fresh_graph):
    """RunGraphRequest.send and .recv_key: how a TensorFlow master of an older kind feeds and fetches."""
    from dtflab.graph.apply_op import apply_op

    device = "/job:lab/replica:0/task:0/device:CPU:0"
    ends = {"send_device": device.encode(), "send_device_incarnation": 1, "recv_device": device.encode()}
    with tf.device(device):
        fed = apply_op("_Recv", "fed", tensor_type=tf.float32, tensor_name=b"in", client_terminated=True, **ends)
        apply_op("_Send", "fetched", tensor=fed * 2.0, tensor_name=b"out", client_terminated=True, **ends)
    worker = lab.worker(0)
    worker.create_worker_session("s", "", 0)
    graph_handle = worker.register_graph("s", fresh_graph.nodes())
    key = f"{device};{1:016x};{device};%s;0:0"
    request = worker_messages.RunGraphRequest(
        session_handle="s", graph_handle=graph_handle, step_id=9, recv_key=[key % "out"]
    )
    request.send.add(name=key % "in").tensor.float_val.append(21)
    request.send[0].tensor.dtype = 1
    data = raw.wire.call(raw.path("RunGraph"), request.SerializeToString())
    _, received = parse(worker_messages.RunGraphResponse, data, "recv")
    assert received == [(key % "out", 42.0)]


# -- waiting --------------------------------------------------------------------------------------------------


def test_two_hundred_waiting_calls_keep_nobody_from_being_served(lab, raw, fresh_graph):
    waits = never(HERE)
    quick = tf.constant(4.0) + 1.0
    handle = a_session(raw, fresh_graph)
    step = master_messages.RunStepRequest(session_handle=handle, fetch=[waits.name]).SerializeToString()
    answers = []
    gave_up = [raw.wire.start(raw.path("RunStep"), step, lambda data, error: answers.append(error)) for _ in range(100)]
    device = "/job:lab/replica:0/task:0/device:CPU:0"
    for number in range(100):
        key = f"{device};0000000000000001;{device};edge;0:0"
        gave_up.append(lab.worker(0).recv_tensor(1000 + number, key, lambda value, error: answers.append(error)))
    until(lambda: lab.waiting() == 200, "200 calls wait")
    with lab.session() as sess:
        assert sess.run(quick) == 5
    assert raw("GetStatus", worker_messages.GetStatusRequest()).device_attributes
    assert not answers
    for give_up in gave_up:
        give_up()
    until(lambda: len(answers) == 200, "all have given up")
    assert all(isinstance(error, errors.CancelledError) for error in answers)
    until(lambda: lab.waiting() == 0, "nothing waits for those who are gone")


def test_a_client_that_gives_up_ends_its_step_on_all_tasks(lab, raw, fresh_graph):
    waits = never(HERE)
    with tf.device(THERE):
        both = tf.group(waits, tf.identity(never(THERE)))
    handle = a_session(raw, fresh_graph)
    step = master_messages.RunStepRequest(session_handle=handle, target=[both.name]).SerializeToString()
    give_up = raw.wire.start(raw.path("RunStep"), step)
    until(lambda: lab.waiting() >= 2, "both tasks wait")
    give_up()
    until(lambda: not lab.waiting() and not lab.steps(), "nobody waits")


def test_a_client_s_deadline_is_kept(lab, raw, fresh_graph):
    waits = never(HERE)
    step = master_messages.RunStepRequest(session_handle=a_session(raw, fresh_graph), fetch=[waits.name])
    with pytest.raises(errors.DeadlineExceededError):
        raw("RunStep", step, timeout=0.2)
    until(lambda: not lab.waiting(), "the step has ended there, too")


def test_stopping_a_task_tells_those_who_wait_there(lab, fresh_graph):
    waits = never(HERE)
    with lab.session() as sess:

        def client(number):
            with fresh_graph.as_default():
                return sess.run(waits)

        found = []
        thread = threading.Thread(target=lambda: found.extend(in_threads(3, client)), daemon=True)
        thread.start()
        until(lambda: lab.waiting() == 3, "three clients wait")
        lab.serving[0].stop()
        thread.join(30)
        assert [type(error) for error in found] == [errors.UnavailableError] * 3
        assert "/job:lab/replica:0/task:0" in str(found[0]) and "stopped" in str(found[0])
        with pytest.raises(errors.UnavailableError, match=r"does not answer.*\nIs it still running"):
            sess.run(tf.constant(1))


def test_ctrl_c_ends_a_step_elsewhere():
    """In a process of its own: the signal goes to its main thread, which waits for an answer."""
    program = (
        "import dtflab as tf, os, signal, threading\n"
        "from tests.cluster.two_tasks import *\n"
        "with lab_over('grpc') as lab, tf.Graph().as_default():\n"
        "    waits, quick = never(), tf.constant(5)\n"
        "    with lab.session() as sess:\n"
        "        def interrupt():\n"
        "            until(lambda: lab.waiting() == 1, 'it waits')\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        threading.Thread(target=interrupt).start()\n"
        "        try: sess.run(waits)\n"
        "        except KeyboardInterrupt: print('interrupted')\n"
        "        until(lambda: lab.waiting() == 0, 'the step has ended')\n"
        "        print(sess.run(quick))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n5\n", "")


class Babbler:
    """A wire with nonsense at its other end."""

    address, task = "nowhere:1", ""

    def __init__(self, answer):
        self.answer = answer

    def start(self, path, request, done=None):
        if done is not None:
            done(self.answer, None)
        return lambda: None


CONTRADICTION = worker_messages.RecvTensorResponse()
CONTRADICTION.tensor.dtype = 1
CONTRADICTION.tensor.tensor_content = b"abc"  # no float has three bytes


@pytest.mark.parametrize("answer", [b"\xff" * 30, CONTRADICTION.SerializeToString(), b""])
def test_a_value_that_can_t_be_read_is_an_error(answer):
    worker = stubs.WorkerStub("/job:odd/replica:0/task:0", Babbler(answer))
    answers = []
    worker.recv_tensor(1, "key", lambda value, error: answers.append(error))
    assert isinstance(answers[0], errors.DataLossError) and "/job:odd" in answers[0].message


def test_an_answer_that_can_t_be_read_ends_the_step():
    worker = stubs.WorkerStub("/job:odd/replica:0/task:0", Babbler(b"\xff" * 30))
    step = Step(1)
    worker.run_graph("s", "g", step)
    with pytest.raises(errors.DataLossError, match=r"/job:odd.*RunGraph"):
        step.drive()


# -- ports, connections, processes ----------------------------------------------------------------------------


def test_a_port_in_use(lab):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        with pytest.raises(errors.UnknownError, match=f"Could not start gRPC server.*{address}"):
            grpc_transport.serve(lab.tasks[0], address)
    with pytest.raises(errors.UnknownError, match="Could not start gRPC server"):
        grpc_transport.serve(lab.tasks[0], lab.addresses[1])
    grpc_transport.serve(lab.tasks[0], address).stop()  # free again


def test_a_stopped_server_s_port_is_free(lab):
    lab.serving[0].stop()
    again = grpc_transport.serve(lab.tasks[0], lab.addresses[0])
    try:
        assert grpc_transport.WorkerStub("t", lab.addresses[0]).get_status()
    finally:
        again.stop()


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
    with pytest.raises(errors.UnavailableError, match=f"Task /job:x/replica:0/task:3 at {address}"):
        grpc_transport.WorkerStub("/job:x/replica:0/task:3", address).get_status()
    with pytest.raises(
        errors.UnavailableError, match=rf"The server at {address} does not answer \(connection refused\)"
    ):
        grpc_transport.MasterStub(address).reset([])


def test_a_target_where_nobody_listens_is_told_once(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
    monkeypatch.setattr(tf.timeouts, "connect", 0.05)
    with tf.Session(f"grpc://{address}") as session, pytest.raises(errors.UnavailableError) as it:
        session.run(tf.constant(1.0))
    first, _, advice = it.value.message.partition("). ")
    assert first == f"Task behind the session's target at {address} did not answer within 0.05 s (connection refused"
    assert advice.startswith("Is it started") and advice.endswith("task_index=…).")


def test_the_reason_is_the_end_of_grpcs_chain_of_causes():
    resolving = (
        "errors resolving x:1: [field:hostname lookup error:address lookup failed for x:1: Domain name not found]"
    )
    assert grpc_transport._reason(resolving) == "domain name not found"
    assert grpc_transport._reason("Received http2 header with status: 404") == "Received http2 header with status: 404"


def test_who_has_just_come_up_is_asked_though_the_last_attempt_failed(monkeypatch):
    """gRPC tries again only after a pause, here of a minute; till then it says what it met before."""
    kept = [option for option in grpc_transport._CHANNEL_OPTIONS if "backoff" not in option[0]]
    pauses = [(f"grpc.{which}_reconnect_backoff_ms", 60_000) for which in ("initial", "min", "max")]
    monkeypatch.setattr(grpc_transport, "_CHANNEL_OPTIONS", kept + pauses)
    (address,) = free_addresses(1)
    worker = grpc_transport.WorkerStub("/job:worker/replica:0/task:0", address)
    with pytest.raises(errors.UnavailableError):
        worker.get_status()
    server = tf.train.Server({"worker": [address]}, "worker", 0)
    try:
        key = full_key((f"{server.task.name}/device:CPU:0", 1, "elsewhere", "edge"), "0:0")
        answer = queue.Queue()
        worker.recv_tensor(7, key, lambda *answered: answer.put(answered))
        server.task.worker.rendezvous.find(7).send(key, np.float32(3.0))
        assert answer.get(timeout=20) == (3.0, None)
    finally:
        server.stop()


def test_somebody_there_who_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        worker = grpc_transport.WorkerStub("/job:x/task:3", f"localhost:{silent.getsockname()[1]}")
        with pytest.raises(errors.UnavailableError, match="/job:x/task:3"):
            worker.get_status(timeout=0.2)


def test_a_placer_can_t_travel(lab):
    with pytest.raises(ValueError, match="placer"):
        lab.master(0).create_session([], None, placer=print)


def test_a_connection_is_shared_and_closed_with_its_last_user(lab):
    connections = grpc_transport._connections
    a, b = (grpc_transport.WorkerStub("t", lab.addresses[1]) for _ in range(2))
    a.get_status()
    assert a._wire._connection is b._wire._connection
    a.close()
    b.get_status()
    with pytest.raises(errors.CancelledError, match="closed"):
        a.get_status()
    b.close()
    assert (lab.addresses[1], None) not in connections


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
        thread.join(30)
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
        lab.serving[1] = grpc_transport.serve(lab.tasks[1], lab.addresses[1])
        with pytest.raises(errors.AbortedError, match="just restarted"):
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("shell\n5 0\n", "")

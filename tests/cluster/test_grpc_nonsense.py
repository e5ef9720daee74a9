"""Nonsense that only a wire can carry: bytes that are not a message, graphs that are not graphs, unknown things."""

from __future__ import annotations

import random

import pytest

from dtflab.base import errors
from dtflab.cluster.worker_stub import WorkerStub
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.runtime.runner import Step
from tests.cluster.raw_client import a_graph
from tests.cluster.two_tasks import edge_key


@pytest.mark.parametrize("method", ["CreateSession", "RunStep", "RunGraph", "RecvTensor", "RegisterGraph", "Reset"])
@pytest.mark.parametrize(
    "data", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x05ab", random.Random(0).randbytes(50_000)]
)
def test_bytes_that_are_no_message(raw, method, data):
    with pytest.raises(errors.OpError) as caught:
        raw.wire.call(raw.path(method), [data])
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
        raw.wire.call(f"/tensorflow.WorkerService/{method}", [b""])
    with pytest.raises(errors.UnimplementedError):
        raw.wire.call("/tensorflow.WorkerService/Unheard", [b""])


def test_harmless_calls(raw):
    raw("Logging", worker_messages.LoggingRequest(enable_rpc_logging=True))
    raw("MarkRecvFinished", worker_messages.MarkRecvFinishedRequest(request_id=3))
    raw("CleanupGraph", worker_messages.CleanupGraphRequest(step_id=3))
    raw("CleanupAll", worker_messages.CleanupAllRequest(container=["none"]))


DEVICE = "/job:lab/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("zz", "Invalid rendezvous key: zz"),
        (f"{DEVICE};0000000000000001;{DEVICE};edge", "Invalid rendezvous key: /job"),
        (f"{DEVICE};zz;{DEVICE};edge;0:0", "Invalid rendezvous key: /job"),
        (f"{DEVICE[:-5]}GPU:7;0000000000000001;{DEVICE};edge;0:0", "/device:GPU:7 unknown device."),
        (f"/job:lab;0000000000000001;{DEVICE};edge;0:0", "unknown device"),
    ],
)
def test_a_bad_rendezvous_key(raw, key, text):
    with pytest.raises(errors.InvalidArgumentError, match=text):
        raw("RecvTensor", worker_messages.RecvTensorRequest(step_id=3, rendezvous_key=key), 60)


def test_who_asks_late_for_a_tensor_of_a_failed_step_is_told(lab, raw):
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
    key = edge_key(lab.tasks[0])
    with pytest.raises(errors.InvalidArgumentError, match="must feed a value"):
        raw("RecvTensor", worker_messages.RecvTensorRequest(step_id=77, rendezvous_key=key))
    raw("CleanupGraph", worker_messages.CleanupGraphRequest(step_id=77))


class Babbler:
    """A wire with nonsense at its other end."""

    address, task = "nowhere:1", ""

    def __init__(self, answer):
        self.answer = answer

    def start(self, path, request, done=None, tell=None):
        if done is not None:
            done(self.answer, None)
        return lambda: None


CONTRADICTION = worker_messages.RecvTensorResponse()
CONTRADICTION.tensor.dtype = 1
CONTRADICTION.tensor.tensor_content = b"abc"  # no float has three bytes


@pytest.mark.parametrize("answer", [b"\xff" * 30, CONTRADICTION.SerializeToString(), b""])
def test_a_value_that_can_t_be_read_is_an_error(answer):
    worker = WorkerStub("/job:odd/replica:0/task:0", Babbler(answer))
    answers = []
    worker.recv_tensor(1, "key", lambda value, error: answers.append(error))
    assert isinstance(answers[0], errors.DataLossError) and "/job:odd" in answers[0].message


def test_an_answer_that_can_t_be_read_ends_the_step():
    worker = WorkerStub("/job:odd/replica:0/task:0", Babbler(b"\xff" * 30))
    step = Step(1)
    worker.run_graph("s", "g", step)
    with pytest.raises(errors.DataLossError, match=r"/job:odd.*RunGraph"):
        step.drive()

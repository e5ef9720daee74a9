"""The services of a task, which answer any bytes: without a network, so that thousands of inputs take seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from random import Random

from google.protobuf.message import DecodeError, Message

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.answering import ServerCall, answer
from dtflab.cluster.master_service import MasterService
from dtflab.cluster.worker_service import WorkerService
from dtflab.protos import master_pb2 as master, worker_pb2 as worker
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.named_tensor_pb2 import NamedTensorProto
from tests.cluster.two_tasks import Lab, edge_key
from tests.fuzz import graphs, mutate

PATIENCE = 0.2  # seconds that a caller waits, and a step may take
LIVES = 100  # calls, after which a new task is made
OF_THE_MASTER = (
    "CreateSession ExtendSession PartialRunSetup RunStep CloseSession ListDevices Reset MakeCallable RunCallable "
    "ReleaseCallable"
)
OF_THE_WORKER = (
    "GetStatus CreateWorkerSession DeleteWorkerSession RegisterGraph DeregisterGraph RunGraph CleanupGraph CleanupAll "
    "RecvTensor MarkRecvFinished Logging"
)
REQUESTS = [
    getattr(module, f"{name}Request")
    for module, names in ((master, OF_THE_MASTER), (worker, OF_THE_WORKER))
    for name in names.split()
]


def seeds() -> list[bytes]:
    """Requests that a real client and a real master send; the number of the method comes first."""
    return [
        bytes([REQUESTS.index(type(request))]) + request.SerializeToString(deterministic=True)
        for request in _requests()
    ]


def _requests() -> Iterator[Message]:
    for graph in graphs.seeds():
        definition = GraphDef.FromString(graph)
        yield master.CreateSessionRequest(graph_def=definition)
        for node in definition.node:
            node.device = "/job:lab/replica:0/task:0/device:CPU:0"
        yield worker.RegisterGraphRequest(session_handle="session", graph_def=definition)
    extended = GraphDef()
    extended.node.add(name="other", op="NoOp", input=["^w"])
    yield master.ExtendSessionRequest(session_handle="session", graph_def=extended)
    fed = NamedTensorProto(name="x:0", tensor=tf.make_tensor_proto([[1.0, 2.0], [3.0, 4.0]]))
    run = master.RunStepRequest(session_handle="session", feed=[fed], fetch=["y:0", "sum:0"], target=["before"])
    yield run
    run.options.trace_level = 3
    yield run
    yield master.PartialRunSetupRequest(session_handle="session", feed=["x:0"], fetch=["y:0"])
    made = master.MakeCallableRequest(session_handle="session")
    made.options.feed.append("x:0")
    made.options.fetch.append("y:0")
    yield made
    yield master.RunCallableRequest(session_handle="session", handle=1, feed=[fed.tensor])
    yield master.ReleaseCallableRequest(session_handle="session", handle=1)
    yield master.ListDevicesRequest(session_handle="session")
    yield master.CloseSessionRequest(session_handle="nobody's")
    yield master.ResetRequest(container=["c"])
    yield worker.GetStatusRequest()
    yield worker.CreateWorkerSessionRequest(session_handle="t", master_task="/job:lab/replica:0/task:1")
    yield worker.DeleteWorkerSessionRequest(session_handle="t")
    yield worker.DeregisterGraphRequest(session_handle="session", graph_handle="graph")
    partition = worker.RunGraphRequest(session_handle="session", graph_handle="graph", step_id=7)
    partition.exec_opts.record_timeline = True
    yield partition
    yield worker.CleanupGraphRequest(step_id=7)
    yield worker.CleanupAllRequest(container=["c"])
    yield worker.RecvTensorRequest(step_id=9, rendezvous_key="edge")
    yield worker.MarkRecvFinishedRequest(request_id=1)
    yield worker.LoggingRequest(enable_rpc_logging=True)


def mutated(data: bytes, rng: Random) -> bytes:
    kind = REQUESTS[data[0] % len(REQUESTS)]
    return data[:1] + mutate.of_message(kind, data[1:], rng)


class Served:
    """A task with a session and a registered graph, made again now and then."""

    def __init__(self) -> None:
        self._calls = 0
        self._begin()

    def _begin(self) -> None:
        task = Lab().tasks[0]
        self._task, self._methods = task, {**MasterService(task).methods(), **WorkerService(task).methods()}
        plain = graphs.graph_def(graphs.arithmetic)
        created = self._well(master.CreateSessionRequest(graph_def=plain))
        self._session = master.CreateSessionResponse.FromString(created).session_handle
        self._well(worker.CreateWorkerSessionRequest(session_handle=self._session))
        for node in plain.node:
            node.device = "/job:lab/replica:0/task:0/device:CPU:0"
        registered = self._well(worker.RegisterGraphRequest(session_handle=self._session, graph_def=plain))
        self._graph = worker.RegisterGraphResponse.FromString(registered).graph_handle

    def _well(self, request: Message) -> bytes:
        """The answer to a request that is right, by a caller who is patient."""
        method = type(request).__name__.removesuffix("Request")
        data = request.SerializeToString()
        code, text, pieces = answer(self._task.name, method, self._methods[method], data, ServerCall())
        assert code == 0, text
        return b"".join(pieces)

    def __call__(self, data: bytes) -> None:
        """Let the task answer a request; raises the error that its caller would see."""
        self._calls += 1
        if self._calls % LIVES == 0:
            self.check()
            self.end()
            self._begin()
        kind = REQUESTS[data[0] % len(REQUESTS)] if data else REQUESTS[0]
        code, text = self._answer(kind.__name__.removesuffix("Request"), self._addressed(kind, data[1:]))
        if code:
            raise errors.exception_type_from_error_code(code).of(text)

    def check(self) -> None:
        """The task still answers, whatever came before."""
        self._well(worker.GetStatusRequest())
        created = self._well(master.CreateSessionRequest(graph_def=graphs.graph_def(graphs.arithmetic)))
        handle = master.CreateSessionResponse.FromString(created).session_handle
        self._well(master.RunStepRequest(session_handle=handle, fetch=["w:0"]))

    def end(self) -> None:
        self._task.master.close()

    def _addressed(self, kind: type[Message], data: bytes) -> bytes:
        """The request with handles that exist, and a step that ends."""
        try:
            request = kind.FromString(data)
        except DecodeError:
            return data
        for field, real in (("session_handle", self._session), ("graph_handle", self._graph)):
            if getattr(request, field, "") == field.partition("_")[0]:
                setattr(request, field, real)
        if getattr(request, "rendezvous_key", "") == "edge":
            request.rendezvous_key = edge_key(self._task)  # type: ignore[attr-defined]
        for field in ("options", "run_options"):
            if hasattr(getattr(request, field, None), "timeout_in_ms"):
                getattr(request, field).timeout_in_ms = int(PATIENCE * 1000)
        if isinstance(request, master.CreateSessionRequest):
            request.config.operation_timeout_in_ms = int(PATIENCE * 1000)
        if isinstance(request, worker.RunGraphRequest):
            request.is_partial = False  # a partial run waits for its master's next call
        return request.SerializeToString()

    def _answer(self, method: str, data: bytes) -> tuple[int, str]:
        timers: list[threading.Timer] = []

        def notice(gone: Callable[[], None]) -> bool:
            """A caller without patience; one that asks for a tensor takes it only if it is there."""
            timers.append(threading.Timer(PATIENCE, gone))
            timers[-1].daemon = True
            timers[-1].start()
            return method != "RecvTensor"

        code, text, _ = answer(self._task.name, method, self._methods[method], data, ServerCall(notice))
        for timer in timers:
            timer.cancel()
            timer.join()
        return code, text

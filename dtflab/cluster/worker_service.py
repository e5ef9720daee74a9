"""The worker service of a task: a message becomes a call of its worker, and the result a message.

Stands for `rpc/grpc_worker_service.cc`. Left out: collectives.

Rules: messages are TensorFlow's (`protos/`), so masters and workers of TensorFlow may call. What a master leaves behind
that is gone or has restarted ends here.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dtflab.base import errors
from dtflab.cluster.admission import InFlight, check_sessions
from dtflab.cluster.answering import Method, ServerCall, as_long_as
from dtflab.cluster.faults import Setting
from dtflab.cluster.held_graphs import HeldGraphs
from dtflab.cluster.incoming import graph_of
from dtflab.cluster.status import stored
from dtflab.cluster.tensor_codec import Buffer, Pieces, parse_named, serialize_named
from dtflab.cluster.tensor_response import recv_tensor_response
from dtflab.cluster.views import VIEWS, View
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.machine import host_memory
from dtflab.machine.step_stats import trace_of
from dtflab.protos import worker_pb2 as messages
from dtflab.protos.link_pb2 import LimitedSessionRequest
from dtflab.protos.worker_pb2 import RunGraphRequest, RunGraphResponse
from dtflab.runtime.blocked import Report, may_wait
from dtflab.runtime.pushing import receiver
from dtflab.runtime.rendezvous import DEAD
from dtflab.runtime.transport import Scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dtflab.cluster.task import Task
    from dtflab.machine.clock import Event
    from dtflab.runtime.runner import Step
    from dtflab.runtime.transport import Feeds

_NO_COLLECTIVES = "dtflab has no collective operations: use parameter servers, or tf.train.AllReduceOptimizer."
_ByKey = list[tuple[str, object]]  # keys of a rendezvous and their values


class WorkerService:
    """`tensorflow.WorkerService` of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._worker = task.worker
        self._clock = task.master.clock
        self._lock = threading.Lock()
        self._sessions: dict[str, _WorkerSession] = {}
        self._partial: dict[int, _PartialStep] = {}  # by step id
        self._steps: dict[int, str] = {}  # those that have begun here and are not over → their sessions
        self._in_flight = InFlight(task)
        self._held = HeldGraphs(task, self._begin_held, self._abandon)

    def methods(self) -> Mapping[str, Method]:
        """Method name → its function."""
        return {
            "GetStatus": self._get_status,
            "CreateWorkerSession": self._create_worker_session,
            "CreateLimitedSession": self._create_limited_session,  # dtflab's own
            "DeleteWorkerSession": self._delete_worker_session,
            "RegisterGraph": self._register_graph,
            "DeregisterGraph": self._deregister_graph,
            "RunGraph": self._run_graph,
            "CleanupGraph": self._cleanup_graph,
            "CleanupAll": self._cleanup_all,
            "RecvTensor": self._recv_tensor,
            "MarkRecvFinished": _nothing(messages.MarkRecvFinishedResponse()),
            "Logging": _nothing(messages.LoggingResponse()),
            **{name: partial(self._view, view) for name, view in VIEWS.items()},  # dtflab's own
            **self._held.methods(),  # dtflab's own, too
            "SetFaults": self._set_faults,
            "Tracing": _unimplemented("Tracing: run a step with RunOptions.FULL_TRACE instead."),
            "RecvBuf": _unimplemented(_NO_COLLECTIVES),
            "CompleteGroup": _unimplemented(_NO_COLLECTIVES),
            "CompleteInstance": _unimplemented(_NO_COLLECTIVES),
            "GetStepSequence": _unimplemented(_NO_COLLECTIVES),
        }

    def _get_status(self, data: Buffer, call: ServerCall) -> bytes:
        return messages.GetStatusResponse(device_attributes=self._worker.get_status()).SerializeToString()

    def _create_worker_session(self, data: Buffer, call: ServerCall) -> bytes:
        return self._create(messages.CreateWorkerSessionRequest.FromString(data), None)

    def _create_limited_session(self, data: Buffer, call: ServerCall) -> bytes:
        limited = LimitedSessionRequest.FromString(data)
        return self._create(messages.CreateWorkerSessionRequest.FromString(limited.session), limited.folder)

    def _create(self, request: messages.CreateWorkerSessionRequest, files: str | None) -> bytes:
        brought = request.server_def if request.server_def.cluster.job else None
        scope = Scope(brought, request.isolate_session_state, files)
        master, incarnation = request.master_task, request.master_incarnation
        self._worker.create_worker_session(request.session_handle, master, incarnation, scope)
        with self._lock:
            if request.session_handle not in self._sessions:
                check_sessions(len(self._sessions), self._task)
            lost = [h for h, s in self._sessions.items() if s.master == master and s.incarnation != incarnation]
            self._sessions.setdefault(request.session_handle, _WorkerSession(master, incarnation))
        for handle in lost if master else ():  # that master has restarted, and will not close them any more
            self._delete(handle)
        return messages.CreateWorkerSessionResponse().SerializeToString()

    def _delete_worker_session(self, data: Buffer, call: ServerCall) -> bytes:
        self._delete(messages.DeleteWorkerSessionRequest.FromString(data).session_handle)
        host_memory.give_back()
        return messages.DeleteWorkerSessionResponse().SerializeToString()

    def _delete(self, handle: str) -> None:
        with self._lock:
            session = self._sessions.pop(handle, None)
        for step_id in [step_id for step_id, owner in list(self._steps.items()) if owner == handle]:
            self._abandon(step_id)
        for graph_handle in session.graphs if session is not None else ():
            self._worker.deregister_graph(handle, graph_handle)
        self._worker.delete_worker_session(handle)

    def _abandon(self, step_id: int) -> None:
        self._steps.pop(step_id, None)
        gone = errors.AbortedError.of(f"The master of step {step_id} is gone.")
        self._held.end(step_id, gone)
        self._worker.abandon_graph(step_id, gone)

    def _session(
        self, request: messages.RegisterGraphRequest | messages.DeregisterGraphRequest | RunGraphRequest
    ) -> _WorkerSession:
        session = self._sessions.get(request.session_handle)
        if session is None:
            raise errors.AbortedError.of(
                f"Session handle is not found: {request.session_handle}. Possibly this worker "
                f'("{self._task.name}") just restarted.'
            )
        return session

    def _register_graph(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.RegisterGraphRequest.FromString(data)
        session = self._session(request)
        going = as_long_as(call)
        graph = graph_of(request.graph_def, going)
        graph_handle = self._worker.register_graph(request.session_handle, graph.inlined, going)
        session.graphs[graph_handle] = Report([self._worker]) if may_wait(graph.inlined) else None
        return messages.RegisterGraphResponse(graph_handle=graph_handle).SerializeToString()

    def _deregister_graph(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.DeregisterGraphRequest.FromString(data)
        self._session(request).graphs.pop(request.graph_handle, None)
        self._worker.deregister_graph(request.session_handle, request.graph_handle)
        return messages.DeregisterGraphResponse().SerializeToString()

    def _run_graph(self, data: Buffer, call: ServerCall) -> Pieces:
        request, sent = parse_named(RunGraphRequest, data, "send")
        response = RunGraphResponse()
        try:
            self._task.note("RunGraph", self._session(request).master, request.graph_handle)
            self._steps[request.step_id] = request.session_handle
            with self._in_flight:
                received = (self._go_on if request.is_partial else self._drive)(request, sent, response, call)
        except errors.OpError as error:
            if not request.store_errors_in_response_body:
                raise
            return [stored(RunGraphResponse(), error)]
        return serialize_named(response, "recv", received)

    def _drive(self, request: RunGraphRequest, sent: Feeds, response: RunGraphResponse, call: ServerCall) -> _ByKey:
        """Run a registered partition on this thread; the values that the master asked for with it."""
        trace = trace_of(self._clock, request.exec_opts.record_timeline)
        step = self._task.master.new_step(request.step_id, self._clock, trace=trace)
        step.tell = call.tell
        call.on_end(step.cancel)
        for key, value in sent:
            self._worker.rendezvous.find(request.step_id).send(key, value)
        report = self._session(request).graphs.get(request.graph_handle)
        if report is not None:
            report.watch(step)
        self._worker.run_graph(request.session_handle, request.graph_handle, step)
        try:
            step.drive()
        except errors.OpError as error:  # requests for its tensors from now on fail, too
            self._worker.rendezvous.find(request.step_id).abort(error)
            raise
        finally:
            if call.is_gone:  # and cleans up nothing
                self._abandon(request.step_id)
        if step.was_blocked and report is not None:
            report.ended_well()
        if trace is not None and trace.wanted:
            trace.write(response.step_stats)
        if request.exec_opts.record_partition_graphs:
            for executor in self._worker.session(request.session_handle).graphs.executors(request.graph_handle):
                response.partition_graph.add().CopyFrom(nodes_to_proto(executor.nodes))
        return self._received(request, call)

    def _begin_held(self, request: RunGraphRequest, step: Step) -> None:
        """Start a registered partition that stands still before each set."""
        self._task.note("HoldGraph", self._session(request).master, request.graph_handle)
        self._steps[request.step_id] = request.session_handle
        self._worker.run_graph(request.session_handle, request.graph_handle, step)

    def _received(self, request: RunGraphRequest, call: ServerCall) -> _ByKey:
        received = []
        for key in request.recv_key:
            value = self._awaited(request.step_id, key, call)
            if value is DEAD:
                raise errors.InvalidArgumentError.of(f"The tensor returned for {key} was not valid.")
            received.append((key, value))
        return received

    def _go_on(self, request: RunGraphRequest, sent: Feeds, response: RunGraphResponse, call: ServerCall) -> _ByKey:
        """Part of a partial run: the first call starts the partition on a thread of its own, the last awaits it."""
        with self._lock:
            running = self._partial.get(request.step_id)
            if running is None:
                self._in_flight.check(len(self._partial))
                running = self._partial[request.step_id] = self._begin(request)
        for key, value in sent:
            self._worker.rendezvous.find(request.step_id).send(key, value)
        received = self._received(request, call)
        if request.is_last_partial_run:
            call.on_end(running.step.cancel)
            running.ended.wait()
            self._partial.pop(request.step_id, None)
            if running.step.error is not None:
                raise running.step.error
        return received

    def _begin(self, request: RunGraphRequest) -> _PartialStep:
        running = _PartialStep(self._task.master.new_step(request.step_id, self._clock), self._clock.event())

        def drive() -> None:
            with contextlib.suppress(errors.OpError):  # the error reaches every op that waits for a value of this step
                running.step.drive()
            running.ended.set()

        self._worker.run_graph(request.session_handle, request.graph_handle, running.step)
        self._clock.spawn(drive, name=f"partial run {request.step_id:x}")
        return running

    def _recv_tensor(self, data: Buffer, call: ServerCall) -> Pieces:
        request = messages.RecvTensorRequest.FromString(data)
        self._check_sender(request.rendezvous_key)
        value = self._awaited(request.step_id, request.rendezvous_key, call)
        self._task.note("RecvTensor", receiver(request.rendezvous_key), request.rendezvous_key, value)
        return recv_tensor_response(value)

    def _check_sender(self, key: str) -> None:
        """Refuse the key of an unknown device, or of one as it was before a restart: nothing is ever sent under it."""
        try:
            sender, incarnation, _, _, _ = key.split(";")
            wanted = int(incarnation, 16)
        except ValueError:
            raise errors.InvalidArgumentError.of(f"Invalid rendezvous key: {key}") from None
        name = sender.rpartition("/device:")[2]
        device = next((d for d in self._worker.devices if d.name.endswith(f"/device:{name}")), None)
        if device is None:
            raise errors.InvalidArgumentError.of(f"/device:{name} unknown device.")
        if wanted != device.incarnation:
            raise errors.AbortedError.of(
                f"RecvTensor expects a different device incarnation: {wanted} vs. {device.incarnation}. Your worker "
                f'job ("{self._task.name}") was probably restarted. Check your worker job for the reason why it was '
                "restarted."
            )

    def _awaited(self, step_id: int, key: str, call: ServerCall) -> object:
        """The value of a key, as soon as it is there. The thread waits; there is always another one."""
        arrived = self._clock.event()
        answers: list[tuple[object, Exception | None]] = []

        def done(value: object, error: Exception | None = None) -> None:
            answers.append((value, error))
            arrived.set()

        give_up = self._worker.recv_tensor(step_id, key, done)
        if not answers:
            call.on_end(lambda why: give_up())
            call.on_end(lambda why: done(None, why))
            arrived.wait()
        value, error = answers[0]
        if error is not None:
            raise error
        return value

    def _view(self, view: View, data: Buffer, call: ServerCall) -> bytes:
        return json.dumps(view(self._task)).encode()

    def _set_faults(self, data: Buffer, call: ServerCall) -> bytes:
        self._task.set_faults(Setting.from_json(bytes(data)))
        return b""

    def _cleanup_graph(self, data: Buffer, call: ServerCall) -> bytes:
        step_id = messages.CleanupGraphRequest.FromString(data).step_id
        self._held.end(step_id, errors.CancelledError.of(f"Step {step_id} has ended."))
        self._worker.cleanup_graph(step_id)
        self._partial.pop(step_id, None)
        self._steps.pop(step_id, None)
        return messages.CleanupGraphResponse().SerializeToString()

    def _cleanup_all(self, data: Buffer, call: ServerCall) -> bytes:
        self._worker.cleanup_all(list(messages.CleanupAllRequest.FromString(data).container))
        return messages.CleanupAllResponse().SerializeToString()


class _WorkerSession:
    """A master's session on this task."""

    def __init__(self, master: str, incarnation: int) -> None:
        self.master = master
        self.incarnation = incarnation
        self.graphs: dict[str, Report | None] = {}  # by their handles; with a report, if their steps can wait


class _PartialStep(NamedTuple):
    """A partial run of another task's master, between its first and its last call."""

    step: Step
    ended: Event


def _unimplemented(text: str) -> Method:
    def method(data: Buffer, call: ServerCall) -> bytes:
        raise errors.UnimplementedError.of(text)

    return method


def _nothing(response: Message) -> Method:
    """A method that has nothing to do."""
    answer = response.SerializeToString()
    return lambda data, call: answer

"""The services of a task: a message becomes a call of its master or worker, and the result a message.

Stands for `rpc/grpc_master_service.cc` and `rpc/grpc_worker_service.cc`. Left out: collectives.

Rules: messages are TensorFlow's (`protos/`). A method takes the bytes of a request and gives those of the
answer, or raises a class of `errors`; it may wait, for it has a thread of its own. A waiting thread is woken when the
call ends.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.limits import beyond, limits
from dtflab.cluster.faults import Setting
from dtflab.cluster.incoming import graph_of
from dtflab.cluster.stepping import Stepping
from dtflab.cluster.tensor_codec import (
    NO_HEADER,
    Buffer,
    Pieces,
    framed,
    parse,
    parse_named,
    serialize,
    serialize_named,
)
from dtflab.cluster.views import VIEWS, View
from dtflab.graph import device_spec
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.graph.node import Node, by_name
from dtflab.machine import host_memory
from dtflab.machine.step_stats import trace_of
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from dtflab.protos.config_pb2 import CallableOptions
from dtflab.protos.worker_pb2 import RunGraphRequest, RunGraphResponse
from dtflab.runtime.blocked import Report, may_wait
from dtflab.runtime.pushing import receiver
from dtflab.runtime.rendezvous import DEAD
from dtflab.runtime.transport import Scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dtflab.cluster.task import Task
    from dtflab.machine.clock import Event
    from dtflab.protos.config_pb2 import RunMetadata, RunOptions
    from dtflab.runtime.runner import Step
    from dtflab.runtime.transport import Feeds, LocalMaster


class Answering(Protocol):
    """A call that is being answered. Its caller may be gone; then nobody waits for the answer."""

    is_gone: bool
    tell: Callable[[str], object]  # takes a line for the person who waits for the answer

    def on_end(self, callback: Callable[[errors.OpError], object]) -> None:
        """Call `callback(why)` if the caller gives up or the task stops; at once if that has happened."""


Method = Callable[[Buffer, Answering], bytes | Pieces]
_ByKey = list[tuple[str, object]]  # keys of a rendezvous and their values


def _as_long_as(call: Answering) -> Callable[[], object]:
    """A check for long work, between two parts of it: raises an error once nobody waits for the answer to `call`."""
    ended: list[errors.OpError] = []
    call.on_end(ended.append)

    def going() -> None:
        if ended:
            raise ended[0]

    return going


class _InFlight:
    """The calls of a service that run steps, at most `limits.steps` at a time."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> None:
        with self._lock:
            self.check(self._count)
            self._count += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._count -= 1

    def check(self, count: int) -> None:
        """ResourceExhaustedError if there are `count` steps and that is as many as there may be."""
        if count >= limits.steps:
            raise errors.ResourceExhaustedError.of(beyond("steps", f"{self._task.name} runs {count} steps"))


def _check_sessions(count: int, task: Task) -> None:
    if count >= limits.sessions:
        raise errors.ResourceExhaustedError.of(beyond("sessions", f"{task.name} has {count} sessions"))


class MasterService:
    """`tensorflow.MasterService` of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._master: LocalMaster = task.master
        self._lock = threading.Lock()
        self._graphs: dict[str, _Growing] = {}  # by session
        self._steps = _InFlight(task)
        self._callables: dict[tuple[str, int], CallableOptions] = {}
        self._numbers = itertools.count(1)
        self._stepping = Stepping(task.master)

    def methods(self) -> Mapping[str, Method]:
        """Method name → its function."""
        return {
            **self._stepping.methods(),
            "CreateSession": self._create_session,
            "ExtendSession": self._extend_session,
            "PartialRunSetup": self._partial_run_setup,
            "RunStep": self._run_step,
            "CloseSession": self._close_session,
            "ListDevices": self._list_devices,
            "Reset": self._reset,
            "MakeCallable": self._make_callable,
            "RunCallable": self._run_callable,
            "ReleaseCallable": self._release_callable,
            "Placed": self._placed,  # dtflab's own
            "Reasons": self._reasons,
        }

    def _create_session(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.CreateSessionRequest.FromString(data)
        _check_sessions(len(self._graphs), self._task)
        graph = graph_of(request.graph_def, _as_long_as(call))
        handle = self._master.create_session(graph.inlined, request.config, target=request.target)
        self._graphs[handle] = _Growing(graph.nodes)
        call.on_end(lambda why: self._forget(handle))  # nobody will ever know the handle
        return master_messages.CreateSessionResponse(session_handle=handle, graph_version=0).SerializeToString()

    def _placed(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.RunStepRequest.FromString(data)
        nodes = self._master.placed(request.session_handle, list(request.fetch), list(request.target))
        return nodes_to_proto(nodes).SerializeToString()

    def _reasons(self, data: Buffer, call: Answering) -> bytes:
        handle = master_messages.ListDevicesRequest.FromString(data).session_handle
        return json.dumps(self._master.reasons(handle)).encode()

    def _extend_session(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.ExtendSessionRequest.FromString(data)
        graph = self._graph(request.session_handle)
        with graph.lock:
            expected = request.current_graph_version
            if graph.version != expected:
                raise errors.AbortedError.of(f"Current version is {graph.version} but caller expected {expected}.")
            new = graph_of(request.graph_def, _as_long_as(call), graph.nodes)
            self._master.extend_session(request.session_handle, new.inlined)
            graph.extend(new.nodes)
        return master_messages.ExtendSessionResponse(new_graph_version=graph.version).SerializeToString()

    def _graph(self, handle: str) -> _Growing:
        self._master.session(handle)  # raises for an unknown handle
        return self._graphs.setdefault(handle, _Growing(()))

    def _run_step(self, data: Buffer, call: Answering) -> Pieces:
        request, feeds = parse_named(master_messages.RunStepRequest, data, "feed")
        handle, response = request.session_handle, master_messages.RunStepResponse()
        try:
            if request.partial_run_handle:
                values = self._master.partial_run(handle, request.partial_run_handle, feeds, list(request.fetch))
            elif not request.fetch and not request.target:
                raise errors.InvalidArgumentError.of("Must specify at least one target to fetch or execute.")
            else:
                options, metadata = request.options, response.metadata
                values = self._run(handle, feeds, request.fetch, request.target, options, metadata, call)
        except errors.OpError as error:
            if not request.store_errors_in_response_body:
                raise
            return _failed(master_messages.RunStepResponse(), error)
        return serialize_named(response, "tensor", zip(request.fetch, values, strict=True))

    def _run(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Iterable[str],
        targets: Iterable[str],
        options: RunOptions,
        metadata: RunMetadata,
        call: Answering,
    ) -> list[object]:
        """Run a step, which ends when its caller gives up."""
        wanted = metadata if options.trace_level or options.output_partition_graphs else None

        def begins(step: Step) -> None:
            step.tell = call.tell
            call.on_end(step.cancel)

        with self._steps:
            return self._master.run_step(handle, feeds, list(fetches), list(targets), options, wanted, begins)

    def _partial_run_setup(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.PartialRunSetupRequest.FromString(data)
        feeds, fetches, targets = list(request.feed), list(request.fetch), list(request.target)
        self._steps.check(len(self._master.running()))
        handle = self._master.partial_run_setup(request.session_handle, feeds, fetches, targets)
        return master_messages.PartialRunSetupResponse(partial_run_handle=handle).SerializeToString()

    def _close_session(self, data: Buffer, call: Answering) -> bytes:
        handle = master_messages.CloseSessionRequest.FromString(data).session_handle
        self._master.session(handle)
        self._forget(handle)
        host_memory.give_back()
        return master_messages.CloseSessionResponse().SerializeToString()

    def _forget(self, handle: str) -> None:
        self._graphs.pop(handle, None)
        self._stepping.forget(handle)
        for key in [key for key in list(self._callables) if key[0] == handle]:
            self._callables.pop(key, None)
        self._master.close_session(handle)

    def _list_devices(self, data: Buffer, call: Answering) -> bytes:
        handle = master_messages.ListDevicesRequest.FromString(data).session_handle
        devices = self._master.list_devices(handle) if handle else self._task.worker.get_status()
        own = self._master.session(handle).task if handle else self._task.name
        response = master_messages.ListDevicesResponse()
        for device in devices:
            is_own = device_spec.task_name(device.name) == own
            (response.local_device if is_own else response.remote_device).append(device)
        return response.SerializeToString()

    def _reset(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.ResetRequest.FromString(data)
        self._graphs.clear()
        self._callables.clear()
        self._master.reset(list(request.container))
        return master_messages.ResetResponse().SerializeToString()

    def _make_callable(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.MakeCallableRequest.FromString(data)
        self._master.session(request.session_handle)
        if request.options.tensor_connection:
            raise errors.UnimplementedError.of("dtflab's callables have no tensor connections.")
        with self._lock:
            number = next(self._numbers)
            self._callables[request.session_handle, number] = request.options
        return master_messages.MakeCallableResponse(handle=number).SerializeToString()

    def _run_callable(self, data: Buffer, call: Answering) -> Pieces:
        request, feeds = parse(master_messages.RunCallableRequest, data, "feed")
        wanted = self._callable(request)
        if len(feeds) != len(wanted.feed):
            raise errors.InvalidArgumentError.of(f"Expected {len(wanted.feed)} feed tensors, but got {len(feeds)}.")
        named, response = list(zip(wanted.feed, feeds, strict=True)), master_messages.RunCallableResponse()
        handle, options, metadata = request.session_handle, wanted.run_options, response.metadata
        values = self._run(handle, named, wanted.fetch, wanted.target, options, metadata, call)
        return serialize(response, "fetch", values)

    def _callable(
        self, request: master_messages.RunCallableRequest | master_messages.ReleaseCallableRequest
    ) -> CallableOptions:
        try:
            return self._callables[request.session_handle, request.handle]
        except KeyError:
            raise errors.InvalidArgumentError.of(f"No such callable handle: {request.handle}") from None

    def _release_callable(self, data: Buffer, call: Answering) -> bytes:
        request = master_messages.ReleaseCallableRequest.FromString(data)
        self._callable(request)
        self._callables.pop((request.session_handle, request.handle), None)
        return master_messages.ReleaseCallableResponse().SerializeToString()


class _Growing:
    """The graph of a session as its client sent it so far."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.lock = threading.Lock()
        self.version = 0
        self.nodes = by_name(nodes)

    def extend(self, nodes: Sequence[Node]) -> None:
        self.nodes.update(by_name(nodes))
        self.version += 1


def recv_tensor_response(value: object) -> Pieces:
    """The answer to a RecvTensor."""
    response = worker_messages.RecvTensorResponse()
    if value is DEAD:
        response.is_dead = True
        return [response.SerializeToString()]
    return serialize(response, "tensor", [value])


def pushed_tensor(value: object) -> Pieces:
    """A tensor that is pushed: framed, or as the answer to a RecvTensor."""
    return framed(value) or [NO_HEADER, *recv_tensor_response(value)]


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
        self._in_flight = _InFlight(task)

    def methods(self) -> Mapping[str, Method]:
        """Method name → its function."""
        return {
            "GetStatus": self._get_status,
            "CreateWorkerSession": self._create_worker_session,
            "DeleteWorkerSession": self._delete_worker_session,
            "RegisterGraph": self._register_graph,
            "DeregisterGraph": self._deregister_graph,
            "RunGraph": self._run_graph,
            "CleanupGraph": self._cleanup_graph,
            "CleanupAll": self._cleanup_all,
            "RecvTensor": self._recv_tensor,
            "MarkRecvFinished": _nothing(worker_messages.MarkRecvFinishedResponse()),
            "Logging": _nothing(worker_messages.LoggingResponse()),
            **{name: partial(self._view, view) for name, view in VIEWS.items()},  # dtflab's own
            "SetFaults": self._set_faults,
            "Tracing": _unimplemented("Tracing: run a step with RunOptions.FULL_TRACE instead."),
            "RecvBuf": _unimplemented(_NO_COLLECTIVES),
            "CompleteGroup": _unimplemented(_NO_COLLECTIVES),
            "CompleteInstance": _unimplemented(_NO_COLLECTIVES),
            "GetStepSequence": _unimplemented(_NO_COLLECTIVES),
        }

    def _get_status(self, data: Buffer, call: Answering) -> bytes:
        return worker_messages.GetStatusResponse(device_attributes=self._worker.get_status()).SerializeToString()

    def _create_worker_session(self, data: Buffer, call: Answering) -> bytes:
        request = worker_messages.CreateWorkerSessionRequest.FromString(data)
        scope = Scope(request.server_def if request.server_def.cluster.job else None, request.isolate_session_state)
        master, incarnation = request.master_task, request.master_incarnation
        self._worker.create_worker_session(request.session_handle, master, incarnation, scope)
        with self._lock:
            if request.session_handle not in self._sessions:
                _check_sessions(len(self._sessions), self._task)
            lost = [h for h, s in self._sessions.items() if s.master == master and s.incarnation != incarnation]
            self._sessions.setdefault(request.session_handle, _WorkerSession(master, incarnation))
        for handle in lost if master else ():  # that master has restarted, and will not close them any more
            self._delete(handle)
        return worker_messages.CreateWorkerSessionResponse().SerializeToString()

    def _delete_worker_session(self, data: Buffer, call: Answering) -> bytes:
        self._delete(worker_messages.DeleteWorkerSessionRequest.FromString(data).session_handle)
        host_memory.give_back()
        return worker_messages.DeleteWorkerSessionResponse().SerializeToString()

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
        self._worker.abandon_graph(step_id, errors.AbortedError.of(f"The master of step {step_id} is gone."))

    def _session(
        self, request: worker_messages.RegisterGraphRequest | worker_messages.DeregisterGraphRequest | RunGraphRequest
    ) -> _WorkerSession:
        session = self._sessions.get(request.session_handle)
        if session is None:
            raise errors.AbortedError.of(
                f"Session handle is not found: {request.session_handle}. Possibly this worker "
                f'("{self._task.name}") just restarted.'
            )
        return session

    def _register_graph(self, data: Buffer, call: Answering) -> bytes:
        request = worker_messages.RegisterGraphRequest.FromString(data)
        session = self._session(request)
        graph = graph_of(request.graph_def, _as_long_as(call))
        graph_handle = self._worker.register_graph(request.session_handle, graph.inlined)
        session.graphs[graph_handle] = Report([self._worker]) if may_wait(graph.inlined) else None
        return worker_messages.RegisterGraphResponse(graph_handle=graph_handle).SerializeToString()

    def _deregister_graph(self, data: Buffer, call: Answering) -> bytes:
        request = worker_messages.DeregisterGraphRequest.FromString(data)
        self._session(request).graphs.pop(request.graph_handle, None)
        self._worker.deregister_graph(request.session_handle, request.graph_handle)
        return worker_messages.DeregisterGraphResponse().SerializeToString()

    def _run_graph(self, data: Buffer, call: Answering) -> Pieces:
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
            return _failed(RunGraphResponse(), error)
        return serialize_named(response, "recv", received)

    def _drive(self, request: RunGraphRequest, sent: Feeds, response: RunGraphResponse, call: Answering) -> _ByKey:
        """Run a registered partition on this thread; the values that the master asked for with it."""
        trace = trace_of(self._clock, request.exec_opts.record_timeline)
        step = self._task.master.new_step(request.step_id, self._clock, trace=trace)
        if trace is not None:
            trace.step = step.step_id
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

    def _received(self, request: RunGraphRequest, call: Answering) -> _ByKey:
        received = []
        for key in request.recv_key:
            value = self._awaited(request.step_id, key, call)
            if value is DEAD:
                raise errors.InvalidArgumentError.of(f"The tensor returned for {key} was not valid.")
            received.append((key, value))
        return received

    def _go_on(self, request: RunGraphRequest, sent: Feeds, response: RunGraphResponse, call: Answering) -> _ByKey:
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

    def _recv_tensor(self, data: Buffer, call: Answering) -> Pieces:
        request = worker_messages.RecvTensorRequest.FromString(data)
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

    def _awaited(self, step_id: int, key: str, call: Answering) -> object:
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

    def _view(self, view: View, data: Buffer, call: Answering) -> bytes:
        return json.dumps(view(self._task)).encode()

    def _set_faults(self, data: Buffer, call: Answering) -> bytes:
        self._task.faults.set(Setting.from_json(bytes(data)))
        return b""

    def _cleanup_graph(self, data: Buffer, call: Answering) -> bytes:
        step_id = worker_messages.CleanupGraphRequest.FromString(data).step_id
        self._worker.cleanup_graph(step_id)
        self._partial.pop(step_id, None)
        self._steps.pop(step_id, None)
        return worker_messages.CleanupGraphResponse().SerializeToString()

    def _cleanup_all(self, data: Buffer, call: Answering) -> bytes:
        self._worker.cleanup_all(list(worker_messages.CleanupAllRequest.FromString(data).container))
        return worker_messages.CleanupAllResponse().SerializeToString()


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


_NO_COLLECTIVES = "dtflab has no collective operations: use parameter servers, or tf.train.AllReduceOptimizer."


def _unimplemented(text: str) -> Method:
    def method(data: Buffer, call: Answering) -> bytes:
        raise errors.UnimplementedError.of(text)

    return method


def _nothing(response: Message) -> Method:
    """A method that has nothing to do."""
    answer = response.SerializeToString()
    return lambda data, call: answer


def _failed(response: master_messages.RunStepResponse | RunGraphResponse, error: errors.OpError) -> Pieces:
    """An OK answer that carries an error, as TensorFlow's clients and masters ask for."""
    response.status_code = error.error_code  # type: ignore[assignment]  # Code is a class for the type checker only
    response.status_error_message = error.message
    return [response.SerializeToString()]


def request_of(method: str, data: Buffer) -> Message | None:
    """The message of a call that says which step it belongs to, for those who watch; None for any other."""
    kinds: dict[str, type[Message]] = {
        "RecvTensor": worker_messages.RecvTensorRequest,
        "CleanupGraph": worker_messages.CleanupGraphRequest,
    }
    try:
        return kinds[method].FromString(data) if method in kinds else None
    except DecodeError:  # the service itself will say so
        return None

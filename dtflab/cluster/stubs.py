"""Stubs: a master or a worker of another process, with the methods that it would have in this one.

Stands for `rpc/grpc_remote_master.cc` and `rpc/grpc_remote_worker.cc`. Left out: collectives.

Rules: messages are TensorFlow's (`protos/`), so the other end may be a TensorFlow process. Only `run_step`,
what happens once per session, and the announcement of a trace wait for their answers; what happens in a step
(`run_graph`, `recv_tensor`) leaves a callback.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.events import PROCESS, OpenCall
from dtflab.cluster.incoming import graph_of
from dtflab.cluster.stepping import RemoteSteps
from dtflab.cluster.tensor_codec import NO_HEADER, Buffer, Pieces, parse, parse_named, serialize_named, unframed
from dtflab.graph import device_spec
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.machine.console import say
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.runtime.blocked import tensor_wait
from dtflab.runtime.rendezvous import DEAD, Done
from dtflab.runtime.transport import SHARED, Scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dtflab.cluster.faults import Faults, Setting
    from dtflab.cluster.link import Link
    from dtflab.cluster.silence import Tell
    from dtflab.graph.node import Node
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.protos.step_stats_pb2 import StepStats
    from dtflab.runtime.pushing import PushingRendezvousMgr
    from dtflab.runtime.runner import Step
    from dtflab.runtime.steps import Steps
    from dtflab.runtime.transport import Explain, Feeds

T = TypeVar("T")
Answered = Callable[[Buffer, errors.OpError | None], object]  # with the answer, or its error
_SLACK = 0.5  # seconds that a master has to answer that time is up, before its client stops waiting


class Wire(Protocol):
    """The way to one address."""

    address: str
    task: str  # the task that lives there, as far as known

    def call(self, path: str, request: Pieces, timeout: float | None = None) -> Buffer:
        """Ask and wait for the answer. Raises a class of `errors`."""

    def start(
        self, path: str, request: Pieces, done: Answered | None = None, tell: Tell | None = None
    ) -> Callable[[], object]:
        """Ask; `done(answer, error)` comes later, on any thread. The result gives up waiting.

        `tell` takes the news of a call that somebody waits for.
        """

    def expect(self) -> None:
        """Note that the other end is awaited: it will push."""

    def tell(self, path: str, request: Pieces) -> None:
        """Ask for what takes no time, and whose answer nobody needs; perhaps only with the next call."""

    @property
    def link(self) -> Link | None:
        """The connection over which the other end can push, if there is one."""

    def lost(self, why: str) -> errors.OpError:
        """The error of what was awaited over a link that is lost."""

    def close(self) -> None: ...


ELSEWHERE = "another process"  # the caller, as far as known
_OF_A_STEP = (worker_messages.RunGraphRequest, worker_messages.RecvTensorRequest, worker_messages.CleanupGraphRequest)


def wire_call(method: str, source: str, target: str, request: Message | None, sent: int) -> OpenCall:
    """A call over gRPC between tasks, while somebody watches; `request` is its message, if known, of `sent` bytes."""
    key = request.rendezvous_key if isinstance(request, worker_messages.RecvTensorRequest) else ""
    if source == ELSEWHERE and key:
        with contextlib.suppress(ValueError, IndexError):  # the worker refuses such a key
            source = device_spec.task_name(key.split(";")[2])  # the receiver
    step = request.step_id if isinstance(request, _OF_A_STEP) else 0
    return OpenCall(method, source, target, key, step, sent)


class MasterStub:
    """The master at the end of a wire, for a client (transport.MasterInterface)."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._versions: dict[str, int] = {}
        self._timeouts: dict[str, int] = {}  # operation_timeout_in_ms of each session
        self._unanswered: dict[str, int] = {}  # nodes of the extension that a Ctrl-C has cut off from its answer

    @property
    def task(self) -> str:
        """The master's task, or its address until it has answered for the first time."""
        return self._wire.task or self._wire.address

    def _call(self, method: str, request: Message | Pieces, timeout: float | None = None) -> Buffer:
        data = request if isinstance(request, list) else [request.SerializeToString()]
        return self._wire.call(f"/tensorflow.MasterService/{method}", data, timeout)

    def local(self) -> None:
        """None: the master is in another process."""

    def create_session(self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None) -> str:
        """Open a session on a graph; ValueError for a `placer`, which can't travel."""
        if placer is not None:
            raise ValueError(
                "Session(placer=…) works where the master is in this process: tf.Session(placer=…), or the target of a "
                "Cluster with engine='inprocess'. A server in another process places by itself, so tell it with "
                "`with tf.device(…)`: a device function says for each operation where it goes."
            )
        request = master_messages.CreateSessionRequest(
            graph_def=nodes_to_proto(nodes), config=config, target=f"grpc://{self._wire.address}"
        )
        response = master_messages.CreateSessionResponse.FromString(self._call("CreateSession", request))
        handle = response.session_handle
        self._versions[handle] = response.graph_version
        self._timeouts[handle] = config.operation_timeout_in_ms if config is not None else 0
        return handle

    def extend_session(self, handle: str, nodes: Sequence[Node]) -> None:
        """Add nodes to the session's graph. The first may be there, if a Ctrl-C ended the call before."""
        first = self._unanswered.get(handle, 0)
        if first:
            try:
                self._add(handle, nodes[:first])
            except errors.AbortedError:  # of another version: they are
                self._versions[handle] += 1
        if nodes[first:] or not first:
            self._add(handle, nodes[first:])

    def _add(self, handle: str, nodes: Sequence[Node]) -> None:
        request = master_messages.ExtendSessionRequest(
            session_handle=handle, graph_def=nodes_to_proto(nodes), current_graph_version=self._versions.get(handle, 0)
        )
        self._unanswered[handle] = len(nodes)
        try:
            data = self._call("ExtendSession", request)
        except errors.OpError:
            del self._unanswered[handle]
            raise
        self._versions[handle] = master_messages.ExtendSessionResponse.FromString(data).new_graph_version
        del self._unanswered[handle]

    def run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[object]:
        """Run one step and wait for it. A Ctrl-C while waiting ends the step there, too."""
        request = master_messages.RunStepRequest(
            session_handle=handle, fetch=fetches, target=targets, options=options, store_errors_in_response_body=True
        )
        ms = (options.timeout_in_ms if options is not None else 0) or self._timeouts.get(handle, 0)
        response, values = self._step(request, feeds, ms)
        if metadata is not None:
            metadata.CopyFrom(response.metadata)
        return values

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> str:
        """Begin a step that is fed and fetched in several calls."""
        request = master_messages.PartialRunSetupRequest(
            session_handle=handle, feed=feeds, fetch=fetches, target=targets
        )
        data = self._call("PartialRunSetup", request)
        return master_messages.PartialRunSetupResponse.FromString(data).partial_run_handle

    def partial_run(self, handle: str, partial_handle: str, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        """Feed and fetch part of a partial run."""
        request = master_messages.RunStepRequest(
            session_handle=handle, partial_run_handle=partial_handle, fetch=fetches, store_errors_in_response_body=True
        )
        return self._step(request, feeds, self._timeouts.get(handle, 0))[1]

    def _step(
        self, request: master_messages.RunStepRequest, feeds: Feeds, ms: int
    ) -> tuple[master_messages.RunStepResponse, list[object]]:
        """The answer to a step that may take `ms` milliseconds (0: as long as it likes), and what it fetched."""
        data = self._call("RunStep", serialize_named(request, "feed", feeds), ms / 1000 + _SLACK if ms > 0 else None)
        response, tensors = parse_named(master_messages.RunStepResponse, data, "tensor")
        _raise_stored(response)
        values = dict(tensors)
        return response, [values[name] for name in request.fetch]

    def step_through(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None,
        metadata: RunMetadata | None,
        rebuild: Callable[[list[object]], object],
        explain: Explain,
    ) -> Steps:
        """Begin a step that stands still there before each set; NotImplementedError if the master is TensorFlow's."""
        try:
            return RemoteSteps(self._call, handle, feeds, fetches, targets, options, metadata, rebuild, explain)
        except errors.UnimplementedError:
            raise NotImplementedError(
                f"The master at {self._wire.address} is not one of dtflab: it runs its steps in one go. Step through a "
                "session of dtflab: tf.Session(), or tf.Session(cluster.target) of a tf.Cluster(…)."
            ) from None

    def close_session(self, handle: str) -> None:
        """Release the session there, if it still exists (TensorFlow raises if not, and so hides why)."""
        for known in (self._versions, self._timeouts, self._unanswered):
            known.pop(handle, None)
        with contextlib.suppress(errors.AbortedError, errors.UnavailableError):
            self._call("CloseSession", master_messages.CloseSessionRequest(session_handle=handle))

    def reset(self, containers: Sequence[str]) -> None:
        """Close all sessions there and empty containers."""
        self._call("Reset", master_messages.ResetRequest(container=containers))

    def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """The devices of the session."""
        data = self._call("ListDevices", master_messages.ListDevicesRequest(session_handle=handle))
        response = master_messages.ListDevicesResponse.FromString(data)
        return [*response.local_device, *response.remote_device]

    def placed(self, handle: str, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph; NotImplementedError if the master does not report it, as TensorFlow's."""
        request = master_messages.RunStepRequest(session_handle=handle, fetch=fetches, target=targets)
        return graph_of(GraphDef.FromString(self._report("Placed", request)), lambda: None).nodes

    def reasons(self, handle: str) -> dict[str, str]:
        """Why each node is where it is; NotImplementedError if the master does not report it, as TensorFlow's."""
        request = master_messages.ListDevicesRequest(session_handle=handle)
        found: dict[str, str] = json.loads(bytes(self._report("Reasons", request)))
        return found

    def _report(self, method: str, request: Message) -> Buffer:
        try:
            return self._call(method, request)
        except errors.UnimplementedError:
            raise NotImplementedError(
                f"The master at {self._wire.address} does not report its placement: it is not one of dtflab. Trace a "
                "run instead."
            ) from None

    def close(self) -> None:
        """Let the wire go; later calls raise CancelledError."""
        self._wire.close()


def _end_and_do(call: OpenCall, done: Answered | None, answer: Buffer, error: errors.OpError | None) -> None:
    """Note the end of a watched call, then pass its answer on."""
    call.received = len(answer)
    call.ended(error)
    if done is not None:
        done(answer, error)


class WorkerStub:
    """The worker `task` at the end of a wire, for a master or another worker (transport.WorkerInterface)."""

    def __init__(
        self,
        task: str,
        wire: Wire,
        source: str = "",
        inbox: PushingRendezvousMgr | None = None,
        faults: Faults | None = None,
    ) -> None:
        """`faults` are those of the task `source`, which calls."""
        self.task = task
        self._faults = faults
        self._wire = wire
        self._inbox = inbox  # of the calling task: where pushed tensors come
        self._pushing: Link | None = None  # over this link it pushes
        self._asking: dict[tuple[int, str], None] = {}  # tensors that were asked for and are not here, by step and key
        self._lock = threading.Lock()
        self._source = source  # the calling task, for listeners; "" for a call that only asks whether it is there
        self._over: deque[int] = deque()  # steps that went well, to be cleaned up when nobody waits for that

    def _call(self, method: str, request: Message, timeout: float | None = None) -> Buffer:
        data, path = request.SerializeToString(), f"/tensorflow.WorkerService/{method}"
        if self._faults is not None and not self._faults.is_quiet:
            self._faults.call(method, self.task)
        if not self._is_watched():
            return self._wire.call(path, [data], timeout)
        with wire_call(method, self._source, self.task, request, len(data)) as call:
            answer = self._wire.call(path, [data], timeout)
            call.received = len(answer)
            return answer

    def _start(
        self, method: str, request: Message, done: Answered | None = None, tell: Tell | None = None
    ) -> Callable[[], object]:
        data: bytes = request.SerializeToString()
        path = f"/tensorflow.WorkerService/{method}"
        if self._is_watched():
            call = wire_call(method, self._source, self.task, request, len(data))
            done = partial(_end_and_do, call, done)
        if self._faults is None:
            return self._wire.start(path, [data], done, tell)
        came = partial(self._came, done)

        def begin() -> Callable[[], object]:
            return self._wire.start(path, [data], came, tell)

        return begin() if self._faults.is_quiet else self._faults.hold(method, self.task, begin, partial(came, b""))

    def _came(
        self, done: Callable[[T, errors.OpError | None], object] | None, answer: T, error: errors.OpError | None
    ) -> None:
        """Pass an answer on; chaos may hold it."""
        if done is None:
            return
        if error is not None or self._faults is None or self._faults.is_quiet:
            done(answer, error)
        else:
            self._faults.carry(self.task, lambda lost: done(answer, lost))

    def _is_watched(self) -> bool:
        return bool(PROCESS.call and self._source)

    def local(self) -> None:
        """None: the worker is in another process."""

    def get_status(self, timeout: float = 5.0) -> list[DeviceAttributes]:
        """The worker's devices; UnavailableError if it does not answer in time."""
        data = self._state("GetStatus", timeout)
        devices = list(worker_messages.GetStatusResponse.FromString(data).device_attributes)
        if devices:
            self._wire.task = device_spec.task_name(devices[0].name)
        return devices

    def view(self, name: str, timeout: float = 5.0) -> list[object]:
        """The rows of one of `views.VIEWS`; UnavailableError if the task does not answer in time."""
        rows: list[object] = json.loads(bytes(self._state(name, timeout)))
        return rows

    def set_faults(self, setting: Setting, timeout: float = 5.0) -> None:
        """Set the faults of the task; FailedPreconditionError if it takes none."""
        self._wire.call("/tensorflow.WorkerService/SetFaults", [setting.as_json()], timeout)

    def _state(self, method: str, timeout: float) -> Buffer:
        try:
            return self._call(method, worker_messages.GetStatusRequest(), timeout)  # a message without fields
        except errors.DeadlineExceededError:
            where = f"Task {self.task} at {self._wire.address}" if self.task else self._wire.address
            raise errors.UnavailableError.of(f"{where} did not answer in {timeout:g} s (no answer).") from None

    def create_worker_session(
        self, session: str, master_task: str, master_incarnation: int, scope: Scope = SHARED
    ) -> None:
        """Announce a session."""
        incarnation = master_incarnation - (master_incarnation >> 63 << 64)  # the field is signed
        request = worker_messages.CreateWorkerSessionRequest(
            session_handle=session,
            master_task=master_task,
            master_incarnation=incarnation,
            server_def=scope.server_def,
            isolate_session_state=scope.isolated,
        )
        self._call("CreateWorkerSession", request)

    def delete_worker_session(self, session: str) -> None:
        """End a session."""
        self._tidy()
        self._call("DeleteWorkerSession", worker_messages.DeleteWorkerSessionRequest(session_handle=session))

    def register_graph(self, session: str, nodes: Sequence[Node]) -> str:
        """Send a partition; returns its handle there."""
        request = worker_messages.RegisterGraphRequest(
            session_handle=session, graph_def=nodes_to_proto(nodes), create_worker_session_called=True
        )
        data = self._call("RegisterGraph", request)
        return worker_messages.RegisterGraphResponse.FromString(data).graph_handle

    def deregister_graph(self, session: str, graph_handle: str) -> None:
        """Forget a partition."""
        request = worker_messages.DeregisterGraphRequest(
            session_handle=session, graph_handle=graph_handle, create_worker_session_called=True
        )
        self._call("DeregisterGraph", request)

    def run_graph(
        self,
        session: str,
        graph_handle: str,
        step: Step,
        args: Sequence[object] = (),
        results: list[object] | None = None,
    ) -> None:
        """Begin a partition there; the step hears of its end. Feeds and fetches stay with the master."""
        request = worker_messages.RunGraphRequest(
            session_handle=session,
            graph_handle=graph_handle,
            step_id=step.step_id,
            create_worker_session_called=True,
            store_errors_in_response_body=True,
        )
        request.exec_opts.record_timeline = step.traced
        if step.traced:
            self._call("Logging", worker_messages.LoggingRequest(enable_rpc_logging=True), timeout=5.0)
        self._tidy()
        cancel = self._start(
            "RunGraph", request, lambda data, error: step.post(self._ran, step, data, error), step.tell
        )
        step.expect()
        step.on_cancel(lambda error: cancel())

    def _ran(self, step: Step, data: Buffer, error: errors.OpError | None) -> None:
        """The partition has ended (called by the thread that drives the step)."""
        try:
            if error is not None:
                raise error
            if not data:  # an empty message, as of every step that went well and is not traced
                return
            with self._readable("RunGraph"):
                response = worker_messages.RunGraphResponse.FromString(data)
            _raise_stored(response)
        except errors.OpError as failed:
            if self.task not in failed.message:
                failed.message = f"From {self.task}:\n{failed.message}"
            step.fail(failed)
        else:
            if step.traced:
                self._ask_for_transfers(step, response.step_stats)

    def _ask_for_transfers(self, step: Step, ran: StepStats) -> None:
        """A task of TensorFlow reports what it received only when asked."""
        request = worker_messages.LoggingRequest(fetch_step_id=[step.step_id], disable_rpc_logging=True)
        step.expect()
        self._start(
            "Logging",
            request,
            lambda data, error: step.post(self._merge_transfers, step, ran, data, error),
            step.tell,
        )

    def _merge_transfers(self, step: Step, ran: StepStats, data: Buffer, error: errors.OpError | None) -> None:
        if error is None:  # a step must not fail because a part of its trace is missing
            devices = {stats.device: stats for stats in ran.dev_stats}
            for labeled in worker_messages.LoggingResponse.FromString(data).step:
                for stats in labeled.step_stats.dev_stats:
                    if stats.device not in devices:
                        devices[stats.device] = ran.dev_stats.add()
                    devices[stats.device].MergeFrom(stats)
        if step.trace is not None:
            step.trace.merge(ran)

    def recv_tensor(self, step_id: int, key: str, done: Done) -> Callable[[], object] | None:
        """Pull a value; the result gives up waiting. Or wait, as long as the step lasts, until it is pushed."""
        if self._inbox is not None and (link := self._pushing_link(self._inbox, step_id, key)) is not None:
            wait = partial(self._await_push, link, self._inbox, step_id, key, partial(self._came, done))
            if self._faults is None or self._faults.is_quiet:
                wait()
            else:
                self._faults.start("RecvTensor", self.task, lambda lost: done(None, lost) if lost else wait())
            return None

        def arrived(data: Buffer, error: errors.OpError | None) -> None:
            with self._lock:
                self._asking.pop((step_id, key), None)
            value = None
            try:
                if error is None:
                    with self._readable("RecvTensor"):
                        value = received(data)
            except errors.OpError as unreadable:
                error = unreadable
            done(value, error)

        request = worker_messages.RecvTensorRequest(step_id=step_id, rendezvous_key=key)
        return self._start("RecvTensor", request, arrived, say)

    def _pushing_link(self, inbox: PushingRendezvousMgr, step_id: int, key: str) -> Link | None:
        """The link over which the other end pushes what is for this task; if it does not, a pull is noted.

        It is asked to push once no tensor is awaited that was pulled.
        """
        link = self._wire.link
        with self._lock:
            if link is not None and link.is_known and link is not self._pushing and not self._asking:
                self._pushing = link
                link.push_to_me()
                link.on_lost(lambda why: inbox.fail_from(self.task, self._wire.lost(why)))
            if link is None or link is not self._pushing:
                self._asking[step_id, key] = None
                return None
            return link

    def _await_push(self, link: Link, inbox: PushingRendezvousMgr, step_id: int, key: str, done: Done) -> None:
        self._wire.expect()
        try:
            inbox.find(step_id).recv_async(key, done)
        except errors.OpError as error:
            done(None, error)
        if link.lost:  # perhaps before `done` stood there
            inbox.fail_from(self.task, self._wire.lost(link.lost))

    @contextlib.contextmanager
    def _readable(self, method: str) -> Iterator[None]:
        """An answer that can't be read must not leave its step waiting."""
        try:
            yield
        except (DecodeError, errors.InvalidArgumentError, IndexError) as error:
            raise errors.DataLossError.of(
                f"The answer of {self.task} at {self._wire.address} to {method} can't be read: {error}"
            ) from error

    def cleanup_graph(self, step_id: int, error: Exception | None = None) -> None:
        """Say that a step is over: at once if it failed, else with the next one, and never wait for an answer."""
        if error is None:
            self._over.append(step_id)
        else:
            request = worker_messages.CleanupGraphRequest(step_id=step_id)
            self._start("CleanupGraph", request, partial(self._cleaned_up, step_id))

    def _cleaned_up(self, step_id: int, data: Buffer, error: errors.OpError | None) -> None:
        if error is not None:  # lost with its link: say it again, else what was pushed for that step would stay there
            self._over.append(step_id)

    def _tidy(self) -> None:
        while self._over:
            with contextlib.suppress(IndexError):  # another thread was faster
                request = worker_messages.CleanupGraphRequest(step_id=self._over.popleft())
                data = request.SerializeToString()
                if self._is_watched():
                    wire_call("CleanupGraph", self._source, self.task, request, len(data)).ended(None)
                self._wire.tell("/tensorflow.WorkerService/CleanupGraph", [data])

    def waits(self) -> list[str]:
        """The tensors that were asked for and are not here; what waits there, its task says itself."""
        return [tensor_wait(key, step_id) for step_id, key in list(self._asking)]

    def cleanup_all(self, containers: Sequence[str]) -> None:
        """Empty resource containers there."""
        self._call("CleanupAll", worker_messages.CleanupAllRequest(container=containers))

    def close(self) -> None:
        """Let the wire go; later calls raise CancelledError."""
        self._wire.close()


def received_push(data: Buffer) -> object:
    """The value that was pushed (`services.pushed_tensor`); a class of `errors` if it can't be read."""
    if data[: len(NO_HEADER)] != NO_HEADER:
        return unframed(data)
    return received(data[len(NO_HEADER) :])


def received(data: Buffer) -> object:
    """The value in the answer to a RecvTensor."""
    response, tensors = parse(worker_messages.RecvTensorResponse, data, "tensor")
    return DEAD if response.is_dead else tensors[0]


def sender(key: str) -> str:
    """The task that makes the value of a key."""
    return device_spec.task_name(key.partition(";")[0])


def _raise_stored(response: master_messages.RunStepResponse | worker_messages.RunGraphResponse) -> None:
    """The error inside an OK answer."""
    if response.status_code:
        raise errors.from_code(response.status_code, response.status_error_message)

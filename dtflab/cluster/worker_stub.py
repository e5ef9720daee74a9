"""The stub of a worker: one of another process, with the methods that it would have in this one.

Stands for `rpc/grpc_remote_worker.cc`. Left out: collectives.

Rules: messages are TensorFlow's (`protos/`), so the other end may be a TensorFlow process. Only what happens once per
session and the announcement of a trace wait for their answers; what happens in a step (`run_graph`, `recv_tensor`)
leaves a callback.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.events import PROCESS, OpenCall
from dtflab.cluster.call_events import call_event
from dtflab.cluster.held_graphs import RemoteGraph
from dtflab.cluster.status import from_task, raise_stored
from dtflab.cluster.tensor_codec import Buffer
from dtflab.cluster.tensor_response import received
from dtflab.cluster.wire import Answered, Wire
from dtflab.graph import device_spec
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.machine.console import aside
from dtflab.protos import worker_pb2 as messages
from dtflab.protos.link_pb2 import LimitedSessionRequest
from dtflab.runtime.blocked import tensor_wait
from dtflab.runtime.metering import fail_step
from dtflab.runtime.rendezvous import Done
from dtflab.runtime.transport import SHARED, Scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dtflab.base.credentials import Credentials
    from dtflab.cluster.faults import Faults, Setting
    from dtflab.cluster.link import Link
    from dtflab.cluster.silence import Tell
    from dtflab.cluster.task import Task
    from dtflab.graph.node import Node
    from dtflab.machine.meter import Meter
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.protos.step_stats_pb2 import StepStats
    from dtflab.runtime.pushing import PushingRendezvousMgr
    from dtflab.runtime.runner import Step
    from dtflab.runtime.steps import Elsewhere

T = TypeVar("T")


class WorkerStub:
    """The worker `task` at the end of a wire, for a master or another worker (transport.WorkerInterface)."""

    def __init__(
        self,
        task: str,
        wire: Wire,
        source: str = "",
        inbox: PushingRendezvousMgr | None = None,
        faults: Faults | None = None,
        meter: Meter | None = None,
    ) -> None:
        """`faults` and `meter` are those of the task `source`, which calls."""
        self.task = task
        self._faults = faults
        self._meter = meter
        self._wire = wire
        self._inbox = inbox  # of the calling task: where pushed tensors come
        self._pushing: Link | None = None  # over this link it pushes
        self._asking: dict[tuple[int, str], None] = {}  # tensors that were asked for and are not here, by step and key
        self._lock = threading.Lock()
        self._source = source  # the calling task, for listeners; "" for a call that only asks whether it is there
        self._over: deque[int] = deque()  # steps that went well, to be cleaned up when nobody waits for that

    @classmethod
    def at(
        cls,
        task: str,
        address: str,
        credentials: Credentials | None = None,
        own: Task | None = None,
        pushes: bool = True,
    ) -> WorkerStub:
        """The worker `task` at an address, for the task `own` of another process, or for a client that looks for it.

        It `pushes` what that task waits for, over a link, unless a session brings names of its own for both.
        """
        wire = Wire(address, the_credentials.at(address, credentials), task, own)
        if own is None:
            return cls(task, wire)
        return cls(task, wire, own.name, own.worker.rendezvous if pushes else None, own.faults, own.meter)

    def _call(self, method: str, request: Message, timeout: float | None = None) -> Buffer:
        data, path = request.SerializeToString(), f"/tensorflow.WorkerService/{method}"
        if self._faults is not None and not self._faults.is_quiet:
            self._faults.call(method, self.task)
        if not self._is_watched():
            return self._wire.call(path, [data], timeout)
        with call_event(method, self._source, self.task, request, len(data)) as call:
            answer = self._wire.call(path, [data], timeout)
            call.received = len(answer)
            return answer

    def _start(
        self, method: str, request: Message, done: Answered | None = None, tell: Tell | None = None
    ) -> Callable[[], object]:
        data: bytes = request.SerializeToString()
        path = f"/tensorflow.WorkerService/{method}"
        if self._is_watched():
            call = call_event(method, self._source, self.task, request, len(data))
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
        devices = list(messages.GetStatusResponse.FromString(data).device_attributes)
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
            return self._call(method, messages.GetStatusRequest(), timeout)  # a message without fields
        except errors.DeadlineExceededError:
            where = f"Task {self.task} at {self._wire.address}" if self.task else self._wire.address
            raise errors.UnavailableError.of(f"{where} did not answer in {timeout:g} s (no answer).") from None

    def create_worker_session(
        self, session: str, master_task: str, master_incarnation: int, scope: Scope = SHARED
    ) -> None:
        """Announce a session."""
        incarnation = master_incarnation - (master_incarnation >> 63 << 64)  # the field is signed
        request = messages.CreateWorkerSessionRequest(
            session_handle=session,
            master_task=master_task,
            master_incarnation=incarnation,
            server_def=scope.server_def,
            isolate_session_state=scope.isolated,
        )
        if scope.files is not None:
            limited = LimitedSessionRequest(session=request.SerializeToString(), folder=scope.files)
            with contextlib.suppress(errors.UnimplementedError):  # TensorFlow's server, which opens what it is asked to
                self._call("CreateLimitedSession", limited)
                return
        self._call("CreateWorkerSession", request)

    def delete_worker_session(self, session: str) -> None:
        """End a session."""
        self._tidy()
        self._call("DeleteWorkerSession", messages.DeleteWorkerSessionRequest(session_handle=session))

    def register_graph(self, session: str, nodes: Sequence[Node], going: Callable[[], object] = bool) -> str:
        """Send a partition; returns its handle there."""
        going()
        request = messages.RegisterGraphRequest(
            session_handle=session, graph_def=nodes_to_proto(nodes), create_worker_session_called=True
        )
        data = self._call("RegisterGraph", request)
        return messages.RegisterGraphResponse.FromString(data).graph_handle

    def deregister_graph(self, session: str, graph_handle: str) -> None:
        """Forget a partition."""
        request = messages.DeregisterGraphRequest(
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
        request = messages.RunGraphRequest(
            session_handle=session,
            graph_handle=graph_handle,
            step_id=step.step_id,
            create_worker_session_called=True,
            store_errors_in_response_body=True,
        )
        request.exec_opts.record_timeline = step.traced
        if step.traced:
            self._call("Logging", messages.LoggingRequest(enable_rpc_logging=True), timeout=5.0)
        self._tidy()
        part = None if step.elsewhere is None else self._hold(request, step.elsewhere)

        def done(data: Buffer, error: errors.OpError | None) -> None:
            step.post(self._ran, step, part, data, error)

        cancel = self._start("RunGraph" if part is None else "AwaitGraph", request, done, step.tell)
        step.expect()
        step.on_cancel(lambda error: cancel())

    def _hold(self, request: messages.RunGraphRequest, elsewhere: Elsewhere) -> RemoteGraph | None:
        """Have the partition stand still there before each set; None if the task is not one of dtflab."""
        try:
            answer = self._call("HoldGraph", request)
        except errors.UnimplementedError:
            elsewhere.unseen.append(self.task)
            return None
        part = RemoteGraph(self.task, self._start, answer)
        elsewhere.held.append(part)
        return part

    def _ran(self, step: Step, part: RemoteGraph | None, data: Buffer, error: errors.OpError | None) -> None:
        """The partition has ended (called by the thread that drives the step)."""
        if part is not None:
            part.has_ended = True
        try:
            if error is not None:
                raise error
            if not data:  # an empty message, as of every step that went well and is not traced
                return
            with self._readable("RunGraph"):
                response = messages.RunGraphResponse.FromString(data)
            raise_stored(response)
        except errors.OpError as failed:
            failed = from_task(self.task, failed)
            if error is None or self._meter is None:
                step.fail(failed)
            else:  # no node has failed
                fail_step(self._meter, step, failed)
        else:
            if step.traced:
                self._ask_for_transfers(step, response.step_stats)

    def _ask_for_transfers(self, step: Step, ran: StepStats) -> None:
        """A task of TensorFlow reports what it received only when asked."""
        request = messages.LoggingRequest(fetch_step_id=[step.step_id], disable_rpc_logging=True)
        step.expect()
        self._start(
            "Logging", request, lambda data, error: step.post(self._merge_transfers, step, ran, data, error), step.tell
        )

    def _merge_transfers(self, step: Step, ran: StepStats, data: Buffer, error: errors.OpError | None) -> None:
        if error is None:  # a step must not fail because a part of its trace is missing
            devices = {stats.device: stats for stats in ran.dev_stats}
            for labeled in messages.LoggingResponse.FromString(data).step:
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

        request = messages.RecvTensorRequest(step_id=step_id, rendezvous_key=key)
        return self._start("RecvTensor", request, arrived, aside())  # the master says it, too

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
            request = messages.CleanupGraphRequest(step_id=step_id)
            self._start("CleanupGraph", request, partial(self._cleaned_up, step_id))

    def _cleaned_up(self, step_id: int, data: Buffer, error: errors.OpError | None) -> None:
        if error is not None:  # lost with its link: say it again, else what was pushed for that step would stay there
            self._over.append(step_id)

    def _tidy(self) -> None:
        while self._over:
            with contextlib.suppress(IndexError):  # another thread was faster
                request = messages.CleanupGraphRequest(step_id=self._over.popleft())
                data = request.SerializeToString()
                if self._is_watched():
                    call_event("CleanupGraph", self._source, self.task, request, len(data)).ended(None)
                self._wire.tell("/tensorflow.WorkerService/CleanupGraph", [data])

    def waits(self) -> list[str]:
        """The tensors that were asked for and are not here; what waits there, its task says itself."""
        return [tensor_wait(key, step_id) for step_id, key in list(self._asking)]

    def cleanup_all(self, containers: Sequence[str]) -> None:
        """Empty resource containers there."""
        self._call("CleanupAll", messages.CleanupAllRequest(container=containers))

    def close(self) -> None:
        """Let the wire go; later calls raise CancelledError."""
        self._wire.close()


def _end_and_do(call: OpenCall, done: Answered | None, answer: Buffer, error: errors.OpError | None) -> None:
    """Note the end of a watched call, then pass its answer on."""
    call.received = len(answer)
    call.ended(error)
    if done is not None:
        done(answer, error)

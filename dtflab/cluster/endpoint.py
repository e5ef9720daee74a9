"""The endpoint of a task: its services at an address, over gRPC and over links.

Stands for `rpc/grpc_server_lib.cc` (GrpcServer).

Rules: it answers a call the same, whichever wire that came over. Over a link the other end may call whatever is served
here, so there are none next to TLS. A call under way when it stops ends with an error that says why.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.base.events import PROCESS
from dtflab.cluster import negotiation
from dtflab.cluster.answering import Answer, Method, ServerCall, answer
from dtflab.cluster.call_events import push_event
from dtflab.cluster.connection import connect
from dtflab.cluster.grpc_transport import Handler, Server
from dtflab.cluster.link import Link
from dtflab.cluster.master_service import MasterService
from dtflab.cluster.status import status_of
from dtflab.cluster.tensor_codec import Buffer
from dtflab.cluster.tensor_response import pushed_tensor, received_push
from dtflab.cluster.worker_service import WorkerService
from dtflab.graph import device_spec
from dtflab.runtime.pushing import PUSHED
from dtflab.runtime.rendezvous import Failed

if TYPE_CHECKING:
    from dtflab.cluster.task import Task

_MASTER, _WORKER = "/tensorflow.MasterService/", "/tensorflow.WorkerService/"


class Endpoint:
    """A task's services at an address, from construction until `stop` (link.End).

    Over TLS and for those with the token, if credentials have them. Raises UnknownError if the address is in use.
    """

    def __init__(self, task: Task, address: str, credentials: Credentials = PLAIN) -> None:
        self.task = task
        self._calls: set[ServerCall] = set()
        self._methods: dict[str, Method] = {
            prefix + name: method
            for prefix, service in ((_MASTER, MasterService(task)), (_WORKER, WorkerService(task)))
            for name, method in service.methods().items()
        }
        self.may_link = not credentials.is_tls and negotiation.are_on()
        self._credentials = credentials
        self._listener: negotiation.Listener | None = None
        self._lock = threading.Lock()  # over being the task's endpoint, and the listener
        self._host = address.rpartition(":")[0]
        handlers: dict[str, Handler] = {path: partial(self.answer, path) for path in self._methods}
        if self.may_link:
            handlers[negotiation.OPEN] = _of_links("Open", self._open_link)
            handlers[negotiation.CONFIRM] = _of_links("Confirm", lambda data: negotiation.confirm(data, task.address))
        self._server = Server(task.name, address, handlers, credentials, task.master.clock, task.address)
        self.port = self._server.port
        self.address = f"{self._host}:{self.port}"
        task.endpoint = self

    def answer(self, path: str, data: Buffer, call: ServerCall) -> Answer:
        """Answer a call, whatever wire it came over."""
        method = self._methods.get(path)
        if method is None:
            return errors.UNIMPLEMENTED, f"{self.task.name} has no method {path}.", []
        self._calls.add(call)
        try:
            return answer(self.task.name, path.rpartition("/")[2], method, data, call)
        finally:
            self._calls.discard(call)

    def knows(self, address: str) -> bool:
        """Whether a task of the cluster is at that address (link.End)."""
        return bool(self.task.at(address))

    def push_over(self, link: Link) -> None:
        """Push what steps here compute for the task at the other end (link.End)."""
        task = self.task.at(link.peer)
        end = self.task.worker.rendezvous.push_to(task, partial(self._push, task, link))
        link.on_lost(lambda why: end())

    def _push(self, task: str, link: Link, step_id: int, key: str, value: object) -> Callable[[], object]:
        if value is PUSHED:
            link.lose(step_id, key)
            return link.send_off
        self.task.note("RecvTensor", task, key, value, pushed=True)
        if PROCESS.call:
            push_event(task, self.task.name, step_id, key, value)
        return link.push(step_id, key, pushed_tensor(value))

    def pushed(self, step_id: int, key: str, tensor: Buffer) -> None:
        """Keep a tensor for a step that runs here, or will (link.End)."""
        value: object
        try:
            value = received_push(tensor)
            if PROCESS.call:
                push_event(self.task.name, device_spec.task_name(key.partition(";")[0]), step_id, key, value)
        except (DecodeError, errors.InvalidArgumentError, IndexError) as error:
            value = Failed(partial(errors.DataLossError.of, f"The tensor {key} pushed to here can't be read: {error}"))
        with contextlib.suppress(errors.OpError):  # the step has ended
            self.task.worker.rendezvous.find(step_id).send(key, value)

    def lose(self, step_id: int, key: str) -> None:
        """Fail the consumer of a tensor that was pushed over an earlier link (link.End)."""
        self.task.worker.rendezvous.lose(step_id, key)

    def _open_link(self, data: bytes) -> bytes:
        with self._lock:
            if self.task.endpoint is not self:
                raise errors.UnavailableError.of(f"Task {self.task.name} is being stopped.")
            if self._listener is None:
                host = "127.0.0.1" if self._host == "localhost" else self._host.strip("[]")
                self._listener = negotiation.Listener(
                    host, self.task.address, self, lambda address: connect(address, self._credentials).ask
                )
        return self._listener.open(data)

    def stop(self, seconds: float = 0.0) -> None:
        """Take no more calls, and give those under way some seconds; the rest end with an error that says why."""
        with self._lock:
            if self.task.endpoint is self:
                self.task.endpoint = None
        self._server.drain(seconds)
        why = errors.UnavailableError.of(f"Task {self.task.name} at {self.address} was stopped.")
        for call in list(self._calls):
            call.end(why)
        if self._listener is not None:
            self._listener.close()
        negotiation.close(self.task.address, 1.0)
        self._server.stop()


def _of_links(name: str, method: Callable[[bytes], bytes]) -> Handler:
    """The handler of a method that neither waits nor is watched."""

    def handle(data: bytes, call: ServerCall) -> Answer:
        try:
            return 0, "", [method(data)]
        except Exception as error:
            return *status_of(name, error), []

    return handle

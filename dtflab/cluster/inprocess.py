"""The tasks of this process, by address, and the wire between them that is not one.

A task's address is a name: `machine-a.example.com:2222` needs no such machine while the task lives in this process.
Calls go straight to the other task's methods; what crosses is recorded with its size, so that the wire can be looked
at.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from dtflab.base import errors
from dtflab.base.events import PROCESS, OpenCall
from dtflab.cluster.faults import disturbed
from dtflab.machine.clock import REAL
from dtflab.runtime.transport import SHARED, Scope

if TYPE_CHECKING:
    from dtflab.cluster.faults import Faults
    from dtflab.cluster.task import Task
    from dtflab.graph.node import Node
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.runtime.rendezvous import Done
    from dtflab.runtime.runner import Step
    from dtflab.runtime.worker import Worker

_tasks: dict[str, Task] = {}
_lock = threading.Lock()


def publish(address: str, task: Task) -> None:
    """Make `task` reachable under `address`; UnknownError, as TensorFlow gives, if another task has it."""
    with _lock:
        if address in _tasks:
            raise errors.UnknownError.of(
                f"Could not start server: address {address} is in use by {_tasks[address].name}, in this process. "
                "Stop that server or cluster first (`server.stop()`, `cluster.stop()`), or choose another address."
            )
        _tasks[address] = task


def withdraw(address: str, task: Task) -> None:
    """Take the name back."""
    with _lock:
        if _tasks.get(address) is task:
            del _tasks[address]


def find(address: str) -> Task | None:
    """The task of this process that has that address."""
    return _tasks.get(address)


class Absent:
    """A worker of virtual time that is not there now (transport.WorkerInterface).

    No call reaches it, and none asks the real network: each fails as that of a task which has ended.
    """

    def __init__(self, task: str, address: str) -> None:
        self._task = task
        self._address = address

    def get_status(self) -> NoReturn:
        raise self._gone()

    def create_worker_session(
        self, session: str, master_task: str, master_incarnation: int, scope: Scope = SHARED
    ) -> NoReturn:
        raise self._gone()

    def delete_worker_session(self, session: str) -> NoReturn:
        raise self._gone()

    def register_graph(self, session: str, nodes: Sequence[Node], going: Callable[[], object] = bool) -> NoReturn:
        raise self._gone()

    def deregister_graph(self, session: str, graph_handle: str) -> NoReturn:
        raise self._gone()

    def run_graph(
        self,
        session: str,
        graph_handle: str,
        step: Step,
        args: Sequence[object] = (),
        results: list[object] | None = None,
    ) -> NoReturn:
        raise self._gone()

    def recv_tensor(self, step_id: int, key: str, done: Done) -> NoReturn:
        raise self._gone()

    def cleanup_graph(self, step_id: int, error: Exception | None = None) -> NoReturn:
        raise self._gone()

    def waits(self) -> list[str]:
        """No line: there is no worker."""
        return []

    def cleanup_all(self, containers: Sequence[str]) -> NoReturn:
        raise self._gone()

    def local(self) -> None:
        """None: there is no worker."""

    def _gone(self) -> errors.OpError:
        return stopped(self._task, self._address)

    def close(self) -> None:
        """Nothing to let go of: there is no wire."""


def stopped(task: str, address: str) -> errors.OpError:
    """The error for a call to a task that has ended or, once it has restarted, for one with an old session."""
    if find(address) is not None:
        return errors.AbortedError.of(
            f'Session handle is not found. Possibly this worker ("{task}" at {address}) just restarted. Open a new '
            "session: tf.Session(target). The variables that lived there must be initialized, or restored."
        )
    return errors.UnavailableError.of(f"Task {task} at {address} was stopped. `cluster.restart` starts it again.")


class Peer:
    """Another task's worker, seen from `source`: its methods, with what crosses recorded (transport.WorkerInterface).

    As over a wire, it is the call that fails when the task is gone.
    """

    def __init__(self, source: str, task: Task, faults: Faults) -> None:
        """`faults` are those of the task `source`, which calls."""
        self._source = source
        self.task = task
        self._faults = faults

    def local(self) -> Worker:
        """The worker itself."""
        return self.task.worker

    def get_status(self) -> list[DeviceAttributes]:
        """The task's devices."""
        with self._asked("GetStatus"):
            return self._worker().get_status()

    def create_worker_session(
        self, session: str, master_task: str, master_incarnation: int, scope: Scope = SHARED
    ) -> None:
        """Announce a session."""
        with self._asked("CreateWorkerSession"):
            self._worker().create_worker_session(session, master_task, master_incarnation, scope)

    def delete_worker_session(self, session: str) -> None:
        """End a session."""
        with self._asked("DeleteWorkerSession"):
            self._worker().delete_worker_session(session)

    def register_graph(self, session: str, nodes: Sequence[Node], going: Callable[[], object] = bool) -> str:
        """Hand over a partition; returns its handle there."""
        with self._asked("RegisterGraph", f"{len(nodes)} nodes"):
            return self._worker().register_graph(session, nodes, going)

    def deregister_graph(self, session: str, graph_handle: str) -> None:
        """Forget a partition."""
        with self._asked("DeregisterGraph"):
            self._worker().deregister_graph(session, graph_handle)

    def run_graph(
        self,
        session: str,
        graph_handle: str,
        step: Step,
        args: Sequence[object] = (),
        results: list[object] | None = None,
    ) -> None:
        """Start the worker's part of a step, on the caller's thread."""
        self.task.note("RunGraph", self._source, graph_handle)
        self.task.help(step, self._source)

        if not (disturbed and self._is_disturbed()):
            self._run_graph(session, graph_handle, step, args, results)
            return

        def begin(lost: errors.OpError | None) -> None:
            try:
                if lost is not None:
                    raise lost
                self._run_graph(session, graph_handle, step, args, results)
            except errors.OpError as error:
                step.fail(error)

        step.expect()  # the begin, on the step's own thread
        self._faults.start("RunGraph", self.task.name, lambda lost: step.post(begin, lost), self.task.faults)

    def _run_graph(
        self, session: str, graph_handle: str, step: Step, args: Sequence[object], results: list[object] | None
    ) -> None:
        with self._watched("RunGraph", step.step_id, graph_handle):
            self._worker().run_graph(session, graph_handle, step, args, results)

    def recv_tensor(self, step_id: int, key: str, done: Done) -> None:
        """Pull a value out of the worker's rendezvous."""
        if not (disturbed and self._is_disturbed()):
            self._recv_tensor(step_id, key, done)
            return

        def ask(lost: errors.OpError | None) -> None:
            try:
                self._recv_tensor(step_id, key, done) if lost is None else done(None, lost)
            except errors.OpError as error:
                done(None, error)

        self._faults.start("RecvTensor", self.task.name, ask, self.task.faults)

    def _recv_tensor(self, step_id: int, key: str, done: Done) -> None:
        call = None
        if PROCESS.call and self.task.clock is REAL:  # in virtual time it has yet to travel then (virtual/worker.py)
            call = OpenCall("RecvTensor", self._source, self.task.name, key, step_id, now=self.task.clock.now)

        def arrived(value: object, error: Exception | None) -> None:
            self.task.note("RecvTensor", self._source, key, value)
            if call is not None:
                call.received = getattr(value, "nbytes", 0)
                call.ended(error)
            if disturbed and error is None and self._is_disturbed():
                self._faults.carry(self.task.name, lambda lost: done(value, lost), self.task.faults)
            else:
                done(value, error)

        try:
            self._worker().recv_tensor(step_id, key, arrived)
        except errors.OpError as error:
            if call is not None:
                call.ended(error)
            raise

    def cleanup_graph(self, step_id: int, error: Exception | None = None) -> None:
        """The step is over; nobody waits until its task knows."""
        if disturbed and self._is_disturbed():
            self._faults.start("CleanupGraph", self.task.name, partial(self._cleanup, step_id, error), self.task.faults)
            return
        with self._watched("CleanupGraph", step_id):
            self._worker().cleanup_graph(step_id, error)

    def _cleanup(self, step_id: int, error: Exception | None, lost: errors.OpError | None) -> None:
        if not self.task.stopped:  # also when the call was lost: over a wire, it would be made again with the next step
            self.task.worker.cleanup_graph(step_id, error)

    def waits(self) -> list[str]:
        """The waits at the worker, a line for each."""
        return self.task.worker.waits()

    def cleanup_all(self, containers: Sequence[str]) -> None:
        """Empty resource containers."""
        with self._asked("CleanupAll"):
            self._worker().cleanup_all(containers)

    def close(self) -> None:
        """Nothing to let go of: there is no wire."""

    def _is_disturbed(self) -> bool:
        """Whether chaos may lose or hold what goes between the two tasks."""
        return not (self._faults.is_quiet and self.task.faults.is_quiet)

    def _worker(self) -> Worker:
        if self.task.stopped:
            raise stopped(self.task.name, self.task.address)
        return self.task.worker

    def _asked(self, method: str, detail: str = "") -> contextlib.AbstractContextManager[object]:
        """In this block a call is made, once chaos lets it; UnavailableError if that loses it."""
        if disturbed and self._is_disturbed():
            self._faults.call(method, self.task.name, self.task.faults)
        return self._watched(method, detail=detail)

    def _watched(self, method: str, step_id: int = 0, detail: str = "") -> contextlib.AbstractContextManager[object]:
        """In this block a call is made, which is reported to those who watch."""
        if not PROCESS.call:
            return _UNWATCHED
        return OpenCall(method, self._source, self.task.name, detail, step_id, now=self.task.clock.now)


_UNWATCHED = contextlib.nullcontext()

"""The tasks of this process, by address, and the wire between them that is no wire.

A task's address is a name: `machine-a.example.com:2222` needs no such machine while the task lives in this process.
Calls go straight to the other task's methods; what crosses is recorded with its size, so that the wire can be looked
at.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dtflab.base import errors, watch
from dtflab.base.watch import Call
from dtflab.machine.clock import REAL

if TYPE_CHECKING:
    from dtflab.cluster.task import Task
    from dtflab.runtime.rendezvous import Done
    from dtflab.runtime.worker import Worker

_tasks: dict[str, Task] = {}
_lock = threading.Lock()


def publish(address: str, task: Task) -> None:
    """Make `task` reachable under `address`; UnknownError, as TensorFlow gives, if another task has it."""
    with _lock:
        if address in _tasks:
            raise errors.UnknownError.of(
                f"Could not start server: address {address} is in use by {_tasks[address].name}, in this process. "
                "Stop that server or cluster first (`server.stop()`, `cluster.stop()`), or choose another address.",
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
    """A worker of virtual time that is not there now: no call reaches it, and none asks the real network."""

    def __init__(self, task: str, address: str) -> None:
        self._task = task
        self._address = address

    def __getattr__(self, method: str) -> Any:
        """A method that fails as that of a task which has ended."""

        def fails(*args: Any, **kwargs: Any) -> Any:
            raise stopped(self._task, self._address)

        return fails

    def close(self) -> None:
        """Nothing to let go of: there is no wire."""


def stopped(task: str, address: str) -> errors.OpError:
    """What is said of a task that has ended; once it was started anew, what the new one says of an old session."""
    if find(address) is not None:
        return errors.AbortedError.of(
            f'Session handle is not found. Possibly this worker ("{task}" at {address}) just restarted. Open a new '
            "session: tf.Session(target). The variables that lived there must be initialized, or restored.",
        )
    return errors.UnavailableError.of(f"Task {task} at {address} was stopped. `cluster.restart` starts it anew.")


class Peer:
    """Another task's worker, seen from `source`: its methods, with what crosses recorded."""

    def __init__(self, source: str, task: Task) -> None:
        self._source = source
        self.task = task

    def __getattr__(self, method: str) -> Any:
        """The worker's method; as over a wire, it is the call that fails when the task is gone."""

        def ask(*args: Any, **kwargs: Any) -> Any:
            if not watch.watchers:
                return getattr(self._worker(), method)(*args, **kwargs)
            with self._told(method, *args):
                return getattr(self._worker(), method)(*args, **kwargs)

        return ask

    def _worker(self) -> Worker:
        if self.task.stopped:
            raise stopped(self.task.name, self.task.address)
        return self.task.worker

    def close(self) -> None:
        """Nothing to let go of: there is no wire."""

    @contextlib.contextmanager
    def _told(self, method: str, *args: Any) -> Iterator[None]:
        """A call that happens once per session or step, told to those who watch."""
        began, turn, error = self._now(), watch.turn(), ""
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            step, detail = _about(method, args)
            name = watch.rpc(method)
            source, target, end = self._source, self.task.name, self._now()
            watch.tell(Call(began, name, source, target, 0, detail, end, 0, step, error, turn))

    def _now(self) -> float:
        return self.task.clock.now()

    def run_graph(self, session: str, graph_handle: str, step: Any, args: Any = (), results: Any = None) -> None:
        """Start the worker's part of a step, on the caller's thread."""
        self._note("RunGraph", 0, graph_handle)
        self.task.help(step)
        if not watch.watchers:
            self._worker().run_graph(session, graph_handle, step, args, results)
            return
        with self._told("run_graph", session, graph_handle, step):
            self._worker().run_graph(session, graph_handle, step, args, results)

    def recv_tensor(self, step_id: int, key: str, done: Done) -> None:
        """Pull a value out of the worker's rendezvous."""
        # In virtual time it has yet to travel when it is there (virtual/worker.py).
        told = self._tell_tensor(step_id, key) if watch.watchers and self.task.clock is REAL else None

        def arrived(value: Any, error: Exception | None) -> None:
            nbytes = getattr(value, "nbytes", 0)
            self._note("RecvTensor", nbytes, key)
            if told is not None:
                told(nbytes, error)
            done(value, error)

        self._worker().recv_tensor(step_id, key, arrived)

    def _note(self, method: str, nbytes: int, detail: str) -> None:
        """Keep what crossed for `cluster.calls()`: the first fields of a Call, as plain tuples cost less."""
        self.task.calls.append((self.task.clock.now(), method, self._source, self.task.name, nbytes, detail))

    def _tell_tensor(self, step_id: int, key: str) -> Callable[[int, Exception | None], None]:
        began, turn = self._now(), watch.turn()

        def arrived(nbytes: int, error: Exception | None) -> None:
            failed, ends = "" if error is None else type(error).__name__, (self._source, self.task.name)
            watch.tell(Call(began, "RecvTensor", *ends, nbytes, key, self._now(), 0, step_id, failed, turn))

        return arrived


def _about(method: str, args: Any) -> tuple[int, str]:
    """Of a request to a worker, the step that it belongs to (0: none) and what it is about."""
    match method, args:
        case "run_graph", (_, graph_handle, step):
            return step.step_id, graph_handle
        case "register_graph", (_, nodes):
            return 0, f"{len(nodes)} nodes"
        case "cleanup_graph", (step_id, *_):
            return step_id, ""
    return 0, ""

"""The tasks of this process, by address, and the wire between them that is no wire.

A task's address is a name: `machine-a.example.com:2222` needs no such machine while the task lives in this process.
Calls go straight to the other task's methods; what crosses is recorded with its size, so that the wire can be looked
at.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.graph import errors

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
            raise errors.UnknownError(
                None,
                None,
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


class Call(NamedTuple):
    """One call between tasks, as the wire would have seen it; `nbytes` is the tensor data that it carried."""

    at: float
    method: str
    source: str
    target: str
    nbytes: int
    detail: str


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
        return errors.AbortedError(
            None,
            None,
            f'Session handle is not found. Possibly this worker ("{task}" at {address}) just restarted. Open a new '
            "session: tf.Session(target). The variables that lived there must be initialized, or restored.",
        )
    return errors.UnavailableError(
        None, None, f"Task {task} at {address} was stopped. `cluster.restart` starts it anew."
    )  # fmt: skip


class Peer:
    """Another task's worker, seen from `source`: its methods, with what crosses recorded."""

    def __init__(self, source: str, task: Task) -> None:
        self._source = source
        self.task = task

    def __getattr__(self, method: str) -> Any:
        """The worker's method; as over a wire, it is the call that fails when the task is gone."""
        return lambda *args, **kwargs: getattr(self._worker(), method)(*args, **kwargs)

    def _worker(self) -> Worker:
        if self.task.stopped:
            raise stopped(self.task.name, self.task.address)
        return self.task.worker

    def close(self) -> None:
        """Nothing to let go of: there is no wire."""

    def _record(self, method: str, nbytes: int, detail: str) -> None:
        self.task.calls.append(Call(self.task.clock.now(), method, self._source, self.task.name, nbytes, detail))

    def run_graph(self, session: str, graph_handle: str, step: Any, args: Any = (), results: Any = None) -> None:
        """Start the worker's part of a step, on the caller's thread."""
        self._record("RunGraph", 0, graph_handle)
        self._worker().run_graph(session, graph_handle, step, args, results)

    def recv_tensor(self, step_id: int, key: str, done: Done) -> None:
        """Pull a value out of the worker's rendezvous."""

        def arrived(value: Any, error: Exception | None) -> None:
            self._record("RecvTensor", getattr(value, "nbytes", 0), key)
            done(value, error)

        self._worker().recv_tensor(step_id, key, arrived)

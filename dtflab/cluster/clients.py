"""Clients: a program of each task of a job, in threads of this process, and how they end together.

Stands for the shells in which somebody starts the same script once per worker.

Rule: when one fails, or at Ctrl-C, the others are asked to stop, and lose their sessions if they do not end by
themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat

from dtflab.graph.graph import Graph
from dtflab.machine import clock as clocks
from dtflab.machine.clock import Event
from dtflab.runtime.session import open_sessions

if TYPE_CHECKING:
    from dtflab.cluster.cluster import Cluster


class RunWatch(AbstractContextManager[Any], Protocol):
    """A watch over the clients of a run, as `tf.viz.live("loss")` is: it is open while they run."""

    def __call__(
        self,
        value: SupportsFloat,
        worker: str,
        step: SupportsFloat | None = None,
        staleness: SupportsFloat | None = None,
    ) -> None: ...

    def should_stop(self) -> bool: ...


class Client:
    """The argument of a worker function in `Cluster.run`: which task it is the client of, and how to reach it.

    Its attributes: `job`, `index` (of the task), `is_chief` (True for index 0), `target` (for `tf.Session`), `device`
    (such as "/job:worker/task:1"), `cluster` and `cluster_spec`.
    """

    def __init__(self, cluster: Cluster, job: str, index: int, stopping: Event, watch: RunWatch | None = None) -> None:
        self.cluster = cluster
        self._stopping = stopping
        self._watch = watch
        self.job = job
        self.index = index
        self.target = cluster.target_of(job, index)
        self.device = f"/job:{job}/task:{index}"
        self.is_chief = index == 0
        self.cluster_spec = cluster.spec

    def should_stop(self) -> bool:
        """True once another client has failed, or the watch says so: finish early."""
        return self._stopping.is_set() or (self._watch is not None and self._watch.should_stop())

    def report(
        self, value: SupportsFloat, step: SupportsFloat | None = None, staleness: SupportsFloat | None = None
    ) -> None:
        """Report a value, as the loss of a step, to the watch of this run; without one, to nobody."""
        if self._watch is not None:
            self._watch(value, self.device, step, staleness)

    def __repr__(self) -> str:
        return f"<client of {self.device}>"


class Clients:
    """One run of `worker_fn(client)` for each task of a job, as `Cluster.run` says."""

    def __init__(self, cluster: Cluster, worker_fn: Callable[[Client], Any], job: str, watch: RunWatch | None) -> None:
        self._watch = watch
        self._clock = cluster.clock
        self._worker_fn = worker_fn
        self._stopping = self._clock.event()  # one of them has failed, or the program was interrupted
        self._clients = [Client(cluster, job, index, self._stopping, watch) for index in cluster.spec.task_indices(job)]
        self._results: list[Any] = [None] * len(self._clients)
        self._failures: list[tuple[Client, BaseException]] = []
        self._running: dict[int, int | None] = dict.fromkeys(range(len(self._clients)))  # number → thread, once begun
        self._ended = self._clock.event()  # one more of them
        self._ended.what = "its clients to end"
        self._interrupted = False  # then no more clients begin

    def run(self, grace: float) -> list[Any]:
        """The results, in the order of tasks; the first error once all have ended, or after `grace` seconds."""
        with self._watch or nullcontext():
            return self._run(grace)

    def _run(self, grace: float) -> list[Any]:
        try:
            for number, client in enumerate(self._clients):
                self._clock.spawn(self._run_one, number, client, name=f"client {client.device}")
            self._await(grace)
        except KeyboardInterrupt:
            self._interrupted = True
            self._stopping.set()
            raise
        finally:
            still = set(self._running.values())
            for session in open_sessions():
                if session.thread in still:
                    session.close()
        if self._failures:
            client, error = self._failures[0]
            error.add_note(f"(raised in the client of {client.device})")
            raise error
        return self._results

    def _run_one(self, number: int, client: Client) -> None:
        self._running[number] = threading.get_ident()
        try:
            if not self._interrupted:
                with clocks.using(self._clock), Graph().as_default():
                    self._results[number] = self._worker_fn(client)
        except BaseException as error:
            self._failures.append((client, error))
            self._stopping.set()
        finally:
            del self._running[number]
            self._ended.set()

    def _await(self, grace: float) -> None:
        """Wait for all clients; for those next to a failed one only `grace` seconds longer."""
        deadline = None
        while True:
            self._ended.clear()
            if not self._running:
                return
            if self._stopping.is_set():
                deadline = deadline or self._clock.now() + grace
            left = None if deadline is None else deadline - self._clock.now()
            if left is not None and left <= 0:
                return
            self._ended.wait(left)

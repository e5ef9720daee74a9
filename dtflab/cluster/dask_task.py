"""A task of a Dask cluster, as the program that has asked for it holds it: where it is now, and whether it answers.

Stands for nothing in TensorFlow, whose tasks stay where they are.

Rule: its name and its target stay; its address, its worker and its `life` are those of its present start. The keeper
(`dask_engine`) finds it a place, under the engine's lock.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import Credentials
from dtflab.base.timeouts import timeouts
from dtflab.cluster import dask_worker
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.console import say
from dtflab.runtime.master import passes

if TYPE_CHECKING:
    from dtflab.cluster.dask_engine import Dask
    from dtflab.cluster.engines import Setup
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.worker_stub import WorkerStub
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.runtime.transport import MasterInterface

_TRIES = 3  # in a row, for a task that does not come up any more
NO_WORKER = errors.UnavailableError.of("the Dask cluster has no worker that can have it")


class DaskTask:
    """A task on a worker of a Dask cluster: on another one, at another address, when it is lost there."""

    def __init__(self, engine: Dask, setup: Setup, job: str, index: int) -> None:
        self.engine, self.setup, self.job, self.index = engine, setup, job, index
        self.name = device_spec.name_of_task(job, index)
        self.stable = self.address = setup.spec.task_address(job, index)
        self.target = f"grpc://{self.stable}"
        self.state = "waiting for a worker"
        self.sees_gpus = setup.homes.of(job, index).visible is None
        self.life = self.worker = ""  # of its present start, if it has one
        self.has_gpu = self.has_served = self._stopped = False
        self.obstacle: errors.OpError = NO_WORKER
        self._failure: Exception | None = None
        self._settled = REAL.event()  # it serves, or will not
        self._failures = 0  # to start, in a row
        self._future: Any = None
        self._stub: WorkerStub | None = None
        self._devices: list[Any] = []

    # ---- for the keeper, under the engine's lock

    @property
    def wants_place(self) -> bool:
        return not (self.life or self._stopped or self._failure)

    def begin(self, worker: str, gpu: bool) -> None:
        """Start on a worker."""
        self.life, self.worker, self.has_gpu, self.state = secrets.token_hex(8), worker, gpu, "starting"
        self.obstacle = errors.UnavailableError.of(
            f"the Dask worker {worker} has not begun to start it: are its {'GPUs' if gpu else 'threads'} busy?"
        )
        self._future = self.engine.client.submit(
            dask_worker.hold, self.engine.order(self, self.life, gpu), workers=[worker], pure=False,
            key=f"dtflab {self.name} {self.life}", resources={"GPU": 1} if gpu else None,
        )  # fmt: skip

    def hear(self, report: Mapping[str, Any]) -> None:
        """Take what the worker says of the present start."""
        with self.engine.lock:
            if report["life"] != self.life or self._stopped:
                return
            if report["what"] == "begun":
                self.obstacle = errors.UnavailableError.of(f"its process starts on the Dask worker {self.worker}")
                return
            if report["what"] == "ready":
                self.address, self.state, self.has_served, self._failures = report["address"], "running", True, 0
                the_credentials.remember(self.address, self.setup.credentials)
                self._settled.set()
                return
            words = report.get("words", "")
            self._failures += not report["served"]
            if self._failures and (not self.has_served or self._failures == _TRIES):
                self.fail(errors.UnavailableError.of(f"Task {self.name} ended on {self.worker}. Its words:\n{words}"))
            self.lose(f"it ended on the Dask worker {self.worker}")

    def lose(self, why: str) -> None:
        """Note that it is gone from its worker, so that it gets another place."""
        if self._future is not None and self.engine.client.status == "running":
            self._future.release()
        self._future = None
        self.life = self.worker = ""
        self.has_gpu, self.state = False, "failed" if self._failure else "lost"
        self.obstacle = errors.UnavailableError.of(f"{why}, and has no place yet")
        self._forget()
        self.engine.news.set()

    def fail(self, error: Exception) -> None:
        """Give it up, with the error that its cluster raises."""
        self._failure, self.state = error, "failed"
        self._settled.set()

    def _forget(self) -> None:
        the_credentials.forget(self.address, self.setup.credentials)
        self._devices = []
        stub, self._stub = self._stub, None
        if stub is not None:
            stub.close()

    # ---- RunningTask

    def wait_ready(self, timeout: float, since: float | None = None) -> None:
        """Return when the task serves; says what it waits for, and raises that `timeout` seconds after `since`."""
        end = (REAL.now() if since is None else since) + timeout
        while not self._settled.wait(max(0.0, min(timeouts.notice, end - REAL.now()))):
            if REAL.now() >= end:
                raise type(self.obstacle).of(
                    f"Task {self.name} did not start within {timeout:g} s: {self.obstacle.message}."
                )
            say(f"still waiting for {device_spec.plain(self.name)}: {self.obstacle.message}")
        if self._failure is not None:
            raise self._failure

    def devices(self) -> list[Any]:
        """DeviceAttributes of its devices, asked over the wire once per start; none if it does not run."""
        if not self._devices and self.state == "running":
            self._devices = self._asked().get_status()
        return self._devices

    def view(self, name: str) -> Sequence[Any]:
        """The rows of a view of the task (views.VIEWS), asked over the wire; none if it does not run."""
        return self._asked().view(name) if self.state == "running" else []

    def _asked(self) -> WorkerStub:
        from dtflab.cluster.worker_stub import WorkerStub

        if self._stub is None:
            self._stub = WorkerStub.at(self.name, self.address, self.setup.credentials)
        return self._stub

    def ask_to_end(self, grace: bool = True) -> None:
        """Cancel its Dask task, which ends the process: at once if it does not serve yet."""
        with self.engine.lock:
            self._stopped = True
            future, self._future = self._future, None
        if future is not None and self.engine.client.status == "running":
            future.cancel()

    def stop(self) -> None:
        """End the task, and return once its process has ended, or its worker does not answer."""
        self.ask_to_end()
        try:
            if self.life and self.engine.client.status == "running":
                with contextlib.suppress(OSError):
                    self.engine.ask(dask_worker.end, self.life, workers=[self.worker])
        finally:
            self.state, self.life = "stopped", ""
            self._forget()
            self.engine.end(self)

    def kill(self) -> None:
        """End its process at once, as a crash would: it is then started again."""
        life = self.life
        self.send_signal("SIGKILL")
        with self.engine.lock:
            if self.life == life:
                self.lose("it was killed")

    def pause(self) -> None:
        """Stop its process: it does nothing until `go_on`."""
        self.send_signal("SIGSTOP")

    def go_on(self) -> None:
        """Let its process continue."""
        self.send_signal("SIGCONT")

    def set_faults(self, setting: Setting) -> None:
        """Set the faults of the task, over the wire; nothing happens if it does not run."""
        if self.state == "running":
            self._asked().set_faults(setting)

    def send_signal(self, name: str) -> None:
        """Send its process a signal: SIGKILL, SIGSTOP or SIGCONT."""
        with self.engine.lock:
            life, worker = self.life, self.worker
        if worker:
            self.engine.ask(dask_worker.send, life, name, workers=[worker])

    # ---- moving.Moving

    def master(self, config: ConfigProto | None, credentials: Credentials | None) -> MasterInterface:
        """The master of the task where it is now, for one session; see moving.Moving."""
        from dtflab.cluster.bringing import BringingMaster
        from dtflab.protos.config_pb2 import ConfigProto

        config = config or ConfigProto()
        tasks = list(self.engine.tasks.values())
        limit = config.operation_timeout_in_ms / 1000
        try:
            for task in tasks:
                if passes(task.name, self.name, config):
                    task.await_answer(limit or timeouts.tasks)
        except errors.UnavailableError as error:
            raise errors.DeadlineExceededError.of(error.message) if limit else error from None
        jobs: dict[str, dict[int, str]] = {}
        for task in tasks:
            jobs.setdefault(task.job, {})[task.index] = task.address
        return BringingMaster(self.address, credentials or self.setup.credentials, ClusterSpec(jobs))

    def await_answer(self, seconds: float) -> None:
        """Return once the task answers where it is; UnavailableError after `seconds`."""
        start = reminded = REAL.now()
        while (why := self._silent()) is not None:
            now = REAL.now()
            if self._failure is not None or self._stopped or now - start > seconds:
                raise errors.UnavailableError.of(f"Task {self.name} does not answer: {why}.")
            self.engine.news.set()  # the keeper may not know yet that its worker is gone
            if now - reminded >= timeouts.notice:
                reminded = now
                say(f"CreateSession still waiting for response from worker: {self.name}: {why}")
            REAL.sleep(0.1)

    def _silent(self) -> str | None:
        """The reason for which the task does not answer now; None if it does."""
        if self.state != "running":
            return self.obstacle.message if self.state in ("starting", "lost") else self.state
        try:
            self._asked().get_status()
        except (errors.UnavailableError, errors.DeadlineExceededError, errors.CancelledError) as error:
            return error.message.splitlines()[0]
        return None

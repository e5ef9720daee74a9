"""The engine `dask`: tasks on the workers of a Dask distributed cluster, wherever a Dask deployer has put these.

Stands for what a cluster manager (Borg, Kubernetes) does for TensorFlow: it finds machines for tasks, watches them, and
starts a lost one again elsewhere.

Rules: each start of a task, its `life`, is one Dask task with one worker (`dask_worker.hold`), chosen here: Dask keeps
the resource GPU for it, and cancels it when this client is gone. One thread per cluster, the keeper, places tasks,
those that are lost, too. Dask carries text and numbers only.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import Credentials
from dtflab.base.limits import limits
from dtflab.base.timeouts import timeouts
from dtflab.cluster import addresses, dask_worker, moving
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.console import say
from dtflab.machine.hosts import is_loopback
from dtflab.runtime.master import passes

if TYPE_CHECKING:
    from dtflab.cluster.engines import Options, Setup
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.worker_stub import WorkerStub
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.runtime.transport import MasterInterface

_LOOK_S = 1.0  # between two looks at the workers
_ASK_S = 10.0  # for a worker to do what it is asked
_TRIES = 3  # in a row, for a task that does not come up any more
_failed = errors.FailedPreconditionError.of


class Worker(NamedTuple):
    """A worker of the Dask cluster, with as many GPUs as it offers by the resource of this name."""

    address: str
    host: str
    gpus: int


def choose(workers: Iterable[Worker], there: Counter[str], wants_gpu: bool) -> Worker | None:
    """The worker for a task: on the host with the fewest tasks, then with the fewest itself; None if none has room.

    `there` counts the tasks of the cluster on each worker, by address; if it `wants_gpu`, those with a GPU.
    """
    workers = list(workers)
    on_host = Counter[str]()
    for worker in workers:
        on_host[worker.host] += there[worker.address]
    free = [worker for worker in workers if not wants_gpu or worker.gpus > there[worker.address]]
    return min(free, key=lambda worker: (on_host[worker.host], there[worker.address]), default=None)


class Dask:
    """The workers of a Dask cluster, as the place of a cluster's tasks."""

    are = "processes on the workers of a Dask cluster"
    is_dtflab = True
    shares_cards = False
    makes_token = True

    def __init__(self, options: Options) -> None:
        self.client, self._insecure = options.client, options.insecure
        self._folder = None if options.allow_files is None else os.path.abspath(options.allow_files)
        self.tasks: dict[str, DaskTask] = {}
        self.lock = threading.RLock()
        self.topic = f"dtflab-{secrets.token_hex(8)}"
        self.news = REAL.event()  # for the keeper
        self._keeper: Any = None
        self._refused: dict[str, str] = {}  # worker → why no task may be there; "" if one may
        self._offers_gpus = False

    # ---- Engine

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Raise FailedPreconditionError for a missing package or client."""
        self._simulates = simulates
        if importlib.util.find_spec("distributed") is None:
            raise _failed(
                "engine='dask' needs the package distributed, which is not installed. Install it "
                "(pip install 'dtflab[dask]'), here and where the Dask workers are, or choose engine='process'."
            )
        from distributed import Client as DaskClient

        if not isinstance(self.client, DaskClient) or self.client.asynchronous:
            raise _failed(
                f"engine='dask' needs client=…, a distributed.Client that is not asynchronous, not {self.client!r}. "
                "For the processors of this machine: distributed.Client()."
            )
        if self.client.status != "running":
            raise _failed(f"client={self.client!r} is {self.client.status}: give one that is connected to a scheduler.")

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """A name for each task; ValueError for addresses, which Dask decides."""
        if spec is not None or addresses.counted(jobs) != {*jobs}:
            raise ValueError(
                "engine='dask' takes numbers of tasks, as in Cluster(ps=1, worker=2): their addresses are those of the "
                "Dask workers on which they are started."
            )
        return addresses.spec_of(None, jobs, name, with_ports=False)

    def start(self, setup: Setup, job: str, index: int) -> DaskTask:
        """Have a task placed by the keeper."""
        task = DaskTask(self, setup, job, index)
        moving.publish(task.stable, task)
        with self.lock:
            self.tasks[task.name] = task
            if self._keeper is None:
                self.client.subscribe_topic(self.topic, self._hear)
                self._keeper = REAL.spawn(self._keep, name="keeper of Dask tasks")
        self.news.set()
        return task

    def end(self, task: DaskTask) -> None:
        """Forget a task; with the last one, the keeper ends."""
        moving.withdraw(task.stable, task)
        with self.lock:
            if self.tasks.get(task.name) is task:
                del self.tasks[task.name]
            keeper, last = self._keeper, not self.tasks
            if last:
                self._keeper = None
        if last and keeper is not None:
            self.news.set()
            keeper.join(_ASK_S)
            if self.client.status == "running":
                self.client.unsubscribe_topic(self.topic)

    def order(self, task: DaskTask, life: str, gpu: bool) -> str:
        """The order for a worker to start a task."""
        setup = task.setup
        config = b"" if setup.config is None else setup.config.SerializeToString()
        environment = setup.homes.environment(task.job, task.index)
        return json.dumps(
            {
                "topic": self.topic, "life": life, "job": task.job, "index": task.index, "gpu": gpu,
                "config": base64.b64encode(config).decode(), "credentials": asdict(setup.credentials),
                "options": {"insecure": self._insecure, "allow_files": self._folder, "named_by_sessions": True},
                "environment": timeouts.as_environment() | limits.as_environment() | environment,
            }
        )  # fmt: skip

    def ask(self, function: Any, *arguments: Any, workers: Sequence[str]) -> dict[str, Any]:
        """Call a function on workers; the result of each, or its exception. OSError after `_ASK_S`."""

        async def asked() -> dict[str, Any]:
            found: dict[str, Any] = await self.client.run(
                function, *arguments, workers=list(workers), on_error="return"
            )
            return found

        found: dict[str, Any] = self.client.sync(asked, callback_timeout=_ASK_S)
        return found

    # ---- the keeper

    def _hear(self, event: tuple[float, Any]) -> None:
        """Take what a worker reports, on the client's own thread."""
        report = event[1]
        for task in list(self.tasks.values()):
            if report["life"] == task.life:
                task.hear(report)
        self.news.set()

    def _keep(self) -> None:
        while self.tasks:
            self.news.clear()
            try:
                self._look()
            except OSError as error:  # the scheduler or a worker does not answer; the next look may succeed
                for task in list(self.tasks.values()):
                    task.obstacle = errors.UnavailableError.of(f"the Dask cluster does not answer ({error})")
            except Exception as error:
                for task in list(self.tasks.values()):
                    task.fail(error)
                return
            self.news.wait(_LOOK_S)

    def _look(self) -> None:
        """See which workers there are, and find places for the tasks that have none."""
        if self.client.status in ("closing", "closed"):
            raise errors.UnavailableError.of("The Dask client of the cluster has been closed.")
        info = self.client.scheduler_info(n_workers=-1)["workers"]
        workers = [
            Worker(address, dask_worker.host_of(address), int(about["resources"].get("GPU", 0)))
            for address, about in info.items()
            if about["status"] == "running"
        ]
        with self.lock:
            for task in self.tasks.values():
                if task.worker and task.worker not in info:
                    task.lose(f"Dask has lost its worker {task.worker}")
        self._examine([worker for worker in workers if worker.address not in self._refused])
        self._place([worker for worker in workers if not self._refused[worker.address]])

    def _place(self, workers: Sequence[Worker]) -> None:
        for task in list(self.tasks.values()):
            with self.lock:
                if not task.wants_place:
                    continue
                gpu = self._offers_gpus and task.sees_gpus and not self._simulates
                there = Counter(other.worker for other in self.tasks.values() if other.has_gpu or not gpu)
                worker = choose(workers, there, gpu)
                if worker is not None:
                    task.begin(worker.address, gpu)
                else:
                    task.obstacle = _no_room(workers, self.tasks.values()) if gpu else _NO_WORKER

    def _examine(self, workers: Sequence[Worker]) -> None:
        """Look at new workers; while the cluster starts, FailedPreconditionError for those that can't have a task."""
        if not workers:
            return
        complaints = {worker.address: "" for worker in workers}
        for check in (self._other_versions, self._exposed, self._without_folder):
            good = [worker for worker in workers if not complaints[worker.address]]
            complaints |= check(good) if good else {}
        starts = not any(task.has_served for task in self.tasks.values())
        self._offers_gpus |= any(worker.gpus for worker in workers)
        self._refused |= complaints
        lines = [
            f"  {', '.join(worker for worker in complaints if complaints[worker] == why)}: {why}"
            for why in dict.fromkeys(filter(None, complaints.values()))
        ]
        if lines and starts:
            raise _failed("\n".join(["Workers of the Dask cluster can't have tasks:", *lines]))
        if lines:
            say("\n".join(["New workers of the Dask cluster get no tasks:", *lines]))

    def _other_versions(self, workers: Sequence[Worker]) -> dict[str, str]:
        found = self.client.get_versions(packages=["dtflab"])
        own, theirs = found["client"]["packages"], found["workers"]
        complaints = {}
        for worker in workers:
            packages = theirs.get(worker.address, {}).get("packages", {})
            other = [name for name in ("python", "dtflab") if _release(name, packages) != _release(name, own)]
            if other:
                complaints[worker.address] = "; ".join(
                    f"{name} is {_release(name, packages) or 'missing'}, here {_release(name, own)}: install the same"
                    for name in other
                )
        return complaints

    def _exposed(self, workers: Sequence[Worker]) -> dict[str, str]:
        """The reasons for which tasks on workers beyond loopback would be open to the network."""
        credentials = next(iter(self.tasks.values())).setup.credentials
        is_encrypted = self.client.scheduler.address.startswith("tls://")
        if not credentials.is_tls:
            why = "" if self._insecure else _EXPOSED
        else:
            why = "" if is_encrypted else _KEY_IN_PLAIN_TEXT
        beyond = [worker for worker in workers if not is_loopback(f"{worker.host}:0")]
        return {worker.address: why for worker in beyond} if why else {}

    def _without_folder(self, workers: Sequence[Worker]) -> dict[str, str]:
        """The workers that do not see the folder: they are asked for a file that is put there for a moment."""
        if self._folder is None:
            return {}
        probe, content = os.path.join(self._folder, f".dtflab-probe-{secrets.token_hex(8)}"), secrets.token_hex(16)
        try:
            with open(probe, "x", encoding="ascii") as file:
                file.write(content)
            found = self.ask(dask_worker.sees, probe, content, workers=[worker.address for worker in workers])
        except FileNotFoundError:
            raise _failed(f"allow_files={self._folder!r} is not a folder here: create it first.") from None
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(probe)
        return {
            worker: f"the folder {self._folder} is not there what it is here ({why}): mount it there, or give "
            "allow_files=… a folder that all hosts share"
            for worker, why in found.items()
            if why
        }


_NO_WORKER = errors.UnavailableError.of("the Dask cluster has no worker that can have it")
_EXPOSED = (
    "beyond this machine's loopback, where a task would listen to the network in plain text: give "
    "credentials=… (dtflab certs makes some), or insecure=True; docs/security.md says what that gives away"
)
_KEY_IN_PLAIN_TEXT = (
    "the private key of credentials=… would be sent there in plain text, since the Dask cluster has no TLS: make it "
    "with security=distributed.Security(…)"
)


def _release(name: str, packages: Mapping[str, Any]) -> str:
    """A version as far as it must be the same: of Python the first two parts, of dtflab all."""
    version = str(packages.get(name) or "")
    return ".".join(version.split(".")[:2]) if name == "python" else version


def _no_room(workers: Iterable[Worker], tasks: Iterable[DaskTask]) -> errors.OpError:
    offered, taken = sum(worker.gpus for worker in workers), sum(task.has_gpu for task in tasks)
    return errors.ResourceExhaustedError.of(
        f"it waits for a GPU: the Dask workers offer {offered} (their resource GPU), and tasks of this cluster have "
        f"{taken}. Add workers, take fewer tasks, or let tasks have none: visible_devices={{'worker': ''}}"
    )


class DaskTask:
    """A task on a worker of a Dask cluster: on another one, at another address, when it is lost there."""

    def __init__(self, engine: Dask, setup: Setup, job: str, index: int) -> None:
        self.engine, self.setup, self.job, self.index = engine, setup, job, index
        self.name = f"/job:{job}/replica:0/task:{index}"
        self.stable = self.address = setup.spec.task_address(job, index)
        self.target = f"grpc://{self.stable}"
        self.state = "waiting for a worker"
        self.sees_gpus = setup.homes.of(job, index).visible is None
        self.life = self.worker = ""  # of its present start, if it has one
        self.has_gpu = self.has_served = self._stopped = False
        self.obstacle: errors.OpError = _NO_WORKER
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

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

from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.base.limits import limits
from dtflab.base.timeouts import timeouts
from dtflab.cluster import addresses, dask_worker, moving
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.dask_task import NO_WORKER, DaskTask
from dtflab.machine.clock import REAL
from dtflab.machine.console import say
from dtflab.machine.hosts import is_loopback

if TYPE_CHECKING:
    from dtflab.cluster.engines import Options, Setup

_LOOK_S = 1.0  # between two looks at the workers
_ASK_S = 10.0  # for a worker to do what it is asked
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
                    task.obstacle = _no_room(workers, self.tasks.values()) if gpu else NO_WORKER

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

"""Cluster: many tasks at once, no matter who starts them.

    with dtflab.Cluster(ps=1, worker=2) as cluster:
        sess = tf.Session(cluster.target)

Rule: one object over all engines; the target is all that a program sees of the difference.
"""

from __future__ import annotations

import atexit
import contextlib
import html
import itertools
import math
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.base.events import Call
from dtflab.base.text_table import html_table
from dtflab.cluster import addresses
from dtflab.cluster.allocation import Allocation, Capacity, Request, ResourceManager
from dtflab.cluster.attached import AttachedTask, AwaitedTask, await_all
from dtflab.cluster.clients import Client, Clients, RunWatch
from dtflab.cluster.cluster_spec import ClusterSpec, members
from dtflab.cluster.engines import InProcessTask, Options, RunningTask, Setup, engine_for
from dtflab.cluster.hosts_of_tasks import Homes, Visible
from dtflab.cluster.resources_held import HeldQueue, HeldVariable
from dtflab.cluster.task import calls_of
from dtflab.cluster.virtual_time import begin_world, check_options, hardware_text, name_of_gpu
from dtflab.graph import device_spec
from dtflab.hardware.machines import Machines
from dtflab.hardware.parts import Processor
from dtflab.machine import clock as clocks, smi
from dtflab.machine.cards import parse_memory
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.console import say
from dtflab.machine.hosts import definition_of, published_once
from dtflab.machine.registry import HostCards
from dtflab.protos.cluster_pb2 import ClusterDef
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.runtime import standstill
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.event_log import EventLog
from dtflab.virtual.loads import Loads
from dtflab.virtual.world import World

if TYPE_CHECKING:
    from dtflab.cluster.chaos import Chaos

_numbers = itertools.count(1)
_alive: weakref.WeakSet[Cluster] = weakref.WeakSet()
stopped: dict[str, str] = {}  # the name of a cluster of this process that was stopped, by the address of each task


class Cluster:
    """Tasks of a distributed TensorFlow program: `Cluster(ps=1, worker=2)` or `Cluster({"ps": [...], ...})`.

    A job is a number of tasks or a list of addresses. `engine` says where tasks live: "inprocess", objects of this
    process whose addresses are only names (`listen=True` binds loopback ports too); "process", one OS process each;
    "tensorflow", the same with TensorFlow's own servers (`pip install dtflab[tensorflow]`), which listen on all
    networks; "dask", processes on the workers of a Dask cluster, that of the distributed.Client given as `client`
    (`pip install dtflab[dask]`), where a lost task is started again; "attached", tasks that run already, wherever they
    were started: `Cluster(["host:2222"], engine="attached")`, where one address is enough if all tasks are dtflab's.
    `timeout` is how long all tasks may take to come up, in seconds; UnavailableError names the one that did not.

    `credentials`, a dtflab.Credentials, are what the tasks ask for and show each other. Without any, tasks in processes
    of their own get a new token, so that only sessions of this program, and what has `cluster.credentials`, can call
    them. `token` is another one; `token=None` admits everybody on this machine, TensorFlow's programs too, as
    `listen=True` does without a `token`.

    engine="process" starts the tasks whose addresses are this machine's. For those of other hosts it shows the command
    that starts them there, and waits. A cluster that listens beyond loopback needs `credentials` for TLS, or
    `insecure=True` (docs/security.md); `allow_files` is the folder whose files its steps may open, as of
    tf.train.Server. With "dask" that is a folder that all hosts see, for checkpoints and input: if one does not, the
    start fails.

    `gpus=2` puts as many simulated GPUs into each host: `gpu="K40"` is their model, `gpu_memory="4GiB"` what each has.
    A job's tasks have a host each if only their number is given; else tasks with the same host part of their addresses
    share its cards. A `ps` sees none, other tasks see all; `visible_devices={"ps": "0", "worker": ["0,1", "2"]}`, texts
    as in CUDA_VISIBLE_DEVICES per job or per task, changes that.

    With `clock="virtual"` the tasks run in virtual time: arithmetic is real, durations are those of the hardware that
    `gpu` (one per host, if `gpus` says nothing), `cpu`, `bus` ("pcie3", …), `network` ("10Gb/s", …) and `racks` (their
    number) describe. `stragglers`, as `sim.lognormal(0.2)`, lets steps vary; equal `seed`s make equal runs, event for
    event, and are where what has no seed in the program gets its numbers.
    """

    def __init__(
        self,
        spec: Any = None,
        *,
        engine: str = "inprocess",
        client: Any = None,
        config: ConfigProto | None = None,
        listen: bool = False,
        name: str | None = None,
        timeout: float = 60.0,
        credentials: Credentials | None = None,
        token: str | None = "new",
        insecure: bool = False,
        allow_files: Any = None,
        gpus: int | None = None,
        gpu: str | Processor | None = None,
        gpu_memory: int | str | None = None,
        visible_devices: Visible | None = None,
        clock: str = "real",
        cpu: Any = None,
        bus: Any = None,
        network: Any = None,
        racks: Any = None,
        stragglers: Any = None,
        seed: int | None = None,
        **jobs: Any,
    ) -> None:
        self._given = {name: value for name, value in locals().items() if name != "self"}  # for fresh_copy
        options = {"cpu": cpu, "bus": bus, "network": network, "racks": racks, "stragglers": stragglers, "seed": seed}
        check_options(clock, engine, listen, options)
        self.engine = engine
        self._engine = engine_for(engine, Options(listen, client, insecure, allow_files, timeout))
        makes_token = self._engine.makes_token and not (insecure and spec is not None)
        self.credentials = _credentials(credentials, token, makes_token)
        self._engine.check(gpus is not None, self.credentials)
        if engine == "attached" and (config is not None or visible_devices):
            raise ValueError("config=… and visible_devices=… are for tasks that a cluster starts: leave them out.")
        self.name = name or f"cluster{next(_numbers)}"
        self.clock: Clock = VirtualClock() if clock == "virtual" else REAL
        self.world: World | None = None
        self.spec = self._engine.spec(spec, jobs, self.name)
        if gpus is None and gpu is not None and clock == "virtual":
            gpus = 1
        self._homes = Homes(
            self.spec,
            self.name,
            addresses.counted(jobs),
            _cards(gpus, name_of_gpu(gpu), gpu_memory),
            visible_devices,
            clock == "virtual",
            self._engine.shares_cards,
        )
        self._setup = Setup(self.spec, config, self.credentials, self._homes, self.clock)
        self._timeout = timeout
        self._manager = ResourceManager(self._capacities, self.clock)
        self._members = [(job, index) for job in self.spec.jobs for index in self.spec.task_indices(job)]
        self.tasks: list[RunningTask] = []
        self.chaos: Chaos | None = None  # of the block in which it is
        self._start_tasks(options)
        self._begin()

    def _start_tasks(self, options: Mapping[str, Any]) -> None:
        """Start all tasks, and in virtual time the world of their hardware; if anything fails, none is left."""
        try:
            for member in self._members:
                self.tasks.append(self._engine.start(self._setup, *member))
            self._await(self.tasks)
            if isinstance(self.clock, VirtualClock):
                members = [task.server.task for task in self.tasks if isinstance(task, InProcessTask)]
                self.world = begin_world(self.clock, members, options)
                self.clock.waits, self.clock.standstill = self.waits, self.standstill
        except BaseException:
            try:
                for task in self.tasks:
                    task.ask_to_end(grace=False)  # nothing is in it yet
            finally:
                self.stop()
            raise

    def _await(self, tasks: Sequence[RunningTask]) -> None:
        """Return when tasks serve, which share one deadline; those of other hosts wait for their user together."""
        start, others = REAL.now(), [task for task in tasks if isinstance(task, AwaitedTask)]
        for task in tasks:
            if task not in others:
                task.wait_ready(self._timeout, start)
        await_all(others, self._timeout, start)

    def _begin(self) -> None:
        if self not in _alive:  # else it is begun again, task by task
            clocks.begin(self.clock)
        _alive.add(self)

    def task(self, job: str, index: int = 0) -> RunningTask:
        """One task; ValueError if the cluster has no such task."""
        wanted = device_spec.name_of_task(job, index)
        for task in self.tasks:
            if task.name == wanted:
                return task
        raise ValueError(f"{self.name} has no task {wanted}; it has {', '.join(t.name for t in self.tasks)}.")

    def target_of(self, job: str, index: int = 0) -> str:
        """The session target of one task."""
        return self.task(job, index).target

    @property
    def target(self) -> str:
        """The session target of the first worker, or of the first task if there is no job `worker`."""
        workers = self.spec.task_indices("worker") if "worker" in self.spec.jobs else []
        return self.target_of("worker", workers[0]) if workers else self.tasks[0].target

    def cluster_def(self) -> ClusterDef:
        """The addresses of its tasks now, for the `cluster_def` of a session of another program."""
        jobs: dict[str, dict[int, str]] = {job: {} for job in self.spec.jobs}
        for (job, index), task in zip(self._members, self.tasks, strict=True):
            jobs[job][index] = task.address
        return ClusterSpec(jobs).as_cluster_def()

    def client(self, job: str, index: int = 0) -> Client:
        """The details that a program needs to be that task's client: target, device, cluster spec."""
        return Client(self, job, index, self.clock.event())

    def run(
        self,
        worker_fn: Callable[[Client], Any],
        job: str = "worker",
        grace: float = 10.0,
        *,
        watch: RunWatch | None = None,
    ) -> list[Any]:
        """Call `worker_fn(client)` once per task of `job`, each in a thread with a graph of its own.

        Returns the results in the order of tasks. The first error is raised once the other clients have ended, or after
        `grace` seconds; they can ask `client.should_stop()`. Clients that still run then, or at Ctrl-C, lose their
        sessions, so that they end at their next `run`.

        With `watch=tf.viz.live("loss")` a picture shows what they say by `client.report(loss)` while they run; its
        button makes `client.should_stop()` true.
        """
        if not callable(worker_fn):
            raise TypeError(f"cluster.run takes a function of one client, cluster.run(work), not {worker_fn!r}.")
        return Clients(self, worker_fn, job, watch).run(grace)

    def allocate(
        self,
        gpus: int = 1,
        memory: int | str | None = None,
        on: str = "",
        *,
        holder: str = "",
        container: str | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Allocation:
        """GPUs that nobody else was promised: a device, or a device function, for `tf.device`.

            with cluster.allocate(gpus=1, memory="1GiB") as gpu, tf.device(gpu):

        `memory` is per GPU (None: whole ones), `on` a partial device name ("/job:worker"), `holder` the name
        in `allocations()`. It ends with its `with` block, its `release()`, or with `container`, when that is reset.
        ResourceExhaustedError says why a request can't be met; with `wait` one that can be met later waits in line, at
        most `timeout` seconds (DeadlineExceededError).
        """
        if not isinstance(gpus, int) or gpus < 1:
            raise ValueError(f"allocate(gpus={gpus!r}): ask for one GPU at least; CPUs need no allocation.")
        if timeout is not None and not wait:
            raise ValueError(f"allocate(timeout={timeout!r}): a timeout is used only with wait=True.")
        size = None if memory is None else parse_memory(memory)
        if size == 0:
            raise ValueError(f"allocate(memory={memory!r}): ask for some memory, or leave it out for a whole GPU.")
        holder = holder or container or f"client {threading.current_thread().name.removeprefix('client ')}"
        allocation = self._manager.allocate(Request(gpus, size, on, holder), wait, timeout)
        if container is not None:
            self._tie(allocation, container)
        return allocation

    def _tie(self, allocation: Allocation, container: str) -> None:
        """Let an allocation be a resource of a container, which releases it when it is reset."""
        for task in self.tasks:
            for device in task.server.task.devices if isinstance(task, InProcessTask) else ():
                if device.name == allocation.device:
                    key = f"{allocation!r} {id(allocation)}"  # a container may have several that look the same
                    device.resources.lookup_or_create(container, key, Allocation, lambda: allocation)
                    return
        allocation.release()
        raise ValueError(
            f"{allocation.device} is in another process, whose containers can't release what was allocated here: "
            "use a `with` block or release()."
        )

    def allocations(self) -> list[Allocation]:
        """The allocations in force, the oldest first: `release()` gives one back that nobody needs any more."""
        return self._manager.allocations()

    def _capacities(self) -> dict[str, Capacity]:
        """All GPUs of the running tasks."""
        found: dict[str, Capacity] = {}
        for member, task in zip(self._members, self.tasks, strict=False):  # fewer while they start
            for device in task.devices() if task.state == "running" else ():
                if device.device_type == "GPU":
                    found[device.name] = self._homes.capacity(*member, device)
        return found

    def now(self) -> float:
        """Seconds on the cluster's clock: of virtual time since it was made, of real time since some fixed moment."""
        return self.clock.now()

    def at(self, seconds: float, call: Callable[..., Any], *args: Any) -> None:
        """In virtual time, let `call(*args)` be made at a moment, in a thread of its own; at once if it has passed.

        For faults and changes of hardware: `cluster.at(12.5, cluster.kill, "worker", 3)`. An error of it is raised
        where the program waits, in `run` mostly. ValueError in real time, and for no moment.
        """
        engine, clock = self._virtual("at").engine, self.clock
        if not -math.inf < seconds < math.inf:
            raise ValueError(f"at({seconds!r}, …): give a moment in virtual seconds, a finite number.")

        def thread() -> None:
            try:
                call(*args)
            except Exception as error:
                clock.tell(error)  # type: ignore[attr-defined]

        engine.at(seconds, lambda: clock.spawn(thread, name=f"what is due at {seconds:g} s"))

    def slow(self, job: str, index: int = 0, factor: float = 1.0, network: float = 1.0) -> None:
        """In virtual time, let what a task computes take `factor` times as long as planned, from now on.

        `network` is the same for what passes the network card of its host. Both belong to all tasks of the host.
        """
        for name, value in (("factor", factor), ("network", network)):
            if not 0 < value < math.inf:
                raise ValueError(f"slow({name}={value!r}): it must be above 0, and finite; 1 is as planned.")
        self._virtual("slow").slow_down(self.task(job, index).name, factor, network)

    def log(self) -> EventLog:
        """The events of virtual time: `log().lines`, and `log().hash()`, equal for equal runs."""
        return self._virtual("log").log

    def loads(self) -> Loads:
        """How busy the simulated processors and links have been since virtual time began, as a table."""
        return self._virtual("loads").loads()

    def _virtual(self, what: str) -> World:
        if self.world is None:
            raise ValueError(f"{self.name} runs in real time, which knows no {what}(): make it with clock='virtual'.")
        return self.world

    def kill(self, job: str, index: int = 0) -> None:
        """End one task at once, as a crash would."""
        self.task(job, index).kill()
        self._manager.look_again()

    def fresh_copy(self) -> Cluster:
        """In virtual time, another cluster of such tasks on such hardware, in which nothing has happened yet.

        Its virtual time begins at 0. ValueError in real time.
        """
        self._virtual("fresh_copy")
        given, name = dict(self._given), f"cluster{next(_numbers)}"
        jobs, spec = given.pop("jobs"), given.pop("spec")
        if addresses.counted(jobs) != {*self.spec.jobs}:  # an address can't be taken twice
            jobs, spec = {}, {job: {} for job in self.spec.jobs}
            for job, index, address in members(self.spec):
                spec[job][index] = f".{name}:".join(address.rsplit(":", 1))
        return Cluster(**given | jobs | {"spec": spec, "name": name})

    def restart(self, job: str | None = None, index: int = 0) -> None:
        """End one task, or all without a job, and restart it at the same address, without variables."""
        chosen = range(len(self.tasks)) if job is None else [self.tasks.index(self.task(job, index))]
        for task in (self.tasks[number] for number in chosen):
            if isinstance(task, AttachedTask):
                raise task.not_ours("restarted")
        self._stop_tasks([self.tasks[number] for number in chosen])
        self._homes.open()
        self._begin()
        for number in chosen:
            self.tasks[number] = self._engine.start(self._setup, *self._members[number])
        self._await([self.tasks[number] for number in chosen])
        for number in chosen:
            if self.chaos is not None:
                self.chaos.began_again(self.tasks[number])
        self._manager.look_again()

    @property
    def attached(self) -> list[AttachedTask]:
        """The tasks that were started elsewhere, and are not ended from here."""
        return [task for task in self.tasks if isinstance(task, AttachedTask)]

    @property
    def is_stopped(self) -> bool:
        """True once it was stopped as a whole, by `stop` or at the end of its `with` block."""
        return self not in _alive

    def stop(self) -> None:
        """End all tasks: variables are gone, and nothing is left running. Attached tasks run on, and a line says so."""
        if not self.is_stopped and self.attached:
            which = ", ".join(device_spec.plain(task.name) for task in self.attached)
            say(f"{self.name} is detached from {which}: started elsewhere, they run on.")
        with contextlib.ExitStack() as each:  # also when one of them fails, or at a second Ctrl-C
            each.callback(self._manager.look_again)  # nobody waits for a stopped cluster
            each.callback(self._homes.close)
            each.callback(self._stop_tasks, self.tasks)
            if isinstance(self.clock, VirtualClock):
                each.callback(self.clock.stop)
        if not self.is_stopped:
            clocks.end(self.clock)
        _alive.discard(self)
        stopped.update((task.address, self.name) for task in self.tasks if task not in self.attached)

    @staticmethod
    def _stop_tasks(tasks: Sequence[RunningTask]) -> None:
        """Stop each of them; processes are all asked before one is waited for."""
        with published_once(), contextlib.ExitStack() as each:  # the last callback is the first
            for task in tasks:
                each.callback(task.stop)
            for task in tasks:
                each.callback(task.ask_to_end)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def rows(self) -> list[tuple[str, str, str]]:
        """(task, address, state) of every task."""
        return [(task.name, task.address, task.state) for task in self.tasks]

    def waits(self) -> list[str]:
        """Describe everything that waits now: for GPUs of the cluster, for tensors and queues of its tasks.

        One line each, also for a task that does not answer, and for TensorFlow servers, which do not report it.
        """
        lines = self._manager.waiting()
        if not self._engine.is_dtflab:
            silent = [task.name for task in self.tasks if task.state == "running"]
            names = ", ".join(silent)
            return lines + [f"In {self._engine.are}, which do not report what they wait for: {names}"] * bool(silent)
        for task in self.tasks:
            try:
                lines += task.view("Waits")
            except errors.UnavailableError as unavailable:
                lines.append(unavailable.message)
        return [re.sub(r"(\(step )\d+(\d{6}\)$)", r"\1…\2", line) for line in lines]  # long at random

    def standstill(self) -> list[standstill.Fact]:
        """Everything that waits now, and the sessions that could end it: the data of `tf.viz.waits`.

        A task that does not answer within 5 s is one of the facts. NotImplementedError for TensorFlow servers, which do
        not report it.
        """
        found: list[standstill.Fact] = [*self._manager.reserving()]
        for task in self.tasks:
            try:
                if task.state != "running":
                    raise errors.UnavailableError.of(task.state)
                found += standstill.facts_of(self._rows("Standstill", task))
            except errors.UnavailableError as unavailable:
                found.append(standstill.Silent(task.name, unavailable.message))
        return found

    def variables(self) -> list[HeldVariable]:
        """Every variable with its holder: task, device, container, name, dtype, shape, bytes.

        UnavailableError names a task that does not answer within 5 s.
        """
        return [HeldVariable.of(row) for row in self._rows("Variables")]

    def queues(self) -> list[HeldQueue]:
        """The queues of its tasks as they are now: level, capacity, waiting ops.

        UnavailableError names a task that does not answer within 5 s.
        """
        return [HeldQueue.of(row) for row in self._rows("Queues")]

    def _rows(self, view: str, *tasks: RunningTask) -> list[Any]:
        """The rows of a view of each task; NotImplementedError if the tasks do not report it."""
        if not self._engine.is_dtflab:
            raise NotImplementedError(
                f"The tasks of {self.name} are {self._engine.are}, which do not report their {view.lower()}. Look at "
                "them in a cluster with engine='inprocess'."
            )
        return [row for task in tasks or self.tasks for row in task.view(view)]

    def calls(self) -> list[Call]:
        """The latest calls between its tasks, as a wire carries them, oldest first: parts of steps, and tensors.

        Each is listed once, as the task noted it that was called; a tensor `pushed` was not asked for. What a process
        that has ended had noted is gone; UnavailableError names one that does not answer within 5 s. TensorFlow servers
        note none: NotImplementedError.
        """
        return sorted(calls_of(self._rows("Calls")))

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.spec.num_tasks(job)} {job}" for job in self.spec.jobs)
        states = {state for _, _, state in self.rows()}
        return f"<Cluster {self.name}: {counts}; {self.how}; {', '.join(sorted(states))}>"

    @property
    def are(self) -> str:
        """The kind of its tasks, in words."""
        return self._engine.are

    @property
    def is_dtflab(self) -> bool:
        """Whether its tasks are of dtflab, and report what they hold."""
        return self._engine.is_dtflab

    @property
    def how(self) -> str:
        """The engine; in virtual time also the moment and the hardware."""
        if self.world is None:
            return self.engine
        machines = self.world.machines
        return f"{self.now():.6g} s of virtual time; {hardware_text(machines)}; {machines.network.nic.name}"

    @property
    def machines(self) -> Machines | None:
        """The simulated hardware under the tasks, for a placer or an estimate; None in real time."""
        return None if self.world is None else self.world.machines

    def status(self) -> str:
        """A line per task, with its devices."""
        lines = (f"  {task.name}  {task.address}  {task.state}  {_devices_of(task)}".rstrip() for task in self.tasks)
        return "\n".join([repr(self), *lines, *self.commands()])

    def commands(self) -> list[str]:
        """For each task of another host: the line that starts it there."""
        awaited = [task for task in self.tasks if isinstance(task, AwaitedTask)]
        return [f"on {task.address.rpartition(':')[0]}: {task.command}" for task in awaited]

    def _repr_html_(self) -> str:
        rows = html_table(("task", "address", "state"), self.rows())
        commands = "".join(f"<div>{html.escape(line)}</div>" for line in self.commands())
        return f"<p><b>{html.escape(self.name)}</b> ({html.escape(self.how)})</p>{rows}{commands}"


def _credentials(given: Credentials | None, token: str | None, makes_token: bool) -> Credentials:
    """Choose those given, those in DTFLAB_CREDENTIALS, or a new token; then put another token in, if one is given."""
    found = the_credentials.own(given)
    if token == "new":
        is_new = makes_token and found == PLAIN
        return Credentials(token=the_credentials.new_token()) if is_new else found
    return replace(found, token=token or "")


def _cards(gpus: int | None, gpu: str | None, memory: int | str | None) -> HostCards | None:
    if gpus is None and (gpu is not None or memory is not None):
        raise ValueError("gpu=… and gpu_memory=… describe GPUs: add gpus=…, the number of GPUs of each host.")
    return None if gpus is None else definition_of(gpus, gpu, memory)


def at_target(target: str) -> Cluster | None:
    """The cluster of this process to which a session's target leads."""
    tasks = [(task.address, cluster) for cluster in list(_alive) for task in cluster.tasks]
    return next((cluster for address, cluster in tasks if target.endswith(f"//{address}")), None)


def lost_tasks(address: str) -> list[str]:
    """The tasks that have ended in the cluster of this process to which `address` belongs."""
    for cluster in list(_alive):
        if any(task.address == address for task in cluster.tasks):
            ours = [task for task in cluster.tasks if not isinstance(task, AttachedTask)]  # others may come again
            return [f"{task.name} at {task.address}" for task in ours if task.state != "running"]
    return []


def device_label(device: Any) -> str:
    """`CPU:0`; of a GPU also the card: `GPU:0 (GRID K520)`."""
    parsed = device_spec.parse(device.name)
    card = re.search(r"name: ([^,]+)", device.physical_device_desc)
    return f"{parsed.type}:{parsed.id}" + (f" ({card[1]})" if card else "")


def _devices_of(task: RunningTask) -> str:
    """The devices of a running task; nothing if it has ended or does not answer."""
    try:
        return ", ".join(map(device_label, task.devices())) if task.state == "running" else ""
    except errors.OpError:
        return ""


def _promises() -> list[str]:
    """The GPU memory that clusters of this process have promised, one line per promise."""
    return [
        f"{cluster.name}: {holder} was promised {nbytes >> 20} MiB of {device}"
        for cluster in list(_alive)
        for device, holder, nbytes in cluster._manager.promises()
    ]


smi.notes.append(_promises)


def stop_all() -> None:
    """Stop every cluster of this process; registered for its end."""
    for cluster in list(_alive):
        cluster.stop()


atexit.register(stop_all)

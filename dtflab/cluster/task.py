"""Task: one member of a cluster, with its devices, its worker and its master.

Stands for `grpc_server_lib.cc` without the network. A Task is the same thing whether it lives in a notebook, in a
process of its own, or in virtual time.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import socket
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.base.events import Call, Instrument, Message
from dtflab.base.timeouts import timeouts
from dtflab.cluster import inprocess
from dtflab.cluster.cluster_spec import ClusterSpec, members
from dtflab.cluster.faults import Faults
from dtflab.cluster.inprocess import Absent, Peer
from dtflab.cluster.propagation import check_worker, checked, master_in
from dtflab.cluster.silence import SILENT
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.console import listener
from dtflab.machine.device_factory import make_devices
from dtflab.machine.hosts import THIS_PROCESS, Home, end_program, this_home
from dtflab.machine.meter import Meter
from dtflab.runtime.master import Master
from dtflab.runtime.runner import NewStep, Step
from dtflab.runtime.worker import Worker
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.step import VirtualStep
from dtflab.virtual.worker import VirtualWorker

if TYPE_CHECKING:
    from dtflab.cluster.endpoint import Endpoint
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.worker_stub import WorkerStub
    from dtflab.files.env import Env
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.protos.tensorflow_server_pb2 import ServerDef
    from dtflab.runtime.transport import WorkerInterface

_UNHEARD = (
    "connection refused",
    "connection attempt timed out before receiving settings frame",
    "no answer",
)  # reasons that a task which is stopped may have, too
Kept = tuple[float, str, str, str, int, str, bool]  # the fields of a Message


class MessageLog:
    """The latest messages from other tasks to a task."""

    def __init__(self) -> None:
        self._kept: deque[Kept] = deque(maxlen=10_000)
        self.sent: Counter[str] = Counter()  # bytes of tensors, by the task that got them

    def on_message(self, message: Message) -> None:
        """Keep the message as a plain tuple, which the garbage collector does not track."""
        at, method, source, target, nbytes, detail, pushed = message
        self._kept.append((at, method, source, target, nbytes, detail, pushed))
        if nbytes:
            self.sent[source] += nbytes

    def kept(self) -> list[Kept]:
        """The messages as they were kept, which can travel."""
        return list(self._kept)


def calls_of(kept: Iterable[Kept]) -> list[Call]:
    """The messages that a log has kept. Nobody noted how long they took."""
    return [
        Call(at=at, method=method, source=source, target=target, nbytes=nbytes, detail=detail, ended=at, pushed=pushed)
        for at, method, source, target, nbytes, detail, pushed in kept
    ]


class Task:
    """`/job:<job>/replica:0/task:<index>` of the cluster that `spec` describes."""

    def __init__(
        self,
        spec: ClusterSpec,
        job: str,
        index: int,
        config: ConfigProto | None = None,
        clock: Clock = REAL,
        home: Home | None = None,
        credentials: Credentials = PLAIN,
        named_by_sessions: bool = False,
    ) -> None:
        self.spec = spec
        self._booted = None if named_by_sessions else (job, index)
        self.credentials = credentials  # for the other tasks
        self._job, self._index = job, index
        self.name = device_spec.name_of_task(job, index)
        self.clock = clock
        self.address = spec.task_address(job, index)
        self.home = home or this_home(self.address, job)
        self.devices = make_devices(job, index, config, clock, self.home)
        self.faults = Faults(self.name, clock)
        self.meter = Meter()
        for device in self.devices:
            device.pace, device.meter = self.faults.pace, self.meter
        virtual = isinstance(clock, VirtualClock)
        self.members = Members(self, self.name, spec)
        self.worker = (VirtualWorker if virtual else Worker)(self.name, self.devices, self.members.peer, self.join)
        workers = {task: functools.partial(self.members.reach, task) for task in self.members.addresses}
        new_step: NewStep[Step] = functools.partial(VirtualStep, master=self.name) if virtual else Step
        self.master = Master(self.worker, workers, clock, new_step, config)
        self.log = MessageLog()
        self.heard = Instrument(self.log)  # listeners to what other tasks ask of this one
        self._helps: weakref.WeakKeyDictionary[Step, str] = weakref.WeakKeyDictionary()  # to masters in this process
        self._helps_lock = threading.Lock()
        self.endpoint: Endpoint | None = None  # while other processes can reach it
        self.stopped = False

    def at(self, address: str) -> str:
        """The task of the cluster at an address; "" if there is none."""
        return self.members.at(address)

    def join(self, server_def: ServerDef, target: str = "") -> Members:
        """The cluster of `server_def`, which a session brings, as this task sees it.

        If that does not say which task of it this is, it is the one at the session's `target`. InvalidArgumentError
        for a cluster of which this is not a task.
        """
        if isinstance(self.clock, VirtualClock):
            raise errors.UnimplementedError.of(
                "In virtual time a session has the cluster of its server, whose hardware is known by the names of its "
                "tasks: leave cluster_def out, or use clock='real'."
            )
        spec = checked(server_def.cluster)
        own = server_def.job_name, server_def.task_index
        if not server_def.job_name:
            own = master_in(spec, target.removeprefix("grpc://") or self.address, self._booted)
        check_worker(spec, *own, self.address)
        return Members(self, device_spec.name_of_task(*own), spec)

    def note(self, method: str, source: str, detail: str, value: object = None, pushed: bool = False) -> None:
        """Report to the task's own listeners what another task asks of it, or the tensor that it gets."""
        now = self.clock.now()
        nbytes: int = getattr(value, "nbytes", 0)
        message = Message(
            at=now, method=method, source=source, target=self.name, nbytes=nbytes, detail=detail, pushed=pushed
        )
        for hear in self.heard.message:
            hear(message)

    def open_only(self, env: Env) -> None:
        """Let steps here open the files of `env` alone, also those of clients in this process."""
        for device in self.devices:
            device.env = env

    def help(self, step: Step, master: str) -> None:
        """Have a part in the step of another master in this process."""
        with self._helps_lock:
            self._helps[step] = master

    def pause(self) -> None:
        """Hold its kernels and messages until `faults.go_on()`; its steps end if that takes too long."""
        self.faults.stop()
        for step in self._steps():
            step.careful = True  # asks before its next node
        self.faults.watch(self.name, lambda: [functools.partial(self._end_everywhere, step) for step in self._steps()])

    def _steps(self) -> list[Step]:
        return [*self.master.running(), *self._helping()]

    def _end_everywhere(self, step: Step, error: errors.OpError) -> None:
        for task in [self, *self.members.here()]:
            task.end(step, error)

    def end(self, step: Step, error: errors.OpError) -> None:
        """End a step here, of which no message comes that it is over."""
        step.cancel(error)
        self.worker.cleanup_graph(step.step_id, error)

    def set_faults(self, setting: Setting) -> None:
        """Replace the faults of the task; what is under way to a task that is now cut off ends if that lasts."""
        others = [task for task in self.members.here() if not self.faults.cuts(task.name)]
        self.faults.set(setting)
        for other in others:
            if self.faults.cuts(other.name):
                self.faults.watch(other.name, functools.partial(self._under_way_to, other), other.faults)

    def _under_way_to(self, other: Task) -> list[Callable[[errors.OpError], object]]:
        steps, tensors = other._helping(self.name), other.worker.rendezvous
        pulls = [functools.partial(tensors.fail_for, self.name)] if tensors.is_awaited_by(self.name) else []
        return [*(functools.partial(other.end, step) for step in steps), *pulls]

    def _helping(self, master: str = "") -> list[Step]:
        """The steps of another master, or of all others, in which it has a part."""
        with self._helps_lock:
            return [step for step, whose in self._helps.items() if not master or whose == master]

    def close(self) -> None:
        """End the task: what runs here fails, connections and state are let go."""
        self.stopped = True
        gone = errors.UnavailableError.of(f"Task {self.name} at {self.address} was stopped.")
        self.worker.rendezvous.abort_all(gone)
        for step in self._helping():  # before its ops learn below that their variable or queue is gone
            step.cancel(gone)
        self.master.close(gone)
        self.members.close()
        self.worker.close()
        self.faults.clear()  # what was held learns that the task is gone
        if self.home.program != THIS_PROCESS:
            end_program(self.home.program)


class Members:
    """The tasks of a cluster as `task` reaches them (transport.Members).

    The cluster is that of its server, or one that a session brings, in which the task is called `name`.
    """

    def __init__(self, task: Task, name: str, spec: ClusterSpec) -> None:
        self.name = name
        self.addresses = {device_spec.name_of_task(job, number): where for job, number, where in members(spec)}
        self._task = task
        self._is_brought = spec is not task.spec
        self._peers: dict[str, Peer | Absent | WorkerStub] = {}

    def at(self, address: str) -> str:
        """The task of the cluster at an address; "" if there is none."""
        return next((task for task, where in self.addresses.items() if where == address), "")

    def peer(self, task: str) -> WorkerInterface:
        """The worker of another task, to pull from. Does not wait: if it is gone, the pull says so."""
        known = self._peers.get(task)
        if isinstance(known, Peer) and known.task.stopped and inprocess.find(known.task.address):
            known = None  # it has restarted
        return known or self.way_to(task)

    def reach(self, task: str) -> WorkerInterface:
        """The worker of `task`; waits for it to come up.

        Says every `timeouts.notice` seconds which task is missing; UnavailableError after `timeouts.tasks`.
        """
        if task == self.name:
            return self._task.worker
        worker = self.way_to(task)
        if isinstance(worker, Peer):
            return worker
        address = self.addresses[task]

        def settled() -> bool:
            return self._task.stopped or inprocess.find(address) is not None

        await_task(worker.get_status, task, address, self._task.clock, timeouts.tasks, settled)
        if self._task.stopped:
            raise errors.CancelledError.of(f"Task {self._task.name} at {self._task.address} was stopped.")
        return self.way_to(task)

    def here(self) -> list[Task]:
        """The other tasks of this process that were called."""
        return [peer.task for peer in list(self._peers.values()) if isinstance(peer, Peer)]

    def way_to(self, task: str) -> Peer | Absent | WorkerStub:
        """The worker of another task as it can be called now: in this process, or over the wire."""
        address = self.addresses.get(task)
        if address is None:
            tasks = ", ".join(self.addresses)
            raise errors.InvalidArgumentError.of(f"{self.name} knows no task {task}; its cluster has {tasks}.")
        found = inprocess.find(address)
        known = self._peers.get(task)
        if found is not None and not (isinstance(known, Peer) and known.task is found):
            known = self._peers[task] = Peer(self._task.name, found, self._task.faults)
        elif known is None or (found is None and isinstance(known, Peer)):
            known = self._peers[task] = self._stub(task, address)
        return known

    def _stub(self, task: str, address: str) -> Absent | WorkerStub:
        if isinstance(self._task.clock, VirtualClock):
            return Absent(task, address)
        from dtflab.cluster.worker_stub import WorkerStub

        return WorkerStub.at(task, address, self._task.credentials, self._task, not self._is_brought)

    def close(self) -> None:
        """Let all connections go."""
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()


def await_task(
    ask: Callable[[], object], task: str, address: str, clock: Clock, seconds: float, appeared: Callable[[], object]
) -> None:
    """Ask until the task answers, or until it `appeared` in this process. `task` is "" for a session's target.

    UnavailableError after `seconds`, or once the task has accepted connections for 2 × `timeouts.silence` and has never
    answered.
    """
    kind, where = ("Task", f"{task} at {address}") if task else ("The session's target", address)
    start = reminded = clock.now()
    hung_since = math.inf
    while not appeared():
        asked = clock.now()
        try:
            ask()
            return
        except errors.UnavailableError as error:
            last = error
        now = clock.now()
        if now - reminded >= timeouts.notice:  # also if the time is up by now: on a busy machine to ask may take long
            reminded = now
            listener()(f"CreateSession still waiting for response from worker: {where}")
        reason = _reason(last)
        is_there = is_hung(last, address)
        hung_since = min(asked, hung_since) if is_there else math.inf
        if is_there and (now - start > seconds or now - hung_since >= 2 * timeouts.silence):
            raise errors.UnavailableError.of(
                f"{kind} {where} accepts connections but does not answer (for {min(seconds, 2 * timeouts.silence):g} "
                "s): is it stopped or overloaded?"
            )
        if now - start > seconds:
            raise errors.UnavailableError.of(
                f"{kind} {where} did not answer within {seconds:g} s ({reason}). {_advice(address)}"
            )
        clock.sleep(min(0.05, seconds))


def is_hung(error: errors.OpError, address: str) -> bool:
    """Whether somebody accepts connections at an address, although a call there had no answer but this error."""
    return _is_unheard(_reason(error)) and _accepts(address)


def _is_unheard(reason: str) -> bool:
    """Whether a task that is stopped may be the reason, too; `silence` has given it up, or gRPC has met nobody yet."""
    return reason in _UNHEARD or reason.startswith(SILENT)


def _accepts(address: str) -> bool:
    """Whether somebody listens at an address. gRPC says what it met last, as that ::1 refuses where 127.0.0.1 hangs."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, OverflowError), socket.create_connection((host.strip("[]"), int(port)), 1.0):
        return True
    return False


def _advice(address: str) -> str:
    if address.endswith(":0"):
        return "No other task can know the free port of a task with port 0: give it a port in the cluster spec."
    return "Is that its address? Start it with tf.train.Server(cluster_spec, job_name=…, task_index=…)."


def _reason(error: errors.OpError) -> str:
    """The brackets that end the error's first line, or all of it; other lines are for clients with a session there."""
    line = error.message.splitlines()[0]
    found = re.search(r"\(([^()]*)\)\.$", line)
    return found[1] if found else line.rstrip(".")

"""The engine of tasks that run already: `dtflab serve`, tf.train.Server, another notebook's, TensorFlow's servers.

    tf.Cluster(["host-a:2222"], engine="attached")

Rules: each task says which one it is. A task of dtflab also says which tasks its cluster has, so one address of such a
cluster is enough. Nothing is started or ended from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.base.timeouts import timeouts
from dtflab.cluster.addresses import check_address
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.task import is_hung
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.console import say

if TYPE_CHECKING:
    from dtflab.cluster.engines import Options, Setup
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.worker_stub import WorkerStub
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes

_FRESH_S = 1.0  # for which a task's state is not asked again
_ANSWER_S = 2.0  # for a task that is asked for its state
_HUNG = "accepts connections but does not answer: is it stopped?"
_PAUSE_S = 0.2  # until a task that is not there is asked again


class _Found(NamedTuple):
    """A task, as it describes itself."""

    name: str
    address: str  # at which it was asked
    incarnation: int
    cluster: Mapping[str, str] | None  # the addresses of all tasks of its cluster, by name; TensorFlow's does not say


class Attached:
    """Tasks that somebody else started."""

    are = "tasks that were started elsewhere"
    makes_token = False
    shares_cards = False

    def __init__(self, options: Options) -> None:
        if options.listen or options.insecure or options.allow_files is not None:
            raise ValueError(
                "engine='attached' takes tasks as they were started: leave listen=…, insecure=… and allow_files=… out."
            )
        self.is_dtflab = True
        self._credentials = PLAIN
        self._timeout = options.timeout

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Raise ValueError for what can only be said when a task is started."""
        if simulates:
            raise ValueError("gpus=… simulates GPUs of tasks that a cluster starts: leave it out to attach to others.")
        self._credentials = credentials

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """The cluster of the tasks at the addresses, with those that it has besides.

        An address may be a session's target, too. Raises UnavailableError for one where no task answers, ValueError for
        those of two clusters, or of one task.
        """
        if jobs or not spec or isinstance(spec, str) or not all(isinstance(each, str) for each in spec):
            raise ValueError(
                "engine='attached' takes a list of addresses, because each task says which one it is: "
                "Cluster(['localhost:2222'], engine='attached'), or %dtf_cluster attach localhost:2222."
            )
        end = REAL.now() + self._timeout
        found = whole([each.removeprefix("grpc://") for each in spec], lambda address: self._ask(address, end))
        self.is_dtflab = all(task.cluster is not None for task in found.values())
        tasks: dict[str, dict[int, str]] = {}
        for task in sorted(found.values()):
            job, index = device_spec.job_and_index(task.name)
            tasks.setdefault(job, {})[index] = task.address
        return ClusterSpec(tasks)

    def _ask(self, address: str, end: float) -> _Found:
        check_address(address)
        stub = _stub("", address, self._credentials)
        try:
            device = self._answer(stub, address, end)
            return _Found(device_spec.task_name(device.name), address, device.incarnation, _cluster_of(stub))
        except errors.UnavailableError as error:
            raise errors.UnavailableError.of(f"No task to attach to at {address}: {error.message}") from None
        finally:
            stub.close()

    def _answer(self, stub: WorkerStub, address: str, end: float) -> DeviceAttributes:
        """The first device of the task. One that hangs is asked until `end`: a line says so, then UnavailableError."""
        told = REAL.now()
        while True:
            try:
                return stub.get_status(max(min(_ANSWER_S, end - REAL.now()), _PAUSE_S))[0]
            except errors.UnavailableError as error:
                last = error
            if not is_hung(last, address):
                raise errors.UnavailableError.of(
                    f"{last.message.splitlines()[0]} Start it first (dtflab serve, tf.train.Server), and give its "
                    "address as this machine reaches it."
                )
            if REAL.now() >= end:
                raise errors.UnavailableError.of(f"a task there {_HUNG} It had {self._timeout:g} s (timeout=…).")
            if REAL.now() - told >= timeouts.notice:
                told = REAL.now()
                say(f"still waiting for the task at {address}, which {_HUNG}")
            REAL.sleep(min(_PAUSE_S, max(end - REAL.now(), 0.0)))

    def start(self, setup: Setup, job: str, index: int) -> AttachedTask:
        """Attach to a task, which has answered."""
        name = device_spec.name_of_task(job, index)
        return AttachedTask(name, setup.spec.task_address(job, index), setup.credentials)


def _cluster_of(stub: WorkerStub) -> dict[str, str] | None:
    try:
        rows: list[Any] = stub.view("Members")
    except errors.UnimplementedError:
        return None
    return dict(rows)


def whole(addresses: Sequence[str], ask: Callable[[str], _Found]) -> dict[str, _Found]:
    """All tasks of the cluster at these addresses; ValueError if they are not of one cluster, or not each another one.

    An address that was given is how this machine reaches the task, whatever the other tasks call it.
    """
    found: dict[str, _Found] = {}
    for address in addresses:
        task = ask(address)
        if (known := found.setdefault(task.name, task)) is not task:
            raise ValueError(_twice(known, task))
    for told_by in list(found.values()):
        for name, address in (told_by.cluster or {}).items():
            if name not in found:
                found[name] = _expected(ask(address), name, told_by)
    _check_one(list(found.values()))
    return found


def _twice(known: _Found, task: _Found) -> str:
    if known.incarnation == task.incarnation:
        return f"{known.address} and {task.address} lead to one task, {_short(task)}: give its address once."
    return (
        f"The tasks at {known.address} and {task.address} both are {_short(task)}, each in a cluster of its own. "
        "Attach to one of them."
    )


def _expected(task: _Found, name: str, told_by: _Found) -> _Found:
    if task.name != name:
        raise ValueError(
            f"{_short(told_by)} at {told_by.address} says that {device_spec.plain(name)} of its cluster is at "
            f"{task.address}, but seen from here {_short(task)} is there. Give the address of each task as this "
            "machine reaches it."
        )
    return task


def _check_one(found: Sequence[_Found]) -> None:
    """ValueError if two tasks say that they belong to different clusters."""
    first, *others = [task for task in found if task.cluster is not None] or found[:1]
    for other in others:
        one, two = first.cluster or {}, other.cluster or {}
        shared = one.keys() & two.keys()
        if not shared or any(one[name] != two[name] for name in shared):
            raise ValueError(
                f"{_short(first)} at {first.address} and {_short(other)} at {other.address} belong to two clusters. "
                "Attach to each with a Cluster of its own."
            )


def _short(task: _Found) -> str:
    return device_spec.plain(task.name)


def _stub(task: str, address: str, credentials: Credentials) -> WorkerStub:
    from dtflab.cluster.worker_stub import WorkerStub

    return WorkerStub.at(task, address, None if credentials == PLAIN else credentials)


class AttachedTask:
    """A task that runs elsewhere, as long as this cluster is attached to it."""

    def __init__(self, name: str, address: str, credentials: Credentials) -> None:
        self.name = name
        self.address = address
        self.target = f"grpc://{address}"
        self._credentials = credentials
        if credentials != PLAIN:
            the_credentials.remember(address, credentials)
        self._stub = _stub(name, address, credentials)
        self._is_attached = True
        self._state = "running"
        self._asked = REAL.now()

    def wait_ready(self, timeout: float, since: float | None = None) -> None:
        """Return at once: it has answered."""

    @property
    def state(self) -> str:
        """The state: "running", "does not answer", or "detached" once the cluster has stopped."""
        if not self._is_attached:
            return "detached"
        if REAL.now() - self._asked >= _FRESH_S:
            try:
                self._stub.get_status(_ANSWER_S)
                self._state = "running"
            except errors.OpError:
                self._state = "does not answer"
            self._asked = REAL.now()
        return self._state

    def devices(self) -> list[Any]:
        """DeviceAttributes of its devices."""
        return self._stub.get_status()

    def view(self, name: str) -> Sequence[Any]:
        """The rows of a view of the task (views.VIEWS)."""
        return self._stub.view(name)

    def ask_to_end(self, grace: bool = True) -> None:
        """Do nothing: it was started elsewhere."""

    def stop(self) -> None:
        """Detach from the task, which runs on."""
        self._is_attached = False
        self._stub.close()
        the_credentials.forget(self.address, self._credentials)

    def kill(self) -> None:
        """Raise FailedPreconditionError."""
        raise self.not_ours("killed")

    def pause(self) -> None:
        """Raise FailedPreconditionError."""
        raise self.not_ours("stopped")

    def go_on(self) -> None:
        """Raise FailedPreconditionError."""
        raise self.not_ours("stopped")

    def set_faults(self, setting: Setting) -> None:
        """Ask the task, which refuses unless the cluster that started it allows faults."""
        self._stub.set_faults(setting)

    def not_ours(self, done: str) -> errors.OpError:
        """The error for what can be done only where the task was started."""
        return errors.FailedPreconditionError.of(
            f"{device_spec.plain(self.name)} at {self.address} was started elsewhere, and can't be {done} from here. "
            "Do that where it was started; sessions find it again at its address."
        )


class AwaitedTask(AttachedTask):
    """A task of another host, which a user starts there by a command."""

    def __init__(self, name: str, address: str, credentials: Credentials, command: str) -> None:
        super().__init__(name, address, credentials)
        self.advice = f"Start it on {address.rpartition(':')[0]}: {command}"
        self.command, self.silence = command, ""

    def wait_ready(self, timeout: float, since: float | None = None) -> None:
        """Return when it answers; see await_all."""
        await_all([self], timeout, since)

    def answers(self) -> bool:
        """Ask the task: True if it answers; else `silence` has the reason. ValueError if another task answers."""
        try:
            found = device_spec.task_name(self._stub.get_status(_ANSWER_S)[0].name)
        except errors.UnavailableError as error:
            self.silence = error.message.splitlines()[0]
            return False
        if found != self.name:
            raise ValueError(f"{self.name} should be at {self.address}, but {found} is there.")
        return True


def await_all(tasks: Sequence[AwaitedTask], timeout: float, since: float | None = None) -> None:
    """Return when all answer; every `timeouts.notice` seconds a line for each that does not says how to start it.

    So does UnavailableError if they do not come up in time, `timeout` seconds from `since`, or from now.
    """
    start = REAL.now() if since is None else since
    told, missing = -math.inf, list(tasks)
    while missing := [task for task in missing if not task.answers()]:
        if REAL.now() - start >= timeout:
            why = (f"{task.silence} It did not come up within {timeout:g} s. {task.advice}" for task in missing)
            raise errors.UnavailableError.of("\n".join(why))
        if REAL.now() - told >= timeouts.notice:
            told = REAL.now()
            for task in missing:
                say(f"still waiting for {device_spec.plain(task.name)} at {task.address}. {task.advice}")
        REAL.sleep(_PAUSE_S)

"""Engines: where the tasks of a cluster live, and how they start.

Rule: a cluster is the same thing over all engines. What they differ in is asked of the engine or of its tasks, by the
two protocols here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dtflab.base import errors
from dtflab.base.suggestions import did_you_mean
from dtflab.cluster import addresses
from dtflab.cluster.attached import Attached, AwaitedTask
from dtflab.cluster.dask_engine import Dask
from dtflab.cluster.process import KINDS, Kind, ProcessTask
from dtflab.cluster.serve import command
from dtflab.cluster.server import Server
from dtflab.cluster.views import VIEWS
from dtflab.graph import device_spec
from dtflab.machine.hosts import is_loopback

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.cluster.cluster_spec import ClusterSpec
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.hosts_of_tasks import Homes
    from dtflab.machine.clock import Clock
    from dtflab.protos.config_pb2 import ConfigProto


class RunningTask(Protocol):
    """A task as its engine knows it. It is started when it is made, and `wait_ready` returns once it serves.

    It may take `timeout` seconds, from the moment `since` on if several share them, else from now.
    """

    name: str
    address: str
    target: str

    @property
    def state(self) -> str: ...
    def wait_ready(self, timeout: float, since: float | None = None) -> None: ...
    def devices(self) -> list[Any]: ...
    def view(self, name: str) -> Sequence[Any]: ...
    def ask_to_end(self, grace: bool = True) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def go_on(self) -> None: ...
    def set_faults(self, setting: Setting) -> None: ...


class Setup(NamedTuple):
    """The arguments that all tasks of a cluster share."""

    spec: ClusterSpec
    config: ConfigProto | None
    credentials: Credentials
    homes: Homes
    clock: Clock


class Options(NamedTuple):
    """The arguments of a cluster that its engine has to know, most of them only for some."""

    listen: bool = False
    client: Any = None
    insecure: bool = False
    allow_files: Any = None
    timeout: float = 60.0


class Engine(Protocol):
    """The place of a cluster's tasks."""

    are: str  # what its tasks are, for messages
    is_dtflab: bool  # its tasks have simulated GPUs, and report what they hold
    shares_cards: bool  # its tasks see the same real GPUs, those of this machine
    makes_token: bool  # its tasks ask for a token of their own unless the program says otherwise

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Raise FailedPreconditionError for a missing package, ValueError for what its tasks can't have."""

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """The addresses of the tasks that a program asks for; ValueError for those that can't be."""

    def start(self, setup: Setup, job: str, index: int) -> RunningTask:
        """Begin to start a task."""


class InProcess:
    """Tasks that are objects of this process. Their addresses are only names, unless they listen."""

    are = "objects of this process"
    is_dtflab = True
    shares_cards = True
    makes_token = False

    def __init__(self, options: Options) -> None:
        self._options = options

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Nothing is missing, and nothing is wrong."""

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """The addresses given, names, or free ports of loopback if they listen."""
        return addresses.spec_of(spec, jobs, name, with_ports=self._options.listen)

    def start(self, setup: Setup, job: str, index: int) -> InProcessTask:
        """Start a task."""
        return InProcessTask(setup, job, index, self._options)


class InProcessTask:
    """A task in this process."""

    def __init__(self, setup: Setup, job: str, index: int, options: Options) -> None:
        self.server = Server(
            setup.spec, job, index, config=setup.config, credentials=setup.credentials, listen=options.listen,
            insecure=options.insecure, allow_files=options.allow_files, clock=setup.clock,
            home=setup.homes.of(job, index),
        )  # fmt: skip
        self.server.task.faults.allow()
        self.name = self.server.task.name
        self.address = self.server.task.address
        self.target = self.server.target
        self._was_killed = False

    @property
    def state(self) -> str:
        return "running" if not self.server.task.stopped else "killed" if self._was_killed else "stopped"

    def wait_ready(self, timeout: float, since: float | None = None) -> None:
        """Return at once: it serves since it was made."""

    def devices(self) -> list[Any]:
        """DeviceAttributes of its devices."""
        return self.server.task.worker.get_status()

    def view(self, name: str) -> Sequence[Any]:
        """The rows of a view of the task (views.VIEWS); UnavailableError if it is paused, as a process is then."""
        if not self.server.task.faults.pace.gate.is_open:
            raise errors.UnavailableError.of(f"{self.name} is paused: it answers nothing until it goes on.")
        return VIEWS[name](self.server.task)

    def ask_to_end(self, grace: bool = True) -> None:
        """Do nothing: `stop` does not have to wait."""

    def stop(self) -> None:
        """End the task."""
        self.server.stop()

    def kill(self) -> None:
        """End the task, as a crash would; nothing happens if it has ended."""
        self._was_killed |= self.state == "running"
        self.stop()

    def pause(self) -> None:
        """Hold all that the task does, and all messages to and from it, until `go_on`."""
        self.server.task.pause()

    def go_on(self) -> None:
        """Let go what is held."""
        self.server.task.faults.go_on()

    def set_faults(self, setting: Setting) -> None:
        """Set the faults of the task."""
        self.server.task.set_faults(setting)


class Processes:
    """Tasks that are processes of this machine; those at addresses of other hosts are started there, by a command."""

    shares_cards = True

    def __init__(self, name: str, kind: Kind, options: Options) -> None:
        self._name, self._kind, self._options = name, kind, options  # they always listen
        self.are, self.is_dtflab, self.makes_token = kind.are, kind.is_dtflab, kind.is_dtflab
        if not self.is_dtflab and (options.insecure or options.allow_files is not None):
            raise ValueError(f"{self.are} know neither insecure=… nor allow_files=…: leave them out.")

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Raise FailedPreconditionError for a missing package, ValueError for what its servers can't have."""
        self._kind.check(self._name, simulates, credentials)

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """The addresses given, or free ports of loopback; ValueError for others than loopback's of TensorFlow."""
        found = addresses.spec_of(spec, jobs, name, with_ports=True)
        if not self.is_dtflab:
            addresses.check_loopback(found, self._name)
        return found

    def start(self, setup: Setup, job: str, index: int) -> ProcessTask | AwaitedTask:
        """Start a process, or wait for one that a user starts on another host."""
        insecure, allow_files = self._options.insecure, self._options.allow_files
        addresses.check_hosts(setup.spec, insecure or setup.credentials.is_tls)
        address = setup.spec.task_address(job, index)
        if not (is_loopback(address) or addresses.is_here(address)):
            line = command(setup.spec, job, index, setup.credentials, insecure, allow_files)
            return AwaitedTask(device_spec.name_of_task(job, index), address, setup.credentials, line)
        environment = setup.homes.environment(job, index)
        options = {"insecure": insecure, "allow_files": allow_files} if self.is_dtflab else {}
        return ProcessTask(setup.spec, job, index, setup.config, environment, self._name, setup.credentials, options)


ENGINES: Mapping[str, Callable[[Options], Engine]] = MappingProxyType(
    {
        "inprocess": InProcess,
        **{name: functools.partial(Processes, name, kind) for name, kind in KINDS.items()},
        "dask": Dask,
        "attached": Attached,
    }
)


def engine_for(name: str, options: Options) -> Engine:
    """The engine of that name; ValueError for an unknown one, and for options that it does not have."""
    if name not in ENGINES:
        raise ValueError(
            f"Unknown engine {name!r}.{did_you_mean(str(name), ENGINES)} Choose one of {', '.join(ENGINES)}."
        )
    if name != "dask" and options.client is not None:
        raise ValueError(f"client=… is for engine='dask', not {name!r}: leave it out.")
    return ENGINES[name](options)

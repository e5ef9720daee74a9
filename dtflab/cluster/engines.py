"""Engines: where the tasks of a cluster live, and how they start.

Rule: a cluster is the same thing over all engines. What they differ in is asked of the engine or of its tasks, by the
two protocols here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dtflab.cluster import addresses
from dtflab.cluster.process import KINDS, Kind, ProcessTask
from dtflab.cluster.server import Server
from dtflab.cluster.views import VIEWS

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.cluster.cluster_spec import ClusterSpec
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.hosts_of_tasks import Homes
    from dtflab.machine.clock import Clock
    from dtflab.protos.config_pb2 import ConfigProto


class RunningTask(Protocol):
    """A task as its engine knows it. It is started when it is made, and `wait_ready` returns once it serves."""

    name: str
    address: str
    target: str

    @property
    def state(self) -> str: ...
    def wait_ready(self, timeout: float) -> None: ...
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


class Engine(Protocol):
    """The place of a cluster's tasks."""

    are: str  # what its tasks are, for messages
    is_dtflab: bool  # its tasks have simulated GPUs, and report what they hold
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
    makes_token = False

    def __init__(self, listen: bool = False) -> None:
        self._listen = listen

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Nothing is missing, and nothing is wrong."""

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """The addresses given, names, or free ports of loopback if they listen."""
        return addresses.spec_of(spec, jobs, name, with_ports=self._listen)

    def start(self, setup: Setup, job: str, index: int) -> InProcessTask:
        """Start a task."""
        return InProcessTask(setup, job, index, self._listen)


class InProcessTask:
    """A task in this process."""

    def __init__(self, setup: Setup, job: str, index: int, listen: bool) -> None:
        self.server = Server(
            setup.spec, job, index, config=setup.config, credentials=setup.credentials, listen=listen,
            clock=setup.clock, home=setup.homes.of(job, index),
        )  # fmt: skip
        self.server.task.faults.allow()
        self.name = self.server.task.name
        self.address = self.server.task.address
        self.target = self.server.target

    @property
    def state(self) -> str:
        return "stopped" if self.server.task.stopped else "running"

    def wait_ready(self, timeout: float) -> None:
        """Return at once: it serves since it was made."""

    def devices(self) -> list[Any]:
        """DeviceAttributes of its devices."""
        return self.server.task.worker.get_status()

    def view(self, name: str) -> Sequence[Any]:
        """The rows of a view of the task (views.VIEWS)."""
        return VIEWS[name](self.server.task)

    def ask_to_end(self, grace: bool = True) -> None:
        """Do nothing: `stop` does not have to wait."""

    def stop(self) -> None:
        """End the task."""
        self.server.stop()

    kill = stop

    def pause(self) -> None:
        """Hold all that the task does, and all messages to and from it, until `go_on`."""
        self.server.task.pause()

    def go_on(self) -> None:
        """Let go what is held."""
        self.server.task.faults.go_on()

    def set_faults(self, setting: Setting) -> None:
        """Set the faults of the task."""
        self.server.task.faults.set(setting)


class Processes:
    """Tasks that are processes of this machine."""

    def __init__(self, name: str, kind: Kind, listen: bool = True) -> None:
        self._name, self._kind = name, kind  # they always listen
        self.are, self.is_dtflab, self.makes_token = kind.are, kind.is_dtflab, kind.is_dtflab

    def check(self, simulates: bool, credentials: Credentials) -> None:
        """Raise FailedPreconditionError for a missing package, ValueError for what its servers can't have."""
        self._kind.check(self._name, simulates, credentials)

    def spec(self, spec: Any, jobs: dict[str, Any], name: str) -> ClusterSpec:
        """The addresses given, or free ports of loopback; ValueError for others than loopback's."""
        found = addresses.spec_of(spec, jobs, name, with_ports=True)
        addresses.check_loopback(found, self._name)
        return found

    def start(self, setup: Setup, job: str, index: int) -> ProcessTask:
        """Start a process."""
        environment = setup.homes.environment(job, index)
        return ProcessTask(setup.spec, job, index, setup.config, environment, self._name, setup.credentials)


ENGINES: Mapping[str, Callable[[bool], Engine]] = MappingProxyType(
    {"inprocess": InProcess, **{name: functools.partial(Processes, name, kind) for name, kind in KINDS.items()}}
)

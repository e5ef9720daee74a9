"""The seam between client, master and worker: what each may ask of the other, wherever it is.

Stands for `master_interface.h`, `worker_interface.h` and `session_factory.h`. In one process the callee's own methods
are called; between processes a stub turns each call into an RPC (`cluster/worker_stub.py`).

Rule: this room defines the protocols and knows no implementation; transports register themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dtflab.base import errors

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.graph.node import Node
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.protos.tensorflow_server_pb2 import ServerDef
    from dtflab.runtime.master import MasterSession
    from dtflab.runtime.rendezvous import Done
    from dtflab.runtime.runner import Step
    from dtflab.runtime.steps import Steps
    from dtflab.runtime.worker import Worker

Feeds = Sequence[tuple[str, object]]  # tensor names and their values, into which this seam does not look


class MasterInterface(Protocol):
    """The calls of a client to the master of its session."""

    @property
    def task(self) -> str:
        """The task of the master, as far as it is known."""

    def create_session(self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None) -> str:
        """Open a session on a graph; returns its handle."""

    def extend_session(self, handle: str, nodes: Sequence[Node]) -> None:
        """Add nodes to the session's graph."""

    def run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[object]:
        """Run one step: values of `fetches` (tensor names), after the operations `targets` have run."""

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> str:
        """Begin a step that is fed and fetched in several calls; returns its handle."""

    def partial_run(self, handle: str, partial_handle: str, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        """Feed some of its tensors and fetch others."""

    def close_session(self, handle: str) -> None:
        """Release the session and its partitions."""

    def reset(self, containers: Sequence[str]) -> None:
        """Close all sessions and empty the containers (the default one if none is named) on every task."""

    def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """The devices of the session."""

    def placed(self, handle: str, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph, or the part of it that `fetches` and `targets` need."""

    def reasons(self, handle: str) -> dict[str, str]:
        """Why each node of the placed graph is where it is, in a sentence; by name."""

    def step_through(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None,
        metadata: RunMetadata | None,
        rebuild: Callable[[list[object]], object],
        explain: Explain,
    ) -> Steps:
        """Begin a step that stands still before each set; its values go through `rebuild`, its errors `explain`."""

    def local(self) -> LocalMaster | None:
        """This master with all that it can do, if it is in this process; None for one elsewhere."""


class LocalMaster(MasterInterface, Protocol):
    """The calls that only a master in the client's own process can answer."""

    def session(self, handle: str) -> MasterSession:
        """The session of a handle: its placed graph, and why each node is where it is."""

    def create_session(
        self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None, target: str = ""
    ) -> str:
        """Open a session.

        In a cluster that the session brings, the master is the task at `target`, the address that its client uses, or
        else at its own address.
        """

    def run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
        watch: Callable[[Step], object] | None = None,
    ) -> list[object]:
        """Run one step. `watch(step)` is called before it begins, so that the caller can cancel it."""

    def running(self) -> list[Step]:
        """The steps that run, those that take several calls included."""


Explain = Callable[[errors.OpError | KeyboardInterrupt], BaseException]  # the error as its user should see it


class Scope(NamedTuple):
    """The things that a session has for itself on a task: a cluster that it brings, which names the task; a state.

    `files` is the one folder whose files its steps may open, "" for none, because other machines can reach its master.
    """

    server_def: ServerDef | None = None
    isolated: bool = False
    files: str | None = None


SHARED = Scope()  # the state of the task, and its cluster


class Members(Protocol):
    """The tasks of a cluster as one of them, which is called `name` there, can reach them."""

    name: str

    @property
    def addresses(self) -> Mapping[str, str]:
        """The addresses of all tasks."""

    def peer(self, task: str) -> WorkerInterface:
        """The worker of another task, to pull from. Does not wait: if it is gone, the pull says so."""

    def reach(self, task: str) -> WorkerInterface:
        """The worker of a task; waits for it to come up."""

    def close(self) -> None:
        """Let all connections go."""


Join = Callable[["ServerDef", str], Members]  # join(definition, target): the task in a cluster that a session brings


class WorkerInterface(Protocol):
    """The calls of a master, or of another worker, to a worker."""

    def get_status(self) -> list[DeviceAttributes]:
        """The worker's devices."""

    def create_worker_session(
        self, session: str, master_task: str, master_incarnation: int, scope: Scope = SHARED
    ) -> None:
        """Begin to keep what a session has for itself: the state of its kernels, and what `scope` says."""

    def delete_worker_session(self, session: str) -> None:
        """Forget what a session has for itself; other variables stay."""

    def register_graph(self, session: str, nodes: Sequence[Node], going: Callable[[], object] = bool) -> str:
        """Keep a partition, ready to run; returns its graph handle. Work here ends by an error that `going` raises."""

    def deregister_graph(self, session: str, graph_handle: str) -> None:
        """Forget a partition."""

    def run_graph(
        self,
        session: str,
        graph_handle: str,
        step: Step,
        args: Sequence[object] = (),
        results: list[object] | None = None,
    ) -> None:
        """Start a registered partition as part of `step`; returns before it has run."""

    def recv_tensor(self, step_id: int, key: str, done: Done) -> Callable[[], object] | None:
        """Call `done(value, error)` when the value of `key` is there; may return what gives up waiting."""

    def cleanup_graph(self, step_id: int, error: Exception | None = None) -> None:
        """The step is over: forget what is left of it."""

    def waits(self) -> list[str]:
        """The waits there, as far as they are known without asking: a line for each, with its step."""

    def cleanup_all(self, containers: Sequence[str]) -> None:
        """Empty resource containers."""

    def local(self) -> Worker | None:
        """The worker itself, if it is in this process; None for one elsewhere."""


Connect = Callable[[str, "ConfigProto | None", "Credentials | None"], MasterInterface]
_schemes: dict[str, Connect] = {}


def register_scheme(scheme: str, connect: Connect) -> None:
    """Sessions whose target begins with `scheme://` get their master from `connect(target, config, credentials)`."""
    _schemes[scheme] = connect


def connection_to(target: str) -> Connect:
    """The function that connects to the master of a session target; NotFoundError for an unregistered scheme."""
    scheme, separator, _ = target.partition("://")
    if not separator and target:
        raise errors.NotFoundError.of(
            f"No session factory registered for the given session options: target: {target!r}. "
            "Use '' for a local session, or server.target / 'grpc://host:port' for a cluster."
        )
    connect = _schemes.get(scheme)
    if connect is None:
        known = ", ".join(sorted(s + "://" for s in _schemes if s))
        raise errors.NotFoundError.of(
            f"No session factory registered for target {target!r}. Known: '' (local), {known}."
        )
    return connect

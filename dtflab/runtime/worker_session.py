"""WorkerSession: what one session has on a task.

Stands for `worker_session.cc`, `session_mgr.cc` and `common_runtime/renamed_device.cc`.

Rules: a session uses the devices of its task, and so the variables and queues there, which outlive it. One that brings
a cluster (`cluster_def`) knows the task, its devices and its peers by other names. An isolated one has a state of its
own on each device, which ends with it. Where other machines can reach the master, its limits on files hold on all tasks
that have none of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dtflab.files.env import Env, GuardedEnv
from dtflab.graph import device_spec
from dtflab.runtime.graph_mgr import GraphMgr
from dtflab.runtime.transport import SHARED, Scope

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.protos.cluster_pb2 import ClusterDef
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.protos.tensorflow_server_pb2 import ServerDef
    from dtflab.runtime.transport import Members, WorkerInterface
    from dtflab.runtime.worker import Worker


class WorkerSession:
    """A session on the task that it calls `task`. `peers(task)` gives the worker of another task of its cluster."""

    pushes = True  # other tasks have in its keys the names by which this task knows them

    def __init__(
        self, task: str, devices: Sequence[Device], graphs: GraphMgr, peers: Callable[[str], WorkerInterface]
    ) -> None:
        self.task = task
        self.devices = devices
        self.graphs = graphs
        self.peers = peers
        self.kernel_state: dict[str, object] = {}

    def isolated_devices(self) -> Sequence[Device]:
        """The devices on which it has a state of its own."""
        return ()

    def close(self) -> None:
        """Forget the state of its kernels, also if an error still holds a step of it; variables stay."""
        self.kernel_state.clear()


class OwnWorkerSession(WorkerSession):
    """A session with names of its own for tasks and devices, a state of its own, or files of its own to open."""

    def __init__(self, shared: WorkerSession, members: Members | None, isolated: bool, env: Env | None) -> None:
        """`shared` is what it would have otherwise; `members` is the cluster that it brings, `env` what it opens."""
        self.pushes = members is None
        self._members = members
        self._isolated = isolated
        task, peers = (shared.task, shared.peers) if members is None else (members.name, members.peer)
        devices = [device.renamed(task, isolated) for device in shared.devices]
        if env is not None:
            for device in devices:
                device.env = env
        super().__init__(task, devices, GraphMgr(devices), peers)

    def isolated_devices(self) -> Sequence[Device]:
        """The devices on which it has a state of its own."""
        return self.devices if self._isolated else ()

    def close(self) -> None:
        """Forget the state of its kernels, and end what it had for itself."""
        super().close()
        for device in self.isolated_devices():
            device.resources.clear()
        if self._members is not None:
            self._members.close()


def session_on(worker: Worker, scope: Scope, master: str = "") -> WorkerSession:
    """A session of `master` on a worker, with what its scope says."""
    shared = WorkerSession(worker.task, worker.devices, worker.graphs, worker.peers)
    if _files(worker) is not None:
        scope = scope._replace(files=None)  # the worker's own limits hold
    if scope == SHARED:
        return shared
    members = None
    if worker.join is not None and scope.server_def is not None:
        members = worker.join(scope.server_def, "")
    env = None if scope.files is None else GuardedEnv(master, scope.files if os.path.isdir(scope.files) else None)
    return OwnWorkerSession(shared, members, scope.isolated, env)


def scope_on(task: str, config: ConfigProto, master: Worker) -> Scope:
    """The things that a session of that config has for itself on a task; `master` is the worker of its master's task.

    A session that brings a cluster has its own state, too, unless it asks for the servers'.
    """
    shares = config.experimental.share_session_state_in_clusterspec_propagation
    if not config.cluster_def.job:
        return Scope(None, config.isolate_session_state and not shares, _files(master))
    return Scope(server_def(config.cluster_def, task), not shares, _files(master))


def _files(worker: Worker) -> str | None:
    """The one folder whose files steps on a worker may open, "" for none; None: no limits."""
    return worker.devices[0].env.folder if worker.devices else None


def server_def(cluster: ClusterDef, task: str = "") -> ServerDef:
    """The definition of a server in a session's cluster: which task it is there, if that is known."""
    from dtflab.protos.tensorflow_server_pb2 import ServerDef

    spec = device_spec.parse(task)
    return ServerDef(cluster=cluster, job_name=spec.job, task_index=spec.task, protocol="grpc")


def renamed(device: DeviceAttributes, task: str) -> DeviceAttributes:
    """A device of the worker that a session calls `task`, under the name that it has in that session."""
    name = f"{task}/device:{device.name.rpartition('/device:')[2]}"
    if name == device.name:
        return device
    other = type(device)()
    other.CopyFrom(device)
    other.name = name
    return other

"""A master whose sessions bring a cluster: the tasks at their addresses of this moment, as `cluster_def`.

Rule: such a session is like one of the servers' own cluster. It shares their variables unless its config says
`isolate_session_state`, and a `cluster_def` of its own comes first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtflab.cluster.cluster_spec import ClusterSpec, members
from dtflab.cluster.master_stub import MasterStub
from dtflab.cluster.wire import Wire
from dtflab.cluster.worker_stub import WorkerStub
from dtflab.graph import device_spec
from dtflab.protos.config_pb2 import ConfigProto

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.graph.node import Node
    from dtflab.placement.own_placer import Placer


class BringingMaster(MasterStub):
    """The master at an address, one of the tasks of `spec`."""

    def __init__(self, address: str, credentials: Credentials, spec: ClusterSpec) -> None:
        super().__init__(Wire(address, credentials))
        self._address, self._credentials, self._spec = address, credentials, spec

    def create_session(self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None) -> str:
        """Open a session on a graph; see MasterStub."""
        found = ConfigProto()
        if config is not None:
            found.CopyFrom(config)
        if not found.cluster_def.job:
            found.cluster_def.CopyFrom(self._spec.as_cluster_def())
            if not found.isolate_session_state:
                found.experimental.share_session_state_in_clusterspec_propagation = True
        return super().create_session(nodes, found, placer)

    def reset(self, containers: Sequence[str]) -> None:
        """Close this master's sessions and empty containers on every task: its server knows only itself."""
        super().reset(containers)
        for job, index, address in members(self._spec):
            if address != self._address:
                task = device_spec.name_of_task(job, index)
                with contextlib.closing(WorkerStub.at(task, address, self._credentials)) as worker:
                    worker.cleanup_all(containers)

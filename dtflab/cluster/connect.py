"""Session target → master: the task of this process that has the address, or a stub for one elsewhere."""

from __future__ import annotations

from typing import Any

from dtflab.cluster import inprocess
from dtflab.cluster.task import await_task
from dtflab.cluster.timeouts import timeouts
from dtflab.runtime.clock import REAL


def master_at(target: str, config: Any) -> Any:
    """The master behind `grpc://address`; UnavailableError when nobody answers there within `timeouts.connect`."""
    address = target.partition("://")[2]
    if (task := inprocess.find(address)) is not None:
        return task.master
    from dtflab.cluster.grpc_transport import MasterStub, WorkerStub

    who = "behind the session's target"
    worker = WorkerStub(who, address)
    await_task(worker.get_status, who, address, REAL, timeouts.connect, lambda: inprocess.find(address))
    worker.close()
    return task.master if (task := inprocess.find(address)) is not None else MasterStub(address)

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
    task = inprocess.find(address)
    if task is not None:
        return task.master
    from dtflab.cluster.grpc_transport import MasterStub, WorkerStub

    worker = WorkerStub("behind the session's target", address)
    await_task(worker.get_status, "behind the session's target", address, REAL, timeouts.connect, lambda: None)
    return MasterStub(address)
